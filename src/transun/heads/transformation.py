"""Transformation models, the concept: P(y ≤ v | x) = Φ(h(v|x)) for an h that increases in v, and what it minimises."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from transun.heads.density import NORMAL_REACH, Density, normal_cdf, spread
from transun.heads.head import Raw
from transun.support.arguments import require_count

# Fisher scoring from the moments: rounds, parts of a step that are tried, and the least slope, of a unit spread.
_ROUNDS, _HALVINGS, _FLATTEST = 30, 6, 0.05


@dataclass(frozen=True)
class Criterion(ABC):
    """What a transformation model minimises; `GridScore` or `Likelihood`."""

    points: int = 0

    @abstractmethod
    def __call__(self, model: "TransformationModel", raw: Raw, y: Tensor) -> Tensor:
        """The per-sample cost, (B,)."""

    @abstractmethod
    def line(self, grid: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """Intercept and slope > 0 of the best h(x) = a + b·x for all targets x (n,) at once; `grid` on their axis."""


@dataclass(frozen=True)
class GridScore(Criterion):
    """-ln Φ(h(v)) where y ≤ v and -ln Φ(-h(v)) where y > v, averaged over a grid of quantiles v of the training data.

    A proper score of the distribution function: it needs no density, so zeros and other repeated values do no harm.
    It sees the target only as above or below each grid point; what happens beyond the last one is extrapolated.

    Args:
        points: quantiles in the grid, at the levels (j - ½) / points. More see further into the tail.

    """

    points: int = 25

    def __post_init__(self) -> None:
        require_count("GridScore", points=self.points)

    def __call__(self, model: "TransformationModel", raw: Raw, y: Tensor) -> Tensor:
        h = model.h(raw, model.grid.unsqueeze(0))
        # In the precision of the grid: a target on a grid point counts as reached.
        reached = y.to(model.grid.dtype).unsqueeze(-1) <= model.grid
        return -log_ndtr(torch.where(reached, h, -h)).mean(-1)

    def line(self, grid: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """Probit regression of the share of targets below each grid point, by Fisher scoring from the moments."""
        centre, scale = x.mean(), spread(x)
        t = (grid - centre) / scale
        share = torch.searchsorted(x.sort().values, grid, right=True).to(x.dtype) / len(x)
        basis = torch.stack((torch.ones_like(t), t), dim=-1)

        def score(line: Tensor) -> Tensor:
            return -(share * log_ndtr(basis @ line) + (1.0 - share) * log_ndtr(-basis @ line)).sum()

        line = torch.tensor([0.0, 1.0], dtype=x.dtype)
        # Equal targets determine no slope, and the moments are exact for them.
        for _ in range(_ROUNDS if bool(x.min() < x.max()) else 0):
            h = (basis @ line).clamp(-NORMAL_REACH, NORMAL_REACH)
            below, density = normal_cdf(h), (-0.5 * h.square()).exp() / math.sqrt(2.0 * math.pi)
            weight = density / (below * normal_cdf(-h))
            information = basis.T @ (basis * (weight * density).unsqueeze(-1))
            # The ridge keeps the slope of the moments where all grid points coincide.
            ridge = 1e-9 * torch.eye(2, dtype=x.dtype)
            step = torch.linalg.solve(information + ridge, basis.T @ (weight * (share - below)))
            # The score is convex, but a full step may overshoot where the line fits badly: take the best part of it.
            trials = [line + step * 0.5**halving for halving in range(_HALVINGS)]
            line = min(
                [line, *(trial for trial in trials if trial[1] > _FLATTEST)], key=lambda trial: float(score(trial))
            )
        intercept, slope = line[0], line[1] / scale
        return intercept - slope * centre, slope


@dataclass(frozen=True)
class Likelihood(Criterion):
    """-ln of the density φ(h(y))·h'(y): uses all of y, and needs a density where there are repeated values."""

    def __call__(self, model: "TransformationModel", raw: Raw, y: Tensor) -> Tensor:
        return model.nll(raw, y)

    def line(self, grid: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """The moments."""
        slope = torch.tensor(1.0 / spread(x), dtype=x.dtype)
        return -slope * x.mean(), slope


class TransformationModel(Density):
    """P(y ≤ v | x) = Φ(h(v|x)). A subclass writes h and ln h'; `criterion` is what it minimises.

    Args:
        criterion: the cost of a law.

    """

    grid: Tensor

    def __init__(self, criterion: Criterion) -> None:
        super().__init__()
        self.criterion = criterion
        self.register_buffer("grid", torch.linspace(0.0, 1.0, criterion.points))

    @abstractmethod
    def h(self, raw: Raw, v: Tensor) -> Tensor:
        """The transformed values (B, N) of v, increasing in v: (B, N), or (1, N) for the same v in every row."""

    @abstractmethod
    def log_slope(self, raw: Raw, y: Tensor) -> Tensor:
        """The logarithm of ∂h/∂y at y, (B,)."""

    def nll(self, raw: Raw, y: Tensor) -> Tensor:
        """-ln of the density of y, (B,)."""
        h = self.h(raw, y.unsqueeze(-1)).squeeze(-1)
        return 0.5 * h.square() + 0.5 * math.log(2.0 * math.pi) - self.log_slope(raw, y)

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        return {"law": self.criterion(self, raw, y)}

    def cdf(self, raw: Raw, v: Tensor) -> Tensor:
        return normal_cdf(self.h(raw, v.unsqueeze(-1)).squeeze(-1))

    def rounded_like_grid(self, y: Tensor) -> Tensor:
        """The targets in float64, but rounded like the grid, so that a target on a grid point stays there."""
        return y.to(self.grid.dtype).double()

    def with_grid(self, y: Tensor) -> Self:
        """The same head, with the grid of its criterion laid over the training targets."""
        points = self.criterion.points
        # Grid point j is the smallest target whose cumulative share is at least (j - ½) / points: integer arithmetic.
        index = ((2 * torch.arange(points) + 1) * len(y) - 1) // max(2 * points, 1)
        self.grid.copy_(y.sort().values[index])
        return self


def log_ndtr(x: Tensor) -> Tensor:
    """The logarithm of Φ(x), with a gradient that stays right far below zero.

    The derivative of torch's own function is a difference of numbers like x²: in float32 it is noise below -1000 and
    can be infinite.

    >>> x = torch.tensor([0.0, -1e6], requires_grad=True)
    >>> [round(g) for g in torch.autograd.grad(log_ndtr(x).sum(), x)[0].tolist()]  # √(2/π) and 1e6
    [1, 1000000]
    """
    low = x.clamp(max=-1.0)
    tail = torch.special.erfcx(low * -math.sqrt(0.5)).log() - 0.5 * low.square() - math.log(2.0)
    return torch.where(x < -1.0, tail, torch.special.log_ndtr(x.clamp(min=-1.0)))
