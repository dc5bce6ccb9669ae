"""The components that distributions of targets are mixed from: each has a density, a sampler and a quadrature rule."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor

_SQRT2 = math.sqrt(2.0)


@cache
def _legendre(panels: int = 32, nodes: int = 32) -> tuple[Tensor, Tensor]:
    # Composite Gauss-Legendre on [0, 1] after t -> t³(10 - 15t + 6t²), whose slope 30t²(1 - t)² is zero at both ends:
    # the square-root ends of Beta(3, 1.5) or of g = sqrt then cost no accuracy.
    points, weights = np.polynomial.legendre.leggauss(nodes)
    t = (np.arange(panels)[:, None] + (points + 1) / 2) / panels
    slope = 30 * t**2 * (1 - t) ** 2
    position = t**3 * (10 - 15 * t + 6 * t**2)
    return torch.from_numpy(position.ravel()), torch.from_numpy((slope * weights / (2 * panels)).ravel())


class Component(ABC):
    """A law on [low, high] with a density: the quadrature Σ w·g(v) of `rule` is E[g(Y)].

    A subclass writes its range, `density` and `sample`; expectations follow from the density, so there is no second
    set of formulas that could disagree with the sampler.
    """

    @property
    @abstractmethod
    def range(self) -> tuple[float, float]:
        """The interval outside which less than 1e-20 of the probability lies."""

    @abstractmethod
    def density(self, v: Tensor) -> Tensor:
        """Probability density at v, 0 outside the range."""

    # Quoted, here and below: naming the class would import all of numpy.random.
    @abstractmethod
    def sample(self, n: int, rng: "np.random.Generator") -> np.ndarray:
        """Draw n independent values, float64."""

    def rule(self, low: float, high: float) -> tuple[Tensor, Tensor]:
        """Points v and weights w with Σ w·g(v) = E[g(Y); low < Y ≤ high], for smooth g."""
        least, most = self.range
        start = min(max(low, least), most)
        width = max(min(high, most) - start, 0.0)
        position, weight = _legendre()
        points = start + width * position
        return points, width * weight * self.density(points)


@dataclass(frozen=True)
class Point(Component):
    """All probability at one value, such as the zeros of a zero-inflated target.

    >>> Point(0.0).rule(-1.0, 1.0)
    (tensor([0.], dtype=torch.float64), tensor([1.], dtype=torch.float64))
    """

    at: float

    @property
    def range(self) -> tuple[float, float]:
        """The point itself."""
        return self.at, self.at

    def density(self, v: Tensor) -> Tensor:
        """0 everywhere: a point mass has no density, its probability shows in `rule` only."""
        return torch.zeros_like(v)

    def sample(self, n: int, rng: "np.random.Generator") -> np.ndarray:
        """The point, n times."""
        return np.full(n, self.at)

    def rule(self, low: float, high: float) -> tuple[Tensor, Tensor]:
        """The point with weight 1 if low < at ≤ high, else no point: g need not be finite outside the interval."""
        points = torch.tensor([self.at] if low < self.at <= high else [], dtype=torch.float64)
        return points, torch.ones_like(points)


@dataclass(frozen=True)
class Uniform(Component):
    """Density 1 / (high - low) on [low, high].

    >>> Uniform(1.0, 11.0).density(torch.tensor([0.0, 5.0, 12.0])).tolist()
    [0.0, 0.10000000149011612, 0.0]
    """

    low: float
    high: float

    @property
    def range(self) -> tuple[float, float]:
        """[low, high]."""
        return self.low, self.high

    def density(self, v: Tensor) -> Tensor:
        """1 / (high - low) inside."""
        return ((v >= self.low) & (v <= self.high)).to(v.dtype) / (self.high - self.low)

    def sample(self, n: int, rng: "np.random.Generator") -> np.ndarray:
        """Draws of the generator's uniform."""
        return rng.uniform(self.low, self.high, n)


@dataclass(frozen=True)
class Gamma(Component):
    """Density v^(shape-1) e^(-v/scale) / (Γ(shape) scale^shape) on v > 0; shape ≥ 1.

    >>> from transun_paper.datasets.component import Gamma
    >>> round(float(Gamma(2.0, 1.0).density(torch.tensor(1.0))), 6)  # 1·e⁻¹
    0.367879
    """

    shape: float
    scale: float

    @property
    def range(self) -> tuple[float, float]:
        """Up to where the tail is below 1e-20."""
        return 0.0, self.scale * (self.shape + 12 * math.sqrt(self.shape) + 60)

    def density(self, v: Tensor) -> Tensor:
        """The exponential of the log density, which does not overflow."""
        inside = v.clamp_min(0) / self.scale
        log = torch.xlogy(torch.tensor(self.shape - 1, dtype=v.dtype), inside) - inside - math.lgamma(self.shape)
        return torch.where(v >= 0, log.exp() / self.scale, 0)

    def sample(self, n: int, rng: "np.random.Generator") -> np.ndarray:
        """Draws of the generator's gamma."""
        return rng.gamma(self.shape, self.scale, n)


@dataclass(frozen=True)
class Beta(Component):
    """Density v^(a-1) (1-v)^(b-1) Γ(a+b) / (Γ(a) Γ(b)) on [0, 1]; a, b ≥ 1.

    >>> round(float(Beta(2.0, 1.0).density(torch.tensor(0.5))), 6)  # 2v
    1.0
    """

    a: float
    b: float

    @property
    def range(self) -> tuple[float, float]:
        """[0, 1]."""
        return 0.0, 1.0

    def density(self, v: Tensor) -> Tensor:
        """Powers of v and 1 - v over the Beta function."""
        inside = v.clamp(0, 1)
        log_norm = math.lgamma(self.a + self.b) - math.lgamma(self.a) - math.lgamma(self.b)
        value = inside ** (self.a - 1) * (1 - inside) ** (self.b - 1) * math.exp(log_norm)
        return torch.where((v >= 0) & (v <= 1), value, 0)

    def sample(self, n: int, rng: "np.random.Generator") -> np.ndarray:
        """Draws of the generator's beta."""
        return rng.beta(self.a, self.b, n)


@dataclass(frozen=True)
class TruncatedNormal(Component):
    """Normal(centre, scale) given low ≤ Y ≤ high.

    >>> law = TruncatedNormal(50.0, 10.0, 0.0, 100.0)
    >>> round(float(law.density(torch.tensor(50.0))), 6)  # 1 / (10·sqrt(2π)), the cut is at 5 deviations
    0.039894
    """

    centre: float
    scale: float
    low: float
    high: float

    @property
    def range(self) -> tuple[float, float]:
        """[low, high]."""
        return self.low, self.high

    def _below(self, v: float) -> float:
        return math.erfc((self.centre - v) / (self.scale * _SQRT2)) / 2

    def density(self, v: Tensor) -> Tensor:
        """The normal density over the probability kept."""
        kept = self._below(self.high) - self._below(self.low)
        bell = torch.exp(-(((v - self.centre) / self.scale) ** 2) / 2) / (self.scale * math.sqrt(2 * math.pi) * kept)
        return torch.where((v >= self.low) & (v <= self.high), bell, 0)

    def sample(self, n: int, rng: "np.random.Generator") -> np.ndarray:
        """Quantiles of uniform draws: no rejection, however narrow the interval."""
        share = torch.from_numpy(rng.uniform(self._below(self.low), self._below(self.high), n))
        draws = (self.centre + self.scale * torch.special.ndtri(share)).clamp(self.low, self.high)
        return np.asarray(draws)
