"""The Gini of insurers: how unequally amounts are spread over rows that are ordered by their prediction."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from transun.metrics.inversions import stable_order
from transun.metrics.metric import Better, SampleMetric
from transun.metrics.rows import Rows

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
        order, new = stable_order(rows.pred.numpy())
        weight = rows.weight.numpy()[order]
        amount = weight * rows.y.numpy()[order]
        starts = np.flatnonzero(new)
        mass, total = (np.concatenate([[0.0], np.cumsum(np.add.reduceat(each, starts))]) for each in (weight, amount))
        if not total[-1] > 0.0:
            return math.nan
        area = float(np.sum(np.diff(mass / mass[-1]) * (total[1:] + total[:-1]) / (2.0 * total[-1])))
        return 1.0 - 2.0 * area


GINI = GiniIndex()
