"""What a command prints for people."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transun.report.page import Cell

__all__ = ["print_cells", "print_table"]


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on standard output; text between brackets is shown as it is."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    shown = Table(*map(escape, header))
    for row in rows:
        shown.add_row(*map(escape, row))
    Console().print(shown)


def print_cells(table: "tuple[Sequence[str], Sequence[Sequence[Cell]]]") -> None:
    """A table of a report on standard output, each cell in one line."""
    from transun.report.diagnosis import cell_text

    header, rows = table
    print_table(header, [[cell_text(cell) for cell in row] for row in rows])
