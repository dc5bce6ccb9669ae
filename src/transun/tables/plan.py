"""The plan of a training: how columns are read, what the target looks like, and which head fits it, with reasons."""

import ast
import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor

from transun import heads
from transun.backbones import Backbone
from transun.data import Features, infer
from transun.data.exposure import read_exposure, to_rates
from transun.data.magnitude import refuse_vanishing, require_squarable
from transun.data.schema import given_names
from transun.data.table import as_numbers, column_array, targets
from transun.heads import GTS, Head
from transun.metrics.spread import skewness
from transun.models import spec
from transun.models.head_summary import summarise_head
from transun.schemes import ReciprocalTarget
from transun.support.arguments import listed
from transun.support.arrays import Floats, Integers
from transun.support.suggest import did_you_mean
from transun.support.text_form import dumps
from transun.tables.folder import StreamedFolder
from transun.tables.model import TableModel, embedding_mlp, tabm

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Only",
    "Plan",
    "TargetSummary",
    "make_plan",
    "parse_head",
    "parse_only",
    "plan_debiasing",
    "recommend",
    "summarise_target",
    "target_rates",
]

Only = Literal["trees", "network"]
"""What is trained where not both are."""

# The default head for skewed amounts, all of whose branches read the last layer. The likelihood of EGMN teaches that
# layer what amounts there are, and orders small ones; its mean of large amounts is too rough to have a share in them.
_AMOUNTS = (
    "Blend((Scaled(Poisson()), Scaled(LogSUN(shared='all')), EGMN(entropy=0, regression=0)), "
    "(0.5, 0.5, 0), (0.25, 0.25, 0.5), shared='all', costs=(1, 1, 0.1))"
)
# Members of TabM, and the rows that the members beside trees may have together: on tables of 40,000 rows and more a
# single network beside trees predicts as well as eight members, in a fourth of the time (paper/reports/board).
_MEMBERS, _MEMBER_ROWS = 8, 100_000
# An exponential target has skewness 2; below 1 squared error on the target itself has no tail to fight.
_SKEWED = 1.0
# ln(1 + y) is nearly a straight line for targets far below 1.
_SMALL = 0.3


@dataclass(frozen=True)
class TargetSummary:
    """The distribution of a target in numbers; `typical` is the median absolute value of targets that are not zero."""

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
    """Features fitted to the training rows, the target in numbers, and the head with the reason for it.

    `head_text` is the head as a person would write it; `recommended` says whether transun chose it.
    """

    features: Features
    target: str
    weight: str | None
    summary: TargetSummary
    head: Head
    head_text: str
    why: str
    recommended: bool = False
    trees: bool = False
    """Whether boosted trees are trained."""
    network: bool = True
    """Whether a network with the head is trained."""
    exposure: str | None = None
    """The column that amounts were collected over; the target in numbers is per unit of it."""

    def backbone(self, build: Callable[[Features], Backbone] | None = None) -> Backbone:
        """The network over these features.

        Args:
            build: makes it; None is TabM. Beside trees, TabM has fewer members the more rows there are, and a single
                network in the end, because members even out the chance of few rows, and cost their number.

        """
        if build is not None:
            return build(self.features)
        members = min(_MEMBERS, _MEMBER_ROWS // max(self.summary.rows, 1)) if self.trees else _MEMBERS
        return embedding_mlp(self.features) if members < 2 else tabm(self.features, members=members)

    def parts(self) -> list[str]:
        """What is trained, in lines for a reader."""
        if self.trees and self.network:
            return ["boosted trees and a network, mixed as validation rows decide", f"network: {self.why}"]
        return ["boosted trees"] if self.trees else [f"head {self.head_text}: {self.why}"]

    def column_summary(self) -> list[tuple[str, str, str, str, str]]:
        """For each column its name, kind, what it becomes, the share missing, and why; `Features.summary` in cells."""
        features = self.features
        lines = []
        for name, kind in features.columns.items():
            inputs = kind.inputs(name)
            tables = {**inputs.ids, **inputs.bags}
            parts = [f"as {size}" if isinstance(size, str) else f"{size} ids" for size in tables.values()]
            numbers = ["number"] * len(inputs.numeric) + ["rank"] * len(inputs.ranks)
            periods = [f"{size} periods" for size in inputs.periods.values()]
            becomes = ", ".join([*parts, *numbers, *periods])
            share = f"{100 * features.missing.get(name, 0.0):.1f} %"
            lines.append((name, str(kind), becomes, share, features.why.get(name, "declared")))
        excluded = [(name, why) for name, why in features.why.items() if name not in features.columns]
        return lines + [(name, "left out", "", "", why) for name, why in excluded]


def parse_only(text: str | None) -> Only | None:
    """What is to be trained, from its name; None is both.

    >>> parse_only("forest")
    Traceback (most recent call last):
    ValueError: only 'trees' or a 'network' can be trained alone, not 'forest'
    """
    match text:
        case None | "trees" | "network":
            return text
        case _:
            raise ValueError(f"only 'trees' or a 'network' can be trained alone, not {text!r}")


def make_plan(
    table: "pa.Table",
    target: str,
    *,
    head: Head | str | None = None,
    features: Features | None = None,
    exclude: Iterable[str] = (),
    weight: str | None = None,
    only: Only | None = None,
    folder: StreamedFolder | None = None,
    exposure: str | None = None,
) -> Plan:
    """The plan for training rows. Every mistake that can be seen in the columns is reported here, before training.

    Args:
        table: the training rows. Rows held out must not be among them.
        target: the column to predict.
        head: the method or its text; None recommends one.
        features: how to read the columns, fitted here; None guesses.
        exclude: columns that a guess must leave out, above all what is known only after the target.
        weight: the column of sample weights.
        only: "trees" or "network" plans that alone. None plans both, unless a head is named, which is a network's.
        folder: what the table is a sample of, where the training rows are larger than memory; features are then those
            of the folder, fitted to all of its rows.
        exposure: the column that amounts were collected over, which is no feature; see `transun.data.exposure`.

    >>> table = read_table({"item": ["a", "b"] * 60, "gmv": [1.0, 2.0, 3.0, 400.0] * 30})
    >>> plan = make_plan(table, "gmv")
    >>> plan.trees, plan.network, [row[:2] for row in plan.column_summary()]
    (True, True, [('item', 'Id()')])

    """
    if only == "trees" and head is not None:
        raise ValueError("trees have a loss of their own: name a head, or trees alone, but not both")
    if weight is not None and weight == target:
        raise ValueError(f"target and weight are the same column {target!r}: name two")
    if exposure is not None and exposure in (target, weight):
        raise ValueError(f"the exposure {exposure!r} is also the target or the weight: name a column of its own")
    if target in (excluded := listed("exclude", exclude)):
        raise ValueError(f"the target {target!r} cannot be excluded: it is never a feature anyway")
    if features is not None and excluded:
        raise ValueError("exclude is for guessed features: leave the columns out of the ones you pass instead")
    y = torch.from_numpy(target_rates(table, target, weight, exposure))
    summary = summarise_target(y)
    only = parse_only(only)
    recommended = head is None
    text, why = recommend(summary) if head is None else (head if isinstance(head, str) else dumps(head), "named by you")
    chosen = head if isinstance(head, Head) else parse_head(text)
    require_targets(chosen, text, y, target)
    if folder is not None:
        fitted, summary = folder.fitted(), replace(summary, rows=folder.rows)
    else:
        left_out = given_names(*excluded, exposure)
        fitted = infer(table, target, weight=weight, exclude=left_out) if features is None else features.fit(table)
    if exposure is not None and exposure in fitted.sources:
        raise ValueError(f"the exposure {exposure!r} is among the features: leave it out there")
    if only == "trees" and summary.negative:
        raise ValueError(
            f"column {target!r} has targets below 0, which boosted trees do not learn here: train a network"
        )
    trees, network = recommended and only != "network" and not summary.negative, only != "trees"
    return Plan(fitted, target, weight, summary, chosen, text, why, recommended, trees, network, exposure)


def target_rates(
    table: "pa.Table", target: str, weight: str | None, exposure: str | None, number: Integers | None = None
) -> Floats:
    """The targets (n,), per unit of exposure if there is one; an error names the first row that nothing can learn from.

    Args:
        table: the rows.
        target: the column to predict.
        weight: the column of sample weights, which are checked as well.
        exposure: the column that amounts were collected over.
        number: of each row (n,), for the error; None counts these.

    """
    number = np.arange(len(table)) if number is None else number
    if weight is not None:
        require_weights(table, weight, number)
    rates = targets(table, target).copy()
    if exposure is not None:
        rates, _ = to_rates(rates, None, read_exposure(table, exposure, numbers=number))
    require_squarable(number, **{f"target {target!r}": rates})
    refuse_vanishing(**{f"target {target!r}": rates})
    return rates


def plan_debiasing(base: TableModel, table: "pa.Table") -> Plan:
    """The plan of a bias branch around a trained model, for `train_plan(..., base=base.model)`.

    Args:
        base: trained, without a bias branch of its own.
        table: rows to learn its bias from.

    """
    head, text = base.model.head, summarise_head(dumps(base.model.head))
    if head.debiased:
        raise ValueError(f"the model's head {text} has a bias branch already: train it on, or with more rows, instead")
    summary = summarise_target(torch.from_numpy(target_rates(table, base.target, base.weight, base.exposure)))
    # ε is in units of the target: 1 as in the paper, unless the targets are far below it.
    scheme = (
        ReciprocalTarget() if summary.typical >= _SMALL else ReciprocalTarget(float(f"{summary.typical or 1.0:.0e}"))
    )
    debiased = GTS(head, scheme)
    why = f"a bias branch around {text}, whose weights are the start"
    return Plan(
        base.features, base.target, base.weight, summary, debiased, dumps(debiased), why, exposure=base.exposure
    )


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
    """A head for a target, as text, and why: Poisson and TranSUN for amounts, a signed one where there are negatives.

    >>> recommend(summarise_target(torch.tensor([1.0, 1.0, 1.0, 50.0])))[0][:73]
    "Blend((Scaled(Poisson()), Scaled(LogSUN(shared='all')), EGMN(entropy=0, r"
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
    if math.isnan(summary.skewness):
        return "Scaled(MSE())", f"every target is {summary.largest:g}, so that a constant is all there is to learn"
    if not summary.skewness >= _SKEWED:
        return "Scaled(MSE())", (
            f"the target is hardly skewed (skewness {summary.skewness:.2f}): squared error on the target itself is "
            "unbiased and needs no transform"
        )
    return _AMOUNTS, (
        f"the target is not negative and skewed (skewness {summary.skewness:.1f}): half Poisson regression, half a "
        "logarithm with a bias branch (TranSUN), which err differently and both keep the totals right, and beside them "
        "a likelihood (EGMN) that orders small amounts"
    )


def parse_head(text: str) -> Head:
    """The head that a text describes; nothing is executed, and the error for an unknown name suggests the closest ones.

    >>> parse_head("LogSUM()")
    Traceback (most recent call last):
    ValueError: there is no 'LogSUM' in transun: did you mean 'LogSUN'...
    """
    known = spec.vocabulary()
    for name in _called(text):
        if name not in known:
            hint = did_you_mean(name, known) or f"heads are {', '.join(_methods())}"
            raise ValueError(f"there is no {name!r} in transun: {hint}")
    head = spec.loads(text)
    if isinstance(head, Head):
        return head
    if callable(head) and text.strip().isidentifier():
        raise ValueError(f"{text} is a name, not a head: write {text.strip()}()")
    raise ValueError(f"{text!r} is no head: name one of {', '.join(_methods())}, e.g. TranSUN(Log1p())")


def require_targets(head: Head, text: str, y: Tensor, target: str) -> None:
    """Raise a `ValueError` where a target is outside what the head can learn, with its row and what to use instead.

    >>> require_targets(LogSUN(), "LogSUN()", torch.tensor([1.0, -2.0]), "gmv")
    Traceback (most recent call last):
    ValueError: column 'gmv' does not suit LogSUN(): target -2 in row 1 is below 0 of Log1p(...); for signed targets ...
    """
    try:
        head.prepare(y)
    except ValueError as error:
        raise ValueError(f"column {target!r} does not suit {text}: {error}") from None


def require_weights(table: "pa.Table", weight: str, number: Integers | None = None) -> None:
    """Raise a `ValueError` that names the first row whose weight is missing, infinite or negative; not all may be 0.

    Args:
        table: the rows.
        weight: the column.
        number: of each row (n,), for the error; None counts these.

    >>> require_weights(read_table({"w": [1.0, -1.0]}), "w")
    Traceback (most recent call last):
    ValueError: column 'w', row 1: -1 is no weight; weights are finite and not negative: use 0 to leave a row out

    """
    number = np.arange(len(table)) if number is None else number
    values = as_numbers(f"column {weight!r}", column_array(table, weight), "name another column")
    wrong = np.flatnonzero(~((values >= 0.0) & (values < np.inf)))
    if len(wrong):
        raise ValueError(
            f"column {weight!r}, row {number[wrong[0]]}: {values[wrong[0]]:g} is no weight; weights are finite and not "
            "negative: use 0 to leave a row out"
        )
    require_squarable(number, **{f"weight {weight!r}": values})
    refuse_vanishing(**{f"weight {weight!r}": values})
    if not values.any():
        raise ValueError(f"column {weight!r} is 0 in every row: weigh some rows, or leave the weights out")


def _called(text: str) -> list[str]:
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []  # `loads` says what is wrong with it
    return [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]


def _methods() -> list[str]:
    """Heads that can be built without an argument."""
    names = []
    for name in heads.__all__:
        build = getattr(heads, name)
        made = inspect.isfunction(build) or (isinstance(build, type) and issubclass(build, Head))
        needed = [p for p in inspect.signature(build).parameters.values() if p.default is p.empty] if made else [1]
        if not needed and name != "Head":
            names.append(name)
    return names
