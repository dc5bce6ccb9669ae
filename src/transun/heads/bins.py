"""Bins of the target: where their edges lie, which bin a target falls in, and laws that are uniform within bins."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from transun.heads.density import Density, widen
from transun.heads.head import Raw, check_targets

# Below this the ratio that defines γ loses half its digits, and its series is exact to 1e-9.
_SERIES = 1e-4
# The candidates of the grid search for α: 0.001, 0.101, ..., 4.901.
_GRID = tuple(0.001 + 0.1 * step for step in range(50))
# A logit of ±20 is a share of 2e-9: practically empty, and the gradient of a single row still moves it back.
_EMPTY = 20.0


Binning = Callable[[Tensor, int], Tensor]
"""(training targets (n,), count) -> edges (count + 1,) of that many bins, in float64.

The edges ascend from the smallest target to the largest; some may coincide."""


def equal_frequency(y: Tensor, count: int) -> Tensor:
    """Edges at the quantiles 0, 1/count, ..., 1 of y: every bin holds as many training rows as the next.

    Fine where targets are dense and coarse in the tail, where one bin reaches to the largest target. A value that
    many rows share, such as zero, takes several edges; the bins between them stay empty.

    >>> equal_frequency(torch.tensor([0.0, 1.0, 2.0, 3.0, 100.0]), 2).tolist()
    [0.0, 2.0, 100.0]
    """
    return _quantiles(y, _fractions(count))


def equal_width(y: Tensor, count: int) -> Tensor:
    """Edges evenly spaced between the smallest and the largest of y: skewed targets crowd into the first bins.

    >>> equal_width(torch.tensor([0.0, 1.0, 2.0, 3.0, 100.0]), 2).tolist()
    [0.0, 50.0, 100.0]
    """
    low, high = y.double().min(), y.double().max()
    return torch.lerp(low, high, _fractions(count).to(low.device))


@dataclass(frozen=True)
class EAD:
    """Error-adaptive discretisation: edges at the quantiles γ(m/M) = (1 - e^(-αm/M)) / (1 - e^(-α)).

    Between equal frequency (α = 0), where bins are easy to learn and the tail is coarse, and finer tails (α > 0), whose
    few rows are harder to learn. The grid search takes the α in [0.001, 4.901] of least
    J = Σ Δγ² · (Σ Δt²/Δγ + β·Σ Δt²), the error of learning times that of restoring.

    Args:
        alpha: the bend; negative refines the low end. None searches the grid on the training targets.
        beta: weight of the restoration error in J. A large one bends further into the tail.

    >>> EAD(alpha=1.0)(torch.arange(101.0), 2).round().tolist()  # γ(1/2) = 1 / (1 + e^(-1/2)) = 0.622
    [0.0, 62.0, 100.0]

    """

    alpha: float | None = None
    beta: float = 50.0

    def __post_init__(self) -> None:
        if self.alpha is not None and not abs(self.alpha) < float("inf"):
            raise ValueError(f"EAD needs a finite alpha, got {self.alpha}")
        if not 0.0 <= self.beta < float("inf"):
            raise ValueError(f"EAD needs a finite beta >= 0, got {self.beta}")

    def __call__(self, y: Tensor, count: int) -> Tensor:
        """The edges, (count + 1,)."""
        alpha = self.choose(y, count) if self.alpha is None else self.alpha
        return _quantiles(y, _bend(_fractions(count), alpha))

    def choose(self, y: Tensor, count: int) -> float:
        """The α of the grid with the least J on the targets y (n,).

        >>> EAD().choose(torch.arange(100.0), 4)  # evenly spread: there is nothing to adapt to
        0.001
        """
        shares = torch.stack([_bend(_fractions(count), alpha) for alpha in _GRID])
        width = _quantiles(y, shares).diff()
        gain = shares.to(width.device).diff()
        cost = gain.square().sum(1) * ((width.square() / gain).sum(1) + self.beta * width.square().sum(1))
        return _GRID[int(cost.argmin())]


class Binned(Density):
    """A law that is uniform within each bin: edges from the training targets, the bins' shares from the network.

    A subclass writes `shares`; the distribution function follows. Edges are float32, whatever the targets are, and
    targets are rounded the same way before they are compared: a value that is itself an edge falls in the same bin in
    every precision. Targets beyond the training range belong to the first and the last bin.
    """

    edges: Tensor

    def __init__(self, count: int, binning: Binning) -> None:
        super().__init__()
        self.binning = binning
        # The shape is known before the targets are, so that a saved head can be loaded into a fresh one.
        self.register_buffer("edges", torch.linspace(0.0, 1.0, count + 1))

    @abstractmethod
    def shares(self, raw: Raw) -> Tensor:
        """P(y in bin k | x), (B, count)."""

    def cdf(self, raw: Raw, v: Tensor) -> Tensor:
        shares = self.shares(raw)
        edges = self.edges.to(shares)
        low, width = edges[:-1], edges.diff()
        v = v.to(shares.dtype).unsqueeze(-1)
        # A bin without width is an atom: all of it lies at or below its edge.
        below = torch.where(width > 0.0, (v - low) / width.where(width > 0.0, 1.0), (v >= low).to(shares.dtype))
        return (shares * below.clamp(0.0, 1.0)).sum(-1).clamp(max=1.0)

    def support(self, raw: Raw) -> tuple[Tensor, Tensor]:
        edges = self.edges.to(widen(raw[0]))
        return edges[0].expand(raw[0].shape[0]), edges[-1].expand(raw[0].shape[0])

    def prepare(self, y: Tensor) -> Self:
        check_targets(y)
        self.transform.check(y)
        head = self.replace().to(self.edges.device)
        head.edges.copy_(self.binning(y, len(self.edges) - 1))
        return head


def leaf_of(y: Tensor, edges: Tensor) -> Tensor:
    """The bin (B,) of each target: bin k holds (edges[k], edges[k+1]], and the end bins all that lies beyond.

    A target equal to an edge goes left. With the rule turned round, zero-inflated targets, whose first edges are all
    zero, would send every zero to the top bin.

    >>> leaf_of(torch.tensor([-5.0, 0.0, 0.1, 1.0, 9.0]), torch.tensor([0.0, 0.0, 0.0, 1.0, 2.0])).tolist()
    [0, 0, 2, 2, 3]
    """
    inner = edges[1:-1].contiguous()
    return torch.searchsorted(inner, y.detach().to(inner).contiguous(), side="left")


def leaf_sizes(y: Tensor, edges: Tensor) -> Tensor:
    """How many of the targets fall in each bin, (count,), in float64.

    >>> leaf_sizes(torch.tensor([0.5, 0.7, 1.5]), torch.tensor([0.0, 1.0, 2.0, 3.0])).tolist()
    [2.0, 1.0, 0.0]
    """
    return torch.bincount(leaf_of(y, edges), minlength=len(edges) - 1).double()


def leaf_means(y: Tensor, edges: Tensor) -> Tensor:
    """The mean of the targets in each bin, (count,), in float64; the midpoint of a bin without any.

    >>> leaf_means(torch.tensor([0.2, 0.4, 1.5]), torch.tensor([0.0, 1.0, 2.0, 3.0])).tolist()
    [0.3..., 1.5, 2.5]
    """
    leaf = leaf_of(y, edges)
    total = torch.bincount(leaf, weights=y.to(leaf.device).double(), minlength=len(edges) - 1)
    size = leaf_sizes(y, edges)
    return torch.where(size > 0.0, total / size.clamp(min=1.0), midpoints(edges))


def leaf_midpoints(y: Tensor, edges: Tensor) -> Tensor:
    """The middle of each bin, (count,), in float64, whatever the targets are: see `midpoints`.

    >>> leaf_midpoints(torch.tensor([0.0, 0.1, 4.0]), torch.tensor([0.0, 4.0])).tolist()
    [2.0]
    """
    return midpoints(edges)


def midpoints(edges: Tensor) -> Tensor:
    """The middle of each bin, (count,), in float64.

    >>> midpoints(torch.tensor([0.0, 1.0, 5.0])).tolist()
    [0.5, 3.0]
    """
    return 0.5 * (edges[1:].double() + edges[:-1].double())


def odds(yes: Tensor, of: Tensor) -> Tensor:
    """The logit of the share yes/of, kept finite: ±20 for a share of 0 or 1, and 0 where there is nothing to share.

    >>> odds(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([2.0, 2.0, 0.0])).tolist()
    [0.0, -20.0, 0.0]
    """
    return torch.where(of > 0.0, yes / of.clamp(min=1.0), 0.5).logit().clamp(-_EMPTY, _EMPTY)


def log_shares(sizes: Tensor) -> Tensor:
    """Logits whose softmax over the last axis is sizes / Σ sizes, kept finite: -20 for an empty bin.

    >>> log_shares(torch.tensor([3.0, 1.0, 0.0])).exp().round(decimals=2).tolist()
    [0.75, 0.25, 0.0]
    """
    return (sizes / sizes.sum(-1, keepdim=True).clamp(min=1.0)).log().clamp(min=-_EMPTY)


def _fractions(count: int) -> Tensor:
    return torch.arange(count + 1, dtype=torch.float64) / count


def _bend(fraction: Tensor, alpha: float) -> Tensor:
    """γ(z; α), from 0 to 1; γ(z; 0) = z."""
    if abs(alpha) < _SERIES:
        return fraction + 0.5 * alpha * fraction * (1.0 - fraction)
    if alpha < 0.0:  # the mirror image, since e^(-α) overflows
        return 1.0 - _bend(1.0 - fraction, -alpha)
    return torch.expm1(-alpha * fraction) / torch.expm1(torch.tensor(-alpha, dtype=torch.float64))


def _quantiles(y: Tensor, levels: Tensor) -> Tensor:
    """Quantiles of y with linear interpolation; `torch.quantile` refuses more than 2²⁴ targets."""
    ordered = y.double().sort().values
    position = levels.to(y.device) * (len(y) - 1)
    below = position.floor().long()
    above = (below + 1).clamp(max=len(y) - 1)
    return torch.lerp(ordered[below], ordered[above], position - below)
