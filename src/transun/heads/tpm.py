"""TPM: a tree of binary classifiers over quantile bins of the target."""

from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from transun.heads.bins import (
    Binned,
    Binning,
    equal_frequency,
    leaf_midpoints,
    leaf_of,
    leaf_sizes,
    midpoints,
    odds,
)
from transun.heads.density import widen
from transun.heads.head import Branch, Raw
from transun.losses import squared
from transun.support.arguments import require_count

LeafValue = Callable[[Tensor, Tensor], Tensor]
"""(training targets (n,), edges (leaves + 1,)) -> the value of each leaf (leaves,)."""


class TPM(Binned):
    """Predicts Σ p_k·v_k, minimises -log p of the target's leaf; p_k is a product of binary choices down a tree.

    Each of the leaves - 1 inner nodes, in heap order (the children of n are 2n + 1 and 2n + 2), has one logit for how
    likely y is to be in its right half. Easy questions for a network, at the price of the bins: within a leaf all
    targets look alike.

    Args:
        leaves: bins, a power of two. More of them shrink the bias of the midpoints; deep nodes see few rows.
        leaf: the value v_k of a leaf. `leaf_midpoints`, as in the paper and all public code, is biased where targets
            lean to one side of a leaf; the top leaf reaches to the largest training target, so on a heavy tail one row
            decides its value. `leaf_means`, the mean of the training targets in the leaf, makes the tree predict the
            sample mean at its optimum; rows whose features place them at one end of a leaf still get its average.
        binning: where the leaves end.
        mse: weight of (ŷ - y)², in units of the target squared: use it inside `Scaled`. The authors' 0.2 is beside a
            tree loss divided by leaves - 1.
        spread: weight of √(Var + 1e-6), in units of the target, which draws each row's law together.

    >>> head = TPM(leaves=4).prepare(torch.tensor([0.0, 1.0, 2.0, 3.0, 4.0]))
    >>> raw = (torch.zeros(1, 3),)  # every leaf a quarter; midpoints 0.5, 1.5, 2.5, 3.5
    >>> head(raw).item()
    2.0
    >>> round(head.loss(raw, torch.tensor([4.0]))["tree"].item(), 4)  # ln 4
    1.3863

    """

    values: Tensor

    def __init__(
        self,
        leaves: int = 16,
        leaf: LeafValue = leaf_midpoints,
        binning: Binning = equal_frequency,
        mse: float = 0.0,
        spread: float = 0.0,
    ) -> None:
        require_count("TPM", least=2, leaves=leaves)
        if leaves & (leaves - 1):
            raise ValueError(f"TPM needs leaves to be a power of two, got {leaves}")
        if not (mse >= 0.0 and spread >= 0.0):
            raise ValueError(f"TPM needs mse >= 0 and spread >= 0, got mse={mse}, spread={spread}")
        super().__init__(leaves, binning)
        self.leaves, self.leaf, self.mse, self.spread = leaves, leaf, mse, spread
        self.branches = (Branch(leaves - 1),)
        self.register_buffer("values", midpoints(self.edges).float())

    def log_shares(self, raw: Raw) -> Tensor:
        """Log p_k, (B, leaves): logs of sigmoids added level by level, so that nothing is ever log(0)."""
        logits = widen(raw[0])
        log_p = logits.new_zeros(logits.shape[0], 1)
        first = 0
        while log_p.shape[1] < self.leaves:
            level = logits[:, first : first + log_p.shape[1]]
            first += log_p.shape[1]
            log_p = torch.stack((log_p + logsigmoid(-level), log_p + logsigmoid(level)), -1).flatten(1)
        return log_p

    def shares(self, raw: Raw) -> Tensor:
        return self.log_shares(raw).exp()

    def point(self, raw: Raw) -> Tensor:
        shares = self.shares(raw)
        return (shares * self.values.to(shares)).sum(-1)

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        log_p = self.log_shares(raw)
        leaf = leaf_of(y, self.edges.to(log_p.device))
        terms = {"tree": -log_p.gather(1, leaf.unsqueeze(1)).squeeze(1)}
        if self.mse:
            terms["mse"] = self.mse * squared(self.point(raw), y)
        if self.spread:
            terms["spread"] = self.spread * (self.variance(raw) + 1e-6).sqrt()
        return terms

    def variance(self, raw: Raw) -> Tensor:
        """Σ p_k·(v_k - ŷ)², (B,): the same as Σ p·v² - ŷ², without its cancellation, hence never below zero."""
        shares = self.shares(raw)
        return (shares * (self.values.to(shares) - self.point(raw).unsqueeze(-1)).square()).sum(-1)

    def prepare(self, y: Tensor) -> Self:
        head = super().prepare(y)
        head.values.copy_(self.leaf(y, head.edges.to(y.device)))
        return head

    def initial_outputs(self, y: Tensor) -> Raw:
        level = leaf_sizes(y, self.edges.to(y.device))
        logits: list[Tensor] = []
        while len(level) > 1:  # from the leaves up: a node sends right what its right child holds
            pairs = level.reshape(-1, 2)
            level = pairs.sum(1)
            logits.insert(0, odds(pairs[:, 1], level))
        return (torch.cat(logits).to(y.dtype),)
