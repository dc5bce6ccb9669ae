"""NDCG: whether the rows of large targets come first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from transun.metrics.inversions import Flags, Floats, stable_order
from transun.metrics.metric import Better, SampleMetric
from transun.metrics.rows import Rows

__all__ = ["NDCG", "TopNDCG"]

# The discounts of all ranks are tabulated; more ranks than this would not fit in memory.
_MOST_RANKS = 100_000_000


@dataclass(frozen=True)
class TopNDCG(SampleMetric):
    """NDCG over the first ⌈share·n⌉ ranks, Σ yᵣ/log₂(r + 1) by descending ŷ over the same sum by descending y.

    Linear gain: 2^y − 1 overflows for watch times. Rows with equal ŷ share the mean of their ranks' discounts. A row of
    weight w takes w ranks. Equals `sklearn.metrics.ndcg_score` (with `k`). Needs y ≥ 0; NaN if every y is 0.

    >>> TopNDCG(share=0.5)([2.0, 1.0], [1.0, 4.0])  # first is the row of gain 1, where 4 was possible
    0.25
    """

    share: float = 0.1

    label: ClassVar[str] = "TopNDCG"
    better: ClassVar[Better] = "higher"
    digits: ClassVar[int] = 4
    description: ClassVar[str] = "largest targets first, in the top ranks"
    meaning: ClassVar[str] = (
        "How much of the actual value the first ranks collect, over the most they could. 1 is perfect."
    )

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ValueError(f"`share` is {self.share}: it is the part of the ranks to count; use a number in (0, 1]")

    def evaluate(self, rows: Rows) -> float:
        """Return the ratio of the two discounted sums."""
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


def _gain(
    y: Floats, order: np.ndarray[tuple[int], np.dtype[np.int64]], new: Flags, weight: Floats, discount: Floats
) -> float:
    """Return the discounted sum of y in this order; `discount` is the running sum of the ranks' discounts."""
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
