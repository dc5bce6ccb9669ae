"""Transforms that tame a tail and still grow without bound: logarithm, powers, arsinh."""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from torch import Tensor

from transun.transforms.transform import LARGEST, ScaledTransform, Transform


@dataclass(frozen=True)
class Log1p(Transform):
    """T(y) = ln(1 + y), the usual choice for amounts; T⁻¹(u) = eᵘ - 1.

    Its T-MSE prediction is (nearly) a geometric mean and therefore too low, by Jensen's inequality.

    >>> log = Log1p()
    >>> log.inverse(log(torch.tensor([0.0, 9.0]))).tolist()
    [0.0, 9.0]
    >>> log.inverse(torch.tensor(-3.0)).item()  # below ln(1 + lower) = 0
    0.0
    """

    lower: float = field(default=0.0, kw_only=True)
    lower_limit: ClassVar[float] = math.nextafter(-1.0, 0.0)
    min_learned_upper: ClassVar[float] = math.expm1(10.0)

    def __call__(self, y: Tensor) -> Tensor:
        return y.log1p()

    def _invert(self, u: Tensor) -> Tensor:
        return u.expm1()

    def magnitude_plus(self, u: Tensor, eps: float) -> Tensor:
        """eᵘ for targets without sign and eps = 1: one operation instead of three, in every step and prediction.

        >>> Log1p().magnitude_plus(torch.tensor([-3.0, 0.0]), 1.0).tolist()
        [1.0, 1.0]
        """
        return u.clamp(*self.range).exp() if eps == 1.0 and self.bounds[0] >= 0.0 else super().magnitude_plus(u, eps)


@dataclass(frozen=True)
class Power(Transform):
    """T(y) = y^exponent on y ≥ 0: `Power(0.5)` is the square root, `Power(2)` the square.

    An exponent below 1 makes T-MSE under-predict, one above 1 over-predict. Powers above 1 stretch the tail
    that a transform should tame; the paper has y² only to show the other sign.

    >>> Power(0.5)(torch.tensor(9.0)).item(), Power(0.5).inverse(torch.tensor(3.0)).item()
    (3.0, 9.0)
    """

    exponent: float = 0.5
    lower: float = field(default=0.0, kw_only=True)
    lower_limit: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if not 0.0 < self.exponent <= 4.0:
            raise ValueError(f"Power needs 0 < exponent <= 4, got {self.exponent}")
        super().__post_init__()

    def __call__(self, y: Tensor) -> Tensor:
        return y**self.exponent

    def _invert(self, u: Tensor) -> Tensor:
        return u ** (1.0 / self.exponent)

    @property
    def upper_limit(self) -> float:
        """The largest target that still fits in float32 after it is raised to the power."""
        return float(LARGEST ** (1.0 / max(self.exponent, 1.0)))


@dataclass(frozen=True)
class Asinh(ScaledTransform):
    """T(y) = arsinh(y / scale): a logarithm for signed targets, linear within ±scale.

    >>> round(Asinh().inverse(Asinh()(torch.tensor(-5.0))).item(), 4)
    -5.0
    """

    def __call__(self, y: Tensor) -> Tensor:
        return (y / self.scale).asinh()

    def _invert(self, u: Tensor) -> Tensor:
        return self.scale * u.sinh()

    @property
    def upper_limit(self) -> float:
        """The largest target that still fits in float32 after the division."""
        return LARGEST * min(self.scale, 1.0)

    def prepare(self, y: Tensor) -> Self:
        """Learns the upper bound and, by symmetry, the lower one."""
        prepared = super().prepare(y)
        return prepared if math.isfinite(self.lower) else replace(prepared, lower=-prepared.upper)
