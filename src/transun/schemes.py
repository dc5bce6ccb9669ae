"""Schemes: how a branch z encodes the target, given the point u that another branch has learned.

GTS adds one branch z to a model. A scheme decides what z is trained towards (`encode`), how a prediction is read
back (`decode`) and what an error of z costs (`cost`). A `Slope` is the family that keeps the mean: z learns y·κ(u)
and ŷ = z / κ(u), so E[z] = E[y]·κ whatever u is.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from transun.losses import squared
from transun.transforms import Transform

__all__ = [
    "Additive",
    "InverseRatio",
    "Magnitude",
    "PoissonOffset",
    "PowerVariance",
    "ReciprocalPoint",
    "ReciprocalTarget",
    "Scheme",
    "Slope",
]

# ln of a factor stays within this of zero: 1e-13 to 1e13.
_MAX_LOG_FACTOR = 30.0


@dataclass(frozen=True)
class Scheme(ABC):
    """What the bias branch z means, given the point u (B,) in the space of `transform`.

    Law: `decode(encode(y, u, transform), u, transform) == y`. Both sides get the same u, so any clamp inside them is
    applied twice or not at all (errata E3 of the paper's listing, where it was applied once).
    """

    min_target: ClassVar[float] = -math.inf  # the smallest target it can encode

    @abstractmethod
    def encode(self, y: Tensor, u: Tensor, transform: Transform) -> Tensor:
        """The target of the branch, (B,)."""

    @abstractmethod
    def decode(self, z: Tensor, u: Tensor, transform: Transform) -> Tensor:
        """The prediction that belongs to the branch's output z, (B,)."""

    def kappa(self, u: Tensor, transform: Transform) -> Tensor | None:
        """The slope of the encoded target in y, (B,); None where the encoded target is not linear in y."""
        return None

    def prepare(self, y: Tensor, u: Tensor, transform: Transform) -> Self:
        """The scheme with its constants learned from the training targets y and the points u at which z starts."""
        return self

    def with_own_scale(self) -> Self:
        """The scheme that learns no constants: z keeps the unit in which the scheme is written."""
        return self

    def cost(self, z: Tensor, y: Tensor, u: Tensor, transform: Transform) -> Tensor:
        """Per-sample cost of z, (B,): its squared distance to the encoded target."""
        return squared(z, self.encode(y, u, transform))

    def initial_z(self, y: Tensor, u: Tensor, transform: Transform) -> Tensor:
        """The constant z of least mean cost over the training targets; a scalar."""
        return self.encode(y, u, transform).mean()


@dataclass(frozen=True)
class Slope(Scheme):
    """z ≈ y·κ(u) and ŷ = z / κ(u) for a slope κ > 0. Subclasses write only its `shape`, κ up to a constant.

    The cost (z - κy)² equals κ²·(ŷ - y)²: weighted least squares on y itself. So κ acts as 1/sd(y|x), and the
    best slope is the one that makes y·κ equally noisy everywhere. A constant factor of κ changes no prediction, but an
    optimiser with one learning rate would crawl towards a z of thousands and jump around one of thousandths. So
    `prepare` learns the factor with which y·κ is 1 on average: z is of order one under every slope, and two slopes that
    differ by a constant are trained alike.

    Args:
        scale: the factor, κ = scale·shape; None is learned by `prepare`, and is 1 until then.

    >>> from transun.transforms import Identity
    >>> y, u = torch.tensor([4.0, 8.0]), torch.tensor([2.0, 2.0])
    >>> slope = Magnitude().prepare(y, u, Identity())  # y·|u| is 12 on average
    >>> [round(z, 4) for z in slope.encode(y, u, Identity()).tolist()]
    [0.6667, 1.3333]

    """

    scale: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.scale is not None and not 0.0 < self.scale < math.inf:
            raise ValueError(f"{type(self).__name__} needs a finite scale > 0, got {self.scale}")

    @abstractmethod
    def shape(self, u: Tensor, transform: Transform) -> Tensor:
        """The slope at the point u up to a constant factor, positive and finite, (B,)."""

    def kappa(self, u: Tensor, transform: Transform) -> Tensor:
        """The slope at the point u, (B,)."""
        return self._scaled(self.shape(u, transform))

    def prepare(self, y: Tensor, u: Tensor, transform: Transform) -> Self:
        """The slope with the scale at which |y·κ(u)| is 1 on average; a scale that is given stays."""
        if self.scale is not None:
            return self
        size = float((y.double() * self.shape(u, transform).double()).abs().mean())
        # Targets that are all zero have no size.
        return replace(self, scale=1.0 / size if size > 0.0 else 1.0)

    def with_own_scale(self) -> Self:
        """The slope with κ = shape, or with the scale that was given."""
        return self if self.scale is not None else replace(self, scale=1.0)

    def encode(self, y: Tensor, u: Tensor, transform: Transform) -> Tensor:
        """y·κ(u)."""
        return y * self.kappa(u, transform)

    def decode(self, z: Tensor, u: Tensor, transform: Transform) -> Tensor:
        """z / κ(u)."""
        return z / self.kappa(u, transform)

    def _scaled(self, values: Tensor) -> Tensor:
        return values if self.scale is None else values * self.scale


@dataclass(frozen=True)
class PowerVariance(Slope):
    """κ = (|T⁻¹(u)| + eps)^(-power/2): right when the variance of y grows like its mean to this power.

    From plain least squares (0) through Poisson-like (1) to Gamma-like (2). A smaller power amplifies less where
    |T⁻¹(u)| is large; a larger one keeps the branch on one scale when the noise is proportional to the amount.

    Args:
        power: the variance power p, 0 to 2.
        eps: keeps κ finite at zero, in units of the target.

    >>> from transun.transforms import Identity
    >>> PowerVariance(1.0, eps=1.0).kappa(torch.tensor([3.0]), Identity()).tolist()
    [0.5]

    """

    power: float = 1.0
    eps: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.power <= 2.0:
            raise ValueError(f"PowerVariance needs 0 <= power <= 2, got {self.power}")
        _require_eps(self, self.eps)

    def shape(self, u: Tensor, transform: Transform) -> Tensor:
        """(|T⁻¹(u)| + eps)^(-power/2)."""
        return transform.magnitude_plus(u, self.eps) ** (-0.5 * self.power)


@dataclass(frozen=True)
class ReciprocalTarget(Slope):
    """κ = 1 / (|T⁻¹(u)| + eps), the slope of TranSUN: z is the ratio of the target to its transformed estimate.

    Args:
        eps: in units of the target; the paper uses 1. Small values let z explode where T⁻¹(u) is near zero,
            large ones turn the method into plain MSE.

    >>> from transun.transforms import Log1p
    >>> ReciprocalTarget().kappa(torch.tensor([3.0]).log(), Log1p()).tolist()  # T⁻¹(ln 3) = 2
    [0.333...]

    """

    eps: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_eps(self, self.eps)

    def shape(self, u: Tensor, transform: Transform) -> Tensor:
        """1 / (|T⁻¹(u)| + eps)."""
        return transform.magnitude_plus(u, self.eps).reciprocal()

    # One division or product instead of a reciprocal and one: small batches pay for every operation.
    def encode(self, y: Tensor, u: Tensor, transform: Transform) -> Tensor:
        """The target over |T⁻¹(u)| + eps."""
        return self._scaled(y) / transform.magnitude_plus(u, self.eps)

    def decode(self, z: Tensor, u: Tensor, transform: Transform) -> Tensor:
        """(|T⁻¹(u)| + eps)·z."""
        z = z if self.scale is None else z / self.scale
        return z * transform.magnitude_plus(u, self.eps)


@dataclass(frozen=True)
class ReciprocalPoint(Slope):
    """κ = 1 / (|u| + eps): the slope in transformed space, gentler than `ReciprocalTarget` under a logarithm.

    >>> from transun.transforms import Log1p
    >>> ReciprocalPoint().kappa(torch.tensor([3.0]), Log1p()).tolist()
    [0.25]
    """

    eps: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_eps(self, self.eps)

    def shape(self, u: Tensor, transform: Transform) -> Tensor:
        """1 / (|u| + eps)."""
        return (_within(u, transform).abs() + self.eps).reciprocal()


@dataclass(frozen=True)
class Magnitude(Slope):
    """κ = max(|u|, eps): a slope that grows with the point. In the paper to show that any positive κ works.

    `eps` replaces κ(0) = 0, which the paper's |u| allows and its theorem does not.

    >>> from transun.transforms import Log1p
    >>> Magnitude(eps=0.1).kappa(torch.tensor([0.0, 3.0]), Log1p(lower=-0.9)).tolist()
    [0.1..., 3.0]
    """

    eps: float = 1e-2

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_eps(self, self.eps)

    def shape(self, u: Tensor, transform: Transform) -> Tensor:
        """max(|u|, eps)."""
        return _within(u, transform).abs().clamp(min=self.eps)


@dataclass(frozen=True)
class PoissonOffset(Scheme):
    """ŷ = (|T⁻¹(u)| + eps)·eˢ with s = 30·tanh(z/30), and the cost is the Poisson deviance of y from ŷ.

    The inner point is an offset: z learns only by what factor it is off. Any Bregman divergence keeps the mean; this
    one is stationary where Σ(ŷ - y) = 0, so totals are right, while squares of y·κ make Σκ(ŷ - y) = 0. An error counts
    as it is and not relative to the amount, so large predictions are not amplified, and ŷ is positive. The ranking by
    the inner head is the starting point and is mostly kept. For y ≥ 0.

    The cost grows with the unit of y: put `Scaled` around the head, above all when branches share stages.

    Args:
        eps: in units of the target; keeps the offset off zero, where no factor could lift it.

    >>> from transun.transforms import Identity
    >>> scheme, u = PoissonOffset(eps=1.0), torch.tensor([3.0])
    >>> scheme.decode(torch.zeros(1), u, Identity()).tolist()
    [4.0]
    >>> round(scheme.cost(torch.zeros(1), u, u, Identity()).item(), 4)  # 4 - 3·ln 4
    -0.1589

    """

    eps: float = 1.0

    min_target: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        _require_eps(self, self.eps)

    def encode(self, y: Tensor, u: Tensor, transform: Transform) -> Tensor:
        """The z of the factor y / (|T⁻¹(u)| + eps); a target of zero gets the smallest possible factor."""
        s = (y / transform.magnitude_plus(u, self.eps)).log() / _MAX_LOG_FACTOR
        return _MAX_LOG_FACTOR * s.clamp(-1.0 + 1e-6, 1.0 - 1e-6).atanh()

    def decode(self, z: Tensor, u: Tensor, transform: Transform) -> Tensor:
        """(|T⁻¹(u)| + eps)·eˢ."""
        return transform.magnitude_plus(u, self.eps) * _bounded_log(z).exp()

    def cost(self, z: Tensor, y: Tensor, u: Tensor, transform: Transform) -> Tensor:
        """ŷ - y·ln ŷ: half the deviance, without the terms that depend on y alone."""
        offset, s = transform.magnitude_plus(u, self.eps), _bounded_log(z)
        return offset * s.exp() - y * (offset.log() + s)

    def initial_z(self, y: Tensor, u: Tensor, transform: Transform) -> Tensor:
        """The z whose factor makes the total right."""
        factor = y.double().mean() / transform.magnitude_plus(u, self.eps).double().mean()
        s = factor.log() / _MAX_LOG_FACTOR
        return (_MAX_LOG_FACTOR * s.clamp(-1.0 + 1e-6, 1.0 - 1e-6).atanh()).to(y.dtype)


@dataclass(frozen=True)
class Additive(Scheme):
    """S0 of the paper: z ≈ y - T⁻¹(u), ŷ = T⁻¹(u) + z. Unbiased, but z keeps the whole tail of y.

    >>> from transun.transforms import Identity
    >>> Additive().decode(torch.tensor([2.0]), torch.tensor([5.0]), Identity()).tolist()
    [7.0]
    """

    def kappa(self, u: Tensor, transform: Transform) -> Tensor:
        """1: z has the unit of the target."""
        return torch.ones_like(u)

    def encode(self, y: Tensor, u: Tensor, transform: Transform) -> Tensor:
        """y - T⁻¹(u)."""
        return y - transform.inverse(u)

    def decode(self, z: Tensor, u: Tensor, transform: Transform) -> Tensor:
        """T⁻¹(u) + z."""
        return transform.inverse(u) + z


@dataclass(frozen=True)
class InverseRatio(Scheme):
    """S1 of the paper: z ≈ (|T⁻¹(u)| + eps) / (y + eps), ŷ = (|T⁻¹(u)| + eps) / z - eps. Biased by design.

    It learns the harmonic mean of y + eps, which is too low: an explicit bias branch alone does not debias.
    Kept as the paper's counter-example.

    Args:
        eps: keeps zeros finite; the paper's form is the limit 0 and needs y > 0.

    >>> from transun.transforms import Identity
    >>> scheme, y, u = InverseRatio(), torch.tensor([3.0]), torch.tensor([7.0])
    >>> scheme.encode(y, u, Identity()).tolist(), scheme.decode(torch.tensor([2.0]), u, Identity()).tolist()
    ([2.0], [3.0])

    """

    eps: float = 1.0

    def __post_init__(self) -> None:
        _require_eps(self, self.eps)

    def encode(self, y: Tensor, u: Tensor, transform: Transform) -> Tensor:
        """(|T⁻¹(u)| + eps) / (y + eps)."""
        return transform.magnitude_plus(u, self.eps) / (y + self.eps)

    def decode(self, z: Tensor, u: Tensor, transform: Transform) -> Tensor:
        """(|T⁻¹(u)| + eps) / z - eps, with z kept away from zero, where the ratio would explode."""
        return transform.magnitude_plus(u, self.eps) / z.clamp(min=1e-6) - self.eps


def _bounded_log(z: Tensor) -> Tensor:
    """A logarithm that stays within ±30, the same in cost and prediction."""
    return _MAX_LOG_FACTOR * (z / _MAX_LOG_FACTOR).tanh()


def _within(u: Tensor, transform: Transform) -> Tensor:
    """The point, clamped to the range of T: the slope then changes no further once the prediction saturates."""
    return u.clamp(*transform.range)


def _require_eps(owner: object, eps: float) -> None:
    if not eps > 0.0:
        raise ValueError(f"{type(owner).__name__} needs eps > 0, got {eps}")
