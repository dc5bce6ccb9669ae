"""`transun debias`."""

from pathlib import Path
from typing import Annotated

import typer

from transun.cli.app import app
from transun.cli.options import (
    BatchSize,
    By,
    Device,
    Engine,
    Epochs,
    Exposure,
    Finish,
    Holdout,
    Json,
    Monitor,
    Patience,
    Progress,
    Rate,
    Resume,
    Seed,
    Stream,
    TestShare,
    ValidShare,
    Weight,
    refuse_options,
)
from transun.cli.sources import load_trained
from transun.models.description import is_saved_model
from transun.support.paths import as_path

# The options that only a table takes, and those that only a model takes.
_OF_TABLES = ("target", "pred", "weight", "exposure", "method")
_OF_MODELS = (
    "epochs",
    "batch_size",
    "rate",
    "valid_share",
    "test_share",
    "holdout",
    "patience",
    "finish",
    "monitor",
    "device",
    "engine",
    "stream",
    "resume",
)


@app.command()
def debias(
    context: typer.Context,
    source: Annotated[
        Path, typer.Argument(parser=as_path, metavar="MODEL_OR_DATA", help="Folder of a saved model, or a table.")
    ],
    data: Annotated[
        Path | None,
        typer.Argument(
            parser=as_path, metavar="[DATA]", help="With a model: rows with the target; - for standard input."
        ),
    ] = None,
    target: Annotated[str | None, typer.Option("--target", help="With a table: column of actual values.")] = None,
    pred: Annotated[str | None, typer.Option("--pred", help="With a table: column of predictions.")] = None,
    weight: Weight = None,
    exposure: Exposure = None,
    method: Annotated[
        str | None, typer.Option("--method", help="With a table: a correction by name; the best one if not given.")
    ] = None,
    by: By = None,
    epochs: Epochs = 50,
    batch_size: BatchSize = None,
    rate: Rate = 3e-3,
    seed: Seed = 0,
    valid_share: ValidShare = 0.1,
    test_share: TestShare = 0.2,
    holdout: Holdout = None,
    patience: Patience = 6,
    finish: Finish = 0,
    monitor: Monitor = "RMSE",
    device: Device = None,
    engine: Engine = "Eager()",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            parser=as_path,
            metavar="PATH",
            help="Folder of the new model, by default debiased, or file of the corrected table, by default "
            "corrected.parquet.",
        ),
    ] = None,
    stream: Stream = None,
    resume: Resume = False,
    as_json: Json = False,
    progress: Progress = None,
) -> None:
    """Make totals right: of a saved model by a bias branch beside it, or of a column of predictions by a correction.

    A table gets a column "corrected": rows with a target by a correction learned from the other folds, rows without one
    by a correction learned from all rows with one. With --by, a correction that makes totals right in every segment of
    these columns is tried too: --method multicalibration insists on it. A model starts from its weights, gains a
    branch that learns its bias (GTS), and gets a new certificate. --target, --pred, --weight, --exposure and --method
    are for tables, and the options of training for models.
    Exit codes: 0 done, 2 a mistake in the call or the data, 130 interrupted.

    Example: transun debias scored.csv --target gmv --pred predicted --out corrected.parquet
    """
    if is_saved_model(source):
        from transun.cli.debias_model import ModelDebiasing
        from transun.cli.training import make_recipe
        from transun.data.holdout import Split, parse_hold_out

        if data is None:
            raise ValueError(f"{source} is a model: give the rows to learn its bias from, too")
        refuse_options(context, _OF_TABLES, "is for tables: the model knows its columns already")
        recipe = make_recipe(
            rate=rate,
            monitor=monitor,
            engine=engine,
            epochs=epochs,
            batch_size=batch_size,
            seed=seed,
            valid_share=valid_share,
            patience=patience,
            finish=finish,
            device=device,
            balance=True,
        )
        split = Split(parse_hold_out(holdout or "rows"), test_share, valid_share, seed)
        debiasing = ModelDebiasing(source, recipe, split, by or [], out or Path("debiased"))
        debiasing.run(data, stream, resume, as_json, progress)
        return
    refuse_options(context, _OF_MODELS, "is for models: a correction of a table has nothing to train")
    if data is not None:
        load_trained(source)  # which says what is wrong with the folder
    if target is None or pred is None:
        raise ValueError(
            "to correct a column of predictions, name --target and --pred; to debias a model, give its "
            "folder and the rows"
        )
    from transun.cli.debias_table import debias_table
    from transun.diagnosis.reading import ColumnNames

    names = ColumnNames(target, pred, weight, tuple(by or ()), exposure)
    debias_table(source, names, method, seed, out or Path("corrected.parquet"), as_json, progress)
