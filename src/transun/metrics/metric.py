"""The concept `Metric`, in its two kinds: additive (sums of per-row statistics) and sample (all rows).

Merging two shards is addition of sums or concatenation of rows, so it is right by construction; a running
mean of batch values, the usual shortcut, is not.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar

import torch
from torch import Tensor

from transun.metrics.rows import Rows, Vector, check

__all__ = ["AdditiveMetric", "Better", "Interval", "Metric", "Moments", "Sample", "SampleMetric", "bootstrap"]

Better = Literal["lower", "higher", "zero", "one"]


class Summary(Protocol):
    """What a metric needs to remember of some rows; `a + b` summarises the rows of both."""

    @property
    def count(self) -> int:
        """Return the number of rows."""

    @property
    def total_weight(self) -> float:
        """Return the sum of the weights."""

    def __add__(self, other: Self) -> Self: ...


S = TypeVar("S", bound=Summary)


class Metric(ABC):
    """A number that describes predictions against targets: `metric(pred, y, weight) -> float`.

    `weight` counts repetitions: a row of weight 2 is the same as the row given twice. Subclasses are frozen
    dataclasses; their fields are the definition's constants. Everything that a report shows of a metric stands here,
    so that a new metric appears in every report without another edit.

    Attributes:
        label: what the name begins with.
        better: where a good model's value lies.
        description: what the metric measures, in a few words for the heading of a row.
        meaning: one or two sentences for a glossary.
        digits: decimals that are worth showing.

    """

    label: ClassVar[str]
    better: ClassVar[Better]
    description: ClassVar[str] = ""
    meaning: ClassVar[str] = ""
    digits: ClassVar[int] = 3

    @property
    def name(self) -> str:
        """The label, with the arguments that differ from their defaults: `XAUC`, `TopXAUC(share=0.1)`."""
        chosen = [
            f"{field.name}={value!r}"
            for field in fields(self)  # type: ignore[arg-type]  # every concrete metric is a dataclass
            if (value := getattr(self, field.name)) != field.default
        ]
        return self.label + (f"({', '.join(chosen)})" if chosen else "")

    @property
    def title(self) -> str:
        """What a person reads: the description with the name, or the name alone where there is no description.

        >>> PGR.title
        'predicted / actual total (PGR)'
        """
        return f"{self.description} ({self.name})" if self.description else self.name

    def format(self, value: float) -> str:
        """The value as text, with the metric's number of decimals.

        >>> PGR.format(0.5), XAUC.format(0.75), PGR.format(math.nan), PGR.format(math.inf)
        ('0.500', '0.7500', '–', '∞')
        """
        if math.isnan(value):
            return "–"
        if math.isinf(value):
            return "∞" if value > 0 else "-∞"
        return f"{value:.{self.digits}f}"

    def badness(self, value: float) -> float:
        """How far a value of this metric is from good: of two models the one with less is better.

        >>> XAUC.badness(0.7) < XAUC.badness(0.6), PGR.badness(0.5) == PGR.badness(2.0)
        (True, True)
        """
        match self.better:
            case "lower":
                return value
            case "higher":
                return -value
            case "zero":
                return abs(value)
            case "one":
                return abs(math.log(value)) if value > 0.0 else math.inf

    @property
    @abstractmethod
    def key(self) -> Hashable:
        """Return what identifies the summary: in a `Meter`, metrics with equal keys share one summary."""

    @abstractmethod
    def summarise(self, rows: Rows) -> Any:
        """Return the summary of some rows, possibly none."""

    @abstractmethod
    def compute(self, summary: Any) -> float:
        """Return the value over the summarised rows; NaN where the definition divides zero by zero."""

    @abstractmethod
    def compute_error(self, summary: Any) -> float:
        """Return the standard error of the value, over redraws of the rows; NaN for a single row."""

    def compute_bound(self, summary: Any) -> float:
        """Return how far the value may be from the one over all rows: 0, unless the summary forgets some."""
        return 0.0

    def __call__(self, pred: Vector, y: Vector, weight: Vector | None = None) -> float:
        """Return the value for these rows."""
        return self.compute(filled(self.summarise(check(pred, y, weight))))

    def standard_error(self, pred: Vector, y: Vector, weight: Vector | None = None) -> float:
        """Return the value's standard error, the rows (weight included) being independent draws.

        A weight is part of its row: 100 rows of weight 2 tell as much as 100 rows, not as 200.
        """
        return self.compute_error(filled(self.summarise(check(pred, y, weight))))


def filled(summary: S) -> S:
    """Return the summary, or raise a `ValueError` where there is nothing to compute a value from."""
    if summary.count == 0:
        raise ValueError("`y` has no rows (row 0 is missing): a metric needs at least one; pass some rows first")
    if summary.total_weight == 0:
        raise ValueError("`weight` is zero in every row, from row 0 on: no row counts; give one row a positive weight")
    return summary


@dataclass(frozen=True)
class Moments:
    """Sums over rows of a statistic s of k numbers: Σs (k,) and Σssᵀ (k, k), enough for a value and its error."""

    count: int
    total_weight: float
    sums: Tensor
    products: Tensor

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.count + other.count,
            self.total_weight + other.total_weight,
            self.sums + other.sums,
            self.products + other.products,
        )


class AdditiveMetric(Metric):
    """A metric that is a smooth function of sums: value(Σᵢ statistics(predᵢ, yᵢ, weightᵢ)).

    A subclass writes those two functions and gets merging in constant memory, and a standard error by the delta
    method: with g the gradient of `value` (autograd) and C the covariance of the rows, se² = n·gᵀCg.
    """

    @property
    def key(self) -> Hashable:
        """Return the metric itself: its sums are of use to nobody else."""
        return self

    @abstractmethod
    def statistics(self, pred: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        """Return the (n, k) statistics of n rows."""

    @abstractmethod
    def value(self, sums: Tensor) -> Tensor:
        """Return the scalar value from the (k,) sums, differentiably."""

    def summarise(self, rows: Rows) -> Moments:
        """Return the sums and cross products of the rows' statistics."""
        s = self.statistics(rows.pred, rows.y, rows.weight)
        return Moments(len(rows), rows.weight.sum().item(), s.sum(0), s.T @ s)

    def compute(self, summary: Moments) -> float:
        """Return `value` of the sums."""
        return self.value(summary.sums).item()

    def compute_error(self, summary: Moments) -> float:
        """Return the delta-method standard error, O(k²) whatever the number of rows."""
        n = summary.count
        if n < 2:
            return math.nan
        sums = summary.sums.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(self.value(sums), sums)
        scatter = summary.products - torch.outer(summary.sums, summary.sums) / n
        variance = (gradient @ scatter @ gradient).item() * n / (n - 1)
        return math.sqrt(max(variance, 0.0)) if math.isfinite(variance) else math.nan


@dataclass(frozen=True)
class Sample:
    """All rows seen, in parts; joining them waits until a value is asked for."""

    parts: tuple[Rows, ...]

    @property
    def count(self) -> int:
        """Return the number of rows."""
        return sum(len(part) for part in self.parts)

    @property
    def total_weight(self) -> float:
        """Return the sum of the weights."""
        return sum(part.weight.sum().item() for part in self.parts)

    @cached_property
    def rows(self) -> Rows:
        """All rows in one piece."""
        return Rows.join(self.parts)

    def __add__(self, other: Sample) -> Sample:
        return Sample(self.parts + other.parts)


class SampleMetric(Metric):
    """A metric that needs all rows at once, such as a ranking: evaluate(rows).

    Costs 24 bytes a row, paid once for all sample metrics of a `Meter`. The standard error is a bootstrap's, so
    it costs `draws` evaluations; a subclass that knows a formula overrides `compute_error`.
    """

    draws: ClassVar[int] = 200

    @property
    def key(self) -> Hashable:
        """Return the same key for every sample metric, so that they share the rows."""
        return Sample

    @abstractmethod
    def evaluate(self, rows: Rows) -> float:
        """Return the value for the rows."""

    def summarise(self, rows: Rows) -> Sample:
        """Return the rows themselves."""
        return Sample((rows,))

    def compute(self, summary: Sample) -> float:
        """Return the value over all rows."""
        return self.evaluate(summary.rows)

    def compute_error(self, summary: Sample) -> float:
        """Return the standard deviation of the value over seeded redraws of the rows."""
        values = _redraw(self, summary.rows, self.draws, seed=0)
        return values.std().item() if summary.count > 1 and len(values) > 1 else math.nan


@dataclass(frozen=True)
class Interval:
    """An interval [low, high]."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def bootstrap(
    metric: Metric,
    pred: Vector,
    y: Vector,
    weight: Vector | None = None,
    *,
    draws: int = 200,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Return the percentile bootstrap interval of any metric: quantiles (1 ± level)/2 over redraws of the rows.

    Costs `draws` evaluations; 200 fix the ends to about a tenth of the interval's width, 2000 to a thirtieth.
    Unlike value ± 1.96 se it respects bounds and skewness. The same seed gives the same interval.

    >>> from transun.metrics import PGR
    >>> bootstrap(PGR, [2.0, 2.0, 2.0], [4.0, 4.0, 4.0])
    Interval(low=0.5, high=0.5)
    """
    if draws < 2 or not 0 < level < 1:
        raise ValueError(f"`draws` is {draws} and `level` {level}: use at least 2 draws and a level inside (0, 1)")
    rows = filled(Sample((check(pred, y, weight),))).rows
    values = _redraw(metric, rows, draws, seed)
    if len(values) == 0:
        return Interval(math.nan, math.nan)
    ends = torch.quantile(values, torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=values.dtype))
    return Interval(*ends.tolist())


def _redraw(metric: Metric, rows: Rows, draws: int, seed: int) -> Tensor:
    # A redraw of rows that weigh nothing has no value; such rows never matter, so they leave beforehand.
    rows = rows.take(rows.weight > 0)
    generator = torch.Generator().manual_seed(seed)
    values = torch.empty(draws, dtype=torch.float64)
    for draw in range(draws):
        index = torch.randint(len(rows), (len(rows),), generator=generator)
        values[draw] = metric.compute(metric.summarise(rows.take(index)))
    # A redraw may lack, say, any pair to rank: it has no value to contribute.
    return values[~values.isnan()]
