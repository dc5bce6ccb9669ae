"""The sketch of XAUC keeps its bound: against exact values, on data and orders chosen to break it."""

import math
import pickle

import numpy as np
import pytest
from scipy.stats import kendalltau

from transun.metrics import XAUC, Meter
from transun.metrics.rows import check
from transun.metrics.sketch import XAUCSketch

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
    certain = SKETCH.certain(state(meter))
    assert certain.low - 1e-12 <= exact <= certain.high + 1e-12
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
    bounds = state(meter).flushed.grid.bounds
    u = bounds.undecided_by_cell.max() / len(y)
    comparable = (bounds.comparable + bounds.undecided_y) / (len(y) * (len(y) - 1) / 2)
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
    errors, undecided, rows = [], [], []
    for _ in range(40):
        pred, y = gamma(rng, 30_000)
        meter = filled(pred, y)
        sketch = state(meter).flushed
        errors.append(meter.compute()["XAUCSketch"] - XAUC(pred, y))
        undecided.append(sketch.grid.bounds.undecided / (len(y) * (len(y) - 1) / 2))
        rows.append(len(sketch.sample))
    deviation = np.mean(undecided) / math.sqrt(np.mean(rows))
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
    """Ties are intervals of one value, whose pairs are all decided."""
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


def test_summary_of_rows_without_weight():
    sketch = SKETCH.summarise(check([1.0, 2.0], [1.0, 2.0], [0.0, 0.0]))
    assert (sketch.count, sketch.total_weight) == (2, 0.0)
    assert len(sketch.flushed.sample) == 0
