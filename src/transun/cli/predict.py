"""`transun predict`."""

import json
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transun.cli.app import app
from transun.cli.options import Data, Json, MaxUnseen, Model, ModelExposure, Progress
from transun.cli.shift import require_seen, show_shift
from transun.cli.sources import load_trained, readable, refuse_overwriting
from transun.support.counting import counted
from transun.support.paths import as_path

if TYPE_CHECKING:
    from transun.tables.model import TableModel
    from transun.totals import Total

NAME = "prediction"


@app.command()
def predict(
    model: Model,
    data: Data,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            parser=as_path,
            metavar="PATH",
            help="File ending in .parquet or .csv, also in an object store, or - for CSV on standard output.",
        ),
    ],
    keep: Annotated[
        list[str] | None, typer.Option("--keep", help="Column of the data to write beside the prediction; repeatable.")
    ] = None,
    quantile: Annotated[
        list[float] | None,
        typer.Option("--quantile", help="Level of a quantile to write too, such as 0.9; repeatable."),
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option("--interval", help="Probability, such as 0.9, of intervals of single rows to write too."),
    ] = None,
    exposure: ModelExposure = None,
    max_unseen: MaxUnseen = None,
    as_json: Json = False,
    progress: Progress = None,
) -> None:
    """Predict the rows of a table, in their order, streamed: the data may be larger than memory.

    The data needs the columns that the model was trained with, which are read in the types that they had in training.
    Ids that training did not see share one vector, and are counted. Kept columns of a CSV file are written to CSV as
    they are. Quantiles need a head that learns a distribution, such as LogNormal(). Intervals do not: they come from
    rows that `fit` held out, and hold at every level of the prediction. Where the model's certificate allows it, a line
    says what the rows add up to, with an interval; `transun total` does this better, from labelled rows.

    Exit codes: 0 done, 2 a mistake in the call or the data, 130 interrupted; a failed run leaves no file.

    Example: transun predict model orders.csv --keep country --out predictions.csv
    """
    from transun.data.writing import STDOUT, require_ending, writes_plain_text, writing
    from transun.report.formatting import number
    from transun.support.extras import need
    from transun.tables.prediction import predict_in_chunks, shift_of

    kept, levels = keep or [], quantile or []
    require_ending(out)
    refuse_overwriting(data, out)
    if as_json and out == STDOUT:
        raise ValueError("--json and --out - would both write to standard output: name a file with --out")
    ends = [] if interval is None else [f"low_{interval:g}", f"high_{interval:g}"]
    names = [NAME, *[f"quantile_{level:g}" for level in levels], *ends]
    for name in names:
        if name in kept or names.count(name) > 1:
            raise ValueError(f"two columns of the result would be called {name!r}: rename or drop one")
    pa = need("pyarrow")
    rows, predicted, shifts = 0, 0.0, []
    trained = load_trained(model, exposure)
    _require_intervals(trained, interval)
    with readable(data) as source:
        if max_unseen is not None:
            require_seen(shift_of(trained, source), max_unseen)  # a first pass, because the second one writes
        chunks = predict_in_chunks(
            trained,
            source,
            keep=kept,
            verbatim=writes_plain_text(out),
            quantiles=levels,
            interval=interval,
            progress=progress,
        )
        with writing(out) as write:
            for part in chunks:
                table = part.columns.append_column(NAME, pa.array(part.pred.double().numpy()))
                for name, values in zip(names[1:], [*part.quantiles.values(), *part.interval], strict=True):
                    table = table.append_column(name, pa.array(values.double().numpy()))
                write(table)
                rows += len(part.pred)
                predicted += float(part.pred.double().sum())
                shifts.append(part.shift)
    shift = reduce(add, shifts)
    # A certificate is about rows like its own, so it promises nothing about rows that differ from those of training.
    total = None if shift.sentences() else _certified(model, predicted, rows)
    if as_json:
        result = {"rows": rows, "columns": [*kept, *names], "out": str(out), "shift": shift.to_dict()}
        numbers = None if total is None else {name: getattr(total, name) for name in ("value", "low", "high", "level")}
        typer.echo(json.dumps(result | {"predicted": predicted, "total": numbers}))
        return
    if out != STDOUT:
        typer.echo(f"{counted(rows, 'prediction')} written to {out}")
        if total is not None:
            typer.echo(
                f"{total.sentence()} This holds for rows like those of the certificate, with amounts of finite "
                f"variance; the predictions alone add up to {number(predicted)}."
            )
    show_shift(shift)


def _require_intervals(trained: "TableModel", level: float | None) -> None:
    """Raise a `ValueError`, before any work, for a level that is no probability or a model without intervals."""
    if level is None:
        return
    if not 0.0 < level < 1.0:
        raise ValueError(f"--interval is a probability between 0 and 1, such as 0.9, got {level:g}")
    if trained.intervals is None:
        raise ValueError(
            "the model has no intervals of rows: `transun evaluate MODEL DATA --certify` learns them from rows that it "
            "has not seen"
        )


def _certified(model: Path, predicted: float, rows: int) -> "Total | None":
    """The total of the rows by the model's certificate; None where there is no good one, or it counts weights."""
    from transun.models.certificate import valid_certificate
    from transun.totals.certified import certified_total

    certificate = valid_certificate(model)
    if certificate is None or certificate.noise is None or certificate.weight is not None or not rows:
        return None
    total = certified_total(certificate.noise, predicted, rows)
    return total if total.answered else None
