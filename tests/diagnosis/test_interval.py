"""Intervals: Student's where the errors are normal, and their level where they are not."""

import numpy as np
import pytest
from scipy import stats

from transun.diagnosis.interval import bias_p_value, capped_interval, mean_interval, metric_estimate, ratio_interval
from transun.diagnosis.moments import RatioMoments
from transun.metrics import GINI, NRMSE, STRE, XAUC


def moments(y, pred=None, weight=None, group=None, groups=1):
    y = np.asarray(y, dtype=float)
    pred = np.ones_like(y) if pred is None else np.asarray(pred, dtype=float)
    weight = np.ones_like(y) if weight is None else np.asarray(weight, dtype=float)
    return RatioMoments.of(y, pred, weight, np.zeros(len(y), dtype=np.int64) if group is None else group, groups)


def test_moments_are_those_of_scipy():
    rng = np.random.default_rng(0)
    y, pred, weight = rng.gamma(2.0, 1.0, 500), rng.gamma(3.0, 1.0, 500), rng.uniform(0.5, 2.0, 500)
    found = moments(y, pred, weight).studentised(ratio=0.7)
    errors = weight * (y - 0.7 * pred)
    assert found.mean == pytest.approx(errors.mean())
    assert found.error == pytest.approx(stats.sem(errors))
    assert found.skewness == pytest.approx(stats.skew(errors))
    assert found.kurtosis == pytest.approx(stats.kurtosis(errors, fisher=False))


def test_groups_and_pieces_add_up():
    rng = np.random.default_rng(1)
    y, pred, group = rng.gamma(2.0, 1.0, 300), rng.gamma(3.0, 1.0, 300), rng.integers(0, 4, 300)
    grouped = moments(y, pred, group=group, groups=5)
    pieces = [moments(y[part], pred[part], group=group[part], groups=5) for part in (slice(0, 100), slice(100, 300))]
    np.testing.assert_allclose((pieces[0] + pieces[1]).sums, grouped.sums)
    alone = moments(y[group == 2], pred[group == 2])
    assert ratio_interval(grouped, 2).low == pytest.approx(ratio_interval(alone).low)
    np.testing.assert_allclose(grouped.sums.sum(0), moments(y, pred).sums[0])
    assert grouped.count[4] == 0
    assert np.isnan(ratio_interval(grouped, 4).low)


def test_units_are_sums_of_their_rows():
    """Rows in equal pairs, a pair a unit: the moments of single rows of twice the amount."""
    rng = np.random.default_rng(4)
    y, pred, group = rng.gamma(2.0, 1.0, 60), rng.gamma(3.0, 1.0, 60), rng.integers(0, 3, 60)
    pairs = [np.repeat(values, 2) for values in (y, pred, np.ones(60), group)]
    units = RatioMoments.of(*pairs, 3, np.repeat(rng.permutation(60), 2))
    doubled = RatioMoments.of(2 * y, 2 * pred, np.ones(60), group, 3)
    np.testing.assert_allclose(units.sums, doubled.sums)
    np.testing.assert_array_equal(units.count, doubled.count)
    np.testing.assert_array_equal(units.rows, 2 * doubled.rows)
    assert ratio_interval(units, 1).high == pytest.approx(ratio_interval(doubled, 1).high)


def test_symmetric_errors_get_students_interval():
    even = np.array([-1.0, 1.0] * 50) + 3.0  # kurtosis 1: as many degrees of freedom as rows allow
    found = mean_interval(moments(even).studentised(ratio=0.0))
    low, high = stats.t.interval(0.99, 99, loc=3.0, scale=stats.sem(even))
    assert (found.low, found.high) == pytest.approx((low, high))


def test_a_right_skewed_mean_may_lie_further_up():
    y = stats.lognorm(1.0).rvs(500, random_state=0)
    found, mean = mean_interval(moments(y).studentised(ratio=0.0)), y.mean()
    assert found.high - mean > mean - found.low


def test_ends_are_where_halls_cubic_meets_students_quantiles():
    """The cubic written out as Hall (1992) has it, and the degrees of freedom as Satterthwaite's."""
    y = stats.gamma(1.5).rvs(300, random_state=1)
    found, n = moments(y).studentised(ratio=0.0), 300
    skew = stats.skew(y)
    freedom = 2 * n / (stats.kurtosis(y, fisher=False) - 1)
    ends = mean_interval(found)
    for end, share in ((ends.low, 0.995), (ends.high, 0.005)):
        t = (y.mean() - end) / stats.sem(y)
        cubic = t + skew * t**2 / (3 * n**0.5) + skew**2 * t**3 / (27 * n) + skew / (6 * n**0.5)
        assert cubic == pytest.approx(stats.t.ppf(share, freedom), rel=1e-6)


def test_p_value_and_interval_agree():
    """An interval at level 1 - p ends where the p-value is p."""
    rng = np.random.default_rng(2)
    pred = rng.gamma(5.0, 1.0, 4000)
    y = pred * rng.gamma(2.0, 0.5, 4000) * 1.02
    p = bias_p_value(moments(y, pred))
    ends = ratio_interval(moments(y, pred), level=1.0 - p)
    assert min(abs(ends.low - 1.0), abs(ends.high - 1.0)) < 2e-3


def test_the_p_value_is_uniform_when_there_is_no_bias():
    rng = np.random.default_rng(3)
    p_values = [bias_p_value(moments(rng.gamma(2.0, 0.5, 300))) for _ in range(400)]
    assert stats.kstest(p_values, "uniform").pvalue > 0.01


def test_perfect_predictions_have_no_error():
    assert bias_p_value(moments([1.0, 2.0], [1.0, 2.0])) == 1.0
    assert ratio_interval(moments([1.0, 2.0], [1.0, 2.0])).low == pytest.approx(1.0)
    assert bias_p_value(moments([2.0, 4.0], [1.0, 2.0])) < 1.0


def test_nearly_perfect_predictions_keep_a_sane_interval():
    rng = np.random.default_rng(5)
    pred = rng.uniform(1.0, 100.0, 1000)
    for noise in (1e-3, 1e-5, 1e-7, 1e-9, 0.0):
        found = ratio_interval(moments(pred * (1.0 + noise * rng.normal(size=1000)), pred))
        assert found.high - found.low <= 10 * noise / 1000**0.5 + 1e-12
        assert abs(found.low - 1.0) <= 10 * noise / 1000**0.5 + 1e-12


def test_missing_large_targets_are_no_proof_of_too_high_predictions():
    y = np.append(np.ones(200), 40.0)  # one row decides
    assert bias_p_value(moments(y, np.full(201, 20.0))) == 1.0
    assert bias_p_value(moments(y, np.full(201, 0.1))) < 0.05


def test_one_row_says_nothing():
    assert mean_interval(moments([1.0]).studentised(ratio=0.0)).low == -np.inf


def test_cutting_targets_never_raises_the_lower_end_above_the_truth():
    """Of many samples with a huge tail at most a few have a lower end above the true ratio."""
    rng = np.random.default_rng(4)
    above = 0
    for _ in range(300):
        y = rng.lognormal(0.0, 2.0, 400)
        cap = np.quantile(y, 0.99)
        above += capped_interval(moments(y), moments(np.minimum(y, cap))).low > np.exp(2.0)
    assert above / 300 < 0.005 + 3 * (0.005 * 0.995 / 300) ** 0.5


@pytest.mark.parametrize(("metric", "value"), [(XAUC, 0.99), (XAUC, 0.01), (NRMSE, 0.1), (GINI, 0.0), (STRE, 0.0)])
def test_an_interval_stays_within_what_its_metric_can_be(metric, value):
    estimate = metric_estimate(metric, value, 0.5)
    assert metric.bounds[0] <= estimate.low < value < estimate.high <= metric.bounds[1]
    half = stats.norm.ppf(0.995) * 0.5
    assert estimate.low == pytest.approx(max(value - half, metric.bounds[0]))
    assert estimate.high == pytest.approx(min(value + half, metric.bounds[1]))
