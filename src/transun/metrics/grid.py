"""Grid: weights of rows by strip of prediction and strip of target, and what these tell about pairs of rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from transun.metrics.inversions import Floats, Integers
from transun.metrics.strips import Strips, sums

__all__ = ["Grid", "Known"]


@dataclass(frozen=True)
class Known:
    """Weights of pairs of rows, as far as strips tell; `cells` has one entry per cell, of the partners of a row in it.

    Attributes:
        score: pairs known to be ordered right, those with known equal predictions counting half.
        comparable: pairs whose targets are known to differ.
        doubt: pairs of which it is not known whether they score.
        doubt_y: those of them whose targets may be equal.
        cells: weight of the partners in doubt of a row of each cell, the row itself possibly among them.

    """

    score: float
    comparable: float
    doubt: float
    doubt_y: float
    cells: Floats


@dataclass(frozen=True)
class Grid:
    """Weights (predictions, targets) of rows by strip, and per strip of targets the sum of squared weights."""

    pred: Strips
    y: Strips
    weight: Floats
    squares: Floats

    @staticmethod
    def none() -> Grid:
        """A grid of no rows."""
        return Grid(Strips.none(), Strips.none(), np.empty((0, 0)), np.empty(0))

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers kept."""
        strips = sum(strips.low.nbytes + strips.high.nbytes for strips in (self.pred, self.y))
        return self.weight.nbytes + self.squares.nbytes + strips

    def add(self, pred: Floats, y: Floats, weight: Floats, most: int) -> tuple[Grid, tuple[Integers, ...]]:
        """Return the grid with more rows; and the new places of old strips (two) and those of the rows (two)."""
        strips, old, place = self.pred.add(pred, weight, self.weight.sum(1), most)
        strips_y, old_y, place_y = self.y.add(y, weight, self.weight.sum(0), most)
        grid = Grid(strips, strips_y, *self._moved(old, old_y, len(strips), len(strips_y)))
        return grid.plus(grid.of(place, place_y, weight)), (old, old_y, place, place_y)

    def join(self, other: Grid, most: int) -> tuple[Grid, tuple[Integers, ...]]:
        """Return one grid over both; and the new places of the strips of this one (two) and of the other (two)."""
        strips, a, b = self.pred.join(other.pred, self.weight.sum(1), other.weight.sum(1), most)
        strips_y, a_y, b_y = self.y.join(other.y, self.weight.sum(0), other.weight.sum(0), most)
        shape = len(strips), len(strips_y)
        mine = Grid(strips, strips_y, *self._moved(a, a_y, *shape))
        return mine.plus(Grid(strips, strips_y, *other._moved(b, b_y, *shape))), (a, a_y, b, b_y)

    def of(self, place: Integers, place_y: Integers, weight: Floats) -> Grid:
        """Return a grid over the same strips of other rows, by their places."""
        shape = len(self.pred), len(self.y)
        weights = sums(place * shape[1] + place_y, weight, shape[0] * shape[1]).reshape(shape)
        return Grid(self.pred, self.y, weights, sums(place_y, weight**2, shape[1]))

    def plus(self, other: Grid) -> Grid:
        """Return the sum of two grids over the same strips."""
        return Grid(self.pred, self.y, self.weight + other.weight, self.squares + other.squares)

    def _moved(self, place: Integers, place_y: Integers, rows: int, columns: int) -> tuple[Floats, Floats]:
        cell = place[:, None] * columns + place_y
        moved = sums(cell.ravel(), self.weight.ravel(), rows * columns).reshape(rows, columns)
        return moved, sums(place_y, self.squares, columns)

    @cached_property
    def known(self) -> Known:
        """What the strips tell about the pairs of rows."""
        w = self.weight
        below, above = self.pred.below, self.pred.above
        below_y, above_y = self.y.below, self.y.above
        right = _corner(w, below, below_y) + _corner(w, above, above_y)
        wrong = _corner(w, below, above_y) + _corner(w, above, below_y)
        everyone = (np.arange(len(self.pred)), np.full(len(self.pred), len(self.pred)))
        differ = (_corner(w, everyone, below_y) + _corner(w, everyone, above_y))[:1]
        same = _beside(w, below_y) + _beside(w, above_y)
        tied = np.where(self.pred.single[:, None], same, 0.0)
        in_strip = w.sum(0)
        equal = np.where(self.y.single, in_strip, 0.0)
        comparable = float(in_strip @ differ[0]) / 2
        pairs = (w.sum() ** 2 - float(in_strip @ equal) - float(self.squares @ ~self.y.single)) / 2
        score = float((w * (right + tied / 2)).sum()) / 2
        certain = float((w * (right + wrong + tied)).sum()) / 2
        # Differences of large sums: a doubt that is mere rounding is none.
        rounding = 1e-12 * w.sum() ** 2
        doubt_y = max(0.0, pairs - comparable - rounding)
        doubt = doubt_y + max(0.0, comparable - certain - rounding)
        cells = np.maximum(0.0, w.sum() - right - wrong - tied - equal)
        return Known(score, comparable, doubt, doubt_y, cells)


def _corner(w: Floats, side: tuple[Integers, Integers], side_y: tuple[Integers, Integers]) -> Floats:
    """Return for each cell the weight of the cells that lie on the given side of it in both directions."""
    (order, count), (order_y, count_y) = side, side_y
    running = np.zeros((w.shape[0] + 1, w.shape[1] + 1))
    running[1:, 1:] = w[order][:, order_y].cumsum(0).cumsum(1)
    return running[count][:, count_y]


def _beside(w: Floats, side_y: tuple[Integers, Integers]) -> Floats:
    """Return for each cell the weight of the cells of the same strip of predictions on the given side of it."""
    order_y, count_y = side_y
    running = np.zeros((w.shape[0], w.shape[1] + 1))
    running[:, 1:] = w[:, order_y].cumsum(1)
    return running[:, count_y]
