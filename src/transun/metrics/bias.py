"""Bias metrics of the total: TRE, STRE, PGR, SRE. That of the average row, MRE, is in `metrics.relative`."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from transun.metrics.metric import AdditiveMetric, Better
from transun.metrics.rows import Vector, check

__all__ = ["NEGATIVE", "PGR", "SRE", "STRE", "TRE", "sre"]


def _absolute(x: Tensor) -> Tensor:
    # abs() has slope 0 at 0, which would report a standard error of 0 for a model that hits the total.
    return torch.where(x < 0, -x, x)


@dataclass(frozen=True)
class SignedTotalRelativeError(AdditiveMetric):
    """Signed total relative error, Σ(ŷ - y) / Σŷ: negative where the model predicts too little.

    The denominator is the prediction, as in the paper, so the sides are unequal: predicting half the total gives -1,
    twice the total gives +½. `PGR` shows both sides on one scale.

    >>> STRE([1.0, 1.0], [1.0, 3.0])
    -1.0
    """

    label: ClassVar[str] = "STRE"
    better: ClassVar[Better] = "zero"
    description: ClassVar[str] = "signed total relative error"
    meaning: ClassVar[str] = (
        "The gap of the totals over the predicted total, with its sign. 0 is right; "
        "a minus means too little was predicted."
    )

    def statistics(self, pred: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        """w(ŷ - y) and wŷ."""
        return torch.stack([weight * (pred - y), weight * pred], 1)

    def value(self, sums: Tensor) -> Tensor:
        """The ratio of the sums."""
        return sums[0] / sums[1]


@dataclass(frozen=True)
class TotalRelativeError(SignedTotalRelativeError):
    """Total relative error, |Σ(ŷ - y) / Σŷ| = |1 - 1/PGR|: how far the total is off.

    Zero is necessary, not sufficient: errors in opposite directions cancel, which `bin_by_prediction` shows.

    >>> TRE([1.0, 1.0], [1.0, 3.0])
    1.0
    """

    label: ClassVar[str] = "TRE"
    better: ClassVar[Better] = "lower"
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)
    description: ClassVar[str] = "total relative error"
    meaning: ClassVar[str] = "The gap of the totals over the predicted total, without its sign. 0 is right."

    def value(self, sums: Tensor) -> Tensor:
        """The absolute ratio of the sums."""
        return _absolute(super().value(sums))


@dataclass(frozen=True)
class NegativeShare(AdditiveMetric):
    """Share of rows with ŷ < 0, where relative errors change their sign.

    >>> NEGATIVE([-1.0, 1.0], [1.0, 1.0])
    0.5
    """

    label: ClassVar[str] = "NEGATIVE"
    better: ClassVar[Better] = "lower"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    description: ClassVar[str] = "predictions below 0"
    meaning: ClassVar[str] = (
        "The share of rows that are predicted to be below 0, where a relative error changes its sign."
    )

    def statistics(self, pred: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        """w where the prediction is negative, and w."""
        return torch.stack([weight * (pred < 0), weight], 1)

    def value(self, sums: Tensor) -> Tensor:
        """The share."""
        return sums[0] / sums[1]


@dataclass(frozen=True)
class PredictionRatio(AdditiveMetric):
    """Prediction to ground-truth ratio, mean ŷ / mean y: 1 is unbiased, 0.5 predicts half of what happens.

    >>> PGR([1.0, 1.0], [1.0, 3.0])
    0.5
    """

    label: ClassVar[str] = "PGR"
    better: ClassVar[Better] = "one"
    description: ClassVar[str] = "predicted / actual total"
    meaning: ClassVar[str] = (
        "Predicted / actual total. 1 is right, 0.7 means that the predictions add up to 70 % of what happened."
    )

    def statistics(self, pred: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        """wŷ and wy."""
        return torch.stack([weight * pred, weight * y], 1)

    def value(self, sums: Tensor) -> Tensor:
        """The ratio of the sums."""
        return sums[0] / sums[1]


@dataclass(frozen=True)
class SRE(AdditiveMetric):
    """Signed relative error of the mean prediction against a known expectation E: (mean ŷ - E) / E.

    For synthetic targets, where E is known; `y` is not used, so its sampling noise does not enter.

    >>> SRE(expectation=2.0)([1.0, 2.0], [7.0, 7.0])
    -0.25
    """

    expectation: float

    label: ClassVar[str] = "SRE"
    better: ClassVar[Better] = "zero"

    def __post_init__(self) -> None:
        if self.expectation == 0:
            raise ValueError("`expectation` is 0: an error relative to zero is undefined; compare the means")

    def statistics(self, pred: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        """wŷ and w."""
        return torch.stack([weight * pred, weight], 1)

    def value(self, sums: Tensor) -> Tensor:
        """The relative deviation of the mean prediction."""
        return sums[0] / sums[1] / self.expectation - 1


def sre(pred: Vector, expectation: float, weight: Vector | None = None) -> float:
    """(mean ŷ - E) / E for a known expectation E; a single prediction is a list of one number.

    >>> sre([1.5], 2.0)
    -0.25
    """
    rows = check(pred, pred, weight)
    return SRE(expectation)(rows.pred, rows.y, rows.weight)


STRE = SignedTotalRelativeError()
TRE = TotalRelativeError()
PGR = PredictionRatio()
NEGATIVE = NegativeShare()
