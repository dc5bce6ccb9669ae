"""PairGrid: weights of rows by interval of prediction and interval of target, and what these say about pairs of rows.

The memory is fixed and the rows are many, so a column's values are kept as a bounded number of intervals. A pair of
rows in separate intervals is known to be ordered; a pair that shares an interval, or whose intervals overlap, is
undecided. Which intervals are joined is chosen to leave few pairs undecided.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from transun.metrics.inversions import ordered_bits
from transun.support.arrays import Flags, Floats, Integers

__all__ = ["Intervals", "PairBounds", "PairGrid"]

# An interval of more than this many times the mean weight takes no further values until the others have caught up.
_HEAVY = 3.0


@dataclass(frozen=True)
class Intervals:
    """Intervals [low, high], each the range of the values in it, by ascending low; some may overlap.

    Two values in intervals that do not overlap are in known order. Two values in one interval with low = high are
    equal. Of other pairs nothing is known. Intervals are only ever joined, never cut, so the weights counted in them
    stay right.
    """

    low: Floats
    high: Floats

    def __len__(self) -> int:
        return len(self.low)

    @staticmethod
    def empty() -> "Intervals":
        """No interval."""
        return Intervals(np.empty(0), np.empty(0))

    @property
    def single(self) -> Flags:
        """Flags of the intervals of one value."""
        single: Flags = self.low == self.high
        return single

    @property
    def below(self) -> tuple[Integers, Integers]:
        """The intervals by ascending high, and for each interval how many of these lie entirely below it."""
        order = np.argsort(self.high, kind="stable")
        return order, np.searchsorted(self.high[order], self.low, side="left")

    @property
    def above(self) -> tuple[Integers, Integers]:
        """The intervals by descending low, and for each interval how many of these lie entirely above it."""
        return Intervals(-self.high, -self.low).below

    def find(self, x: Floats) -> Integers:
        """For each value the interval that holds it, of several the one that starts last; -1 for none."""
        # The interval to try next if a value lies beyond the end of interval i: the last one before i that ends later.
        enclosing = np.full(len(self) + 1, -1)
        for i in range(1, len(self)):
            j = i - 1
            while j >= 0 and self.high[j] < self.high[i]:
                j = enclosing[j]
            enclosing[i] = j
        index = np.searchsorted(self.low, x, side="right") - 1
        high = np.append(self.high, np.inf)  # index -1 reads the infinity, where the search ends
        while (missed := x > high[index]).any():
            index[missed] = enclosing[index[missed]]
        return index

    def add(self, x: Floats, weight: Floats, old_weight: Floats, most: int) -> tuple["Intervals", Integers, Integers]:
        """At most `most` intervals that also hold x; and the new indices of the old intervals, and those of x.

        A value inside an interval goes there, unless the interval is heavy already. Any other value starts as an
        interval of its own, so that a stream that moves on to new values, or repeats some values very often, has these
        resolved as finely as the rest.

        Args:
            x: new values (n,).
            weight: their weights (n,).
            old_weight: the weight in each of these intervals.
            most: how many intervals may result.

        >>> intervals, _, index = Intervals.empty().add(np.array([5.0, 1.0, 1.5]), np.ones(3), np.empty(0), most=2)
        >>> intervals.low.tolist(), intervals.high.tolist(), index.tolist()
        ([1.0, 5.0], [1.5, 5.0], [1, 0, 0])

        """
        index = self.find(x)
        heavy = ~self.single & (old_weight > _HEAVY * (old_weight.sum() + weight.sum()) / most)
        new = index < 0
        new[~new] = heavy[index[~new]]
        value, which = np.unique(x[new], return_inverse=True)
        old_weight = old_weight + _sums(index[~new], weight[~new], len(self))
        new_weight = _sums(which, weight[new], len(value))
        joined, old_index, value_index = self.join(Intervals(value, value), old_weight, new_weight, most)
        x_index = np.empty(len(x), dtype=np.int64)
        x_index[new], x_index[~new] = value_index[which], old_index[index[~new]]
        return joined, old_index, x_index

    def join(
        self, other: "Intervals", weight: Floats, other_weight: Floats, most: int
    ) -> tuple["Intervals", Integers, Integers]:
        """At most `most` intervals over both; and the new indices of the intervals of this one and of the other.

        Equal single values become one interval at no cost. Then neighbours are joined in rounds, see
        `_starts_after_joining`, until there are few enough.
        """
        low, high = np.concatenate([self.low, other.low]), np.concatenate([self.high, other.high])
        order = np.lexsort((-high, low))
        low, high, weight = low[order], high[order], np.concatenate([weight, other_weight])[order]
        single = low == high
        joined_index = np.arange(len(low))
        start = np.ones(len(low), dtype=bool)
        start[1:] = ~(single[1:] & single[:-1] & (low[1:] == low[:-1]))
        while True:
            if not start.all():
                first = np.flatnonzero(start)
                joined_index = (np.cumsum(start) - 1)[joined_index]
                low, high, weight = low[first], np.maximum.reduceat(high, first), np.add.reduceat(weight, first)
            if len(low) <= most:
                break
            start = _starts_after_joining(low, high, weight, len(low) - most)
        index = np.empty(len(order), dtype=np.int64)
        index[order] = joined_index
        return Intervals(low, high), index[: len(self)], index[len(self) :]


def _starts_after_joining(low: Floats, high: Floats, weight: Floats, excess: int) -> Flags:
    """Flags of where an interval starts after one round of joining some of the cheapest pairs of neighbours.

    One round, of intervals sorted by ascending low:

    1. The cost of joining two neighbours is the weight of the pairs of values that become undecided. Let r(I) be the
       weight of all intervals that overlap I. An interval of weight w has w·r(I) undecided pairs with its partners, or
       w·(r(I) - w) if it is a single value, whose own pairs are known ties. The joined interval J has weight w₁ + w₂
       and (w₁ + w₂)·r(J) undecided pairs; the cost is the difference. r(I) comes from two running sums: the weight of
       intervals that start at or before the end of I, less the weight of those that end before I starts.
    2. Only siblings may be joined. Imagine the tree of all floats, in which every node halves the floats below it by
       one more bit of `ordered_bits`; `_height` of two values is the height of their lowest common node. Two neighbours
       are siblings if their common node is no higher than the common node of either with its other neighbour. Joined
       intervals therefore follow the same tree in every sketch: the intervals of two sketches are nested or separate
       when they are merged. If neighbours were joined anywhere, each interval of one sketch would lie across two of
       the other, and nearly all pairs would be undecided after the merge.
    3. Of the allowed pairs the cheapest half is joined, but no more than `excess`. Not all at once, so that light
       intervals are joined with each other, and their new cost is known, before a heavy one is joined.
    4. An interval can be joined with one neighbour per round, so of a run of consecutive cheap pairs the 1st, 3rd, 5th
       and so on is taken. `run` numbers the pairs of such a run from 1: it is the distance to the last pair that is
       not cheap.
    """
    by_high = np.argsort(high, kind="stable")
    running, running_by_high = _running_sum(weight), _running_sum(weight[by_high])

    def overlapping(low_end: Floats, high_end: Floats) -> Floats:
        """The weight of the intervals that overlap [low_end, high_end]."""
        started = running[np.searchsorted(low, high_end, side="right")]
        return started - running_by_high[np.searchsorted(high[by_high], low_end, side="left")]

    joined_high = np.maximum(high[1:], high[:-1])
    undecided = weight * (overlapping(low, high) - np.where(low == high, weight, 0.0))
    cost = (weight[1:] + weight[:-1]) * overlapping(low[:-1], joined_high) - undecided[1:] - undecided[:-1]

    height = _height(low[:-1], joined_high)
    padded = np.concatenate([[65], height, [65]])  # higher than any node of 64 bits: the ends have one neighbour only
    cost[(height > padded[:-2]) | (height > padded[2:])] = np.inf

    number = min(excess, max(1, int(np.isfinite(cost).sum()) // 2))
    cheap = np.zeros(len(cost), dtype=bool)
    cheap[np.argpartition(cost, number - 1)[:number]] = True

    index = np.arange(len(cost))
    run = index - np.maximum.accumulate(np.where(cheap, -1, index))
    return np.concatenate([[True], ~(cheap & (run % 2 == 1))])


def _height(low: Floats, high: Floats) -> Integers:
    """The height of the lowest common node of two floats in the tree of all floats.

    That is the number of last bits of `ordered_bits` in which they may differ.
    """
    differ = ordered_bits(low) ^ ordered_bits(high)
    return np.frexp(differ.view(np.uint64).astype(np.float64))[1]


@dataclass(frozen=True)
class PairBounds:
    """Weights of pairs of rows as far as the intervals decide them.

    Attributes:
        score: pairs known to be ordered right, where pairs with known equal predictions count half.
        comparable: pairs whose targets are known to differ.
        undecided: pairs of which the score or the target's order is not known.
        undecided_y: pairs among them whose targets may be equal.
        undecided_by_cell: (predictions, targets) the weight of the undecided partners of a row of each cell, possibly
            including the row itself.

    """

    score: float
    comparable: float
    undecided: float
    undecided_y: float
    undecided_by_cell: Floats


@dataclass(frozen=True)
class PairGrid:
    """Weights (predictions, targets) of rows by interval, and the sum of squared weights by interval of the target."""

    pred: Intervals
    y: Intervals
    weight: Floats
    squares: Floats

    @staticmethod
    def empty() -> "PairGrid":
        """A grid of no rows."""
        return PairGrid(Intervals.empty(), Intervals.empty(), np.empty((0, 0)), np.empty(0))

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers kept."""
        ends = sum(intervals.low.nbytes + intervals.high.nbytes for intervals in (self.pred, self.y))
        return self.weight.nbytes + self.squares.nbytes + ends

    def add(self, pred: Floats, y: Floats, weight: Floats, most: int) -> tuple["PairGrid", tuple[Integers, ...]]:
        """The grid with more rows; and new indices of the old intervals (pred, y) and those of the rows (pred, y)."""
        intervals, old, index = self.pred.add(pred, weight, self.weight.sum(1), most)
        intervals_y, old_y, index_y = self.y.add(y, weight, self.weight.sum(0), most)
        grid = PairGrid(intervals, intervals_y, *self._moved(old, old_y, len(intervals), len(intervals_y)))
        return grid.plus(grid.with_rows(index, index_y, weight)), (old, old_y, index, index_y)

    def join(self, other: "PairGrid", most: int) -> tuple["PairGrid", tuple[Integers, ...]]:
        """One grid over both; and new indices of the intervals of this one (pred, y) and of the other (pred, y)."""
        intervals, a, b = self.pred.join(other.pred, self.weight.sum(1), other.weight.sum(1), most)
        intervals_y, a_y, b_y = self.y.join(other.y, self.weight.sum(0), other.weight.sum(0), most)
        shape = len(intervals), len(intervals_y)
        moved = PairGrid(intervals, intervals_y, *self._moved(a, a_y, *shape))
        return moved.plus(PairGrid(intervals, intervals_y, *other._moved(b, b_y, *shape))), (a, a_y, b, b_y)

    def with_rows(self, index: Integers, index_y: Integers, weight: Floats) -> "PairGrid":
        """A grid over the same intervals that counts other rows, by their indices of intervals, instead."""
        shape = len(self.pred), len(self.y)
        weights = _sums(index * shape[1] + index_y, weight, shape[0] * shape[1]).reshape(shape)
        return PairGrid(self.pred, self.y, weights, _sums(index_y, weight**2, shape[1]))

    def plus(self, other: "PairGrid") -> "PairGrid":
        """The sum of two grids over the same intervals."""
        return PairGrid(self.pred, self.y, self.weight + other.weight, self.squares + other.squares)

    def _moved(self, index: Integers, index_y: Integers, rows: int, columns: int) -> tuple[Floats, Floats]:
        """The weights and squares after the intervals were renumbered."""
        cell = index[:, None] * columns + index_y
        weight = _sums(cell.ravel(), self.weight.ravel(), rows * columns).reshape(rows, columns)
        return weight, _sums(index_y, self.squares, columns)

    @cached_property
    def bounds(self) -> PairBounds:
        """What the intervals decide about the pairs of rows."""
        w = self.weight
        below, above = self.pred.below, self.pred.above
        below_y, above_y = self.y.below, self.y.above
        # For a row of each cell, the weight of its partners that are ordered right, ordered wrong, and tied.
        right = _corner(w, below, below_y) + _corner(w, above, above_y)
        wrong = _corner(w, below, above_y) + _corner(w, above, below_y)
        everywhere = (np.arange(len(self.pred)), np.full(len(self.pred), len(self.pred)))
        other_y = (_corner(w, everywhere, below_y) + _corner(w, everywhere, above_y))[:1]
        same_pred = _beside(w, below_y) + _beside(w, above_y)
        tied = np.where(self.pred.single[:, None], same_pred, 0.0)
        weight_y = w.sum(0)
        equal_y = np.where(self.y.single, weight_y, 0.0)
        # Halved, because both rows of a pair count it.
        comparable = float(weight_y @ other_y[0]) / 2
        # Pairs that are not known to have equal targets; a row is no pair with itself.
        pairs = (w.sum() ** 2 - float(weight_y @ equal_y) - float(self.squares @ ~self.y.single)) / 2
        score = float((w * (right + tied / 2)).sum()) / 2
        decided = float((w * (right + wrong + tied)).sum()) / 2
        # These are differences of large sums, so a remainder of the size of rounding is none.
        rounding = 1e-12 * w.sum() ** 2
        undecided_y = max(0.0, pairs - comparable - rounding)
        undecided = undecided_y + max(0.0, comparable - decided - rounding)
        by_cell = np.maximum(0.0, w.sum() - right - wrong - tied - equal_y)
        return PairBounds(score, comparable, undecided, undecided_y, by_cell)


def _corner(w: Floats, side: tuple[Integers, Integers], side_y: tuple[Integers, Integers]) -> Floats:
    """For each cell the weight of the cells that lie on the given side of it in both directions."""
    (order, count), (order_y, count_y) = side, side_y
    running = np.zeros((w.shape[0] + 1, w.shape[1] + 1))
    running[1:, 1:] = w[order][:, order_y].cumsum(0).cumsum(1)
    return running[count][:, count_y]


def _beside(w: Floats, side_y: tuple[Integers, Integers]) -> Floats:
    """For each cell the weight of the cells of the same interval of predictions on the given side of it."""
    order_y, count_y = side_y
    running = np.zeros((w.shape[0], w.shape[1] + 1))
    running[:, 1:] = w[:, order_y].cumsum(1)
    return running[:, count_y]


def _sums(index: Integers, weight: Floats, size: int) -> Floats:
    """The sum of the weights at each index 0..size - 1."""
    return np.bincount(index, weight, minlength=size).astype(np.float64, copy=False)


def _running_sum(weight: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(weight)])
