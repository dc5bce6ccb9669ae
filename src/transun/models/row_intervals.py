"""Intervals of single rows by split conformal prediction, separately for each level of the prediction."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from transun.support.arrays import Floats, Integers, refuse_reordered, to_floats

__all__ = ["RowIntervals", "cross_coverage"]

# A level has enough rows for its 2.5 % and 97.5 % to be found, and there are enough levels to follow the amounts.
_ROWS_PER_LEVEL, _MOST_LEVELS = 200, 10
# More rows than this are thinned: the ends are then known to a tenth of a per cent of the rows.
_MOST_ROWS = 20_000


@dataclass(frozen=True)
class RowIntervals:
    """For each level of the prediction, what errors the rows of that level had that a model was not fitted to.

    The error of a row is s = (y - ŷ) / (|ŷ| + u), u being the median |ŷ| of its level. With n errors at the level of a
    new row, its y lies between ŷ + s₍ₗ₎(|ŷ| + u) and ŷ + s₍ₕ₎(|ŷ| + u) with a probability of at least c. The ranks are
    l = ⌊(1 - c)/2·(n + 1)⌋ and h = ⌈(1 + c)/2·(n + 1)⌉, because each order of n + 1 exchangeable errors is equally
    likely.

    Neither a law of y nor a right model is needed, only rows that are like the new ones. The intervals hold at every
    level (Mondrian conformal prediction); one quantile for all rows would make them too wide for small amounts and too
    narrow for large ones. They promise nothing for single customers or segments: look at the coverage by segment.

    Args:
        edges: (levels - 1,) where levels end.
        units: (levels,) u.
        errors: the errors of each level, ascending.
        least: the least target possible: 0 if no target was negative, else -∞.

    """

    edges: Floats
    units: Floats
    errors: tuple[Floats, ...]
    least: float

    @classmethod
    def of(cls, pred: Floats, y: Floats) -> "RowIntervals":
        """Learned from predictions (n,) and targets (n,) of rows that the model was not fitted to.

        >>> intervals = RowIntervals.of(np.full(99, 10.0), np.arange(1.0, 100.0))
        >>> intervals.interval(np.array([10.0]), 0.9).tolist()  # ranks 5 and 95 of 99
        [[5.0, 95.0]]
        """
        refuse_reordered(pred=pred, y=y)
        pred, y = to_floats(pred, "pred"), to_floats(y, "y")
        if pred.shape != y.shape or pred.ndim != 1:
            raise ValueError(f"predictions have the shape {pred.shape} and targets {y.shape}: give one of each a row")
        if not len(y):
            raise ValueError("intervals of rows are learned from rows, and there are none")
        if not (np.isfinite(pred).all() and np.isfinite(y).all()):
            raise ValueError("intervals of rows need finite predictions and targets: leave out rows without them")
        step = -(-len(y) // _MOST_ROWS)
        pred, y = pred[::step], y[::step]
        levels = int(np.clip(len(y) // _ROWS_PER_LEVEL, 1, _MOST_LEVELS))
        edges = np.unique(np.quantile(pred, np.arange(1, levels) / levels, method="higher"))
        edges = edges[edges > pred.min()]
        level = np.searchsorted(edges, pred, side="right")
        members = [level == index for index in range(len(edges) + 1)]
        units = np.array([np.median(np.abs(pred[rows])) for rows in members])
        # Where a level predicts nothing but 0, errors are in units of the target.
        units = np.where(units > 0.0, units, 1.0)
        errors = tuple(
            np.sort((y[rows] - pred[rows]) / (np.abs(pred[rows]) + unit))
            for rows, unit in zip(members, units, strict=True)
        )
        return cls(edges, units, errors, 0.0 if y.min() >= 0.0 else -math.inf)

    def interval(self, pred: Floats, level: float) -> Floats:
        """Lower and upper ends (n, 2) for rows with these predictions (n,).

        An upper end is infinite where a level has too few rows to know it.
        """
        if not 0.0 < level < 1.0:
            raise ValueError(f"the level of an interval lies strictly between 0 and 1, such as 0.9, got {level:g}")
        pred = to_floats(pred, "pred")
        if pred.ndim != 1 or not np.isfinite(pred).all():
            raise ValueError("intervals of rows need one finite prediction a row: leave out rows without one")
        ends = np.array([_ends(errors, level) for errors in self.errors])
        of_row = np.searchsorted(self.edges, pred, side="right")
        result = pred[:, None] + ends[of_row] * (np.abs(pred) + self.units[of_row])[:, None]
        return np.maximum(result, self.least)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, for JSON."""
        return {
            "edges": self.edges.tolist(),
            "units": self.units.tolist(),
            "errors": [errors.tolist() for errors in self.errors],
            "least": None if math.isinf(self.least) else self.least,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "RowIntervals":
        """What `to_dict` made, checked."""
        edges, units = (np.array(content[name], dtype=np.float64) for name in ("edges", "units"))
        errors = tuple(np.array(each, dtype=np.float64) for each in content["errors"])
        sizes = {len(edges) + 1, len(units), len(errors)}
        if len(sizes) > 1 or not all(len(each) and np.isfinite(each).all() for each in (units, *errors)):
            raise ValueError("these are not the errors of levels")
        if not all((np.diff(each) >= 0.0).all() for each in (edges, *errors)):
            raise ValueError("edges and errors ascend")
        return cls(edges, units, errors, -math.inf if content["least"] is None else float(content["least"]))


def cross_coverage(pred: Floats, y: Floats, level: float, group: Integers) -> Floats:
    """How often intervals cover, by group: learned from every other row, and applied to the rows between.

    Args:
        pred: predictions (n,).
        y: targets (n,).
        level: of the intervals.
        group: the index (n,) of each row's group.

    """
    covered = np.zeros(len(y))
    for part in (slice(0, None, 2), slice(1, None, 2)):
        other = slice(1 - part.start, None, 2)
        ends = RowIntervals.of(pred[part], y[part]).interval(pred[other], level)
        covered[other] = (ends[:, 0] <= y[other]) & (y[other] <= ends[:, 1])
    return np.bincount(group, covered) / np.maximum(np.bincount(group), 1)


def _ends(errors: Floats, level: float) -> tuple[float, float]:
    count = len(errors) + 1
    # A rank that is whole but for rounding is that rank.
    low = math.floor(0.5 * (1.0 - level) * count + 1e-9)
    high = math.ceil(0.5 * (1.0 + level) * count - 1e-9)
    return (
        float(errors[low - 1]) if low >= 1 else -math.inf,
        float(errors[high - 1]) if high < count else math.inf,
    )
