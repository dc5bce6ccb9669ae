"""Several heads in one network, and a mean of their predictions, with weights of its own for small amounts."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Self

import torch
from torch import Tensor, nn

from transun.heads.head import Branch, Head, RankingPairs, Raw, Sharing, most_shared
from transun.support.arguments import require_kind
from transun.transforms import Identity

# How far the sum of shares may be from 1, by rounding.
_ROUNDING = 1e-6


class Blend(Head):
    """Predicts t·H + (1 - t)·L, H = Σ shareₖ·ŷₖ and L = Σ smallₖ·ŷₖ, with t = H / (H + level), of heads side by side.

    A convex combination of unbiased predictions is unbiased, and its error is smaller than the mean of their errors
    wherever they differ. Heads that weigh large targets differently, such as squares and Poisson deviance, err
    differently. Without weights for small amounts the prediction is H.

    Squared errors are those of the largest amounts, and shares that minimise them say nothing of small ones. But most
    pairs of rows are pairs of small amounts: who orders them well may be another head. With weights of their own for
    small amounts, the mean passes from those to the shares as the amount H grows. Weights that depend on the prediction
    cost a few percent of the total on heavy tails. So they need not have the sum 1: times `small_factor` of rows that
    no weight was learned from, they leave the total that of H.

    Args:
        heads: one or more, the first of which has the stages that the others share.
        shares: of each head in the prediction, of sum 1; None shares equally.
        small: weight of each head where amounts are small; None takes the shares.
        level: the amount at which both count equally; None learns it, the mean of |y|.
        shared: leading stages that the other heads share with the first branch, at least. 1 shares the embedding: two
            losses then train one table, which is cheap and often better than one loss; 0 keeps the heads apart, each
            with the sharing of its own branches.
        costs: factor of each head's loss; None counts every loss once. A head with a small factor learns from layers
            that the others form, and tells these a little of what it sees.

    >>> head = Blend((Poisson(scale=2.0), Poisson(scale=6.0)))
    >>> raw = (torch.zeros(1, 1), torch.zeros(1, 1))
    >>> round(head(raw).item(), 6)  # ½·2 + ½·6
    4.0
    >>> head = Blend((Poisson(scale=1.0), Poisson(scale=9.0)), shares=(0.0, 1.0), small=(1.0, 0.0), level=3.0)
    >>> round(head(raw).item(), 6)  # t = 9 / (9 + 3) = ¾, and ¾·9 + ¼·1
    7.0

    """

    def __init__(
        self,
        heads: Sequence[Head],
        shares: Sequence[float] | None = None,
        small: Sequence[float] | None = None,
        level: float | None = None,
        shared: Sharing = 1,
        costs: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        if isinstance(heads, Head) or not heads:
            raise TypeError(f"Blend needs several heads, got {heads!r}: write Blend((Poisson(), LogSUN()))")
        for head in heads:
            require_kind("each of the heads", head, Head, "write Blend((Poisson(), LogSUN()))")
        self._parts = nn.ModuleList(heads)
        self.shares, self.small, self.costs = _numbers(shares), _numbers(small), _numbers(costs)
        self._shares = self.shares or (1.0 / len(heads),) * len(heads)
        self._costs = self.costs or (1.0,) * len(heads)
        for weights in (self._shares, self.small or self._shares, self._costs):
            if len(weights) != len(heads) or not all(0.0 <= weight < math.inf for weight in weights):
                raise ValueError(f"Blend needs a weight >= 0 for each of {len(heads)} heads, got {list(weights)}")
        if not abs(sum(self._shares) - 1.0) <= _ROUNDING:
            raise ValueError(f"Blend needs shares of sum 1, got {list(self._shares)}")
        if level is not None and not 0.0 < level < math.inf:
            raise ValueError(f"Blend needs a finite level > 0, got {level}")
        self.level, self.shared = level, shared
        self._level = 1.0 if level is None else level
        self._cuts = list(accumulate((len(head.branches) for head in heads), initial=0))
        self.branches: tuple[Branch, ...] = tuple(
            joined(branch, before, shared) if before else branch
            for head, before in zip(heads, self._cuts, strict=False)
            for branch in head.branches
        )
        bounds = [head.transform for head in heads]
        self.transform = Identity(lower=min(t.lower for t in bounds), upper=max(t.upper for t in bounds))

    @property
    def heads(self) -> tuple[Head, ...]:
        """The heads, in the order of their shares."""
        return tuple(part for part in self._parts if isinstance(part, Head))

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        return {
            f"{number}.{name}": cost * term
            for number, ((head, own), cost) in enumerate(zip(self._split(raw), self._costs, strict=True), 1)
            for name, term in head.loss(own, y).items()
        }

    def point(self, raw: Raw) -> Tensor:
        return self._mean([head(own) for head, own in self._split(raw)])

    def undebiased(self, raw: Raw) -> Tensor:
        return self._mean([head.undebiased(own) for head, own in self._split(raw)])

    @property
    def bias_branches(self) -> tuple[int, ...]:
        starts = zip(self.heads, self._cuts, strict=False)
        return tuple(before + index for head, before in starts for index in head.bias_branches)

    @property
    def rowwise(self) -> bool:
        return all(head.rowwise for head in self.heads)

    def ranking_pairs(self, raw: Raw, y: Tensor) -> RankingPairs:
        return {
            f"{number}.{name}": pair
            for number, (head, own) in enumerate(self._split(raw), 1)
            for name, pair in head.ranking_pairs(own, y).items()
        }

    def prepare(self, y: Tensor) -> Self:
        level = self.level or float(y.abs().double().mean()) or 1.0
        return self.replace(heads=tuple(head.prepare(y) for head in self.heads), level=level)

    def initial_outputs(self, y: Tensor) -> Raw:
        return tuple(value for head in self.heads for value in head.initial_outputs(y))

    def _split(self, raw: Raw) -> list[tuple[Head, Raw]]:
        """Each head with the raw outputs of its own branches."""
        cuts = self._cuts
        return [(head, raw[cuts[i] : cuts[i + 1]]) for i, head in enumerate(self.heads)]

    def _mean(self, preds: Sequence[Tensor]) -> Tensor:
        large = _weighted(preds, self._shares)
        return large if self.small is None else by_level(large, _weighted(preds, self.small), self._level)


def by_level(large: Tensor, small: Tensor, level: float) -> Tensor:
    """t·large + (1 - t)·small with t = large / (large + level), where an amount below 0 counts as 0.

    >>> by_level(torch.tensor([0.0, 3.0]), torch.tensor([1.0, 1.0]), level=3.0).tolist()
    [1.0, 2.0]
    """
    return small + _largeness(large, level) * (large - small)


def small_factor(large: Tensor, small: Tensor, level: float, weight: Tensor | None = None) -> float:
    """The factor of `small` that gives `by_level` the total of `large`: Σ (1 - t)·large / Σ (1 - t)·small.

    Args:
        large: what each row is predicted at by the shares (n,), not negative.
        small: the same by the weights for small amounts.
        level: see `by_level`.
        weight: what each row counts.

    >>> small_factor(torch.tensor([0.0, 3.0]), torch.tensor([1.0, 1.0]), level=3.0)  # (1·0 + ½·3) / (1·1 + ½·1)
    1.0

    """
    counts = 1.0 - _largeness(large, level)
    if weight is not None:
        counts = counts * weight
    wanted, given = float((counts * large).sum()), float((counts * small).sum())
    return wanted / given if wanted > 0.0 and given > 0.0 else 1.0


def _largeness(amount: Tensor, level: float) -> Tensor:
    amount = amount.clamp(min=0.0)
    return amount / (amount + level)


def _weighted(preds: Iterable[Tensor], weights: Sequence[float]) -> Tensor:
    return torch.stack([weight * pred for pred, weight in zip(preds, weights, strict=True)]).sum(0)


def _numbers(weights: Sequence[float] | None) -> tuple[float, ...] | None:
    return None if weights is None else tuple(map(float, weights))


def joined(branch: Branch, before: int, shared: Sharing) -> Branch:
    """A branch of another head than the first, after `before` branches; it still shares what it shared in its head."""
    shares_with = branch.shares_with + before if branch.shared else 0
    return replace(branch, shared=most_shared(branch.shared, shared), shares_with=shares_with)
