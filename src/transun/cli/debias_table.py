"""`transun debias` of a table: a column of predictions is corrected, and written beside all others."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from transun.cli.output import print_blocks
from transun.cli.sources import readable, refuse_overwriting, require_writable
from transun.support.counting import counted

if TYPE_CHECKING:
    from transun.diagnosis.reading import ColumnNames
    from transun.diagnosis.repair import Repair

__all__ = ["debias_table"]

# The column that the table gains.
_CORRECTED = "corrected"


def debias_table(
    data: Path,
    names: "ColumnNames",
    method: str | None,
    seed: int,
    out: Path,
    as_json: bool,
    progress: bool | None,
) -> None:
    """Learn a correction from the rows with a target, write the table with the corrected predictions, and report.

    Args:
        data: the table, or - for standard input.
        names: its columns.
        method: the name of the correction; None chooses the best.
        seed: of the folds.
        out: the file of the result.
        as_json: print JSON.
        progress: show progress bars; None shows them on a terminal.

    """
    from transun.data.columns import column_names
    from transun.data.writing import STDOUT, require_ending
    from transun.diagnosis.repair import repair
    from transun.support.extras import require

    require("pyarrow", "scipy")
    require_ending(out)
    require_writable(out.parent)
    refuse_overwriting(data, out)
    if out == STDOUT:
        raise ValueError("debias prints its result on standard output: name a file with --out")
    with readable(data) as source:
        if _CORRECTED in column_names(source):
            raise ValueError(f"the table has a column {_CORRECTED!r} already: rename or drop it first")
        repaired = repair(source, names, method=method, seed=seed, progress=progress)
        _write(source, repaired, out, progress)
    _show(repaired, out, as_json)


def _write(source: Path, repaired: "Repair", out: Path, progress: bool | None) -> None:
    from transun.data.columns import column_names, open_columns
    from transun.data.writing import writes_plain_text, writing
    from transun.support.extras import need
    from transun.support.progress import Progress

    columns = column_names(source)
    # Types are for the correction; from CSV to CSV, all columns pass through as they are written.
    kept = open_columns(source, [], columns, verbatim=columns if writes_plain_text(out) else ())
    names = repaired.correct.names
    typed = open_columns(source, names.numbers, names.by)
    with Progress("correcting", kept.size, progress) as bar, writing(out) as write:
        for rows, numbers in zip(kept.chunks(), typed.chunks(), strict=True):
            write(rows.table.append_column(_CORRECTED, need("pyarrow").array(repaired.correct(numbers))))
            bar.advance(rows.done)


def _show(repaired: "Repair", out: Path, as_json: bool) -> None:
    from transun.report.assessment import correction_table
    from transun.report.formatting import as_json as dump

    chosen, outcomes = repaired.chosen, repaired.outcomes
    if as_json:
        counts = {"chosen": chosen, "learned": repaired.learned, "applied": repaired.applied, "out": str(out)}
        typer.echo(dump(counts | {"outcomes": outcomes}))
        return
    print_blocks([correction_table(outcomes)])
    before, after = outcomes[0], next(outcome for outcome in outcomes if outcome.name == chosen)
    typer.echo(
        f"{chosen}: out of fold, predicted / actual goes from {before.pgr.value:.3f} to {after.pgr.value:.3f} "
        f"(99 % {after.pgr.low:.3f} to {after.pgr.high:.3f}), learned from {counted(repaired.sampled, 'row')}"
    )
    typer.echo(f"Written to {out}: every column and {_CORRECTED!r}")
