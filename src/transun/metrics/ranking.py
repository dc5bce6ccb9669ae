"""XAUC: whether the model orders rows as their targets do. Papers count ties differently: name the convention.

On the paper's example of six rows the conventions range from 0.20 to 0.67 for the same predictions.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch import Tensor

from transun.metrics.device import away, count_pairs_there
from transun.metrics.inversions import Floats
from transun.metrics.metric import Better, Sample, SampleMetric
from transun.metrics.pairs import Pairs, Quantity, count_pairs, count_pairs_by_row
from transun.metrics.rows import Rows, Vector

__all__ = ["XAUC", "XAUC_EGMN", "XAUC_TPM", "SampledXAUC", "TopXAUC"]


class PairMetric(SampleMetric):
    """A ratio of pair weights; a subclass says which pairs score and which count, as linear functions of `Pairs`.

    Linear, so that the same function serves the totals and each row's part, and the standard error has a formula: with
    aᵢ, bᵢ the row's weighted score and count, Σb = B and θ the ratio, se² = Σ(2(aᵢ − θbᵢ))²/B² (Hájek projection).
    """

    better: ClassVar[Better] = "higher"
    digits: ClassVar[int] = 4

    @abstractmethod
    def score(self, pairs: Pairs) -> Quantity:
        """Return the weight of the pairs that are ordered right."""

    @abstractmethod
    def count(self, pairs: Pairs) -> Quantity:
        """Return the weight of the pairs that could have been."""

    def __call__(self, pred: Vector, y: Vector, weight: Vector | None = None) -> float:
        """Return the value for these rows; tensors on a GPU stay there, unless there are weights."""
        if weight is None and isinstance(pred, Tensor) and isinstance(y, Tensor) and len(y) > 0 and away(pred, y):
            return self._ratio(count_pairs_there(pred, y))
        return super().__call__(pred, y, weight)

    def evaluate(self, rows: Rows) -> float:
        """Return the ratio over all pairs, exactly, in O(n log n)."""
        return self._ratio(count_pairs(rows))

    def _ratio(self, pairs: Pairs) -> float:
        count = float(self.count(pairs))
        return float(self.score(pairs)) / count if count > 0 else math.nan

    def compute_error(self, summary: Sample) -> float:
        """Return the standard error from each row's part, in O(n log n)."""
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
    not grant. Equals (1 + D)/2 with Somers' D of the prediction given the target. NaN if all targets are equal.

    >>> XAUC([1.0, 2.0, 2.0], [1.0, 2.0, 3.0])  # 2 pairs ordered, 1 tied
    0.8333333333333334
    """

    label: ClassVar[str] = "XAUC"
    description: ClassVar[str] = "ranking"
    meaning: ClassVar[str] = (
        "The share of pairs of rows that the predictions order as the actual values do. 0.5 is chance, 1 perfect."
    )

    def score(self, pairs: Pairs) -> Quantity:
        """Return concordant pairs, and half of those with tied predictions."""
        return pairs.concordant + 0.5 * pairs.tied

    def count(self, pairs: Pairs) -> Quantity:
        """Return the comparable pairs."""
        return pairs.comparable


@dataclass(frozen=True)
class EqualTargetsRight(TieAware):
    """XAUC as in the TPM and CWM scripts: over all pairs, those with equal targets counting as right.

    The scripts sort by ŷ and leave equal ŷ in input order; this is their mean over all input orders, hence free of it,
    and the same where no ŷ are tied. Zero-inflated targets lift it towards 1 for any model.

    >>> XAUC_TPM([1.0, 2.0, 3.0], [2.0, 1.0, 1.0])  # only the last two rows, which are tied
    0.3333333333333333
    """

    label: ClassVar[str] = "XAUC_TPM"
    description: ClassVar[str] = "ranking, equal targets counted as right"
    meaning: ClassVar[str] = "XAUC over all pairs; a pair of equal actual values counts as ordered right."

    def score(self, pairs: Pairs) -> Quantity:
        """Return what scores in XAUC, and all pairs that cannot be compared."""
        return super().score(pairs) + (pairs.total - pairs.comparable)

    def count(self, pairs: Pairs) -> Quantity:
        """Return all pairs."""
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
        """Return all pairs."""
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
    digits: ClassVar[int] = 4

    def evaluate(self, rows: Rows) -> float:
        """Return the mean score of the comparable pairs drawn."""
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
    """XAUC among the rows of high value, y ≥ the (1 − share) quantile of y: the large targets told apart.

    Selecting by the target is the definition, so the value lies below `XAUC` even for the best possible model.
    The quantile is the smallest y that more than 1 − share of the weight does not exceed.

    >>> TopXAUC(share=0.5)([9.0, 9.0, 1.0, 2.0], [1.0, 2.0, 3.0, 4.0])
    1.0
    """

    share: float = 0.3

    label: ClassVar[str] = "TopXAUC"
    better: ClassVar[Better] = "higher"
    digits: ClassVar[int] = 4
    description: ClassVar[str] = "ranking of the largest targets"
    meaning: ClassVar[str] = (
        "XAUC among the rows with the largest actual values: whether the large ones are told apart."
    )

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ValueError(f"`share` is {self.share}: it is the part of the rows to keep; use a number in (0, 1]")

    def evaluate(self, rows: Rows) -> float:
        """Return XAUC over the selected rows."""
        return XAUC.evaluate(rows.take(rows.y >= self.threshold(rows.y, rows.weight)))

    def threshold(self, y: Tensor, weight: Tensor) -> float:
        """Return the quantile from which a target is of high value."""
        order = y.argsort()
        running: Floats = weight[order].cumsum(0).numpy()
        # A hair more, so that a quantile that falls on a row's end does not depend on rounding.
        place = np.searchsorted(running, (1 - self.share + 1e-12) * running[-1], side="right")
        return y[order[min(int(place), len(y) - 1)]].item()
