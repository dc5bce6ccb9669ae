"""The concept of a transform: T with the range of credible targets and one clamped inverse.

A skewed target is easier to learn as T(y). Every transform knows the range of credible targets, `[lower, upper]`,
and its inverse never leaves that range. Nothing else clamps: training and prediction both call `inverse`, so the slope
κ that trains the bias branch is the slope that divides it at prediction.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

# exp(80) = 5.5e34 is still a comfortable float32; nothing credible lies beyond.
LARGEST = math.exp(80.0)
# A bounded transform is followed up to this distance from its asymptote; float32 loses the rest.
RESOLUTION = 1e-6
_SIGNED = "for signed targets use Asinh() or Identity() as the transform, or a head such as MSE()"
# How far beyond the largest training target a prediction stays credible.
_HEADROOM = 10.0


@dataclass(frozen=True, kw_only=True)
class Transform(ABC):
    """A strictly increasing map T of targets in `[lower, upper]`; `inverse` is T⁻¹, clamped to that range.

    Subclasses write `__call__` for T and `_invert` for T⁻¹. An infinite `upper` means "not known yet":
    `prepare` replaces it by ten times the largest training target, so that one wild output of a network
    cannot become a wild prediction.

    Args:
        lower: smallest credible target. Smaller ones are refused by `check`.
        upper: largest credible target; predictions saturate there.

    """

    lower: float = -math.inf
    upper: float = math.inf

    lower_limit: ClassVar[float] = -math.inf  # T is defined and increasing from here on
    min_learned_upper: ClassVar[float] = 0.0  # an unknown upper bound is never learned below this

    def __post_init__(self) -> None:
        if not self.lower_limit <= self.lower < self.upper:
            raise ValueError(
                f"{type(self).__name__} needs {self.lower_limit:g} <= lower < upper, "
                f"got lower={self.lower:g}, upper={self.upper:g}"
            )
        # Plain numbers, computed once, so that exported graphs hold constants.
        bounds = (max(self.lower, -self.upper_limit), min(self.upper, self.upper_limit))
        object.__setattr__(self, "bounds", bounds)
        object.__setattr__(self, "range", tuple(self(torch.tensor(bounds, dtype=torch.float64)).tolist()))

    bounds: tuple[float, float] = field(init=False, repr=False, compare=False)
    """The credible targets, cut to what the transform can represent in float32."""

    range: tuple[float, float] = field(init=False, repr=False, compare=False)
    """T(bounds): the interval in which points are meaningful."""

    @property
    def upper_limit(self) -> float:
        """The largest target that T can represent and return in float32."""
        return LARGEST

    @abstractmethod
    def __call__(self, y: Tensor) -> Tensor:
        """T(y), elementwise."""

    @abstractmethod
    def _invert(self, u: Tensor) -> Tensor:
        raise NotImplementedError

    def inverse(self, u: Tensor) -> Tensor:
        """T⁻¹(u), finite and inside `[lower, upper]` for every u that is not NaN."""
        return self._invert(u.clamp(*self.range)).clamp(*self.bounds)

    def magnitude_plus(self, u: Tensor, eps: float) -> Tensor:
        """|T⁻¹(u)| + eps, the divisor of the schemes. A subclass may compute the same number in fewer operations."""
        value = self.inverse(u)
        # Most targets have no sign to lose.
        return (value if self.bounds[0] >= 0.0 else value.abs()) + eps

    def check(self, y: Tensor) -> None:
        """Raise a `ValueError` that names the first target outside `[lower, upper]` and what to do about it."""
        for wrong, side, bound, remedy in (
            (y < self.lower, "below", self.lower, _SIGNED),
            (y > self.upper, "above", self.upper, "raise `upper`, or leave it out to learn it from the data"),
            (y.abs() > LARGEST, "beyond", LARGEST, "give the targets in a larger unit"),
        ):
            if wrong.any():
                row = int(wrong.nonzero()[0])
                raise ValueError(f"target {y[row].item():g} in row {row} is {side} {bound:g} of {self!r}; {remedy}")

    def prepare(self, y: Tensor) -> Self:
        """The same transform with its unknown constants learned from the training targets."""
        self.check(y)
        if math.isfinite(self.upper):
            return self
        # Targets that are all zero give no bound.
        largest = max(_HEADROOM * float(y.abs().max()), self.min_learned_upper) or 1.0
        return replace(self, upper=min(largest, LARGEST))


@dataclass(frozen=True)
class ScaledTransform(Transform):
    """A transform of y / scale: `scale` is the target at which it begins to bend."""

    scale: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.scale < math.inf:
            raise ValueError(f"{type(self).__name__} needs a finite scale > 0, got {self.scale}")
        super().__post_init__()
