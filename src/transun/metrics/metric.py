"""The concept `Metric` in its two kinds: additive metrics are functions of sums, sample metrics need all rows.

Two shards are merged by adding their sums or joining their rows, so a merged value is right by construction; the usual
shortcut, a running mean of the batches' values, is not.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar

import torch
from torch import Tensor

from transun.metrics.rows import Rows, Vector, check

__all__ = [
    "AdditiveMetric",
    "Better",
    "Estimate",
    "Interval",
    "Metric",
    "Moments",
    "Sample",
    "SampleMetric",
    "Summary",
    "Sums",
    "bootstrap",
    "filled",
]

Better = Literal["lower", "higher", "zero", "one"]


Merging = Literal["sum", "cat"]


class Summary(Protocol):
    """What a metric keeps of some rows; `a + b` is the summary of the rows of both.

    Attributes:
        merging: how the tensors of two summaries become those of both: added, or put one after the other.

    """

    merging: ClassVar[Merging]

    @property
    def count(self) -> int:
        """The number of rows."""

    @property
    def total_weight(self) -> float:
        """The sum of the weights."""

    def __add__(self, other: Self) -> Self: ...

    def tensors(self) -> dict[str, Tensor]:
        """The whole summary as float64 tensors by name, for libraries that keep and merge such states themselves."""

    @classmethod
    def of_tensors(cls, tensors: Mapping[str, Tensor]) -> Self:
        """The summary that `tensors` was called on."""


S = TypeVar("S", bound=Summary)


class Metric(ABC):
    """A number that describes predictions against targets: `metric(pred, y, weight) -> float`.

    `weight` counts repetitions: a row of weight 2 is the same as the row given twice. Subclasses are frozen
    dataclasses; their fields are the definition's constants. Everything that a report shows of a metric stands here,
    so that a new metric appears in every report without another edit.

    Attributes:
        label: what the name begins with.
        better: where a good model's value lies.
        bounds: the least and the largest value that there can be, which no interval passes.
        description: what the metric measures, in a few words for the heading of a row.
        meaning: one or two sentences for a glossary.
        digits: decimals that are worth showing.
        keeps_rows: whether its summary holds every row, so that of rows larger than memory it needs a sample.

    """

    label: ClassVar[str]
    better: ClassVar[Better]
    bounds: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    description: ClassVar[str] = ""
    meaning: ClassVar[str] = ""
    digits: ClassVar[int] = 3
    keeps_rows: ClassVar[bool] = False

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

        >>> from transun.metrics import PGR
        >>> PGR.title
        'predicted / actual total (PGR)'
        """
        return f"{self.description} ({self.name})" if self.description else self.name

    def format(self, value: float) -> str:
        """The value as text, with the metric's number of decimals.

        >>> from transun.metrics import PGR, XAUC
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

        >>> from transun.metrics import PGR, XAUC
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
        """What identifies the summary: in a `Meter`, metrics with equal keys share one summary."""

    @abstractmethod
    def summarise(self, rows: Rows) -> Any:
        """The summary of some rows, possibly none."""

    @abstractmethod
    def compute(self, summary: Any) -> float:
        """The value over the summarised rows; NaN where the definition divides zero by zero."""

    @abstractmethod
    def compute_error(self, summary: Any) -> float:
        """The standard error of the value over redraws of the rows; NaN for a single row."""

    def compute_bound(self, summary: Any) -> float:
        """How far the value may be from the value over all rows: 0, unless the summary forgets some rows."""
        return 0.0

    def __call__(self, pred: Vector, y: Vector, weight: Vector | None = None) -> float:
        """The value for these rows."""
        return self.compute(filled(self.summarise(check(pred, y, weight))))

    def standard_error(self, pred: Vector, y: Vector, weight: Vector | None = None) -> float:
        """The standard error of the value, if the rows, each with its weight, are independent draws.

        A weight is part of its row: 100 rows of weight 2 carry as much information as 100 rows, not as 200.
        """
        return self.compute_error(filled(self.summarise(check(pred, y, weight))))


def filled(summary: S) -> S:
    """The summary itself; a `ValueError` is raised if it has no rows, or no weight, to compute a value from."""
    if summary.count == 0:
        raise ValueError("`y` has no rows (row 0 is missing): a metric needs at least one; pass some rows first")
    if summary.total_weight == 0:
        raise ValueError("`weight` is zero in every row, from row 0 on: no row counts; give one row a positive weight")
    return summary


@dataclass(frozen=True)
class Sums:
    """A summary that consists of sums over rows; a subclass has further ones as fields, numbers or tensors.

    >>> both = Sums(2, 3.0) + Sums(1, 1.0)
    >>> both
    Sums(count=3, total_weight=4.0)
    >>> Sums.of_tensors(both.tensors()) == both
    True
    """

    count: int
    total_weight: float

    merging: ClassVar[Merging] = "sum"

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    def tensors(self) -> dict[str, Tensor]:
        """Every sum by the name of its field."""
        return {each.name: torch.as_tensor(getattr(self, each.name), dtype=torch.float64) for each in fields(self)}

    @classmethod
    def of_tensors(cls, tensors: Mapping[str, Tensor]) -> Self:
        """The summary of these sums."""
        sums: dict[str, Any] = dict(tensors)
        numbers = {name: value.item() for name, value in tensors.items() if value.ndim == 0}
        return cls(**sums | numbers | {"count": int(numbers["count"])})


@dataclass(frozen=True)
class Moments(Sums):
    """Sums over rows of a statistic s of k numbers: Σs (k,) and Σssᵀ (k, k), enough for a value and its error."""

    sums: Tensor
    products: Tensor


class AdditiveMetric(Metric):
    """A metric that is a smooth function of sums: value(Σᵢ statistics(predᵢ, yᵢ, weightᵢ)).

    A subclass writes those two functions. It then merges in constant memory, and its standard error follows by the
    delta method: with g the gradient of `value` (autograd) and C the covariance of the rows, se² = n·gᵀCg.
    """

    @property
    def key(self) -> Hashable:
        """The metric itself: its sums are of no use to any other metric."""
        return self

    @abstractmethod
    def statistics(self, pred: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        """The (n, k) statistics of n rows."""

    @abstractmethod
    def value(self, sums: Tensor) -> Tensor:
        """The scalar value as a differentiable function of the (k,) sums."""

    def summarise(self, rows: Rows) -> Moments:
        """Sums and cross products of the rows' statistics."""
        s = self.statistics(rows.pred, rows.y, rows.weight)
        return Moments(len(rows), rows.weight.sum().item(), s.sum(0), s.T @ s)

    def compute(self, summary: Moments) -> float:
        """`value` of the sums."""
        return self.value(summary.sums).item()

    def compute_error(self, summary: Moments) -> float:
        """The standard error by the delta method, O(k²) whatever the number of rows."""
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
    """All rows seen so far, in parts, which are joined only when a value is computed."""

    parts: tuple[Rows, ...]

    merging: ClassVar[Merging] = "cat"

    @property
    def count(self) -> int:
        """The number of rows."""
        return sum(len(part) for part in self.parts)

    @property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return sum(part.weight.sum().item() for part in self.parts)

    @cached_property
    def rows(self) -> Rows:
        """All rows in one piece."""
        return Rows.join(self.parts)

    def __add__(self, other: "Sample") -> "Sample":
        return Sample(self.parts + other.parts)

    def tensors(self) -> dict[str, Tensor]:
        """Predictions, targets and weights."""
        return {"pred": self.rows.pred, "y": self.rows.y, "weight": self.rows.weight}

    @classmethod
    def of_tensors(cls, tensors: Mapping[str, Tensor]) -> "Sample":
        """The rows with these predictions, targets and weights."""
        return cls((Rows(**tensors),))


class SampleMetric(Metric):
    """A metric that needs all rows at once, such as a ranking: evaluate(rows).

    It costs 24 bytes a row, paid once for all sample metrics of a `Meter`. The standard error is estimated by the
    bootstrap, which costs `draws` evaluations; a subclass that knows a formula overrides `compute_error`.
    """

    draws: ClassVar[int] = 200
    keeps_rows: ClassVar[bool] = True

    @property
    def key(self) -> Hashable:
        """The same key for every sample metric, so that they share the rows."""
        return Sample

    @abstractmethod
    def evaluate(self, rows: Rows) -> float:
        """The value for the rows."""

    def summarise(self, rows: Rows) -> Sample:
        """The rows themselves."""
        return Sample((rows,))

    def compute(self, summary: Sample) -> float:
        """The value over all rows."""
        return self.evaluate(summary.rows)

    def compute_error(self, summary: Sample) -> float:
        """The standard deviation of the value over seeded redraws of the rows."""
        # Rows of weight zero never matter, and a redraw of nothing but such rows has no value.
        values = _redraw(self, summary.rows.with_weight(), self.draws, seed=0)
        return values.std().item() if summary.count > 1 and len(values) > 1 else math.nan


# The level of every interval that is shown, and of every verdict: at 95 % one fair model in twenty would look biased.
LEVEL = 0.99


@dataclass(frozen=True)
class Interval:
    """An interval [low, high]."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Estimate:
    """A number with a name and an interval [low, high] for its true value; NaN where it is undefined.

    >>> 1.0 in Estimate("PGR", 0.9, 0.7, 1.1)
    True
    """

    name: str
    value: float
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
) -> Estimate:
    """A metric with its percentile bootstrap interval: the quantiles (1 ± level)/2 over redraws of the rows.

    It costs `draws` evaluations; 200 fix the ends to about a tenth of the interval's width, 2000 to a thirtieth.
    Unlike value ± 1.96 se it respects bounds and skewness. The same seed gives the same interval.

    >>> from transun.metrics import PGR
    >>> bootstrap(PGR, [2.0, 2.0, 2.0], [4.0, 4.0, 4.0])
    Estimate(name='PGR', value=0.5, low=0.5, high=0.5)
    """
    if draws < 2 or not 0 < level < 1:
        raise ValueError(f"`draws` is {draws} and `level` {level}: use at least 2 draws and a level inside (0, 1)")
    rows = filled(Sample((check(pred, y, weight),))).rows.with_weight()
    value, redrawn = metric.compute(metric.summarise(rows)), _redraw(metric, rows, draws, seed)
    if len(redrawn) == 0:
        return Estimate(metric.name, value, math.nan, math.nan)
    ends = torch.quantile(redrawn, torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=redrawn.dtype))
    return Estimate(metric.name, value, *ends.tolist())


def _redraw(metric: Metric, rows: Rows, draws: int, seed: int) -> Tensor:
    """The metric's values over rows drawn with replacement; a redraw without a value, such as no pair, is left out."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.empty(draws, dtype=torch.float64)
    for draw in range(draws):
        index = torch.randint(len(rows), (len(rows),), generator=generator)
        values[draw] = metric.compute(metric.summarise(rows.take(index)))
    return values[~values.isnan()]
