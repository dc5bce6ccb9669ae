"""The Gini of insurers: how unequally amounts are spread over rows that are ordered by their prediction."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from transun.metrics.inversions import stable_order
from transun.metrics.metric import Better, Sample, SampleMetric
from transun.metrics.rows import Rows
from transun.support.arrays import Floats, Integers

__all__ = ["GINI"]


@dataclass(frozen=True)
class GiniIndex(SampleMetric):
    """Gini = 1 - 2·A, A the area under the Lorenz curve.

    The curve is the share of Σwy that the rows of lowest ŷ have, over their share of Σw.
    0 is an order that says nothing, more is better; the most that can be had is the Gini of the targets themselves,
    which is far below 1 where most policies have no claim. Given rates with exposures as weights, it is the number that
    insurers compare tariffs by: exposure on one axis, claims on the other. Rows of equal ŷ share one straight piece, so
    that their order does not matter. NaN if the total of y is not positive.

    >>> GINI([1.0, 2.0], [0.0, 4.0])  # the lower half of the rows has nothing: A = ½·½·1
    0.5
    >>> GINI([1.0, 1.0], [0.0, 4.0])  # a constant prediction
    0.0
    """

    label: ClassVar[str] = "GINI"
    better: ClassVar[Better] = "higher"
    description: ClassVar[str] = "lift over all levels"
    meaning: ClassVar[str] = (
        "How much of the actual total lies in the rows with the highest predictions. 0 is an order that says nothing."
    )

    def evaluate(self, rows: Rows) -> float:
        """One minus twice the area under the Lorenz curve, by trapezoids."""
        return _Lorenz.of(rows).gini

    def compute_error(self, summary: Sample) -> float:
        """The standard error by the derivative of the Gini in the weight of each row (delta method).

        With F the share of Σw below a row, half of its ties included, and K the share of Σwy above it, the Gini is
        2·Σwy·F / Σwy - 1, and its derivative in w is (2·(y·F/m + K) - (Gini + 1)·(y/m + 1)) / Σw, m being Σwy / Σw.
        """
        return _Lorenz.of(summary.rows.with_weight()).error


@dataclass(frozen=True)
class _Lorenz:
    """Rows in the order of their predictions, with the Lorenz curve at the ends of each run of equal predictions.

    Args:
        weight: w of each row (n,).
        y: target of each row (n,).
        tie: the index of each row's run (n,).
        mass: the share of Σw below the end of each run (runs + 1,).
        amount: the share of Σwy (runs + 1,); NaN where Σwy is not positive.

    """

    weight: Floats
    y: Floats
    tie: Integers
    mass: Floats
    amount: Floats

    @classmethod
    def of(cls, rows: Rows) -> "_Lorenz":
        order, new = stable_order(rows.pred.numpy())
        weight, y = rows.weight.numpy()[order], rows.y.numpy()[order]
        starts = np.flatnonzero(new)
        mass, amount = (
            np.concatenate([[0.0], np.cumsum(np.add.reduceat(each, starts))]) for each in (weight, weight * y)
        )
        total = amount[-1] if amount[-1] > 0.0 else math.nan
        return cls(weight, y, np.cumsum(new) - 1, mass / mass[-1], amount / total)

    @property
    def gini(self) -> float:
        area = float(np.sum(np.diff(self.mass) * (self.amount[1:] + self.amount[:-1]) / 2.0))
        return 1.0 - 2.0 * area

    @property
    def error(self) -> float:
        n = len(self.y)
        if n < 2:
            return math.nan
        below, above = (self.mass[1:] + self.mass[:-1]) / 2.0, 1.0 - (self.amount[1:] + self.amount[:-1]) / 2.0
        mean = float(self.weight @ self.y) / float(self.weight.sum())
        if not mean > 0.0:
            return math.nan
        relative = self.y / mean
        slope = 2.0 * (relative * below[self.tie] + above[self.tie]) - (self.gini + 1.0) * (relative + 1.0)
        moves = self.weight * slope / self.weight.sum()
        return math.sqrt(float(moves @ moves) * n / (n - 1))


GINI = GiniIndex()
