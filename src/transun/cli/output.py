"""What a command prints for people."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from transun.cli.sources import write_texts

if TYPE_CHECKING:
    from transun.report.document import Block, Document

__all__ = ["deliver", "print_blocks", "print_table"]


def deliver(document: "Document", values: str, folder: Path, name: str, *, as_json: bool) -> None:
    """Write NAME.html, NAME.md and NAME.json into a folder, and print the short form, or the JSON text `values`."""
    values = values.rstrip("\n")
    # All texts are made before the first file is written: an error leaves the old files of all three.
    texts = {f"{name}.html": document.html(), f"{name}.md": document.markdown(), f"{name}.json": values + "\n"}
    write_texts(folder, texts)
    if as_json:
        typer.echo(values)
        return
    print_blocks(document.brief)
    typer.echo(f"Written to {folder}/: {', '.join(texts)}")


def print_blocks(blocks: "Iterable[Block]") -> None:
    """Print blocks of a report; tables fit the terminal, lines of text are not wrapped."""
    from rich.console import Console

    console = Console()
    for block in blocks:
        block.terminal(console)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table of texts."""
    from transun.report.document import Cell, Table

    print_blocks([Table(header, [[Cell(text) for text in row] for row in rows])])
