"""Spread: how hard one array is to learn by squared error (variance, V/E², outliers, skewness).

The array is a loss target v, such as y, y·κ or T(y). Each statistic is a metric that uses only its second argument, so
that it accumulates and merges like any other; the functions of the same names are for one array in memory.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from transun.metrics.metric import AdditiveMetric, Better, SampleMetric
from transun.metrics.rows import Rows, Vector

__all__ = [
    "OUTLIER_SHARE",
    "RELATIVE_VARIANCE",
    "SKEWNESS",
    "VARIANCE",
    "OutlierShare",
    "outlier_share",
    "relative_variance",
    "skewness",
    "variance",
]

# A variance below this share of the mean square is the rounding of the sums: the array is constant.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class Variance(AdditiveMetric):
    """Population variance, mean v² - (mean v)².

    From raw moments, so that shards add up; the price is about 2·log10(|mean|/sd) of the 16 digits.

    >>> variance([1.0, 3.0])
    1.0
    """

    label: ClassVar[str] = "VARIANCE"
    better: ClassVar[Better] = "lower"
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)

    def statistics(self, pred: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        """w, wy, wy² and wy³."""
        return weight[:, None] * torch.stack([torch.ones_like(y), y, y**2, y**3], 1)

    def value(self, sums: Tensor) -> Tensor:
        """The second central moment."""
        square = sums[2] / sums[0]
        variance = square - (sums[1] / sums[0]) ** 2
        return torch.where(variance > _ROUNDING * square, variance, 0.0)


@dataclass(frozen=True)
class RelativeVariance(Variance):
    """V/E², variance over squared mean: the squared coefficient of variation, free of the array's unit.

    Lower means an easier loss target: by it the paper explains why y·κ trains better than y.

    >>> relative_variance([1.0, 3.0])
    0.25
    """

    label: ClassVar[str] = "RELATIVE_VARIANCE"

    def value(self, sums: Tensor) -> Tensor:
        """The variance over the squared mean."""
        return super().value(sums) / (sums[1] / sums[0]) ** 2


@dataclass(frozen=True)
class Skewness(Variance):
    """Skewness, mean (v - mean)³ / sd³: 0 for a symmetric array, 2 for an exponential one; NaN for a constant one.

    >>> skewness([1.0, 3.0, 5.0])
    0.0
    >>> skewness([0.1, 0.1, 0.1])
    nan
    """

    label: ClassVar[str] = "SKEWNESS"
    better: ClassVar[Better] = "zero"
    bounds: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    def value(self, sums: Tensor) -> Tensor:
        """The standardised third central moment."""
        mean = sums[1] / sums[0]
        third = sums[3] / sums[0] - 3 * mean * sums[2] / sums[0] + 2 * mean**3
        variance = super().value(sums)
        return torch.where(variance > 0, third / variance**1.5, torch.nan)


@dataclass(frozen=True)
class OutlierShare(SampleMetric):
    """Share of rows with |v - mean| > `deviations`·sd: 0.0027 for a normal array at the default 3.

    Needs all rows, because the limit is known only after the last of them.

    >>> outlier_share([0.0] * 19 + [20.0])
    0.05
    """

    deviations: float = 3.0

    label: ClassVar[str] = "OUTLIER_SHARE"
    better: ClassVar[Better] = "lower"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def evaluate(self, rows: Rows) -> float:
        """The weighted share."""
        v, w = rows.y, rows.weight / rows.weight.sum()
        centred = v - w @ v
        sd = (w @ centred.square()).sqrt()
        return w[centred.abs() > self.deviations * sd].sum().item()


VARIANCE = Variance()
RELATIVE_VARIANCE = RelativeVariance()
SKEWNESS = Skewness()
OUTLIER_SHARE = OutlierShare()


def variance(v: Vector, weight: Vector | None = None) -> float:
    """The population variance of v, see `Variance`."""
    return VARIANCE(v, v, weight)


def relative_variance(v: Vector, weight: Vector | None = None) -> float:
    """V/E² of v, see `RelativeVariance`."""
    return RELATIVE_VARIANCE(v, v, weight)


def skewness(v: Vector, weight: Vector | None = None) -> float:
    """The skewness of v, see `Skewness`."""
    return SKEWNESS(v, v, weight)


def outlier_share(v: Vector, weight: Vector | None = None) -> float:
    """The share of v beyond three standard deviations from its mean, see `OutlierShare`."""
    return OUTLIER_SHARE(v, v, weight)
