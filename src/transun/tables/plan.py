"""What to train on a table, decided before the training and told with reasons: features, target, head."""

import ast
import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from transun import heads
from transun.data import Features, infer, read_table
from transun.data.values import as_numbers, read, targets
from transun.heads import GTS, Head
from transun.metrics import skewness
from transun.models import spec
from transun.models.network import Model
from transun.schemes import ReciprocalTarget
from transun.tables.model import TableModel

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Plan",
    "TargetSummary",
    "debias_plan",
    "make_plan",
    "parse_head",
    "recommend",
    "require_targets",
    "require_weights",
    "summarise_target",
]

# An exponential target has skewness 2; below 1 squared error on the target itself has no tail to fight.
_SKEWED = 1.0
# ln(1 + y) is nearly a straight line for targets far below 1.
_SMALL = 0.3


@dataclass(frozen=True)
class TargetSummary:
    """How a target is spread; `typical` is the median of what is not zero, without its sign."""

    rows: int
    mean: float
    median: float
    p99: float
    largest: float
    zeros: float
    negative: float
    skewness: float
    typical: float


@dataclass(frozen=True)
class Plan:
    """Features fitted to the training rows, the target in numbers, and the head with the reason for it."""

    features: Features
    target: str
    weight: str | None
    summary: TargetSummary
    head: str
    why: str

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """A line a column: name, kind, what it becomes, share missing, and why; `Features.summary` in cells."""
        found = self.features
        lines = []
        for name, kind in found.columns.items():
            inputs = kind.inputs(name)
            tables = {**inputs.ids, **inputs.bags}
            parts = [f"as {size}" if isinstance(size, str) else f"{size} ids" for size in tables.values()]
            becomes = ", ".join([*parts, *(["number"] * len(inputs.numeric))])
            share = f"{100 * found.missing.get(name, 0.0):.1f} %"
            lines.append((name, str(kind), becomes, share, found.why.get(name, "declared")))
        left_out = [(name, "left out", "", "", why) for name, why in found.why.items() if name not in found.columns]
        return lines + left_out


def make_plan(
    source: Any, target: str, *, weight: str | None = None, exclude: Iterable[str] = (), head: str | None = None
) -> Plan:
    """The plan for training rows: columns to kinds, target to head.

    Args:
        source: the training rows; what `read_table` takes. Rows held out must not be among them.
        target: the column to predict.
        weight: the column of sample weights.
        exclude: columns to leave out, above all what is known only after the target.
        head: text of `transun.models.spec`; None recommends one.

    >>> plan = make_plan({"item": ["a", "b"] * 60, "gmv": [1.0, 2.0, 3.0, 400.0] * 30}, "gmv")
    >>> plan.head, [row[:2] for row in plan.rows()]
    ('AutoSUN()', [('item', 'Id()')])

    """
    table: pa.Table = read_table(source)
    if weight == target:
        raise ValueError(f"target and weight are the same column {target!r}: name two")
    if target in (dropped := list(exclude)):
        raise ValueError(f"the target {target!r} cannot be excluded: it is never a feature anyway")
    summary = summarise_target(torch.from_numpy(targets(table, target).copy()))
    chosen, why = (head, "chosen by you") if head is not None else recommend(summary)
    parse_head(chosen)
    features = infer(table, target, weight=weight, exclude=dropped)
    return Plan(features, target, weight, summary, chosen, why)


def debias_plan(base: TableModel, source: Any, seed: int) -> tuple[Plan, TableModel]:
    """A bias branch around a trained model: the plan, and the model to train with `fit(base=base.model)`.

    Args:
        base: trained, without a bias branch of its own.
        source: rows to learn its bias from.
        seed: of the branch's first weights.

    """
    table = read_table(source)
    model, text = base.model, spec.dumps(base.model.head)
    # One row tells whether the head, or one inside it, has a bias branch: only then do its scores have that name.
    with torch.no_grad():
        named = model.head.ranking_pairs(model.raw(base.features.encode(table.slice(0, 1))), torch.ones(1))
    if any(name.rpartition(".")[2] == "bias" for name in named):
        raise ValueError(f"the model's head {text} has a bias branch already: train it on, or with more rows, instead")
    summary = summarise_target(torch.from_numpy(targets(table, base.target).copy()))
    # ε is in units of the target: 1 as in the paper, unless the targets are far below it.
    scheme = (
        ReciprocalTarget() if summary.typical >= _SMALL else ReciprocalTarget(float(f"{summary.typical or 1.0:.0e}"))
    )
    head = GTS(model.head, scheme)
    untrained = TableModel(base.features, Model(model.backbone, head, seed), base.target, base.weight)
    why = f"a bias branch around {text}, whose weights are the start"
    return Plan(base.features, base.target, base.weight, summary, spec.dumps(head), why), untrained


def summarise_target(y: Tensor) -> TargetSummary:
    """The numbers that a head is chosen by.

    >>> found = summarise_target(torch.tensor([0.0, 1.0, 2.0, 5.0]))
    >>> found.mean, found.zeros, found.typical
    (2.0, 0.25, 2.0)
    """
    y = y.double()
    size = y[y != 0.0].abs()
    ordered = y.sort().values
    return TargetSummary(
        len(y),
        float(y.mean()),
        float(ordered[(len(y) - 1) // 2]),
        float(ordered[min(int(0.99 * len(y)), len(y) - 1)]),
        float(y.max()),
        float((y == 0.0).double().mean()),
        float((y < 0.0).double().mean()),
        skewness(y),
        float(size.median()) if len(size) else 0.0,
    )


def recommend(summary: TargetSummary) -> tuple[str, str]:
    """A head for a target, as text, and why: `AutoSUN` for skewed amounts, a signed one where there are negatives.

    >>> recommend(summarise_target(torch.tensor([1.0, 1.0, 1.0, 50.0])))[0]
    'AutoSUN()'
    >>> recommend(summarise_target(torch.tensor([-3.0, 1.0, 2.0])))[0]
    'Scaled(TranSUN(Asinh()))'
    >>> recommend(summarise_target(torch.tensor([4.0, 5.0, 6.0])))[0]
    'Scaled(MSE())'
    """
    if summary.negative > 0.0:
        return "Scaled(TranSUN(Asinh()))", (
            f"{100 * summary.negative:.1f} % of the targets are below 0, where a logarithm has no value; arsinh bends "
            "both tails, and GTS keeps the totals right"
        )
    # NaN where all targets are alike.
    if not summary.skewness >= _SKEWED:
        return "Scaled(MSE())", (
            f"the target is hardly skewed (skewness {summary.skewness:.2f}): squared error on the target itself is "
            "unbiased and needs no transform"
        )
    return "AutoSUN()", (
        f"the target is not negative and skewed (skewness {summary.skewness:.1f}): the mean of three models of it, a "
        "logarithm among them, each with a bias branch that keeps the totals right"
    )


def parse_head(text: str) -> Head:
    """The head that a text describes; nothing is executed, and an unknown name is told with the nearest ones.

    >>> parse_head("LogSUM()")
    Traceback (most recent call last):
    ValueError: there is no 'LogSUM' in transun: did you mean 'LogSUN'...
    """
    known = spec.vocabulary()
    for name in _called(text):
        if name not in known:
            near = get_close_matches(name, known, n=3, cutoff=0.5)
            folded = [each for each in known if each.lower() == name.lower()]
            shown = " or ".join(map(repr, folded or near))
            hint = f"did you mean {shown}?" if shown else f"heads are {', '.join(_methods())}"
            raise ValueError(f"there is no {name!r} in transun: {hint}")
    head = spec.loads(text)
    if isinstance(head, Head):
        return head
    if callable(head) and text.strip().isidentifier():
        raise ValueError(f"{text} is a name, not a head: write {text.strip()}()")
    raise ValueError(f"{text!r} is no head: name one of {', '.join(_methods())}, e.g. TranSUN(Log1p())")


def require_targets(head: str, source: Any, target: str) -> None:
    """Raise a `ValueError` where a target is outside what the head can learn, with its row and what to use instead.

    >>> require_targets("LogSUN()", {"gmv": [1.0, -2.0]}, "gmv")
    Traceback (most recent call last):
    ValueError: column 'gmv' does not suit LogSUN(): target -2 in row 1 is below 0 of Log1p(...); for signed targets ...
    """
    y = torch.from_numpy(targets(read_table(source), target).copy())
    try:
        parse_head(head).prepare(y)
    except ValueError as error:
        raise ValueError(f"column {target!r} does not suit {head}: {error}") from None


def require_weights(source: Any, weight: str) -> None:
    """Raise a `ValueError` that names the first row whose weight is missing, infinite or negative.

    >>> require_weights({"w": [1.0, -1.0]}, "w")
    Traceback (most recent call last):
    ValueError: column 'w', row 1: -1 is no weight; weights are finite and not negative: use 0 to leave a row out
    """
    values = as_numbers(f"column {weight!r}", read(read_table(source), weight))
    wrong = np.flatnonzero(~((values >= 0.0) & (values < np.inf)))
    if len(wrong):
        raise ValueError(
            f"column {weight!r}, row {wrong[0]}: {values[wrong[0]]:g} is no weight; weights are finite and not "
            "negative: use 0 to leave a row out"
        )


def _called(text: str) -> list[str]:
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []  # `loads` says what is wrong with it
    return [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]


def _methods() -> list[str]:
    """Heads that can be built without an argument."""
    found = []
    for name in heads.__all__:
        build = getattr(heads, name)
        made = inspect.isfunction(build) or (isinstance(build, type) and issubclass(build, Head))
        needed = [p for p in inspect.signature(build).parameters.values() if p.default is p.empty] if made else [1]
        if not needed and name not in ("Head",):
            found.append(name)
    return found
