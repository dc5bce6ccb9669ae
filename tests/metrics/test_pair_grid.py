"""The grid against brute force over pairs of cells, and the intervals that it is made of."""

import numpy as np
import pytest

from transun.metrics.pair_grid import Intervals, PairGrid


def pairs_by_brute_force(low, high, low_y, high_y, weight):
    """Score, comparable, undecided and undecided targets, cell by cell."""
    score = comparable = undecided = undecided_y = 0.0
    cells = [(a, b) for a in range(len(low)) for b in range(len(low_y)) if weight[a, b]]
    for i, (a, b) in enumerate(cells):
        for c, d in cells[i:]:
            # Rows of weight one: a cell has w(w - 1)/2 pairs of its own.
            w = weight[a, b] * weight[c, d] if (a, b) != (c, d) else weight[a, b] * (weight[a, b] - 1) / 2
            y = np.sign((low_y[b] > high_y[d]) * 1.0 - (high_y[b] < low_y[d]) * 1.0)
            x = np.sign((low[a] > high[c]) * 1.0 - (high[a] < low[c]) * 1.0)
            if y == 0 and not (b == d and low_y[b] == high_y[b]):
                undecided, undecided_y = undecided + w, undecided_y + w
            elif y != 0:
                comparable += w
                if x != 0:
                    score += w * (x == y)
                elif a == c and low[a] == high[a]:
                    score += w / 2
                else:
                    undecided += w
    return score, comparable, undecided, undecided_y


@pytest.mark.parametrize("seed", range(5))
def test_bounds_by_brute_force(seed):
    """Overlapping, nested, touching and single intervals."""
    rng = np.random.default_rng(seed)

    def intervals(n):
        low = np.unique(rng.integers(0, 12, n).astype(float))
        return Intervals(low, low + rng.integers(0, 4, len(low)))

    pred, y = intervals(8), intervals(7)
    weight = rng.integers(0, 3, (len(pred), len(y))).astype(float)
    bounds = PairGrid(pred, y, weight, weight.sum(0)).bounds
    totals = bounds.score, bounds.comparable, bounds.undecided, bounds.undecided_y
    assert totals == pytest.approx(pairs_by_brute_force(pred.low, pred.high, y.low, y.high, weight), abs=1e-8)
    # Both rows of a pair have it among their partners; a row is its own partner where its interval has several values.
    selves = weight[:, ~y.single].sum()
    assert (weight * bounds.undecided_by_cell).sum() == pytest.approx(2 * bounds.undecided + selves, abs=1e-8)


def test_a_value_goes_to_the_innermost_interval_around_it():
    intervals = Intervals(np.array([0.0, 1.0, 2.0, 9.0]), np.array([8.0, 1.5, 4.0, 9.0]))
    x = np.array([-1.0, 0.5, 1.2, 1.7, 3.0, 5.0, 8.5, 9.0, 10.0])
    assert intervals.find(x).tolist() == [-1, 0, 1, 0, 2, 0, -1, 3, -1]


def test_intervals_hold_their_values_and_stay_few():
    rng = np.random.default_rng(10)
    intervals, weight = Intervals.empty(), np.empty(0)
    for scale in (1.0, 1e-3, 1e6, 1.0):
        x = rng.normal(size=500) * scale
        intervals, old_index, index = intervals.add(x, np.ones(500), weight, most=40)
        moved = np.zeros(len(intervals))
        np.add.at(moved, old_index, weight)
        weight = moved + np.bincount(index, minlength=len(intervals))
        assert len(intervals) <= 40
        assert (intervals.low[index] <= x).all()
        assert (x <= intervals.high[index]).all()
    assert weight.sum() == 2000
