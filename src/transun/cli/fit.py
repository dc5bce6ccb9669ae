"""`transun fit`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transun.cli.app import app
from transun.cli.options import (
    BatchSize,
    Budget,
    By,
    Data,
    Device,
    Engine,
    Epochs,
    Finish,
    Holdout,
    Json,
    Monitor,
    Patience,
    Progress,
    Rate,
    Resume,
    Seed,
    TestShare,
    ValidShare,
    Weight,
)
from transun.cli.options import Out as Folder
from transun.cli.output import print_table
from transun.cli.sources import data_name, new_folder, readable

if TYPE_CHECKING:
    import pyarrow as pa

    from transun.tables.plan import Plan


@app.command()
def fit(
    data: Data,
    target: Annotated[str, typer.Option("--target", help="Column to predict.")],
    weight: Weight = None,
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
    test_share: TestShare = 0.2,
    holdout: Holdout = None,
    patience: Patience = 6,
    finish: Finish = 0,
    budget: Budget = None,
    only: Annotated[
        str | None, typer.Option("--only", help='Train "trees" or a "network" alone; by default both are mixed.')
    ] = None,
    monitor: Monitor = "RMSE",
    device: Device = None,
    engine: Engine = "Eager()",
    balance: Annotated[
        bool | None,
        typer.Option("--balance/--no-balance", help="A last factor for the total; by default if no --head is given."),
    ] = None,
    out: Folder = Path("model"),
    resume: Resume = False,
    as_json: Json = False,
    progress: Progress = None,
) -> None:
    """Train an unbiased model on a table, prove its totals on rows held out, and save both.

    The model is a mixture of boosted trees and a network; rows that neither has seen decide the shares.
    Columns are read as ids, numbers, times or lists by what they hold; the plan is printed with reasons. The folder
    gets the model, a bias certificate and a report. Ctrl-C keeps the state, and --resume continues to the same result.
    Exit codes: 0 done, 2 a mistake in the call or the data, 130 interrupted.

    Example: transun fit orders.csv --target gmv --exclude refunded --epochs 3 --out model
    """
    from transun.cli.training import (
        TrainingJob,
        choose_segments,
        make_recipe,
        resume_file,
        show_hold_out,
        show_report,
    )
    from transun.data import drop_missing, read_table
    from transun.data.holdout import parse_hold_out
    from transun.data.schema import require_columns
    from transun.report.formatting import as_json as dump
    from transun.tables.model import tabm
    from transun.tables.plan import make_plan, parse_head, parse_only
    from transun.tables.training import hold_out

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
        budget=budget,
        device=device,
        balance=balance,
    )
    if head is not None:
        parse_head(head)
    wanted = parse_only(only)
    rule = parse_hold_out(holdout or "rows")
    with readable(data) as source:
        table = read_table(source)
    require_columns(table.column_names, [target, *([weight] if weight else []), *(exclude or []), *(by or [])])
    require_columns(table.column_names, rule.columns)
    if target in (by or []):
        raise ValueError(f"segments by the target {target!r} would call every model biased: use columns known before")
    table, dropped = drop_missing(table, target)
    if not len(table):
        raise ValueError(f"no row has a target {target!r}: name another column")
    rows, test = hold_out(table, test_share, seed, rule)
    excluded = list(dict.fromkeys([*(exclude or []), *rule.useless]))
    plan = make_plan(rows, target, head=head, exclude=excluded, weight=weight, only=wanted)
    segments = choose_segments(plan, by or (), test)
    new_folder(out)
    resume_path = resume_file(out, resume)
    if not as_json:
        if dropped:
            typer.echo(f"{dropped:,} rows without a target are left out.")
        _show_plan(plan, len(test), segments)
        show_hold_out(rule, test, seed)
        if holdout is None:
            _show_advice(table, plan)
    job = TrainingJob(data_name(data), plan, recipe, rows, test, segments, out, test_share, rule)
    report = job.run(tabm(plan.features), resume_path, progress)
    if as_json:
        typer.echo(dump(report))
        return
    show_report(report, out)


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
    typer.echo(f"{summary.rows:,} rows to train and validate on, {held_out:,} held out for the certificate")
    if segments:
        typer.echo(f"the certificate looks into every value of {', '.join(map(visible_line, segments))}")


def _show_advice(table: "pa.Table", plan: "Plan") -> None:
    """Say which rows to hold out instead of single ones, where the columns suggest it."""
    from transun.data.holdout import recommend_hold_out
    from transun.report.formatting import visible_line

    features = table.drop_columns([plan.target])
    for rule, reason in recommend_hold_out(features, plan.features.ids).items():
        typer.echo(visible_line(f"{reason}, hold those out: --holdout {rule}"))
