"""Transforms that keep the mean: identity and affine; and the composition of two transforms."""

import math
from dataclasses import dataclass, field, replace
from typing import Self

import torch
from torch import Tensor

from transun.transforms.transform import LARGEST, Transform


@dataclass(frozen=True)
class Identity(Transform):
    """T(y) = y: no transform. With bounds it is a clamp on the prediction.

    >>> Identity(lower=0.0).inverse(torch.tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __call__(self, y: Tensor) -> Tensor:
        return y

    def _invert(self, u: Tensor) -> Tensor:
        return u

    def inverse(self, u: Tensor) -> Tensor:
        """The point, clamped once: here points and targets have the same bounds."""
        return u.clamp(*self.bounds)

    def prepare(self, y: Tensor) -> Self:
        """Nothing to learn: nothing is amplified, so no upper bound is needed."""
        self.check(y)
        return self


@dataclass(frozen=True)
class Affine(Transform):
    """T(y) = slope·y + offset, the one family whose transformed mean is already unbiased.

    >>> half = Affine(0.5)
    >>> half(torch.tensor(3.0)).item(), half.inverse(torch.tensor(1.5)).item()
    (1.5, 3.0)
    """

    slope: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 < self.slope < math.inf or not math.isfinite(self.offset):
            raise ValueError(f"Affine needs a slope > 0 and a finite offset, got {self.slope} and {self.offset}")
        super().__post_init__()

    def __call__(self, y: Tensor) -> Tensor:
        return self.slope * y + self.offset

    def _invert(self, u: Tensor) -> Tensor:
        return (u - self.offset) / self.slope

    @property
    def upper_limit(self) -> float:
        """The largest target that still fits in float32 after the multiplication."""
        return LARGEST / max(self.slope, 1.0)

    def prepare(self, y: Tensor) -> Self:
        """Nothing to learn: an affine map does not amplify, so no upper bound is needed."""
        self.check(y)
        return self


@dataclass(frozen=True)
class Compose(Transform):
    """T(y) = second(first(y)).

    >>> Compose(Affine(0.1), Log1p()).inverse(torch.tensor(0.0)).item()
    0.0
    """

    first: Transform
    second: Transform
    lower: float = field(init=False, repr=False)
    upper: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        def in_units_of_y(bound: float) -> float:  # of a bound of `second`
            if math.isinf(bound):
                return bound
            return float(self.first.inverse(torch.tensor(bound, dtype=torch.float64)))

        object.__setattr__(self, "lower", max(self.first.lower, in_units_of_y(self.second.lower)))
        object.__setattr__(self, "upper", min(self.first.upper, in_units_of_y(self.second.upper)))
        super().__post_init__()

    def __call__(self, y: Tensor) -> Tensor:
        return self.second(self.first(y))

    def _invert(self, u: Tensor) -> Tensor:
        return self.first.inverse(self.second.inverse(u))

    @property
    def upper_limit(self) -> float:
        """The smaller of the two limits, in units of y."""
        return min(
            self.first.upper_limit,
            float(self.first.inverse(torch.tensor(self.second.upper_limit, dtype=torch.float64))),
        )

    def prepare(self, y: Tensor) -> Self:
        """Prepares both, the second on the targets that the first has transformed."""
        self.check(y)
        first = self.first.prepare(y)
        return replace(self, first=first, second=self.second.prepare(first(y)))
