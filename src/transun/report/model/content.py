"""What a model report says, as plain values: the page, Markdown and JSON are three views of it."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

import transun
from transun.diagnosis.assessment import Assessment
from transun.support.text_form import arguments, dumps
from transun.tables.model import TableModel
from transun.tables.plan import Plan, TargetSummary
from transun.training.history import Check, Step
from transun.training.recipe import Recipe

__all__ = ["Cost", "ModelReport", "as_json", "model_report"]

# Points of a curve: more than a page is wide would only show the noise of single batches.
_POINTS = 120


@dataclass(frozen=True)
class Cost:
    """What the training took: numbers learned, seconds, rows seen and steps made."""

    parameters: int
    seconds: float
    rows_per_second: float
    steps: int
    best_step: int | None
    stopped_early: bool


@dataclass(frozen=True)
class ModelReport:
    """A training and its outcome on rows held out.

    Attributes:
        name: what the data is called.
        plan: a line a column: name, kind, what it becomes, share missing, why.
        curves: by loss term, pairs of a step and the mean of the term around it.
        recipe: every setting of the training as text.
        test_share: the share of rows held out.
        checks: metrics of the validation rows along training.

    """

    transun: str
    name: str
    target: str
    weight: str | None
    head: str
    why: str
    recipe: dict[str, str]
    test_share: float
    summary: TargetSummary
    plan: list[tuple[str, str, str, str, str]]
    rows: dict[str, int]
    curves: dict[str, list[tuple[float, float]]]
    checks: tuple[Check, ...]
    assessment: Assessment
    cost: Cost


def model_report(
    name: str, plan: Plan, recipe: Recipe, test_share: float, model: TableModel, assessment: Assessment
) -> ModelReport:
    """The report of a training on some data."""
    history = model.history
    cost = Cost(
        sum(parameter.numel() for parameter in model.model.parameters()),
        history.seconds,
        history.rows / history.seconds if history.seconds else math.nan,
        history.steps[-1].step + 1 if history.steps else 0,
        None if history.best is None else history.best.step,
        history.stopped_early,
    )
    rows = {"training": history.train_rows, "validation": history.valid_rows, "test": assessment.rows}
    curves = thinned(history.steps)
    return ModelReport(
        transun.__version__,
        name,
        plan.target,
        plan.weight,
        plan.head_text,
        plan.why,
        {setting: dumps(value) for setting, value in arguments(recipe).items()},
        test_share,
        plan.summary,
        plan.column_summary(),
        rows,
        curves,
        tuple(history.checks),
        assessment,
        cost,
    )


def thinned(steps: Sequence[Step]) -> dict[str, list[tuple[float, float]]]:
    """Every loss term as a curve of at most 120 points, each the mean of neighbouring steps.

    >>> thinned([Step(0, 0, 0.1, {"point": 4.0}), Step(1, 0, 0.1, {"point": 2.0})])
    {'point': [(0.0, 4.0), (1.0, 2.0)]}
    """
    size = max(1, math.ceil(len(steps) / _POINTS))
    groups = [steps[start : start + size] for start in range(0, len(steps), size)]
    names = steps[0].terms if steps else {}
    return {
        name: [
            (sum(step.step for step in group) / len(group), sum(step.terms[name] for step in group) / len(group))
            for group in groups
        ]
        for name in names
    }


def as_json(value: Any) -> str:
    """Any of our values as JSON; what is not finite is null, since JSON has no other numbers.

    >>> as_json({"a": (1.0, math.nan)})
    '{"a": [1.0, null]}'
    """
    return json.dumps(_finite(asdict(value) if is_dataclass(value) and not isinstance(value, type) else value))


def _finite(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _finite(part) for key, part in value.items()}
        case list() | tuple():
            return [_finite(part) for part in value]
        case float() if not math.isfinite(value):
            return None
    if is_dataclass(value) and not isinstance(value, type):
        return _finite(asdict(value))
    return value
