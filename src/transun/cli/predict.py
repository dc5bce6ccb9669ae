"""`transun predict`."""

import json
from functools import reduce
from operator import add
from pathlib import Path
from typing import Annotated

import typer

from transun.cli.app import app
from transun.cli.options import Data, Json, MaxUnseen, Model, ModelExposure, Progress
from transun.cli.shift import require_seen, show_shift
from transun.cli.sources import load_trained, readable, refuse_overwriting
from transun.support.paths import as_path

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
    exposure: ModelExposure = None,
    max_unseen: MaxUnseen = None,
    as_json: Json = False,
    progress: Progress = None,
) -> None:
    """Predict the rows of a table, in their order, streamed: the data may be larger than memory.

    The data needs the columns that the model was trained with, and is read in their types of then; ids that training
    did not see share one vector, and are counted. Kept columns of a CSV file are written to CSV as they are.
    Quantiles need a head with a law of y, such as LogNormal(). Exit codes: 0 done, 2 a mistake in the call or the
    data, 130 interrupted; a failed run leaves no file.

    Example: transun predict model orders.csv --keep country --out predictions.csv
    """
    from transun.data.writing import STDOUT, require_ending, writes_plain_text, writing
    from transun.support.extras import need
    from transun.tables.prediction import predict_in_chunks, shift_of

    kept, levels = keep or [], quantile or []
    require_ending(out)
    refuse_overwriting(data, out)
    if as_json and out == STDOUT:
        raise ValueError("--json and --out - would both write to standard output: name a file with --out")
    names = [NAME, *[f"quantile_{level:g}" for level in levels]]
    for name in names:
        if name in kept or names.count(name) > 1:
            raise ValueError(f"two columns of the result would be called {name!r}: rename or drop one")
    pa = need("pyarrow")
    rows, shifts = 0, []
    trained = load_trained(model, exposure)
    with readable(data) as source:
        if max_unseen is not None:
            require_seen(shift_of(trained, source), max_unseen)  # a first pass, because the second one writes
        chunks = predict_in_chunks(
            trained, source, keep=kept, verbatim=writes_plain_text(out), quantiles=levels, progress=progress
        )
        with writing(out) as write:
            for part in chunks:
                table = part.columns.append_column(NAME, pa.array(part.pred.double().numpy()))
                for name, values in zip(names[1:], part.quantiles.values(), strict=True):
                    table = table.append_column(name, pa.array(values.double().numpy()))
                write(table)
                rows += len(part.pred)
                shifts.append(part.shift)
    shift = reduce(add, shifts)
    if as_json:
        result = {"rows": rows, "columns": [*kept, *names], "out": str(out), "shift": shift.to_dict()}
        typer.echo(json.dumps(result))
        return
    if out != STDOUT:
        typer.echo(f"{rows:,} predictions written to {out}")
    show_shift(shift)
