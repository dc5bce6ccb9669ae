"""How many amounts lie in the intervals of their rows, by level of the predictions and by segment."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from transun.diagnosis.result import Covered
from transun.models.row_intervals import RowIntervals, cross_coverage
from transun.support.arrays import Floats, Integers

__all__ = ["INTERVAL_LEVEL", "Division", "coverage"]

# The level at which the coverage of intervals of rows is measured, and the fewest rows that show it.
INTERVAL_LEVEL, _FEWEST_ROWS = 0.9, 100


class Division(NamedTuple):
    """Some rows, divided into groups: the titles of the groups, and for each row its group, prediction and target."""

    titles: Sequence[str]
    codes: Integers
    pred: Floats
    y: Floats


def coverage(pred: Floats, y: Floats, divisions: Sequence[Division]) -> tuple[Covered, ...]:
    """The coverage of intervals of rows that are learned from every other row, by level and by segment.

    Args:
        pred: predictions (n,).
        y: targets (n,).
        divisions: rows by segment; they may be others than those of `pred` and `y`.

    >>> pred = np.repeat(2.0, 1_000)
    >>> (all_rows,) = coverage(pred, pred * np.arange(1_000), [])
    >>> all_rows.group, all_rows.rows, abs(all_rows.share - INTERVAL_LEVEL) < 0.01
    ('predictions from 2', 1000, True)

    """
    if len(y) < _FEWEST_ROWS:
        return ()
    edges = RowIntervals.of(pred, y).edges
    starts = [f"predictions from {start:.4g}" for start in (float(pred.min()), *edges.tolist())]
    levels = Division(starts, np.searchsorted(edges, pred, side="right"), pred, y)
    groups = []
    for division in (levels, *divisions):
        shares = cross_coverage(division.pred, division.y, INTERVAL_LEVEL, division.codes)
        rows = np.bincount(division.codes)
        groups += [Covered(division.titles[i], int(rows[i]), float(shares[i])) for i in np.flatnonzero(rows).tolist()]
    return tuple(groups)
