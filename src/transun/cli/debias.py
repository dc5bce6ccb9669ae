"""`transun debias`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
)
from transun.cli.output import print_blocks
from transun.cli.sources import data_name, load_trained, new_folder, readable, refuse_overwriting, require_writable
from transun.models.description import is_saved_model
from transun.support.paths import as_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transun.cli.training import SplitRows
    from transun.data import HoldOut
    from transun.tables.model import TableModel
    from transun.training.recipe import Recipe


@app.command()
def debias(
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
            "--out", parser=as_path, metavar="PATH", help="Folder of the new model, or file of the corrected table."
        ),
    ] = None,
    stream: Stream = None,
    resume: Resume = False,
    as_json: Json = False,
    progress: Progress = None,
) -> None:
    """Make totals right: of a saved model by a bias branch beside it, or of a column of predictions by a correction.

    A table gets a column "corrected": rows with a target by a correction learned from the other folds, rows without one
    by a correction learned from all rows with one. A model keeps its weights as the start and gains a branch that
    learns its bias (GTS).
    Exit codes: 0 done, 2 a mistake in the call or the data, 130 interrupted.

    Example: transun debias scored.csv --target gmv --pred predicted --out corrected.parquet
    """
    from transun.cli.training import make_recipe
    from transun.data.holdout import parse_hold_out

    if is_saved_model(source):
        if data is None:
            raise ValueError(f"{source} is a model: give the rows to learn its bias from, too")
        wrong = [
            name
            for name, value in (
                ("--target", target),
                ("--pred", pred),
                ("--weight", weight),
                ("--exposure", exposure),
                ("--method", method),
            )
            if value is not None
        ]
        if wrong:
            raise ValueError(f"{wrong[0]} is for tables: the model knows its columns already; leave it out")
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
        rule = parse_hold_out(holdout or "rows")
        where = out or Path("debiased")
        _model(source, data, recipe, test_share, rule, by or [], where, stream, resume, as_json, progress)
        return
    if data is not None:
        load_trained(source)  # which says what is wrong with the folder
    if target is None or pred is None:
        raise ValueError(
            "to correct a column of predictions, name --target and --pred; to debias a model, give its "
            "folder and the rows"
        )
    _column(source, target, pred, weight, exposure, method, seed, out or Path("corrected.parquet"), as_json, progress)


def _column(
    data: Path,
    target: str,
    pred: str,
    weight: str | None,
    exposure: str | None,
    method: str | None,
    seed: int,
    out: Path,
    as_json: bool,
    progress: bool | None,
) -> None:
    from transun.data.columns import column_names, open_columns
    from transun.data.writing import STDOUT, require_ending, writes_plain_text, writing
    from transun.diagnosis.repair import repair
    from transun.report.assessment import correction_table
    from transun.report.formatting import as_json as dump
    from transun.support.extras import need, require
    from transun.support.progress import Progress

    require("pyarrow", "scipy")
    require_ending(out)
    require_writable(out.parent)
    refuse_overwriting(data, out)
    if out == STDOUT:
        raise ValueError("debias prints its result on standard output: name a file with --out")
    with readable(data) as source:
        names = column_names(source)
        if "corrected" in names:
            raise ValueError("the table has a column 'corrected' already: rename or drop it first")
        repaired = repair(source, target, pred, weight, exposure=exposure, method=method, seed=seed, progress=progress)
        # Types are for the correction; from CSV to CSV, all columns pass through as they are written.
        kept = open_columns(source, [], names, verbatim=names if writes_plain_text(out) else ())
        typed = open_columns(source, repaired.correct.numbers)
        with Progress("correcting", kept.size, progress) as bar, writing(out) as write:
            for rows, numbers in zip(kept.chunks(), typed.chunks(), strict=True):
                write(rows.table.append_column("corrected", need("pyarrow").array(repaired.correct(numbers))))
                bar.advance(rows.done)
    chosen, outcomes = repaired.chosen, repaired.outcomes
    if as_json:
        counts = {"chosen": chosen, "learned": repaired.learned, "applied": repaired.applied, "out": str(out)}
        typer.echo(dump(counts | {"outcomes": outcomes}))
        return
    print_blocks([correction_table(outcomes)])
    before, after = outcomes[0], next(outcome for outcome in outcomes if outcome.name == chosen)
    typer.echo(
        f"{chosen}: out of fold, predicted / actual goes from {before.pgr.value:.3f} to {after.pgr.value:.3f} "
        f"(99 % {after.pgr.low:.3f} to {after.pgr.high:.3f}), learned from {repaired.sampled:,} rows"
    )
    typer.echo(f"Written to {out}: every column and 'corrected'")


def _model(
    folder: Path,
    data: Path,
    recipe: "Recipe",
    test_share: float,
    rule: "HoldOut",
    by: list[str],
    out: Path,
    stream: bool | None,
    resume: bool,
    as_json: bool,
    progress: bool | None,
) -> None:
    from transun.cli.training import TrainingJob, choose_segments, resume_file, show_hold_out, show_report
    from transun.report.assessment import side_by_side_table
    from transun.report.formatting import as_json as dump
    from transun.support.group import current_group
    from transun.tables.folder import is_larger_than_memory
    from transun.tables.plan import plan_debiasing

    if out.resolve() == folder.resolve():
        raise ValueError(f"--out {out} is the model itself: name another folder, so that both can be compared")
    base = load_trained(folder)
    group = current_group()
    with readable(data) as source:
        # One rank decides for all: each has its own free memory.
        streamed = group.from_leader(lambda: is_larger_than_memory(source)) if stream is None else stream
        split = _in_folder if streamed else _in_memory
        rows = split(base, source, recipe, test_share, rule, by, progress)
        plan = plan_debiasing(base, rows.sample)
        segments = choose_segments(plan, by, rows.held_out_sample)
        group.from_leader(lambda: new_folder(out))
        resume_path = group.from_leader(lambda: resume_file(out, resume))
        before = rows.assess(base, segments, group)
        seen = rows.seen_share(base)
        if not as_json:
            show_hold_out(rule, rows, recipe.seed)
            if seen:
                typer.echo(
                    f"About {seen:.0%} of the rows held out are training rows of {folder}, so that there will be no "
                    "certificate: give rows that it has not seen, or the data, --holdout, --test-share and --seed of "
                    "its training."
                )
        job = TrainingJob(data_name(data), plan, recipe, rows, segments, out, test_share, base, seen)
        report = job.run(base.model.backbone, resume_path, progress)
    if report is None:
        return
    if as_json:
        typer.echo(
            dump(
                {
                    "before": before,
                    "after": report.assessment,
                    "head": plan.head_text,
                    "seen_by_base": seen,
                    "out": str(out),
                }
            )
        )
        return
    print_blocks([side_by_side_table({"before": before, "after": report.assessment})])
    show_report(report, out, certified=not seen)


def _in_memory(
    base: "TableModel",
    source: Path,
    recipe: "Recipe",
    test_share: float,
    rule: "HoldOut",
    by: "Sequence[str]",
    progress: bool | None,
) -> "SplitRows":
    from transun.cli.training import RowsInMemory
    from transun.data import drop_missing, read_table
    from transun.data.schema import require_columns
    from transun.tables.training import hold_out

    table = base.features.convert(read_table(source, verbatim=base.features.types))
    require_columns(table.column_names, [base.target, *by])
    table, _ = drop_missing(table, base.target)
    return RowsInMemory(*hold_out(table, test_share, recipe.seed, rule), rule)


def _in_folder(
    base: "TableModel",
    source: Path,
    recipe: "Recipe",
    test_share: float,
    rule: "HoldOut",
    by: "Sequence[str]",
    progress: bool | None,
) -> "SplitRows":
    from transun.cli.training import RowsInFolder
    from transun.tables.folder import survey_folder
    from transun.tables.training import require_test_share
    from transun.training.recipe import MOST_VALID

    require_test_share(test_share)
    folder = survey_folder(
        source,
        base.target,
        weight=base.weight,
        features=base.features,
        keep=by,
        hold_out=rule,
        test_share=test_share,
        valid_share=recipe.valid_share,
        most_valid=MOST_VALID,
        seed=recipe.seed,
        progress=progress,
    )
    return RowsInFolder(folder, rule, progress)
