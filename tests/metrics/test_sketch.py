"""The sketch of XAUC keeps its bound: against exact values, on data and orders chosen to break it."""

import math
import pickle

import numpy as np
import pytest
from scipy.stats import kendalltau

from transun.metrics import XAUC, Meter, XAUCSketch
from transun.metrics.grid import Grid
from transun.metrics.rows import check
from transun.metrics.strips import Strips

SKETCH = XAUCSketch()


def gamma(rng, n):
    y = rng.gamma(1.0, 1.0, n)
    return y + rng.normal(size=n), y


def independent(rng, n):
    return rng.normal(size=n), rng.standard_cauchy(n)


def nearly_perfect(rng, n):
    y = rng.lognormal(0.0, 3.0, n)
    return y * np.exp(0.01 * rng.normal(size=n)), y


def zipf(rng, n):
    y = rng.zipf(1.3, n).clip(0, 2**53).astype(float)
    return np.log(y) + rng.normal(size=n), y


def both_zipf(rng, n):
    y = rng.zipf(1.5, n).clip(0, 2**53).astype(float)
    return np.minimum(y, 50) + rng.integers(0, 3, n), y


def mostly_zero(rng, n):
    y = rng.gamma(1.0, 1.0, n) * (rng.random(n) < 0.12)
    return y + rng.normal(size=n), y


def two_clusters(rng, n):
    """A hair wide each, and eighteen orders of magnitude apart."""
    which = rng.integers(0, 2, n)
    y = np.where(which, 1e9, 1e-9) * (1 + 1e-6 * rng.normal(size=n))
    return np.where(rng.random(n) < 0.9, which, 1 - which) + 1e-7 * rng.normal(size=n), y


def one_prediction(rng, n):
    return np.ones(n), rng.gamma(1.0, 1.0, n)


def sorted_targets(rng, n):
    y = np.sort(rng.lognormal(0.0, 3.0, n))
    return y * np.exp(rng.normal(size=n)), y


def sorted_predictions(rng, n):
    pred = np.sort(rng.normal(size=n))[::-1].copy()
    return pred, np.exp(pred + rng.normal(size=n))


def late_bulk(rng, n):
    """First a wide background, then everything in a thousandth of its width."""
    y = rng.lognormal(0.0, 3.0, n)
    y[n // 50 :] = 1 + 1e-3 * rng.random(n - n // 50)
    return y * np.exp(1e-3 * rng.normal(size=n)), y


SHUFFLED = [gamma, independent, nearly_perfect, zipf, both_zipf, mostly_zero, two_clusters, one_prediction]
DRIFTING = [sorted_targets, sorted_predictions, late_bulk]


def filled(pred, y, weight=None, *, metric=SKETCH, batch=10_000):
    meter = Meter(metric)
    for start in range(0, len(y), batch):
        part = slice(start, start + batch)
        meter.update(pred[part], y[part], None if weight is None else weight[part])
    return meter


def state(meter):
    (summary,) = meter._summaries.values()
    return summary


def assert_bound_holds(meter, exact, most):
    value, bound = meter.compute()["XAUCSketch"], meter.bounds()["XAUCSketch"]
    assert 0 < bound <= most
    assert abs(value - exact) <= bound
    # The bound is a worst case over all data: at 99.9 % it is several standard deviations of the error.
    assert abs(value - exact) <= 0.5 * bound
    sure = SKETCH.sure(state(meter))
    assert sure.low - 1e-12 <= exact <= sure.high + 1e-12
    assert state(meter).nbytes <= 1 << 20


@pytest.mark.parametrize("make", SHUFFLED)
def test_bound_is_below_a_thousandth_for_rows_in_random_order(make):
    pred, y = make(np.random.default_rng(0), 200_000)
    assert_bound_holds(filled(pred, y), XAUC(pred, y), 1e-3)


@pytest.mark.parametrize("make", DRIFTING)
def test_bound_holds_for_streams_that_drift(make):
    """A plain sample of as many rows would have a bound above 0.02 by the same inequalities."""
    pred, y = make(np.random.default_rng(0), 200_000)
    assert_bound_holds(filled(pred, y), XAUC(pred, y), 4e-3)


@pytest.mark.parametrize("make", [gamma, zipf, mostly_zero, sorted_targets])
def test_bound_is_at_most_what_the_docstring_derives(make):
    pred, y = make(np.random.default_rng(11), 100_000)
    meter = filled(pred, y)
    known = state(meter).counted.grid.known
    u = known.cells.max() / len(y)
    comparable = (known.comparable + known.doubt_y) / (len(y) * (len(y) - 1) / 2)
    assert meter.bounds()["XAUCSketch"] <= (0.045 * u + 0.0038 * math.sqrt(u)) / comparable


def test_a_million_rows_against_scipy():
    pred, y = gamma(np.random.default_rng(1), 1_200_000)
    assert_bound_holds(filled(pred, y), (1 + kendalltau(pred, y).statistic) / 2, 1e-3)


def test_shards_merge_in_any_order():
    pred, y = gamma(np.random.default_rng(2), 300_000)
    shards = [filled(a, b) for a, b in zip(np.array_split(pred, 12), np.array_split(y, 12), strict=True)]
    forward, backward = Meter(SKETCH), Meter(SKETCH)
    for shard in shards:
        forward.merge(shard)
    for shard in reversed(shards):
        backward.merge(pickle.loads(pickle.dumps(shard)))
    exact = XAUC(pred, y)
    assert_bound_holds(forward, exact, 1e-3)
    assert_bound_holds(backward, exact, 1e-3)
    assert state(forward).count == state(backward).count == len(y)


def test_shards_that_differ_merge():
    """Shards by size of the target, as a sorted table split into files gives them."""
    pred, y = gamma(np.random.default_rng(3), 200_000)
    order = np.argsort(y)
    shards = [filled(pred[part], y[part]) for part in np.array_split(order, 8)]
    for shard in shards[1:]:
        shards[0].merge(shard)
    assert_bound_holds(shards[0], XAUC(pred, y), 3e-3)


def test_errors_are_as_small_as_the_proof_says():
    """Over 40 streams the errors' deviation is below u/√rows in the sample, and their mean within noise of 0."""
    rng = np.random.default_rng(4)
    errors, doubts, rows = [], [], []
    for _ in range(40):
        pred, y = gamma(rng, 30_000)
        meter = filled(pred, y)
        sketch = state(meter).counted
        errors.append(meter.compute()["XAUCSketch"] - XAUC(pred, y))
        doubts.append(sketch.grid.known.doubt / (len(y) * (len(y) - 1) / 2))
        rows.append(len(sketch.drawn))
    deviation = np.mean(doubts) / math.sqrt(np.mean(rows))
    assert np.sqrt(np.mean(np.square(errors))) < deviation
    assert abs(np.mean(errors)) < 4 * np.std(errors) / math.sqrt(len(errors))


def test_weights_count_as_repetitions():
    rng = np.random.default_rng(5)
    pred, y = gamma(rng, 60_000)
    weight = rng.choice([0.0, 0.25, 1.0, 3.0, 50.0], len(y), p=[0.1, 0.3, 0.3, 0.29, 0.01])
    assert_bound_holds(filled(pred, y, weight), XAUC(pred, y, weight), 2e-3)
    meter = filled(pred, y, np.full(len(y), 1e-6))
    assert_bound_holds(meter, XAUC(pred, y), 1e-3)


def test_nothing_is_forgotten_of_few_rows():
    pred, y = zipf(np.random.default_rng(6), 12_000)
    meter = filled(pred, y, batch=100)
    assert meter.bounds() == {"XAUCSketch": 0.0}
    assert meter.compute()["XAUCSketch"] == pytest.approx(XAUC(pred, y), rel=1e-12)
    assert meter.standard_errors()["XAUCSketch"] == pytest.approx(XAUC.standard_error(pred, y), rel=1e-9)


def test_equal_targets_have_no_value():
    meter = filled(np.arange(20_000.0), np.ones(20_000))
    assert math.isnan(meter.compute()["XAUCSketch"])
    assert math.isnan(meter.bounds()["XAUCSketch"])


def test_few_distinct_values_are_exact():
    """Ties are strips of one value, about which there is no doubt."""
    rng = np.random.default_rng(7)
    y = rng.integers(0, 20, 50_000).astype(float)
    pred = np.round(y / 4 + rng.normal(size=len(y)))
    meter = filled(pred, y)
    assert meter.compute()["XAUCSketch"] == pytest.approx(XAUC(pred, y), abs=1e-11)
    assert meter.bounds()["XAUCSketch"] < 1e-9


def test_standard_error_is_that_of_all_rows():
    pred, y = gamma(np.random.default_rng(8), 60_000)
    error = filled(pred, y).standard_errors()["XAUCSketch"]
    assert error == pytest.approx(XAUC.standard_error(pred, y), rel=0.1)


def test_other_sizes():
    pred, y = gamma(np.random.default_rng(9), 60_000)
    small = XAUCSketch(size=1 << 18)
    meter = filled(pred, y, metric=small)
    name = small.name
    assert state(meter).nbytes <= 1 << 18
    assert abs(meter.compute()[name] - XAUC(pred, y)) <= meter.bounds()[name] <= 5e-3
    with pytest.raises(ValueError, match="`size` is 1000"):
        XAUCSketch(size=1000)


def test_metrics_that_keep_everything_have_no_bound():
    meter = Meter(XAUC)
    meter.update([1.0, 2.0], [1.0, 2.0])
    assert meter.bounds() == {"XAUC": 0.0}


def pairs_by_brute_force(low, high, low_y, high_y, weight):
    """Score, comparable, doubt and doubt about targets, cell by cell."""
    score = comparable = doubt = doubt_y = 0.0
    cells = [(a, b) for a in range(len(low)) for b in range(len(low_y)) if weight[a, b]]
    for i, (a, b) in enumerate(cells):
        for c, d in cells[i:]:
            # Rows of weight one: a cell has w(w − 1)/2 pairs of its own.
            w = weight[a, b] * weight[c, d] if (a, b) != (c, d) else weight[a, b] * (weight[a, b] - 1) / 2
            y = np.sign((low_y[b] > high_y[d]) * 1.0 - (high_y[b] < low_y[d]) * 1.0)
            x = np.sign((low[a] > high[c]) * 1.0 - (high[a] < low[c]) * 1.0)
            if y == 0 and not (b == d and low_y[b] == high_y[b]):
                doubt, doubt_y = doubt + w, doubt_y + w
            elif y != 0:
                comparable += w
                if x != 0:
                    score += w * (x == y)
                elif a == c and low[a] == high[a]:
                    score += w / 2
                else:
                    doubt += w
    return score, comparable, doubt, doubt_y


@pytest.mark.parametrize("seed", range(5))
def test_what_a_grid_knows_by_brute_force(seed):
    """Overlapping, nested, touching and single strips."""
    rng = np.random.default_rng(seed)

    def strips(n):
        low = np.unique(rng.integers(0, 12, n).astype(float))
        return Strips(low, low + rng.integers(0, 4, len(low)))

    pred, y = strips(8), strips(7)
    weight = rng.integers(0, 3, (len(pred), len(y))).astype(float)
    known = Grid(pred, y, weight, weight.sum(0)).known
    found = known.score, known.comparable, known.doubt, known.doubt_y
    assert found == pytest.approx(pairs_by_brute_force(pred.low, pred.high, y.low, y.high, weight), abs=1e-8)
    # Both rows of a pair have it among their partners; a row is its own where its target may be any of a strip.
    selves = weight[:, ~y.single].sum()
    assert (weight * known.cells).sum() == pytest.approx(2 * known.doubt + selves, abs=1e-8)


def test_a_value_goes_to_the_innermost_strip_around_it():
    strips = Strips(np.array([0.0, 1.0, 2.0, 9.0]), np.array([8.0, 1.5, 4.0, 9.0]))
    x = np.array([-1.0, 0.5, 1.2, 1.7, 3.0, 5.0, 8.5, 9.0, 10.0])
    assert strips.find(x).tolist() == [-1, 0, 1, 0, 2, 0, -1, 3, -1]


def test_strips_hold_their_values_and_stay_few():
    rng = np.random.default_rng(10)
    strips, mass = Strips.none(), np.empty(0)
    for scale in (1.0, 1e-3, 1e6, 1.0):
        x = rng.normal(size=500) * scale
        strips, old, place = strips.add(x, np.ones(500), mass, most=40)
        moved = np.zeros(len(strips))
        np.add.at(moved, old, mass)
        mass = moved + np.bincount(place, minlength=len(strips))
        assert len(strips) <= 40
        assert (strips.low[place] <= x).all()
        assert (x <= strips.high[place]).all()
    assert mass.sum() == 2000


def test_summary_of_rows_without_weight():
    sketch = SKETCH.summarise(check([1.0, 2.0], [1.0, 2.0], [0.0, 0.0]))
    assert (sketch.count, sketch.total_weight) == (2, 0.0)
    assert len(sketch.counted.drawn) == 0
