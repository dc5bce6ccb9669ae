"""The relative error of the average row (MRE, SMRE), and the share of rows that have none (FLOORED)."""

import math
from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from transun.metrics.metric import Better, Metric, Sums
from transun.metrics.rows import Rows

__all__ = ["FLOORED", "MRE", "SMRE", "FlooredShare", "MeanRelativeError", "SignedMeanRelativeError"]

# Predictions from 2^-256 (1e-77) to 2^256 are told apart by their powers of two.
_REACH = 256


@dataclass(frozen=True)
class ByMagnitude(Sums):
    """Sums of (w(ŷ - y)/ŷ, w(ŷ - y), w) over the rows whose |ŷ| lies between the same two powers of two.

    The floor of a relative error depends on the mean of all targets, which nobody knows before the last row. These
    sums serve every floor that is a power of two, so that meters still merge and need no rows.
    """

    total_size: float
    """Σw|y|."""
    sums: Tensor
    """(powers, 3)."""
    products: Tensor
    """(powers, 3, 3), the sums of the cross products."""


class RelativeMetric(Metric):
    """A mean over rows of something that changes below the floor; a subclass says what.

    Its standard error is that of a ratio of sums, by the delta method.
    """

    floor: float

    @property
    def key(self) -> Hashable:
        """The same key for every relative metric, so that they share the sums."""
        return ByMagnitude

    @abstractmethod
    def coefficients(self, floor: float) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
        """What a row adds to the numerator as a combination of its three sums: below the floor, and above it."""

    def summarise(self, rows: Rows) -> ByMagnitude:
        """Sums by the power of two of |ŷ|."""
        pred, y, weight = rows.pred, rows.y, rows.weight
        power = torch.where(pred == 0.0, -_REACH, pred.abs().frexp().exponent).clamp(-_REACH, _REACH) + _REACH
        gap = weight * (pred - y)
        # Below every floor the first number is not used.
        row = torch.stack([torch.where(power > 0, gap / pred, 0.0), gap, weight], 1)
        products = torch.einsum("ni,nj->nij", row, row)
        return ByMagnitude(
            len(rows),
            weight.sum().item(),
            (weight * y.abs()).sum().item(),
            row.new_zeros(2 * _REACH + 1, 3).index_add_(0, power, row),
            products.new_zeros(2 * _REACH + 1, 3, 3).index_add_(0, power, products),
        )

    def compute(self, summary: ByMagnitude) -> float:
        """The numerator over the weight of all rows."""
        return float((self._weights(summary) * summary.sums).sum()) / summary.total_weight

    def compute_error(self, summary: ByMagnitude) -> float:
        """The standard error by the delta method."""
        if summary.count < 2:
            return math.nan
        weights = self._weights(summary)
        weights[:, 2] -= float((weights * summary.sums).sum()) / summary.total_weight
        squares = float(torch.einsum("ki,kij,kj->", weights, summary.products, weights))
        variance = squares * summary.count / (summary.count - 1)
        return math.sqrt(max(variance, 0.0)) / summary.total_weight if math.isfinite(variance) else math.nan

    def _weights(self, summary: ByMagnitude) -> Tensor:
        """The coefficients of every power of two, (powers, 3)."""
        size = self.floor * summary.total_size / summary.total_weight
        # The largest power of two that is at most the floor; targets that are all zero have no size.
        exponent = max(math.frexp(size)[1], 1 - _REACH) if size > 0.0 else 1 - _REACH
        below, above = self.coefficients(2.0 ** (exponent - 1))
        powers = torch.arange(2 * _REACH + 1).unsqueeze(1)
        return torch.where(powers < exponent + _REACH, summary.sums.new_tensor(below), summary.sums.new_tensor(above))


@dataclass(frozen=True)
class SignedMeanRelativeError(RelativeMetric):
    """Signed mean relative error, mean((ŷ - y) / ŷ): the average row's relative error, so small targets count fully.

    Explodes as ŷ → 0. Where |ŷ| is below `floor` times the mean of |y|, rounded down to a power of two, the division is
    by that floor, so that a prediction of 0 contributes -y/floor: finite, huge, whatever the unit of the target, and
    counted by `FLOORED`. Negative predictions stay as they are and turn their row's sign around; `NEGATIVE` counts
    them.

    >>> SMRE([2.0, 4.0], [1.0, 6.0])
    0.0
    >>> SignedMeanRelativeError(floor=0.5)([0.0], [2.0])  # the floor is half of 2
    -2.0
    """

    floor: float = 1e-6

    label: ClassVar[str] = "SMRE"
    better: ClassVar[Better] = "zero"
    description: ClassVar[str] = "signed mean relative error"
    meaning: ClassVar[str] = (
        "The relative error of the average row, with its sign. 0 is right; a minus means too little was predicted."
    )

    def __post_init__(self) -> None:
        if not self.floor > 0:
            raise ValueError(f"`floor` is {self.floor}: it replaces predictions of zero; use a positive number")

    def coefficients(self, floor: float) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
        """(ŷ - y)/floor, and (ŷ - y)/ŷ."""
        return (0.0, 1.0 / floor, 0.0), (1.0, 0.0, 0.0)


@dataclass(frozen=True)
class MeanRelativeError(SignedMeanRelativeError):
    """Mean relative error, |mean((ŷ - y) / ŷ)|, with the floor of `SMRE`.

    >>> MRE([2.0, 2.0], [4.0, 4.0])
    1.0
    """

    label: ClassVar[str] = "MRE"
    better: ClassVar[Better] = "lower"
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)
    description: ClassVar[str] = "mean relative error"
    meaning: ClassVar[str] = (
        "The relative error of the average row, so small amounts count as much as large ones. 0 is right."
    )

    def compute(self, summary: ByMagnitude) -> float:
        """The absolute value of the mean."""
        return abs(super().compute(summary))


@dataclass(frozen=True)
class FlooredShare(RelativeMetric):
    """Share of rows with |ŷ| below the floor, by which `MRE` divides there; above 0, read `MRE` with care.

    >>> FLOORED([0.0, 1.0], [1.0, 1.0])
    0.5
    """

    floor: float = 1e-6

    label: ClassVar[str] = "FLOORED"
    better: ClassVar[Better] = "lower"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    description: ClassVar[str] = "predictions at 0"
    meaning: ClassVar[str] = (
        "The share of rows that are predicted to be 0, where no relative error exists. Above 0, read MRE with care."
    )

    def coefficients(self, floor: float) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
        """Its weight, and nothing."""
        return (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)


SMRE = SignedMeanRelativeError()
MRE = MeanRelativeError()
FLOORED = FlooredShare()
