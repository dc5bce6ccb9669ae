"""`transun fit`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transun.cli.app import app
from transun.cli.options import (
    BatchSize,
    Budget,
    By,
    CalibrationShare,
    Data,
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
    Unit,
    ValidShare,
    Weight,
    refuse_options,
)
from transun.cli.options import Out as Folder
from transun.cli.output import print_table
from transun.cli.sources import data_name, new_folder, readable
from transun.support.counting import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from transun.cli.training import SplitRows
    from transun.data.holdout import Split
    from transun.tables.plan import Plan


# The options of the network, which trees do not take.
_OF_NETWORKS = ("epochs", "batch_size", "rate", "patience", "finish", "monitor", "device", "engine", "balance")


@app.command()
def fit(
    context: typer.Context,
    data: Data,
    target: Annotated[str, typer.Option("--target", help="Column to predict.")],
    weight: Weight = None,
    exposure: Exposure = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", help="Column to leave out, such as one known only after the target; repeatable."),
    ] = None,
    head: Annotated[
        str | None, typer.Option("--head", help='The method, such as "LogSUN()"; recommended if not given.')
    ] = None,
    by: By = None,
    epochs: Epochs = 50,
    batch_size: BatchSize = None,
    rate: Rate = 3e-3,
    seed: Seed = 0,
    valid_share: ValidShare = 0.1,
    calibration_share: CalibrationShare = 0.0,
    test_share: TestShare = 0.2,
    holdout: Holdout = None,
    patience: Patience = 6,
    finish: Finish = 0,
    budget: Budget = None,
    only: Annotated[
        str | None, typer.Option("--only", help='Train "trees" or a "network" alone; by default an ensemble of both.')
    ] = None,
    monitor: Monitor = "RMSE",
    device: Device = None,
    engine: Engine = "Eager()",
    balance: Annotated[
        bool | None,
        typer.Option(
            "--balance/--no-balance",
            help="Multiply the network by a factor that makes the total right; by default if no --head is given.",
        ),
    ] = None,
    stream: Stream = None,
    unit: Unit = "",
    out: Folder = Path("model"),
    resume: Resume = False,
    as_json: Json = False,
    progress: Progress = None,
) -> None:
    """Train an unbiased model on a table, prove its totals on rows held out, and save both.

    The model is an ensemble of boosted trees and a network: a mean of their predictions, weighted by validation rows.
    Columns are read as ids, numbers, times or lists by what they hold; the plan is printed with reasons. The folder
    gets the model, a bias certificate and a report. Ctrl-C keeps the state, and --resume continues to the same result.
    Parquet files larger than an eighth of the free memory are streamed: the network reads all rows, trees a sample.
    Exit codes: 0 done, 2 a mistake in the call or the data, 130 interrupted.

    Example: transun fit orders.csv --target gmv --exclude refunded --epochs 3 --out model
    """
    from transun.cli.training import (
        TrainingJob,
        choose_segments,
        make_recipe,
        resume_file,
        show_dropped,
        show_hold_out,
        show_report,
    )
    from transun.data.holdout import Split, parse_hold_out
    from transun.data.schema import given_names
    from transun.report.formatting import as_json as dump
    from transun.report.formatting import visible_line
    from transun.support.group import current_group
    from transun.tables.folder import is_streamed
    from transun.tables.plan import parse_head, parse_only

    recipe = make_recipe(
        rate=rate,
        monitor=monitor,
        engine=engine,
        epochs=epochs,
        batch_size=batch_size,
        seed=seed,
        valid_share=valid_share,
        calibration_share=calibration_share,
        patience=patience,
        finish=finish,
        budget=budget,
        device=device,
        balance=balance,
    )
    if head is not None:
        parse_head(head)
    alone = parse_only(only)
    if alone == "trees":
        refuse_options(context, _OF_NETWORKS, "is for networks, and --only trees trains none")
    split = Split(parse_hold_out(holdout or "rows"), test_share, valid_share, seed, calibration_share)
    excluded = given_names(*(exclude or ()), *split.rule.useless)
    columns = _Columns(target, weight, exposure, excluded, by or [])
    if target in columns.by:
        raise ValueError(f"segments by the target {target!r} would call every model biased: use columns known before")
    group = current_group()
    with readable(data) as source:
        streamed = is_streamed(source, stream)
        rows = columns.in_folder(source, split, progress) if streamed else columns.in_memory(source, split)
        plan = rows.plan(target, head=head, exclude=excluded, weight=weight, only=alone, exposure=exposure)
        segments = choose_segments(plan, columns.by, rows.held_out_sample)
        group.from_leader(lambda: new_folder(out))
        resume_path = group.from_leader(lambda: resume_file(out, resume))
        show_dropped(rows, as_json=as_json)
        if not as_json:
            _show_plan(plan, rows.held_out_count, segments)
            if rows.remark:
                typer.echo(visible_line(rows.remark))
            show_hold_out(rows)
            if holdout is None:
                _show_advice(rows.sample, plan)
        job = TrainingJob(data_name(data), plan, recipe, rows, segments, out, unit=unit)
        report = job.run(plan.backbone(), resume_path, progress)
    if report is None:
        return
    if as_json:
        typer.echo(dump(report))
        return
    show_report(report, out)


@dataclass(frozen=True)
class _Columns:
    """The columns that the options name, and the rows with them, in memory or streamed."""

    target: str
    weight: str | None
    exposure: str | None
    exclude: list[str]
    by: list[str]

    def in_memory(self, source: Path, split: "Split") -> "SplitRows":
        from transun.cli.training import RowsInMemory
        from transun.data import read_table
        from transun.data.schema import given_names, require_columns

        table = read_table(source)
        named = given_names(self.target, self.weight, self.exposure, *self.exclude, *self.by, *split.rule.columns)
        require_columns(table.column_names, named)
        return RowsInMemory.of(table, self.target, split, self.weight, self.exposure)

    def in_folder(self, source: Path, split: "Split", progress: bool | None) -> "SplitRows":
        from transun.cli.training import RowsInFolder

        return RowsInFolder.of(
            source,
            self.target,
            split,
            progress,
            weight=self.weight,
            exposure=self.exposure,
            exclude=self.exclude,
            keep=self.by,
        )


def _show_plan(plan: "Plan", held_out: int, segments: tuple[str, ...]) -> None:
    from transun.report.formatting import number, visible_line

    print_table(
        ["column", "kind", "becomes", "missing", "why"], [[*map(visible_line, row)] for row in plan.column_summary()]
    )
    summary = plan.summary
    typer.echo(
        f"target {visible_line(plan.target)}: mean {number(summary.mean)}, median {number(summary.median)}, "
        f"largest {number(summary.largest)}, {summary.zeros:.1%} zeros, skewness {summary.skewness:.1f}"
    )
    for line in plan.parts():
        typer.echo(line)
    typer.echo(f"{counted(summary.rows, 'row')} to train and validate on, {held_out:,} held out for the certificate")
    if segments:
        typer.echo(f"the certificate looks into every value of {', '.join(map(visible_line, segments))}")


def _show_advice(table: "pa.Table", plan: "Plan") -> None:
    """Say which rows to hold out instead of single ones, where the columns suggest it."""
    from transun.data.holdout import recommend_hold_out
    from transun.report.formatting import visible_line

    features = table.select([name for name in table.column_names if name != plan.target])
    for rule, reason in recommend_hold_out(features, plan.features.ids).items():
        typer.echo(visible_line(f"{reason}, hold those out: --holdout {rule}"))
