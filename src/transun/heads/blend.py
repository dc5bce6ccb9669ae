"""Two heads in one network, and a convex combination of their predictions."""

from dataclasses import replace
from typing import Self

from torch import Tensor

from transun.heads.head import Branch, Head, RankingPairs, Raw, Sharing, most_shared
from transun.transforms import Identity


class Blend(Head):
    """Predicts (1 - share)·ŷ₁ + share·ŷ₂ of two heads trained side by side in one network.

    A convex combination of unbiased predictions is unbiased, and its error is smaller than the mean of the two errors
    wherever they differ. Heads that weigh large targets differently, such as squares and Poisson deviance, err
    differently. Blends nest.

    Args:
        first: a head, whose first branch has the stages that others share.
        second: a head.
        share: of the second in the prediction.
        shared: leading stages that the second head shares with the first branch, at least. 1 shares the embedding: two
            losses then train one table, which is cheap and often better than one loss; 0 keeps the two heads apart,
            each with the sharing of its own branches.

    >>> head = Blend(Poisson(scale=2.0), Poisson(scale=6.0))
    >>> head((torch.zeros(1, 1), torch.zeros(1, 1))).item()  # ½·2 + ½·6
    4.0

    """

    def __init__(self, first: Head, second: Head, share: float = 0.5, shared: Sharing = 1) -> None:
        super().__init__()
        if not 0.0 < share < 1.0:
            raise ValueError(f"Blend needs 0 < share < 1, got {share}")
        self.first, self.second, self.share, self.shared = first, second, share, shared
        self.branches = (*first.branches, *(joined(branch, len(first.branches), shared) for branch in second.branches))
        bounds = (first.transform, second.transform)
        self.transform = Identity(lower=min(t.lower for t in bounds), upper=max(t.upper for t in bounds))

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        first_raw, second_raw = self._split(raw)
        first = {f"first.{name}": term for name, term in self.first.loss(first_raw, y).items()}
        return first | {f"second.{name}": term for name, term in self.second.loss(second_raw, y).items()}

    def point(self, raw: Raw) -> Tensor:
        first_raw, second_raw = self._split(raw)
        first: Tensor = self.first(first_raw)
        second: Tensor = self.second(second_raw)
        return first + self.share * (second - first)

    def undebiased(self, raw: Raw) -> Tensor:
        first_raw, second_raw = self._split(raw)
        first = self.first.undebiased(first_raw)
        return first + self.share * (self.second.undebiased(second_raw) - first)

    @property
    def bias_branches(self) -> tuple[int, ...]:
        before = len(self.first.branches)
        return (*self.first.bias_branches, *(before + index for index in self.second.bias_branches))

    @property
    def rowwise(self) -> bool:
        return self.first.rowwise and self.second.rowwise

    def ranking_pairs(self, raw: Raw, y: Tensor) -> RankingPairs:
        first_raw, second_raw = self._split(raw)
        first = {f"first.{name}": pair for name, pair in self.first.ranking_pairs(first_raw, y).items()}
        return first | {f"second.{name}": pair for name, pair in self.second.ranking_pairs(second_raw, y).items()}

    def prepare(self, y: Tensor) -> Self:
        return self.replace(first=self.first.prepare(y), second=self.second.prepare(y))

    def initial_outputs(self, y: Tensor) -> Raw:
        return (*self.first.initial_outputs(y), *self.second.initial_outputs(y))

    def _split(self, raw: Raw) -> tuple[Raw, Raw]:
        count = len(self.first.branches)
        return raw[:count], raw[count:]


def joined(branch: Branch, before: int, shared: Sharing) -> Branch:
    """A branch of the second head, after `before` branches of the first; it still shares what it shared in its head."""
    shares_with = branch.shares_with + before if branch.shared else 0
    return replace(branch, shared=most_shared(branch.shared, shared), shares_with=shares_with)
