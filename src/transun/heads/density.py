"""Heads that model the whole law (distribution) of y|x: its distribution function, quantiles and draws."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor
from torch.nn.functional import softplus

from transun.heads.head import Branch, Head, Raw, check_targets
from transun.transforms import Identity

# Halvings of the bracket, first by order of magnitude, then evenly: enough for float32 from any start.
_HALVINGS = 35
# Practically nothing of a normal law lies further from its mean, in standard deviations.
NORMAL_REACH = 8.0
# e^80 is still a comfortable float32.
_STEEPEST = 80.0
# The spread assumed for constant targets, which have none, relative to their size.
_THINNEST = 1e-4


class Density(Head):
    """A head with a law of y|x. A subclass writes `cdf` and `support`; quantiles, intervals and draws follow.

    The mean of an assumed law is only as unbiased as the assumption: `GTS` around a density keeps its mean.
    """

    @abstractmethod
    def cdf(self, raw: Raw, v: Tensor) -> Tensor:
        """P(y ≤ v | x), row by row: raw outputs of B rows and v (B,) give (B,)."""

    @abstractmethod
    def support(self, raw: Raw) -> tuple[Tensor, Tensor]:
        """Two values (B,) between which practically all of each row's law lies."""

    @property
    def distribution(self) -> "Density | None":
        return self

    def quantile(self, raw: Raw, level: float | Tensor) -> Tensor:
        """The least v with cdf(v) ≥ level, (B,), by bisection between the ends of the support."""
        least, high = self.support(raw)
        # Zero is where amounts have their atom; a bracket that begins there meets it exactly.
        below = (least < 0) & (high > 0)
        origin = torch.zeros_like(least)
        positive = self.cdf(raw, origin - torch.finfo(least.dtype).tiny) < level
        least, high = torch.where(below & positive, origin, least), torch.where(below & ~positive, origin, high)
        low = least
        for halving in range(2 * _HALVINGS):
            # Even halving from the end of a heavy tail would leave no digits for the bulk of the law.
            middle = 0.5 * (low + high) if halving >= _HALVINGS else (0.5 * (low.asinh() + high.asinh())).sinh()
            middle = middle.clamp(low, high)
            reached = self.cdf(raw, middle) >= level
            low, high = torch.where(reached, low, middle), torch.where(reached, middle, high)
        return torch.where(self.cdf(raw, least) >= level, least, high)

    def interval(self, raw: Raw, coverage: float = 0.9) -> tuple[Tensor, Tensor]:
        """The central interval, two values (B,), that holds y with this probability if the assumed law is right."""
        return self.quantile(raw, 0.5 - 0.5 * coverage), self.quantile(raw, 0.5 + 0.5 * coverage)

    def sample(self, raw: Raw, generator: torch.Generator | None = None) -> Tensor:
        """One draw of y for each row, (B,): the quantile at a uniform level."""
        level = torch.rand(raw[0].shape[0], generator=generator, device=raw[0].device)
        return self.quantile(raw, level)


@dataclass(frozen=True)
class Axis(ABC):
    """An increasing map u = A(y) on which a normal law, or a mixture or a flow of them, is a fair description."""

    lower: ClassVar[float]  # smallest target that the axis can hold

    @abstractmethod
    def __call__(self, y: Tensor) -> Tensor:
        """A(y), elementwise."""

    @abstractmethod
    def inverse(self, u: Tensor) -> Tensor:
        """A⁻¹(u), finite for every u that is not NaN."""

    @abstractmethod
    def log_slope(self, y: Tensor) -> Tensor:
        """The logarithm of A'(y): what turns a density of u into one of y."""

    @abstractmethod
    def mean(self, location: Tensor, spread: Tensor) -> Tensor:
        """E[A⁻¹(u)] for u normal with this location and spread."""


@dataclass(frozen=True)
class LinearAxis(Axis):
    """A(y) = y: normal laws of the target itself, signed or not; the mean of a fitted law is the sample mean.

    >>> LinearAxis().mean(torch.tensor(3.0), torch.tensor(2.0)).item()
    3.0
    """

    lower: ClassVar[float] = -math.inf

    def __call__(self, y: Tensor) -> Tensor:
        return y

    def inverse(self, u: Tensor) -> Tensor:
        return u

    def log_slope(self, y: Tensor) -> Tensor:
        return torch.zeros_like(y)

    def mean(self, location: Tensor, spread: Tensor) -> Tensor:
        return location


@dataclass(frozen=True)
class LogAxis(Axis):
    """A(y) = ln(1 + y): laws of 1 + y are lognormal, E[y] = exp(m + s²/2) - 1. For y ≥ 0.

    Closer to amounts than `LinearAxis`, but the mean now depends on the fitted spread, hence on the assumption.
    The law reaches a little below zero, down to -1, where no target lies.

    >>> round(LogAxis().mean(torch.tensor(0.0), torch.tensor(1.0)).item(), 4)  # √e - 1
    0.6487
    """

    lower: ClassVar[float] = 0.0

    def __call__(self, y: Tensor) -> Tensor:
        # `cdf` may be evaluated below -1, where the law has no mass.
        return y.clamp(min=-1.0 + 1e-6).log1p()

    def inverse(self, u: Tensor) -> Tensor:
        return u.clamp(max=_STEEPEST).expm1()

    def log_slope(self, y: Tensor) -> Tensor:
        return -self(y)

    def mean(self, location: Tensor, spread: Tensor) -> Tensor:
        return (location + 0.5 * spread.square()).clamp(max=_STEEPEST).expm1()


class Hurdle(Density):
    """A Bernoulli for exact zeros beside a law G of all other targets: F(v) = (1 - p)·1[v ≥ 0] + p·G(v), ŷ = p·E_G[y].

    A repeated value draws every flexible density to a spike on it; zeros, the usual one, get a probability of their
    own. If training has no zeros, p = 1 and the output for it is not used.

    One branch: the logit of p, then the parameters of G. A subclass writes G on the standard axis
    x = (A(y) - centre) / scale, where a typical target lies within ±3.

    Args:
        width: how many parameters G has.
        zeros: share of zeros in training; None learns it.
        centre: mean of A(y) over the targets that are not zero; None learns it.
        scale: their standard deviation; None learns it.
        upper: largest credible prediction; infinite learns `headroom` times the largest training target.

    """

    axis: Axis
    headroom: ClassVar[float] = 10.0

    def __init__(
        self, width: int, zeros: float | None, centre: float | None, scale: float | None, upper: float
    ) -> None:
        super().__init__()
        self.zeros, self.centre, self.scale, self.upper = zeros, centre, scale, upper
        self._centre, self._scale = centre or 0.0, 1.0 if scale is None else scale
        if not 0.0 < self._scale < math.inf:
            raise ValueError(f"{type(self).__name__} needs a finite scale > 0, got {scale}")
        self.branches = (Branch(1 + width),)
        self.transform = Identity(lower=self.axis.lower, upper=upper)

    @abstractmethod
    def nll(self, parameters: Tensor, x: Tensor) -> Tensor:
        """-ln g(x), (B,), of the parameters (B, width) and points x (B,) of the standard axis."""

    @abstractmethod
    def standard_cdf(self, parameters: Tensor, x: Tensor) -> Tensor:
        """G(x), (B,)."""

    @abstractmethod
    def standard_ends(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        """Two points (B,) of the standard axis between which practically all of G lies."""

    @abstractmethod
    def mean(self, parameters: Tensor) -> Tensor:
        """The mean of G in units of the target, (B,)."""

    @abstractmethod
    def initial(self, x: Tensor) -> Tensor:
        """Good constant parameters (width,) for training points x (n,), float64, of the standard axis."""

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        logit, parameters = self._split(raw)
        nll = self.nll(parameters, self._standard(y)) + math.log(self._scale) - self.axis.log_slope(y)
        if not self.zeros:
            return {"nll": nll}
        occurs = y != 0
        return {"occurrence": softplus(logit) - occurs * logit, "nll": torch.where(occurs, nll, 0.0)}

    def point(self, raw: Raw) -> Tensor:
        return self._occurrence(raw) * self.mean(self._split(raw)[1])

    def cdf(self, raw: Raw, v: Tensor) -> Tensor:
        p = self._occurrence(raw)
        return (1.0 - p) * (v >= 0) + p * self.standard_cdf(self._split(raw)[1], self._standard(v))

    def support(self, raw: Raw) -> tuple[Tensor, Tensor]:
        low, high = (self._target(x) for x in self.standard_ends(self._split(raw)[1]))
        return (low.clamp(max=0.0), high.clamp(min=0.0)) if self.zeros else (low, high)

    def prepare(self, y: Tensor) -> Self:
        check_targets(y)
        self.transform.check(y)
        u = self.axis(_nonzero(y).double())
        return self.replace(
            zeros=float((y == 0).double().mean()) if self.zeros is None else self.zeros,
            centre=float(u.mean()) if self.centre is None else self.centre,
            scale=self.scale or spread(u),
            upper=min(self.upper, self.headroom * float(y.abs().max()) or 1.0),
        )

    def initial_outputs(self, y: Tensor) -> Raw:
        share = torch.tensor([1.0 - (self.zeros or 0.0)], dtype=torch.float64)
        parameters = self.initial(self._standard(_nonzero(y).double()))
        # The logit of a share of 0 or 1 is infinite; a millionth is close enough.
        return (torch.cat((share.logit(eps=1e-6), parameters)).to(y.dtype),)

    def _split(self, raw: Raw) -> tuple[Tensor, Tensor]:
        values = widen(raw[0])
        return values[:, 0], values[:, 1:]

    def _occurrence(self, raw: Raw) -> Tensor:
        logit = self._split(raw)[0]
        return logit.sigmoid() if self.zeros else torch.ones_like(logit)

    def _standard(self, y: Tensor) -> Tensor:
        return (self.axis(y) - self._centre) / self._scale

    def _target(self, x: Tensor) -> Tensor:
        return self.axis.inverse(self._centre + self._scale * x)


def widen(raw: Tensor) -> Tensor:
    """A raw output in float32 or better: laws are not computed in half precision."""
    return raw.float() if raw.dtype.itemsize < 4 else raw


def normal_cdf(x: Tensor) -> Tensor:
    """Φ(x), with its digits also far below zero, where torch's own function has none left.

    >>> round(normal_cdf(torch.tensor(-5.0)).item() * 1e7, 3)  # torch.special.ndtr gives 2.98
    2.867
    """
    return 0.5 * torch.erfc(x * -math.sqrt(0.5))


def normal_quantile(level: float | Tensor, like: Tensor) -> Tensor:
    """Φ⁻¹(level), on the device and in the precision of `like`.

    >>> round(normal_quantile(0.975, torch.zeros(1)).item(), 3)
    1.96
    """
    value: Tensor = torch.special.ndtri(torch.as_tensor(level, dtype=like.dtype, device=like.device))
    return value


def spread(u: Tensor) -> float:
    """The standard deviation of u (n,), or a ten-thousandth of its size, of one for zeros, if all values are the same.

    >>> spread(torch.tensor([1.0, 3.0])), spread(torch.tensor([5.0])), spread(torch.zeros(2))
    (1.0, 0.0005, 0.0001)
    """
    return max(float(u.std(correction=0)), _THINNEST * abs(float(u.mean()))) or _THINNEST


def quantiles(y: Tensor, levels: Tensor | Sequence[float]) -> Tensor:
    """The quantiles of y (n,) at these levels, in float64: order statistics, the i-th of which has level (i - ½)/n.

    >>> quantiles(torch.tensor([4.0, 2.0]), [0.0, 0.25, 0.5, 1.0]).tolist()
    [2.0, 2.0, 3.0, 4.0]
    """
    ordered = y.double().sort().values
    position = (torch.as_tensor(levels, dtype=torch.float64) * len(y) - 0.5).clamp(0.0, len(y) - 1.0)
    below = position.floor().long()
    above = (below + 1).clamp(max=len(y) - 1)
    return torch.lerp(ordered[below], ordered[above], position - below)


def inverse_softplus(value: Tensor) -> Tensor:
    """The t with softplus(t) = value > 0.

    >>> round(softplus(inverse_softplus(torch.tensor(3.0))).item(), 5)
    3.0
    """
    return value + (-torch.expm1(-value)).log()


def middles(count: int) -> Tensor:
    """The levels (j - ½) / count for j = 1 … count, in float64.

    >>> middles(2).tolist()
    [0.25, 0.75]
    """
    return (torch.arange(count, dtype=torch.float64) + 0.5) / count


def _nonzero(y: Tensor) -> Tensor:
    """The targets that are not zero, or all targets where all are zero."""
    nonzero = y[y != 0]
    return nonzero if len(nonzero) else y
