"""What commands say about rows that differ from those of training."""

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from transun.data.shift import TableShift

__all__ = ["require_seen", "show_shift"]


def show_shift(shift: "TableShift", model: str = "") -> None:
    """Print what is worth saying on standard error, since standard output may be the result.

    Args:
        shift: of the rows that were predicted.
        model: the name of the model, where there are several.

    """
    from transun.report.formatting import visible_line

    for sentence in shift.sentences():
        typer.echo(visible_line(f"{model}: {sentence}" if model else sentence), err=True)


def require_seen(shift: "TableShift", limit: float | None) -> None:
    """Raise a `ValueError` where a column has a larger share of ids that training has not seen than --max-unseen."""
    if limit is None:
        return
    for name in shift.above(limit):
        column = shift.columns[name]
        raise ValueError(
            f"column {name!r}: {100 * column.unseen_share:.1f} % of {column.values:,} values were not seen in "
            f"training, such as {column.examples[0]!r}, and --max-unseen allows {100 * limit:g} %: correct the column, "
            "train on newer rows, or raise the limit; nothing was written"
        )
