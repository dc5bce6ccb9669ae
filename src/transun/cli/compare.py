"""`transun compare`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transun.cli.app import app
from transun.cli.options import By, Json, Out, Progress
from transun.cli.output import print_cells
from transun.cli.sources import data_name, load_trained, new_folder, readable, write_texts

if TYPE_CHECKING:
    from transun.tables.model import TableModel


@app.command()
def compare(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders of saved models; the first is what others are compared to.")
    ],
    data: Annotated[
        Path, typer.Option("--data", help="Rows with the target that none of the models was trained on; - for input.")
    ],
    by: By = None,
    out: Out = Path("comparison"),
    as_json: Json = False,
    progress: Progress = None,
) -> None:
    """Put several models side by side on the same rows, with intervals and paired differences.

    Writes comparison.html, .md and .json. Exit codes: 0 done, 2 a mistake in the call or the data, 130 interrupted.

    Example: transun compare model other --data orders.csv --out comparison
    """
    from transun.diagnosis.judging import judge
    from transun.metrics.paired import paired_differences
    from transun.models.spec import dumps
    from transun.report.model import (
        Comparison,
        comparison_markdown,
        comparison_page,
        difference_table,
        side_by_side,
    )
    from transun.report.model import as_json as dump

    if len(runs) < 2:
        raise ValueError("compare needs two models or more: name their folders")
    if len(set(runs)) < len(runs):
        raise ValueError("a model is named twice: give each folder once")
    short = len({run.name for run in runs}) == len(runs)
    names = {(run.name if short else str(run)): run for run in runs}
    trained = {name: load_trained(run) for name, run in names.items()}
    target = _same_target(trained)
    new_folder(out)
    with readable(data) as source:
        judged = {name: judge(model, source, by or (), name=name, progress=progress) for name, model in trained.items()}
    first = next(iter(judged.values()))
    found = Comparison(
        data_name(data),
        target,
        first.assessment.rows,
        {name: one.assessment for name, one in judged.items()},
        {name: dumps(model.model.head) for name, model in trained.items()},
        {name: sum(p.numel() for p in model.model.parameters()) for name, model in trained.items()},
        {name: _seconds(run) for name, run in names.items()},
        paired_differences({name: one.pred for name, one in judged.items()}, first.y, first.weight),
    )
    texts = {"html": comparison_page(found), "md": comparison_markdown(found), "json": dump(found) + "\n"}
    write_texts(out, {f"comparison.{ending}": text for ending, text in texts.items()})
    if as_json:
        typer.echo(texts["json"].strip())
        return
    print_cells(side_by_side(found.models))
    print_cells(difference_table(found.differences))
    typer.echo(f"Written to {out}/: comparison.html, comparison.md, comparison.json")


def _same_target(trained: "dict[str, TableModel]") -> str:
    (name, first), *others = trained.items()
    for other, model in others:
        if (model.target, model.weight) != (first.target, first.weight):
            raise ValueError(
                f"{name} predicts {first.target!r} (weight {first.weight}) and {other} {model.target!r} (weight "
                f"{model.weight}): compare models of one target"
            )
    return first.target


def _seconds(run: Path) -> float | None:
    """Seconds of training, from the report beside the model where there is one."""
    try:
        return float(json.loads((run / "report.json").read_text(encoding="utf-8"))["cost"]["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
