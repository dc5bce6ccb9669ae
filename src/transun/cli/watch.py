"""`transun watch`."""

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transun.cli.app import app
from transun.cli.options import By, Json
from transun.cli.output import deliver
from transun.cli.sources import STDIN, load_trained, readable, require_writable

if TYPE_CHECKING:
    from transun.models.certificate import Certificate
    from transun.watching.reading import Calendar, Every
    from transun.watching.watch import PredictedRows

# The share of the periods that are history if --since is not given.
_HISTORY = 0.5


@app.command()
def watch(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL_OR_CERTIFICATE", help="Folder of a saved model, or its certificate.json.")
    ],
    predicted: Annotated[Path, typer.Argument(help="Table of predictions with their ids and times.")],
    actual: Annotated[Path, typer.Option("--actual", help="Table of actual amounts with the ids of predictions.")],
    time: Annotated[str, typer.Option("--time", help="Column of the times of the predictions.")],
    id_column: Annotated[str, typer.Option("--id", help="Column of ids, which both tables have.")] = "id",
    pred: Annotated[str, typer.Option("--pred", help="Column of the predictions.")] = "prediction",
    arrived: Annotated[
        str | None,
        typer.Option("--arrived", help="Column of the times at which amounts became known; without it, at once."),
    ] = None,
    by: By = None,
    every: Annotated[str, typer.Option("--every", help="Length of a period: day, week or month.")] = "day",
    since: Annotated[
        str | None,
        typer.Option("--since", help="First day of the watch, as 2026-01-31; by default half of the days come before."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for watch.html, .md and .json.", file_okay=False)] = Path(
        "watch"
    ),
    as_json: Json = False,
) -> None:
    """Compare what was predicted with what came, and find out whether anything has changed, what, and since when.

    Labels may arrive late: what is expected by now follows from how late they came before the watch. One may look
    every day: in a year in which nothing changes, the probability of any alarm, in the total, a segment, the delay or
    the inputs, is at most 5 %. An id may have several amounts, which add up.
    Exit codes: 0 no change found, 1 something changed, 2 a mistake in the call or the data.

    Example: transun watch model predictions.csv --actual payments.csv --time day --id order --arrived paid
    """
    from transun.data import read_table
    from transun.report.watching import WatchReport, watch_document, watch_json
    from transun.watching.reading import WatchColumns, join_arrivals
    from transun.watching.watch import watch as find_changes

    length = _every(every)
    require_writable(out)
    target, certificate = _promise(model)
    columns = WatchColumns(time, id_column, pred, target, arrived, tuple(dict.fromkeys(by or [])))
    if predicted == STDIN and actual == STDIN:
        raise ValueError("predictions and actual amounts cannot both come from standard input: name a file")
    with readable(predicted) as first, readable(actual) as second:
        tables = read_table(first), read_table(second)
    rows, calendar, skipped = join_arrivals(*tables, columns, length)
    result = find_changes(rows, _first_period(since, rows, calendar), calendar.a_year)
    whole = None if certificate is None else certificate.whole.metrics.get("PGR")
    certified = None if whole is None else (whole.value, whole.low, whole.high)
    report = WatchReport(str(model), target, result, calendar, certified, skipped)
    document, values = watch_document(report), watch_json(report)
    deliver(document, values, out, "watch", as_json=as_json)
    if result.alarm:
        raise typer.Exit(1)


def _every(text: str) -> "Every":
    match text:
        case "day" | "week" | "month":
            return text
        case _:
            raise ValueError(f"--every is day, week or month, got {text!r}")


def _promise(path: Path) -> "tuple[str, Certificate | None]":
    """The target that a model predicts, and its certificate if there is one."""
    from transun.models.certificate import FILE, read_certificate

    folder = path.parent if path.name == FILE else path
    if path.name == FILE or (folder / FILE).is_file():
        certificate = read_certificate(folder)
        return certificate.target, certificate
    return load_trained(folder).target, None


def _first_period(since: str | None, rows: "PredictedRows", calendar: "Calendar") -> int:
    """The first watched period."""
    import numpy as np

    if since is None:
        return max(round(_HISTORY * (rows.last + 1)), rows.last + 1 - calendar.a_year)
    try:
        day = date.fromisoformat(since)
    except ValueError:
        raise ValueError(f"--since is a day as 2026-01-31, got {since!r}") from None
    period = int(calendar.period(np.array([day], "datetime64[D]"))[0])
    if not 0 < period <= rows.last:
        raise ValueError(
            f"--since {since} is not within the predictions, of {calendar.name(0)} to {calendar.name(rows.last)}: a "
            "watch begins after its history"
        )
    return period
