"""Transforms with an asymptote, which forget how large a very large target was: arctan and tanh."""

import math
from dataclasses import dataclass, field

from torch import Tensor

from transun.transforms.transform import RESOLUTION, ScaledTransform


@dataclass(frozen=True)
class Arctan(ScaledTransform):
    """T(y) = arctan(y / scale); T⁻¹(u) = scale·tan u, followed up to 10⁴·scale.

    Bounded, so outliers cannot move it; for the same reason everything far above `scale` looks alike. Set
    `scale` near the typical target. Beyond 10⁴·scale float32 can no longer tell targets apart.

    >>> round(Arctan(2.0).inverse(Arctan(2.0)(torch.tensor(6.0))).item(), 4)
    6.0
    """

    lower: float = field(default=0.0, kw_only=True)

    def __call__(self, y: Tensor) -> Tensor:
        return (y / self.scale).arctan()

    def _invert(self, u: Tensor) -> Tensor:
        return self.scale * u.tan()

    @property
    def upper_limit(self) -> float:
        """10⁴·scale: the float32 error of tan is 0.03 % there, and ten times as large one decade further."""
        return 1e4 * self.scale


@dataclass(frozen=True)
class Tanh(ScaledTransform):
    """T(y) = tanh(y / scale); T⁻¹(u) = scale·artanh u, followed up to 7.25·scale.

    Saturates much earlier than `Arctan`: use it only where most targets are below 3·scale.

    >>> round(Tanh(2.0).inverse(Tanh(2.0)(torch.tensor(3.0))).item(), 4)
    3.0
    """

    lower: float = field(default=0.0, kw_only=True)

    def __call__(self, y: Tensor) -> Tensor:
        return (y / self.scale).tanh()

    def _invert(self, u: Tensor) -> Tensor:
        return self.scale * u.atanh()

    @property
    def upper_limit(self) -> float:
        """The target whose tanh is 1 - 10⁻⁶; the published tanh(800) is exactly 1 and has no inverse."""
        return self.scale * math.atanh(1.0 - RESOLUTION)
