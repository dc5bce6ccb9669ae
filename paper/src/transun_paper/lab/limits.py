"""The values that methods converge to at a constant input, relative to the mean: closed forms by quadrature.

A limit takes the distribution and the head prepared on the training draws, because binned methods depend on the edges
that those draws gave them. None where sampling noise decides, as for the median of two equal blocks.
"""

import math
from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor

from transun.heads import Head
from transun.transforms import Transform
from transun_paper.datasets.distributions import Distribution

Limit = Callable[[Distribution, Head], float | None]


def unbiased(distribution: Distribution, head: Head) -> float:
    """The limit of a method that learns the mean: no relative error."""
    return 0.0


def unknown(distribution: Distribution, head: Head) -> None:
    """No closed form is known."""


def retransformed(transform: Transform) -> Limit:
    """The limit of T-MSE, T⁻¹(E[T(y)])."""

    def limit(distribution: Distribution, head: Head) -> float:
        point = torch.tensor(distribution.expect(transform), dtype=torch.float64)
        return float(transform.inverse(point)) / distribution.mean - 1.0

    return limit


def median(distribution: Distribution, head: Head) -> float | None:
    """The limit of MAE; None where half of the probability lies on each side of a gap."""
    low, high = distribution.quantile(0.5 - 1e-6), distribution.quantile(0.5 + 1e-6)
    if high - low > 1e-2 * distribution.mean:
        return None
    return distribution.quantile(0.5) / distribution.mean - 1.0


def lognormal(distribution: Distribution, head: Head) -> float:
    """The limit of ZILN and OptDist on ln(1 + y): P(y > 0)·(exp(m + v/2) - 1), moments over the positives."""
    positive = distribution.expect(torch.ones_like, low=0.0)
    centre = distribution.expect(torch.log1p, low=0.0) / positive
    spread = distribution.expect(lambda y: (y.log1p() - centre).square(), low=0.0) / positive
    return positive * math.expm1(centre + spread / 2.0) / distribution.mean - 1.0


def odds(distribution: Distribution, head: Head) -> float | None:
    """The limit of weighted logistic regression with zeros as negatives: E[y] / P(y = 0)."""
    zero = distribution.cdf(0.0)
    return None if zero == 0.0 else 1.0 / zero - 1.0


def midpoints(distribution: Distribution, head: Head) -> float:
    """The limit of TPM and of CREAD's trapezoid: Σ P(bin)·(middle of the bin)."""
    edges, shares, _ = _bins(distribution, head)
    return float((shares * (edges[:-1] + edges[1:])).sum() / 2.0) / distribution.mean - 1.0


def likeliest_bucket(distribution: Distribution, head: Head) -> float | None:
    """The limit of MDME 2×2: the mean of the likelier bucket in the likelier half; None where two are as likely."""
    _, shares, sums = _bins(distribution, head)
    by_group = shares.view(2, 2)
    for probabilities in (by_group.sum(1), by_group[by_group.sum(1).argmax()]):
        if float((probabilities[0] - probabilities[1]).abs()) < 2e-3:  # four standard errors of a share of 10⁶ draws
            return None
    best = 2 * int(by_group.sum(1).argmax())
    best += int(shares[best + 1] > shares[best])
    return float(sums[best] / shares[best]) / distribution.mean - 1.0


def _bins(distribution: Distribution, head: Head) -> tuple[Tensor, Tensor, Tensor]:
    """Edges, and of each bin its probability and its part of the mean; what lies beyond the ends belongs to them."""
    edges: Tensor = head.get_buffer("edges").double()
    inner = [-math.inf, *edges[1:-1].tolist(), math.inf]
    pairs = list(pairwise(inner))
    shares = [distribution.expect(torch.ones_like, low, high) for low, high in pairs]
    sums = [distribution.expect(lambda y: y, low, high) for low, high in pairs]
    return edges, torch.tensor(shares, dtype=torch.float64), torch.tensor(sums, dtype=torch.float64)
