"""What a command prints for people."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transun.report.document import Block

__all__ = ["print_blocks", "print_table"]


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
