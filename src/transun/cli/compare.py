"""`transun compare`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transun.cli.app import app
from transun.cli.options import By, Json, MaxUnseen, Out, Progress
from transun.cli.output import deliver
from transun.cli.shift import require_seen, show_shift
from transun.cli.sources import data_name, load_trained, readable, require_writable
from transun.models.description import is_saved_model
from transun.support.paths import as_path

if TYPE_CHECKING:
    from transun.tables.model import TableModel


@app.command()
def compare(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders of saved models; the first is what others are compared to.")
    ],
    data: Annotated[
        Path,
        typer.Argument(
            parser=as_path,
            metavar="DATA",
            help="Rows with the target that no model was trained on; - for standard input.",
        ),
    ],
    by: By = None,
    max_unseen: MaxUnseen = None,
    out: Out = Path("comparison"),
    as_json: Json = False,
    progress: Progress = None,
) -> None:
    """Put several models side by side on the same rows, with intervals and paired differences.

    Writes comparison.html, .md and .json. Exit codes: 0 done, 2 a mistake in the call or the data, 130 interrupted.

    Example: transun compare model other orders.csv --out comparison
    """
    from transun.diagnosis.evaluation import evaluate_model
    from transun.metrics import STANDARD
    from transun.metrics.paired import paired_differences
    from transun.models.spec import dumps
    from transun.report.comparison import Comparison, comparison_document
    from transun.report.formatting import as_json as to_json

    if is_saved_model(data):
        raise ValueError(f"{data} is a model: name the rows to compare by after the models")
    if len(runs) < 2:
        raise ValueError("compare needs two models or more: name their folders, then the rows")
    if len(set(runs)) < len(runs):
        raise ValueError("a model is named twice: give each folder once")
    short = len({run.name for run in runs}) == len(runs)
    names = {(run.name if short else str(run)): run for run in runs}
    trained = {name: load_trained(run) for name, run in names.items()}
    target = _same_target(trained)
    require_writable(out)
    with readable(data) as source:
        evaluations = {
            name: evaluate_model(model, source, by or (), name=name, progress=progress)
            for name, model in trained.items()
        }
    for evaluation in evaluations.values():
        require_seen(evaluation.shift, max_unseen)
    first = next(iter(evaluations.values()))
    preds = {name: evaluation.sample["pred"] for name, evaluation in evaluations.items()}
    comparison = Comparison(
        name=data_name(data),
        target=target,
        rows=first.assessment.rows,
        models={name: evaluation.assessment for name, evaluation in evaluations.items()},
        heads={name: dumps(model.model.head) for name, model in trained.items()},
        parameters={name: model.model.network.learned_numbers() for name, model in trained.items()},
        seconds={name: _seconds(run) for name, run in names.items()},
        differences=paired_differences(preds, first.sample["y"], first.sample["weight"], STANDARD),
        seen={name: evaluation.seen for name, evaluation in evaluations.items()},
        remark=first.remark,
    )
    shifts = {name: evaluation.shift.to_dict() for name, evaluation in evaluations.items()}
    values = to_json(vars(comparison) | {"shift": shifts})
    deliver(comparison_document(comparison), values, out, "comparison", as_json=as_json)
    if not as_json:
        for name, evaluation in evaluations.items():
            show_shift(evaluation.shift, name)


def _same_target(trained: "dict[str, TableModel]") -> str:
    (name, first), *others = trained.items()
    for other, model in others:
        if (model.target, model.weight, model.exposure) != (first.target, first.weight, first.exposure):
            raise ValueError(
                f"{name} predicts {_predicted(first)} and {other} {_predicted(model)}: compare models of one target"
            )
    return first.target


def _predicted(model: "TableModel") -> str:
    return f"{model.target!r} (weight {model.weight}, exposure {model.exposure})"


def _seconds(run: Path) -> float | None:
    """Seconds of training, from the report beside the model where there is one."""
    try:
        return float(json.loads((run / "report.json").read_text(encoding="utf-8"))["cost"]["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
