"""The Box-Cox family, whose power is learned from the targets."""

import math
from dataclasses import dataclass, field, replace
from typing import Self

import torch
from torch import Tensor

from transun.transforms.transform import LARGEST, RESOLUTION, Transform


@dataclass(frozen=True)
class BoxCox(Transform):
    """T(y) = ((y + shift)^power - 1) / power, and ln(y + shift) for power 0, on y ≥ 0.

    `power=None` is learned by `prepare`: the value that makes T(y) most nearly normal (maximum likelihood).
    A learned power can be negative, where T is bounded above and very large targets look alike.

    >>> BoxCox(0.5, shift=1.0)(torch.tensor(8.0)).item()
    4.0
    """

    power: float | None = None
    shift: float = 1.0
    lower: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        if self.power is not None and not -2.0 <= self.power <= 4.0:
            raise ValueError(f"BoxCox needs -2 <= power <= 4, got {self.power}")
        if not math.isfinite(self.shift) or self.lower + self.shift <= 0.0:
            raise ValueError(f"BoxCox needs lower + shift > 0, got {self.lower} + {self.shift}")
        super().__post_init__()

    @property
    def exponent(self) -> float:
        """The power that is used: 0, a plain logarithm, until `prepare` has learned one."""
        return 0.0 if self.power is None else self.power

    def __call__(self, y: Tensor) -> Tensor:
        return _boxcox(y + self.shift, self.exponent)

    def _invert(self, u: Tensor) -> Tensor:
        power = self.exponent
        shifted = u.exp() if abs(power) < RESOLUTION else (power * u).log1p().div(power).exp()
        return shifted - self.shift

    @property
    def upper_limit(self) -> float:
        """The largest target that neither overflows (power > 1) nor is lost near the asymptote (power < 0)."""
        if self.exponent < 0.0:
            return float(min(LARGEST, RESOLUTION ** (1.0 / self.exponent)))
        return float(LARGEST ** (1.0 / max(self.exponent, 1.0)))

    def prepare(self, y: Tensor) -> Self:
        """Learns the power, if it was left open, and the upper bound."""
        self.check(y)
        if self.power is None:
            return replace(self, power=_likeliest_power(y.double() + self.shift)).prepare(y)
        return super().prepare(y)


def _boxcox(positive: Tensor, power: float) -> Tensor:
    if abs(power) < RESOLUTION:
        return positive.log()
    return (power * positive.log()).expm1() / power


def _likeliest_power(positive: Tensor) -> float:
    """The Box-Cox power of greatest profile likelihood, by a grid that narrows around its best point."""
    log_sum = positive.log().sum()
    low, high = -2.0, 2.0
    for _ in range(12):  # each round shrinks the bracket fivefold
        grid = torch.linspace(low, high, 11).tolist()
        score = [
            float((power - 1.0) * log_sum - 0.5 * len(positive) * _boxcox(positive, power).var(correction=0).log())
            for power in grid
        ]
        best = max(range(len(grid)), key=score.__getitem__)
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, 10)]
    return 0.5 * (low + high)
