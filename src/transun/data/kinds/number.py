"""Numbers: on a log-like scale and as ranks, cut into buckets of equal frequency, or standardised."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from torch import Tensor

from transun.data.kinds.graph import ColumnGraph, count, double, number_input
from transun.data.kinds.kind import Inputs, Kind, require_fitted, require_values
from transun.data.kinds.periods import MEANING, ascending, period_codes, period_codes_in_graph, recurring_periods
from transun.data.logical import FractionType, LogicalType, TextType
from transun.data.shift import Profile, Shift
from transun.data.table import as_numbers, column_array
from transun.data.vocabulary import IdCounts

if TYPE_CHECKING:
    import pyarrow as pa

# Intervals between the quantiles at which `Number` knows the distribution function exactly.
_INTERVALS = 128
# Larger numbers, infinity included, count as this one: differences and ratios of two of them stay finite.
_LARGEST = 1e300
# From here on arsinh(u) is ln(2u) in double precision.
_LOGARITHMIC = 1e9
_INDICATOR = "1 where the number is missing, else 0"


class NumberKind(Kind):
    """A kind of one number a row."""

    def missing(self, name: str, table: "pa.Table") -> float:
        return float(np.isnan(_numbers(name, table)).mean())

    def logical_types(self, name: str, table: "pa.Table") -> dict[str, LogicalType]:
        # Numbers that are written as text are numbers.
        return {
            source: FractionType() if type_ == TextType() else type_
            for source, type_ in super().logical_types(name, table).items()
        }

    def profile(self, name: str, table: "pa.Table") -> Profile:
        v = _numbers(name, table)
        known = np.clip(v[~np.isnan(v)], -_LARGEST, _LARGEST)
        ends = (float(known.min()), float(known.max())) if len(known) else (None, None)
        return Profile(float(np.isnan(v).mean()), 0.0, *ends)

    def shift(self, name: str, table: "pa.Table", training: Profile) -> Shift:
        v = _numbers(name, table)
        below = 0 if training.smallest is None else int((v < training.smallest).sum())
        above = 0 if training.largest is None else int((v > training.largest).sum())
        return Shift(len(v), int(np.isnan(v).sum()), below=below, above=above)


@dataclass(frozen=True)
class Number(NumberKind):
    """Numbers as two tensors: `name`, on a log-like scale without an end, and `name.rank`, the share of smaller ones.

    The first is (a - mean) / sd of a = arsinh((v - median) / scale), where arsinh(u) is u near 0 and ±log(2|u|) far
    from it. So a network can extrapolate beyond the largest training value, where most of the money is, and an outlier
    is a few units away rather than thousands. The second is the distribution function of the training values,
    F(v) = (|{values < v}| + |{values <= v}|) / 2n, between 0 and 1. It does not depend on units or on shape, and
    separates crowded values however small their differences; `EmbeddingMLP` expands it so that any dependence can be
    learned. F is exact at up to 129 knots (all values, if there are no more; else quantiles) and linear between them.

    A missing value is 0 and ½; where training rows lack values, a third tensor `name.missing` is 1 for such rows and 0
    for others. `Buckets` forget order and size within a bucket, and `Standardised` is at the mercy of outliers; the
    price is that a column becomes as many inputs as its rank is expanded into, about 33.

    A column of periods, such as years, becomes a further tensor `name.period`: the code, from 1, of a number that at
    least ten training rows have, and 0 for any other. So what happened in a year has an effect of its own, whatever
    happened in the years beside it.

    Args:
        periods: whether the numbers are those of periods that go on, as years do.
        knots: training values in ascending order; learned by `fit`, like all the others.
        ranks: the distribution function F at the knots.
        median: what becomes 0 before standardisation.
        scale: the interquartile range; if that is zero, the deviation; if that is zero too, 1.
        mean: of a.
        sd: of a; 1 for a constant column.
        indicator: whether training rows lacked the value.
        known_periods: those that enough training rows have.

    >>> import pyarrow
    >>> price = Number().fit("price", pyarrow.table({"price": [0, 1, 2, 3, 4]}))
    >>> price.median, price.scale, price.mean, price.ranks
    (2.0, 2.0, 0.0, (0.1, 0.3, 0.5, 0.7, 0.9))
    >>> tensors = price.encode("price", pyarrow.table({"price": [2, 2.5, 40, 400, None]}))
    >>> tensors["price"]  # arsinh(0), arsinh(.25), arsinh(19) and arsinh(199), by their deviation .635; 0 if missing
    tensor([0.0000, 0.3896, 5.7287, 9.4260, 0.0000])
    >>> tensors["price.rank"]  # half-way from .5 to .7; nothing is known about ranks above the largest value
    tensor([0.5000, 0.6000, 0.9000, 0.9000, 0.5000])

    """

    periods: bool = False
    knots: tuple[float, ...] | None = field(default=None, repr=False)
    ranks: tuple[float, ...] | None = field(default=None, repr=False)
    median: float | None = field(default=None, repr=False)
    scale: float | None = field(default=None, repr=False)
    mean: float | None = field(default=None, repr=False)
    sd: float | None = field(default=None, repr=False)
    indicator: bool | None = field(default=None, repr=False)
    known_periods: tuple[float, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for constant in ("knots", "ranks", "known_periods"):
            values = getattr(self, constant)
            if values is not None:
                object.__setattr__(self, constant, ascending(f"{constant} of Number", values))
        if self.knots == ():
            raise ValueError("Number needs at least one knot")
        if self.knots is not None and (self.ranks is None or len(self.ranks) != len(self.knots)):
            raise ValueError("Number needs one rank for each knot")
        for constant in ("scale", "sd"):
            value = getattr(self, constant)
            if value is not None and not value > 0:
                raise ValueError(f"Number needs {constant} > 0, got {value}")

    def fit(self, name: str, table: "pa.Table", counts: IdCounts | None = None) -> Self:
        v = _numbers(name, table)
        # Without infinities: many of them would make the median infinite. Sorted, because means depend on the order of
        # summing, in the last bit.
        known = np.sort(np.clip(v[np.isfinite(v)], -_LARGEST, _LARGEST))
        require_values(name, float(len(known) == 0))
        knots, ranks = _distribution(known)
        low, median, high = np.quantile(known, [0.25, 0.5, 0.75])
        scale = float(high - low) or _deviation(known) or 1.0
        a = _log_like(known, median, scale)
        return replace(
            self,
            knots=tuple(knots.tolist()),
            ranks=tuple(ranks.tolist()),
            median=float(median),
            scale=scale,
            mean=float(a.mean()),
            sd=_deviation(a) or 1.0,
            indicator=bool(np.isnan(v).any()),
            known_periods=recurring_periods(v) if self.periods else (),
        )

    def encode(self, name: str, table: "pa.Table") -> dict[str, Tensor]:
        knots = require_fitted(name, self.knots)
        v = _numbers(name, table)
        missing = np.isnan(v)
        v = np.clip(v, -_LARGEST, _LARGEST)
        a = _log_like(v, require_fitted(name, self.median), require_fitted(name, self.scale))
        standardised = (a - require_fitted(name, self.mean)) / require_fitted(name, self.sd)
        tensors = {
            name: np.where(missing, 0.0, standardised),
            f"{name}.rank": np.where(missing, 0.5, np.interp(v, knots, require_fitted(name, self.ranks))),
        } | ({f"{name}.missing": missing} if self.indicator else {})
        known = require_fitted(name, self.known_periods)
        periods = {f"{name}.period": period_codes(v, known)} if known else {}
        return {key: torch.from_numpy(value.astype(np.float32)) for key, value in tensors.items()} | periods

    def graph(self, name: str, types: Mapping[str, LogicalType], sizes: Mapping[str, int]) -> ColumnGraph:
        return _NumberGraph(name, self)

    def inputs(self, name: str) -> Inputs:
        indicator = (f"{name}.missing",) if require_fitted(name, self.indicator) else ()
        known = require_fitted(name, self.known_periods)
        periods = {f"{name}.period": len(known) + 1} if known else {}
        return Inputs(numeric=(name, *indicator), ranks=(f"{name}.rank",), periods=periods)

    def meanings(self, name: str) -> dict[str, str]:
        periods = {f"{name}.period": MEANING} if self.known_periods else {}
        return (
            periods
            | {
                name: "a number on the scale of training, 0 for a missing one",
                f"{name}.rank": "the rank of a number among those of training, from 0 to 1; 0.5 for a missing one",
            }
            | ({f"{name}.missing": _INDICATOR} if self.indicator else {})
        )


@dataclass(frozen=True)
class Buckets(NumberKind):
    """Numbers as ids of buckets of equal frequency: 0 if missing, else 1 + |{edges < v}|.

    The paper's choice: any shape of dependence can be learned, outliers do no harm, and units do not matter; but the
    order of the buckets is lost, and so are all differences above the highest edge. `Number` keeps both. Edges are the
    quantiles k / count of the training values, so about the same number of rows falls in each bucket (edge, edge];
    where many rows have one value, equal edges merge and its bucket is larger.

    Args:
        count: buckets at most. More are finer, with fewer rows to learn each from.
        edges: learned by `fit`.

    >>> import pyarrow
    >>> price = Buckets(2).fit("price", pyarrow.table({"price": [1.0, 2.0, 3.0, 40.0]}))
    >>> price.edges, price.encode("price", pyarrow.table({"price": [0.0, 2.0, 2.1, 99.0, None]}))["price"].tolist()
    ((2.0,), [1, 1, 2, 2, 0])

    """

    count: int = 32
    edges: tuple[float, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"Buckets needs count >= 1, got {self.count}")
        if self.edges is not None:
            object.__setattr__(self, "edges", ascending("edges of Buckets", self.edges))

    def fit(self, name: str, table: "pa.Table", counts: IdCounts | None = None) -> Self:
        v = _numbers(name, table)
        v = v[np.isfinite(v)]  # an infinite edge would separate nothing
        require_values(name, float(len(v) == 0))
        # Edges are training values, not points between two of them: a bucket that ends at such a point could be empty.
        edges = np.unique(np.quantile(v, np.arange(1, self.count) / self.count, method="lower"))
        # No training value lies above the largest: an edge there would make an empty bucket.
        return replace(self, edges=tuple(edges[edges < v.max()].tolist()))

    def encode(self, name: str, table: "pa.Table") -> dict[str, Tensor]:
        edges = np.asarray(require_fitted(name, self.edges), np.float64)
        v = _numbers(name, table)
        return {name: torch.from_numpy(np.where(np.isnan(v), 0, 1 + np.searchsorted(edges, v)))}

    def graph(self, name: str, types: Mapping[str, LogicalType], sizes: Mapping[str, int]) -> ColumnGraph:
        return _BucketsGraph(name, self)

    def inputs(self, name: str) -> Inputs:
        return Inputs(ids={name: len(require_fitted(name, self.edges)) + 2})

    def meanings(self, name: str) -> dict[str, str]:
        edges = require_fitted(name, self.edges)
        return {name: f"codes 0..{len(edges) + 1}: 0 for a missing number, else 1 + the number of edges below it"}


@dataclass(frozen=True)
class Standardised(NumberKind):
    """Numbers with mean 0 and deviation 1 in training: (v - mean) / sd; 0 if missing, with an indicator.

    Cheap and smooth, and it keeps the order, unlike `Buckets`; but an outlier stays as far out as it was, so declare
    amounts as `Number`, or give them as logarithms. Where training rows lack the value, a second tensor `name.missing`
    is 1 for such rows and 0 for others.

    Args:
        mean: learned by `fit`.
        sd: learned by `fit`; 1 for a constant column.
        indicator: whether training rows lacked the value; learned by `fit`.

    >>> import pyarrow
    >>> age = Standardised().fit("age", pyarrow.table({"age": [10, 30, None]}))
    >>> age.encode("age", pyarrow.table({"age": [40, None]}))
    {'age': tensor([2., 0.]), 'age.missing': tensor([0., 1.])}

    """

    mean: float | None = field(default=None, repr=False)
    sd: float | None = field(default=None, repr=False)
    indicator: bool | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.sd is not None and not self.sd > 0:
            raise ValueError(f"Standardised needs sd > 0, got {self.sd}")

    def fit(self, name: str, table: "pa.Table", counts: IdCounts | None = None) -> Self:
        return self.learn(name, _finite(name, _numbers(name, table)))

    def learn(self, name: str, v: np.ndarray) -> Self:
        """A copy fitted to numbers (n,) with NaN for missing."""
        known = v[~np.isnan(v)]
        require_values(name, float(len(known) == 0))
        mean, sd = float(known.mean()), float(known.std())
        # The deviation of a constant is zero up to rounding; division by it would leave nothing but rounding errors.
        flat = sd <= 1e-12 * max(abs(mean), 1e-300)
        return replace(self, mean=mean, sd=1.0 if flat else sd, indicator=len(known) < len(v))

    def encode(self, name: str, table: "pa.Table") -> dict[str, Tensor]:
        return self.apply(name, _finite(name, _numbers(name, table)))

    def apply(self, name: str, v: np.ndarray) -> dict[str, Tensor]:
        """The tensors of numbers (n,) with NaN for missing."""
        scaled = (v - require_fitted(name, self.mean)) / require_fitted(name, self.sd)
        missing = np.isnan(v)
        tensors = {name: np.where(missing, 0, scaled)} | ({f"{name}.missing": missing} if self.indicator else {})
        return {key: torch.from_numpy(value.astype(np.float32)) for key, value in tensors.items()}

    def graph(self, name: str, types: Mapping[str, LogicalType], sizes: Mapping[str, int]) -> ColumnGraph:
        return _StandardisedGraph(name, self)

    def apply_in_graph(self, name: str, v: Tensor, missing: Tensor) -> dict[str, Tensor]:
        """What `apply` does, in operations of torch; v may be any number where it is missing."""
        scaled = (v - double(require_fitted(name, self.mean))) / double(require_fitted(name, self.sd))
        tensors = {name: torch.where(missing, 0.0, scaled)} | ({f"{name}.missing": missing} if self.indicator else {})
        return {key: value.float() for key, value in tensors.items()}

    def inputs(self, name: str) -> Inputs:
        return Inputs(numeric=(name, f"{name}.missing") if require_fitted(name, self.indicator) else (name,))

    def meanings(self, name: str) -> dict[str, str]:
        indicator = {f"{name}.missing": _INDICATOR} if self.indicator else {}
        return {name: "a number less its mean by its deviation in training, 0 for a missing one"} | indicator


class _NumberGraph(ColumnGraph):
    def __init__(self, name: str, kind: Number) -> None:
        knots, ranks = (np.asarray(require_fitted(name, values)) for values in (kind.knots, kind.ranks))
        super().__init__(name, kind, [number_input(name, knots.tolist())])
        # No slope after the last knot.
        slopes = np.append(np.diff(ranks) / np.diff(knots), 0.0)
        self.register_buffer("knots", torch.from_numpy(knots))
        self.register_buffer("ranks", torch.from_numpy(ranks))
        self.register_buffer("slopes", torch.from_numpy(slopes))
        known = require_fitted(name, kind.known_periods)
        self.register_buffer("periods", torch.tensor(known, dtype=torch.float64))
        self.number = kind

    def forward(self, columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
        v = columns[self.name]
        missing = v.isnan()
        v = _bounded(torch.where(missing, 0.0, v))
        constants = (self.number.median, self.number.scale, self.number.mean, self.number.sd)
        median, scale, mean, sd = (double(require_fitted(self.name, value)) for value in constants)
        standardised = (_arsinh(_bounded((v - median) / scale)) - mean) / sd
        knots, ranks = self.get_buffer("knots"), self.get_buffer("ranks")
        at = (count(v.unsqueeze(-1) >= knots) - 1).clamp(min=0)
        rank = self.get_buffer("slopes")[at] * (torch.maximum(v, knots[0]) - knots[at]) + ranks[at]
        tensors = {
            self.name: torch.where(missing, 0.0, standardised),
            f"{self.name}.rank": torch.where(missing, 0.5, rank),
        } | ({f"{self.name}.missing": missing} if self.number.indicator else {})
        encoded = {key: value.float() for key, value in tensors.items()}
        if self.number.known_periods:
            codes = period_codes_in_graph(v, self.get_buffer("periods"))
            encoded[f"{self.name}.period"] = torch.where(missing, 0, codes)
        return encoded


def _bounded(v: Tensor) -> Tensor:
    return torch.maximum(torch.minimum(v, double(_LARGEST)), double(-_LARGEST))


def _arsinh(u: Tensor) -> Tensor:
    """arsinh(u) by a logarithm, which runtimes have in double precision, unlike arsinh itself."""
    size = u.abs()
    small = size.clamp(max=_LOGARITHMIC)
    near, far = (small + (small.square() + 1.0).sqrt()).log(), size.clamp(min=1.0).log() + double(math.log(2.0))
    return u.sign() * torch.where(size < _LOGARITHMIC, near, far)


class _BucketsGraph(ColumnGraph):
    def __init__(self, name: str, kind: Buckets) -> None:
        edges = require_fitted(name, kind.edges)
        super().__init__(name, kind, [number_input(name, edges or (0.0, 1.0))])
        self.register_buffer("edges", torch.tensor([*edges, math.inf], dtype=torch.float64))

    def forward(self, columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
        v = columns[self.name]
        below = count(v.unsqueeze(-1) > self.get_buffer("edges"))
        return {self.name: torch.where(v.isnan(), 0, 1 + below)}


class _StandardisedGraph(ColumnGraph):
    def __init__(self, name: str, kind: Standardised) -> None:
        mean, sd = require_fitted(name, kind.mean), require_fitted(name, kind.sd)
        super().__init__(name, kind, [number_input(name, (mean - 2 * sd, mean, mean + 2 * sd))])
        self.standardised = kind

    def forward(self, columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
        v = columns[self.name]
        missing = v.isnan()
        return self.standardised.apply_in_graph(self.name, torch.where(missing, 0.0, v), missing)


def _numbers(name: str, table: "pa.Table") -> np.ndarray:
    return as_numbers(f"column {name!r}", column_array(table, name))


def _log_like(v: np.ndarray, median: float, scale: float) -> np.ndarray:
    """arsinh((v - median) / scale) without overflow, NaN where v is NaN."""
    with np.errstate(over="ignore"):  # a large number by a tiny scale
        ratio = (v - median) / scale
    return np.arcsinh(np.clip(ratio, -_LARGEST, _LARGEST))


def _deviation(v: np.ndarray) -> float:
    """The standard deviation without overflow, exactly 0 for equal numbers."""
    distance = v - v[0]
    largest = float(np.abs(distance).max())
    return largest * float((distance / largest).std()) if largest else 0.0


def _distribution(v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Different numbers in ascending order, and the mid-ranks of these, (|{v < x}| + |{v <= x}|) / 2n.

    All different numbers if there are at most 129 of them, else those at the quantiles k / 128.
    """
    values, counts = np.unique(v, return_counts=True)
    up_to = np.cumsum(counts)
    ranks = (up_to - counts / 2) / len(v)
    if len(values) > _INTERVALS + 1:
        # The quantile k / 128 is the first number up to which there are k · n / 128 rows. In whole numbers: rounding
        # would move it to its neighbour.
        at = np.unique(np.searchsorted(up_to * _INTERVALS, np.arange(_INTERVALS + 1) * len(v)))
        values, ranks = values[at], ranks[at]
    return values, ranks


def _finite(name: str, v: np.ndarray) -> np.ndarray:
    infinite = np.flatnonzero(np.isinf(v))
    if len(infinite):
        raise ValueError(
            f"column {name!r}, row {infinite[0]}: an infinite number has no standardised value; "
            "set it to missing, or declare the column as Number()"
        )
    return v
