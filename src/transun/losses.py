"""Point losses: plain functions of an estimate and a target, both (B,), to per-sample costs (B,).

Which loss a point head minimises decides which point f(x) of the law of T(y) it learns: the mean for `squared`,
the median for `absolute`, a quantile for `Pinball`. GTS is unbiased around every one of them; the choice moves
only the slope κ(f), that is, how evenly the bias branch is scaled and how fast it converges.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = [
    "Huber",
    "Pinball",
    "PointLoss",
    "absolute",
    "absolute_percentage",
    "squared",
    "squared_percentage",
]

PointLoss = Callable[[Tensor, Tensor], Tensor]


def squared(estimate: Tensor, target: Tensor) -> Tensor:
    """(f - t)², minimised by the mean.

    >>> squared(torch.tensor([1.0]), torch.tensor([3.0])).tolist()
    [4.0]
    """
    return (estimate - target).square()


def absolute(estimate: Tensor, target: Tensor) -> Tensor:
    """|f - t|, minimised by the median.

    >>> absolute(torch.tensor([1.0]), torch.tensor([3.0])).tolist()
    [2.0]
    """
    return (estimate - target).abs()


def squared_percentage(estimate: Tensor, target: Tensor) -> Tensor:
    """((f - t) / (t + 1))², the paper's MSPE, for t > -1; minimised by E[t/(t+1)²] / E[1/(t+1)²].

    The one in the denominator is in the paper's listing, not in its text; without it zeros are infinitely heavy.

    >>> squared_percentage(torch.tensor([2.0]), torch.tensor([1.0])).tolist()
    [0.25]
    """
    return ((estimate - target) / (target + 1.0)).square()


def absolute_percentage(estimate: Tensor, target: Tensor) -> Tensor:
    """|f - t| / (t + 1), the paper's MAPE, for t > -1; minimised by the median weighted by 1/(t+1).

    >>> absolute_percentage(torch.tensor([2.0]), torch.tensor([1.0])).tolist()
    [0.5]
    """
    return (estimate - target).abs() / (target + 1.0)


@dataclass(frozen=True)
class Pinball:
    """max(level·(t - f), (level - 1)·(t - f)), minimised by the `level` quantile.

    >>> Pinball(0.75)(torch.tensor([1.0, 3.0]), torch.tensor([3.0, 1.0])).tolist()
    [1.5, 0.5]
    """

    level: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"Pinball needs 0 < level < 1, got {self.level}")

    def __call__(self, estimate: Tensor, target: Tensor) -> Tensor:
        """The per-sample cost, (B,)."""
        gap = target - estimate
        return torch.maximum(self.level * gap, (self.level - 1.0) * gap)


@dataclass(frozen=True)
class Huber:
    """½(f - t)² within ±delta and linear beyond: a mean that limits what one outlier can pull.

    Robust, hence biased on skewed targets: its minimiser c solves E[clip(t - c, -delta, delta)] = 0.

    >>> Huber(1.0)(torch.tensor([0.0, 0.0]), torch.tensor([1.0, 3.0])).tolist()
    [0.5, 2.5]
    """

    delta: float = 1.0

    def __post_init__(self) -> None:
        if not self.delta > 0.0:
            raise ValueError(f"Huber needs delta > 0, got {self.delta}")

    def __call__(self, estimate: Tensor, target: Tensor) -> Tensor:
        """The per-sample cost, (B,)."""
        gap = (estimate - target).abs()
        near = gap.clamp(max=self.delta)
        return near * (gap - 0.5 * near)
