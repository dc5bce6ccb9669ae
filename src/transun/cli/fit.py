"""`transun fit`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transun.cli.app import app
from transun.cli.options import (
    BatchSize,
    By,
    Data,
    Epochs,
    Json,
    Patience,
    Progress,
    Rate,
    Resume,
    Seed,
    TestShare,
    ValidShare,
)
from transun.cli.options import Out as Folder
from transun.cli.output import print_table
from transun.cli.sources import data_name, new_folder, readable

if TYPE_CHECKING:
    from transun.tables.plan import Plan


@app.command()
def fit(
    data: Data,
    target: Annotated[str, typer.Option("--target", help="Column to predict.")],
    weight: Annotated[str | None, typer.Option("--weight", help="Column of how often each row counts.")] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", help="Column to leave out, such as one known only after the target; repeatable."),
    ] = None,
    head: Annotated[
        str | None, typer.Option("--head", help='The method, such as "LogSUN()"; recommended if not given.')
    ] = None,
    by: By = None,
    epochs: Epochs = 20,
    batch_size: BatchSize = None,
    rate: Rate = 1e-3,
    seed: Seed = 0,
    valid_share: ValidShare = 0.1,
    test_share: TestShare = 0.2,
    patience: Patience = 3,
    balanced: Annotated[
        bool | None,
        typer.Option("--balance/--no-balance", help="A last factor for the total; by default if no --head is given."),
    ] = None,
    out: Folder = Path("model"),
    resume: Resume = False,
    as_json: Json = False,
    progress: Progress = None,
) -> None:
    """Train an unbiased model on a table, prove its totals on rows held out, and save both.

    Columns are read as ids, numbers, times or lists by what they hold; the plan is printed with reasons. The folder
    gets the model, a bias certificate and a report. Ctrl-C keeps the state: --resume goes on to the same result.
    Exit codes: 0 done, 2 a mistake in the call or the data, 130 interrupted.

    Example: transun fit orders.csv --target gmv --exclude refunded --epochs 3 --out model
    """
    from transun.cli.training import Job, choose_segments, journal_of, show_report
    from transun.data import drop_missing
    from transun.data.reading import read_path
    from transun.data.table import require
    from transun.models.network import Model
    from transun.report.formatting import as_json as dump
    from transun.tables.model import TableModel, embedding_mlp
    from transun.tables.plan import make_plan, parse_head, require_targets, require_weights
    from transun.tables.training import Settings, hold_out

    # Who names a method wants to see what it does; who does not wants totals.
    balanced = head is None if balanced is None else balanced
    settings = Settings(epochs, batch_size, rate, seed, valid_share, test_share, patience, balanced)
    if head is not None:
        parse_head(head)
    with readable(data) as source:
        table = read_path(source)
    require(table.column_names, [target, *([weight] if weight else []), *(exclude or []), *(by or [])])
    if target in (by or []):
        raise ValueError(f"segments by the target {target!r} would call every model biased: use columns known before")
    table, dropped = drop_missing(table, target)
    if not len(table):
        raise ValueError(f"no row has a target {target!r}: name another column")
    if head is not None:
        require_targets(head, table, target)
    if weight is not None:
        require_weights(table, weight)
    rows, test = hold_out(table, settings)
    plan = make_plan(rows, target, weight=weight, exclude=exclude or (), head=head)
    new_folder(out)
    journal = journal_of(out, resume)
    segments = choose_segments(plan, by or ())
    if not as_json:
        if dropped:
            typer.echo(f"{dropped:,} rows without a target are left out.")
        _show_plan(plan, len(test), segments)
    model = Model(embedding_mlp(plan.features), parse_head(plan.head), seed)
    untrained = TableModel(plan.features, model, target, weight)
    report = Job(data_name(data), plan, settings, rows, test, segments, out).run(untrained, journal, progress)
    if as_json:
        typer.echo(dump(report))
        return
    show_report(report, out)


def _show_plan(plan: "Plan", held_out: int, segments: tuple[str, ...]) -> None:
    from transun.report.formatting import number, visible_line

    print_table(["column", "kind", "becomes", "missing", "why"], [[*map(visible_line, row)] for row in plan.rows()])
    found = plan.summary
    typer.echo(
        f"target {visible_line(plan.target)}: mean {number(found.mean)}, median {number(found.median)}, "
        f"largest {number(found.largest)}, {found.zeros:.1%} zeros, skewness {found.skewness:.1f}"
    )
    typer.echo(f"head {plan.head}: {plan.why}")
    shown = f", by {', '.join(map(visible_line, segments))}" if segments else ""
    typer.echo(f"{found.rows:,} rows to train and validate on, {held_out:,} held out for the certificate{shown}")
