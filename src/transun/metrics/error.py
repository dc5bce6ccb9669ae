"""Error metrics: how far a row's prediction is from its target, in target units or relative to the mean target."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from transun.metrics.metric import AdditiveMetric, Better

__all__ = ["NMAE", "NRMSE", "PRINTED_NRMSE", "RMSE"]


def _root(x: Tensor) -> Tensor:
    # The root's slope at 0 is infinite, which would spoil the standard error of perfect predictions.
    return torch.where(x > 0, torch.where(x > 0, x, 1.0).sqrt(), 0.0)


class _Squared(AdditiveMetric):
    better: ClassVar[Better] = "lower"
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)

    def statistics(self, pred: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        """w(ŷ - y)², wy and w."""
        return torch.stack([weight * (pred - y).square(), weight * y, weight], 1)


@dataclass(frozen=True)
class RootMeanSquaredError(_Squared):
    """Root mean squared error, √mean (ŷ - y)²; the conditional mean minimises it, a few large targets decide it.

    >>> RMSE([1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 5.0])
    2.0
    """

    label: ClassVar[str] = "RMSE"
    description: ClassVar[str] = "error in the target's unit, root mean square"
    meaning: ClassVar[str] = (
        "How far a single prediction is off, in the target's unit, by squares, which large rows decide. "
        "Lower is better; 0 is never reached."
    )

    def value(self, sums: Tensor) -> Tensor:
        """The root of the mean."""
        return _root(sums[0] / sums[2])


@dataclass(frozen=True)
class NormalisedRootMeanSquaredError(_Squared):
    """Root mean squared error over the mean target, √mean (ŷ - y)² / |mean y|: RMSE free of the target's unit.

    The form behind the paper's tables. Its printed formula is `PRINTED_NRMSE`, smaller by √n. Where targets have both
    signs their mean may be near 0, and the ratio says little: use `RMSE` there.

    >>> NRMSE([0.0, 4.0], [2.0, 2.0])
    1.0
    """

    label: ClassVar[str] = "NRMSE"
    description: ClassVar[str] = "error, root mean square"
    meaning: ClassVar[str] = (
        "How far a single prediction is off, over the mean actual value, by squares, which large rows decide. "
        "Lower is better; 0 is never reached."
    )

    def value(self, sums: Tensor) -> Tensor:
        """The root of the mean over the mean target."""
        return _root(sums[0] / sums[2]) / (sums[1] / sums[2]).abs()


@dataclass(frozen=True)
class PrintedFormula(_Squared):
    """The paper's printed formula, √Σ(ŷ - y)² / |Σy| = NRMSE / √n; use it only to compare with its worked example.

    It shrinks as rows are added, so values over different numbers of rows cannot be compared.

    >>> PRINTED_NRMSE([0.0, 4.0, 2.0, 2.0], [2.0, 2.0, 2.0, 2.0]) * 4**0.5 == NRMSE([0, 4, 2, 2], [2, 2, 2, 2])
    True
    """

    label: ClassVar[str] = "PRINTED_NRMSE"

    def value(self, sums: Tensor) -> Tensor:
        """The root of the sum over the sum of targets."""
        return _root(sums[0]) / sums[1].abs()


@dataclass(frozen=True)
class NormalisedMeanAbsoluteError(AdditiveMetric):
    """Absolute error over the total target, Σ|ŷ - y| / |Σy|, also called WMAPE.

    The conditional median minimises it, so for a skewed target it rewards predicting too little.

    >>> NMAE([1.0, 2.0], [1.0, 4.0])
    0.4
    """

    label: ClassVar[str] = "NMAE"
    better: ClassVar[Better] = "lower"
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)
    description: ClassVar[str] = "error, mean absolute"
    meaning: ClassVar[str] = (
        "How far a single prediction is off, over the mean actual value, by absolute values. "
        "Lower is better; 0 is never reached."
    )

    def statistics(self, pred: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        """w|ŷ - y| and wy."""
        return torch.stack([weight * (pred - y).abs(), weight * y], 1)

    def value(self, sums: Tensor) -> Tensor:
        """The ratio of the sums."""
        return sums[0] / sums[1].abs()


RMSE = RootMeanSquaredError()
NRMSE = NormalisedRootMeanSquaredError()
PRINTED_NRMSE = PrintedFormula()
NMAE = NormalisedMeanAbsoluteError()
