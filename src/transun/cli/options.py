"""Options that several commands share."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from transun.support.paths import as_path

__all__ = [
    "BatchSize",
    "Budget",
    "By",
    "CalibrationShare",
    "Cluster",
    "Data",
    "Device",
    "Engine",
    "Epochs",
    "Exposure",
    "Holdout",
    "Json",
    "MaxUnseen",
    "Model",
    "ModelExposure",
    "Monitor",
    "Out",
    "Patience",
    "Progress",
    "Rate",
    "Require",
    "Resume",
    "Seed",
    "TestShare",
    "ValidShare",
    "Weight",
    "refuse_options",
]

Out = Annotated[Path, typer.Option("--out", help="Folder for the results.", file_okay=False)]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
Progress = Annotated[
    bool | None, typer.Option("--progress/--no-progress", help="Show progress bars; by default on a terminal.")
]
Data = Annotated[
    Path,
    typer.Argument(
        parser=as_path,
        metavar="DATA",
        help="Parquet or CSV file, a folder of them, also in an object store (s3://...), or - for standard input.",
    ),
]
Model = Annotated[Path, typer.Argument(help="Folder of a saved model.")]
Unit = Annotated[str, typer.Option("--unit", help='Unit of the amounts on the page, such as "€", "EUR" or "seconds".')]
Weight = Annotated[
    str | None,
    typer.Option(
        "--weight",
        help="Column of importance weights: how much each row counts. A row of weight 3 is one observation and not "
        "three, which would make the intervals narrower.",
    ),
]
Exposure = Annotated[
    str | None,
    typer.Option(
        "--exposure",
        help="Column that amounts were collected over, such as the years of a policy. Amounts per unit of it are "
        "learned and judged, a row counts by it, and predictions are exposure times rate. It is no weight.",
    ),
]
ModelExposure = Annotated[
    str | None,
    typer.Option(
        "--exposure", help="Column of exposures, if the data calls it otherwise than the model, which remembers it."
    ),
]
By = Annotated[
    list[str] | None, typer.Option("--by", help="Column of segments to look into; may be given several times.")
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        help="Column of customers or households, whose rows are alike; intervals then count these and not rows.",
    ),
]
MaxUnseen = Annotated[
    float | None,
    typer.Option(
        "--max-unseen",
        min=0.0,
        max=1.0,
        help="Share of ids in a column that training may not have seen, such as 0.1; exit with 2 where there are more.",
    ),
]
Require = Annotated[
    list[str] | None,
    typer.Option("--require", help='Condition on metrics, such as "abs(stre) <= 0.02"; exit with 1 where it breaks.'),
]
Epochs = Annotated[int, typer.Option("--epochs", min=1, help="Passes of the network over the rows, at most.")]
BatchSize = Annotated[
    int | None,
    typer.Option(
        "--batch-size", min=1, help="Rows per step of the network; by default a 32nd of the rows, from 16 to 256."
    ),
]
Rate = Annotated[float, typer.Option("--rate", help="Learning rate of the network.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the splits, the initial weights and the order of rows.")]
ValidShare = Annotated[float, typer.Option("--valid-share", help="Share of training rows that are validation rows.")]
CalibrationShare = Annotated[
    float,
    typer.Option(
        "--calibration-share",
        min=0.0,
        max=0.9,
        help="Share of training rows that put the totals of all segments right, such as 0.2; the model learns nothing "
        "else from them. By default none.",
    ),
]
TestShare = Annotated[float, typer.Option("--test-share", help="Share of rows held out for the certificate.")]
Holdout = Annotated[
    str | None,
    typer.Option(
        "--holdout",
        metavar="rows | time:COLUMN | group:COLUMN",
        help="Hold out single rows, the last rows by a column of times, or all rows of some values, such as users; "
        "validation rows likewise. By default single rows.",
    ),
]
Patience = Annotated[
    int,
    typer.Option(
        "--patience", min=1, help="Checks of the validation rows without improvement before the network stops."
    ),
]
Finish = Annotated[
    int,
    typer.Option(
        "--finish",
        min=0,
        help="Epochs after training in which the bias branch alone learns; kept if validation rows find it better.",
    ),
]
Budget = Annotated[
    float | None,
    typer.Option("--budget", help="Seconds of training, at most; the result then depends on the speed of the machine."),
]
Monitor = Annotated[
    str,
    typer.Option(
        "--monitor", help="Metric of the validation rows that early stopping compares weights of the network by."
    ),
]
Device = Annotated[
    str | None, typer.Option("--device", help='Where to train the network, such as "cuda"; by default the CPU.')
]
Engine = Annotated[
    str, typer.Option("--engine", help="How losses are computed: Eager() or, on a GPU, Compiled('bfloat16').")
]
Stream = Annotated[
    bool | None,
    typer.Option(
        "--stream/--no-stream",
        help="Stream Parquet files instead of holding them in memory; by default if they are too large.",
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue a training that was interrupted.")]


def refuse_options(context: typer.Context, names: Iterable[str], why: str) -> None:
    """Raise a `ValueError` that says why if one of these options was given, since it would be ignored."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise ValueError(f"--{name.replace('_', '-')} {why}; leave it out")
