"""Ranking metrics: whether the model orders rows as their targets do (XAUC), and puts large ones first (NDCG).

Papers count ties in XAUC differently, so a value needs its convention: on the paper's example of six rows the
conventions range from 0.20 to 0.67 for the same predictions.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from torch import Tensor

from transun.metrics.inversions import stable_order
from transun.metrics.metric import Better, Sample, SampleMetric
from transun.metrics.pairs import Pairs, Quantity, count_pairs, count_pairs_by_row
from transun.metrics.pairs_gpu import all_on_gpu, count_pairs_gpu
from transun.metrics.rows import Rows, Vector
from transun.support.arrays import Flags, Floats, Integers

__all__ = ["NDCG", "XAUC", "XAUC_EGMN", "XAUC_TPM", "SampledXAUC", "TopNDCG", "TopXAUC"]

# The discounts of all ranks are tabulated; more ranks than this would not fit in memory.
_MOST_RANKS = 100_000_000


class PairMetric(SampleMetric):
    """A ratio of pair weights; a subclass says which pairs score and which count, as linear functions of `Pairs`.

    They are linear, so that one function serves the totals and each row's part, and the standard error has a formula:
    with aᵢ, bᵢ the row's weighted score and count, Σb = B and θ the ratio, se² = Σ(2(aᵢ - θbᵢ))²/B² (Hájek projection).
    """

    better: ClassVar[Better] = "higher"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    digits: ClassVar[int] = 4

    @abstractmethod
    def score(self, pairs: Pairs) -> Quantity:
        """The weight of the pairs that are ordered right."""

    @abstractmethod
    def count(self, pairs: Pairs) -> Quantity:
        """The weight of the pairs that could have been ordered right."""

    def __call__(self, pred: Vector, y: Vector, weight: Vector | None = None) -> float:
        """The value for these rows; tensors on a GPU are counted there, unless there are weights."""
        if weight is None and isinstance(pred, Tensor) and isinstance(y, Tensor) and len(y) > 0 and all_on_gpu(pred, y):
            return self._ratio(count_pairs_gpu(pred, y))
        return super().__call__(pred, y, weight)

    def evaluate(self, rows: Rows) -> float:
        """The exact ratio over all pairs, in O(n log n)."""
        return self._ratio(count_pairs(rows))

    def _ratio(self, pairs: Pairs) -> float:
        count = float(self.count(pairs))
        return float(self.score(pairs)) / count if count > 0 else math.nan

    def compute_error(self, summary: Sample) -> float:
        """The standard error from each row's part, in O(n log n)."""
        rows = summary.rows
        pairs, weight = count_pairs_by_row(rows), rows.weight.numpy()
        score, count = weight * self.score(pairs), weight * self.count(pairs)
        if len(rows) < 2 or not count.sum() > 0:
            return math.nan
        part = 2 * (score - score.sum() / count.sum() * count) / count.sum()
        return math.sqrt(len(rows) / (len(rows) - 1) * float(part @ part))


@dataclass(frozen=True)
class TieAware(PairMetric):
    """XAUC, the share of pairs with yᵢ ≠ yⱼ that ŷ orders alike; a pair with equal ŷ scores ½.

    A constant prediction scores ½ and a perfect order 1, however many targets are tied, which the other conventions do
    not give. Equals (1 + D)/2 with Somers' D of the prediction given the target. NaN if all targets are equal.

    >>> XAUC([1.0, 2.0, 2.0], [1.0, 2.0, 3.0])  # 2 pairs ordered, 1 tied
    0.8333333333333334
    """

    label: ClassVar[str] = "XAUC"
    description: ClassVar[str] = "ranking"
    meaning: ClassVar[str] = (
        "The share of pairs of rows that the predictions order as the actual values do. 0.5 is chance, 1 perfect."
    )

    def score(self, pairs: Pairs) -> Quantity:
        """Concordant pairs, and half of the pairs with tied predictions."""
        return pairs.concordant + 0.5 * pairs.tied

    def count(self, pairs: Pairs) -> Quantity:
        """The comparable pairs."""
        return pairs.comparable


@dataclass(frozen=True)
class EqualTargetsRight(TieAware):
    """XAUC as in the TPM and CWM scripts: over all pairs, those with equal targets counting as right.

    The scripts sort by ŷ and leave equal ŷ in input order; this is their mean over all input orders, hence independent
    of the order, and the same where no ŷ are tied. Zero-inflated targets lift it towards 1 for any model.

    >>> XAUC_TPM([1.0, 2.0, 3.0], [2.0, 1.0, 1.0])  # only the last two rows, which are tied
    0.3333333333333333
    """

    label: ClassVar[str] = "XAUC_TPM"
    description: ClassVar[str] = "ranking, equal targets counted as right"
    meaning: ClassVar[str] = "XAUC over all pairs; a pair of equal actual values counts as ordered right."

    def score(self, pairs: Pairs) -> Quantity:
        """What scores in XAUC, and all pairs that cannot be compared."""
        return super().score(pairs) + (pairs.total - pairs.comparable)

    def count(self, pairs: Pairs) -> Quantity:
        """All pairs."""
        return pairs.total


@dataclass(frozen=True)
class EqualTargetsWrong(TieAware):
    """XAUC as in the EGMN and DADF scripts: over all pairs, those with equal targets counting as wrong.

    The mean over input orders, as for `XAUC_TPM`. With 80 % zeros no model can exceed 0.36.

    >>> XAUC_EGMN([1.0, 2.0, 3.0], [1.0, 1.0, 2.0])  # two pairs of three can be right
    0.6666666666666666
    """

    label: ClassVar[str] = "XAUC_EGMN"
    description: ClassVar[str] = "ranking, equal targets counted as wrong"
    meaning: ClassVar[str] = "XAUC over all pairs; a pair of equal actual values counts as ordered wrong."

    def count(self, pairs: Pairs) -> Quantity:
        """All pairs."""
        return pairs.total


XAUC = TieAware()
XAUC_TPM = EqualTargetsRight()
XAUC_EGMN = EqualTargetsWrong()


@dataclass(frozen=True)
class SampledXAUC(SampleMetric):
    """XAUC over `pairs` random pairs, as in D2Q: an estimate of `XAUC` with a noise of about 0.5/√pairs.

    Only for comparison with published sampled values; `XAUC` is exact and takes seconds for ten million rows. Rows are
    drawn by weight from a canonical order, so that neither their order nor the sharding changes the value.

    >>> SampledXAUC(pairs=100)([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    1.0
    """

    pairs: int = 1_000_000
    seed: int = 0

    label: ClassVar[str] = "SampledXAUC"
    description: ClassVar[str] = "ranking, estimated from random pairs"
    better: ClassVar[Better] = "higher"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    digits: ClassVar[int] = 4

    def evaluate(self, rows: Rows) -> float:
        """The mean score of the drawn pairs that are comparable."""
        pred, y = rows.pred.numpy(), rows.y.numpy()
        order = np.lexsort((pred, y))
        running = np.cumsum(rows.weight.numpy()[order])
        drawn = np.random.default_rng(self.seed).random((2, self.pairs)) * running[-1]
        i, j = order[np.searchsorted(running, drawn, side="right").clip(max=len(order) - 1)]
        comparable = y[i] != y[j]
        if not comparable.any():
            return math.nan
        i, j = i[comparable], j[comparable]
        return float(np.mean(0.5 + 0.5 * np.sign(pred[i] - pred[j]) * np.sign(y[i] - y[j])))


@dataclass(frozen=True)
class TopXAUC(SampleMetric):
    """XAUC among the `share` of the rows with the largest targets: whether it tells the large targets apart.

    Selecting by the target is the definition, so the value lies below `XAUC` even for the best possible model.
    Where the cut falls among equal targets, each of them counts with the same part of its weight, so that the rows kept
    weigh exactly `share` of all: the mean over every way to choose among them. Keeping all of them would mean
    all rows where most targets are equal.

    >>> TopXAUC(share=0.5)([9.0, 9.0, 1.0, 2.0], [1.0, 2.0, 3.0, 4.0])
    1.0
    """

    share: float = 0.3

    label: ClassVar[str] = "TopXAUC"
    better: ClassVar[Better] = "higher"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    digits: ClassVar[int] = 4
    description: ClassVar[str] = "ranking of the largest targets"
    meaning: ClassVar[str] = (
        "XAUC among the rows with the largest actual values: whether the large ones are told apart."
    )

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ValueError(f"`share` is {self.share}: it is the part of the rows to keep; use a number in (0, 1]")

    def evaluate(self, rows: Rows) -> float:
        """XAUC over the selected rows."""
        kept = rows.y.new_tensor(self._kept(rows))
        chosen = kept > 0.0
        return XAUC.evaluate(replace(rows, weight=rows.weight * kept).take(chosen))

    def _kept(self, rows: Rows) -> Floats:
        """The part of every row's weight that is kept, (n,)."""
        y, weight = rows.y.numpy(), rows.weight.numpy()
        levels, level = np.unique(-y, return_inverse=True)  # the largest targets first
        mass = np.bincount(level, weight, len(levels))
        room = self.share * mass.sum() - (np.cumsum(mass) - mass)
        # Less than a hair of a level is rounding: it would add all of its rows to the pairs.
        part = np.clip(room / np.where(mass > 0.0, mass, 1.0), 0.0, 1.0)
        return np.asarray(np.where(part > 1e-9, part, 0.0)[level])


@dataclass(frozen=True)
class TopNDCG(SampleMetric):
    """NDCG over the first ⌈share·n⌉ ranks, Σ yᵣ/log₂(r + 1) by descending ŷ over the same sum by descending y.

    Linear gain: 2^y - 1 overflows for watch times. Rows with equal ŷ share the mean of their ranks' discounts. A row of
    weight w takes w ranks. Equals `sklearn.metrics.ndcg_score` (with `k`). Needs y ≥ 0; NaN if every y is 0.

    >>> TopNDCG(share=0.5)([2.0, 1.0], [1.0, 4.0])  # first is the row of gain 1, where 4 was possible
    0.25
    """

    share: float = 0.1

    label: ClassVar[str] = "TopNDCG"
    better: ClassVar[Better] = "higher"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    digits: ClassVar[int] = 4
    description: ClassVar[str] = "largest targets first, in the top ranks"
    meaning: ClassVar[str] = (
        "How much of the actual value the first ranks collect, over the most they could. 1 is perfect."
    )

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ValueError(f"`share` is {self.share}: it is the part of the ranks to count; use a number in (0, 1]")

    def evaluate(self, rows: Rows) -> float:
        """The ratio of the two discounted sums."""
        y, pred, weight = rows.y.numpy(), rows.pred.numpy(), rows.weight.numpy()
        if (y < 0).any():
            row = int(np.argmax(y < 0))
            raise ValueError(f"`y` is {y[row]} at row {row}: NDCG needs gains of 0 or more; shift or drop such rows")
        total = float(weight.sum())
        if total > _MOST_RANKS:
            raise ValueError(
                f"`weight` adds up to {total:.3g} from row 0 on, and NDCG gives a row one rank per unit of weight; "
                f"divide the weights so that they add up to at most {_MOST_RANKS:.0e}"
            )
        # A hair less, so that a product such as 0.1·30 = 3.0000000000000004 is three ranks.
        ranks = math.ceil(self.share * total * (1 - 1e-12))
        discount = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, ranks + 2)))])
        best = _gain(y, *stable_order(-y), weight, discount)
        return _gain(y, *stable_order(-pred), weight, discount) / best if best > 0 else math.nan


def _gain(y: Floats, order: Integers, new: Flags, weight: Floats, discount: Floats) -> float:
    """The discounted sum of y in this order; `discount` is the running sum of the ranks' discounts."""
    start = np.flatnonzero(new)
    size = np.add.reduceat(weight[order], start)
    gain = np.add.reduceat((weight * y)[order], start)
    running = np.interp(np.cumsum(size), np.arange(len(discount)), discount)
    # A group of equal predictions takes all its ranks at their mean discount; without weight it takes none.
    mean = np.diff(running, prepend=0.0) / np.where(size > 0, size, 1.0)
    return float(gain @ mean)


@dataclass(frozen=True)
class _AllNDCG(TopNDCG):
    """NDCG over all ranks; dominated by the many low ranks, so models differ little: see `TopNDCG`.

    >>> round(NDCG([2.0, 1.0], [0.0, 1.0]), 4)  # 1/log₂3: the only gain comes second
    0.6309
    """

    share: float = 1.0

    label: ClassVar[str] = "NDCG"
    description: ClassVar[str] = "largest targets first"
    meaning: ClassVar[str] = (
        "How early the large actual values come if rows are ranked by their prediction. 1 is perfect."
    )


NDCG = _AllNDCG()
