"""The difference estimator: that of regression, with laws of weights, clusters and caps."""

import math
import re

import numpy as np
import pytest
from scipy import stats

from transun.diagnosis.tail import AmountTail
from transun.totals.difference import estimate_total, labelled_tail
from transun.totals.rows import Rows


def world(rows, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    mean = np.exp(0.6 * rng.standard_normal(rows))
    return mean, mean * np.exp(noise * rng.standard_normal(rows) - noise**2 / 2)


PRED, Y = world(400)
NEW, _ = world(2000, seed=1)


def estimate(new=NEW, pred=PRED, y=Y, *, expected=False, cap=math.inf, assumed=True, tail=None, **more):
    sides = [{key: values[side] for key, values in more.items()} for side in range(2)]
    labelled = Rows.of("labelled", pred, y, **sides[1])
    tail = tail or labelled_tail(labelled, cap)
    rows = Rows.of("new", new, **sides[0])
    return estimate_total(rows, labelled, 0.95, tail, expected=expected, cap=cap, assumed=assumed)


def test_the_estimate_is_that_of_a_regression():
    line = stats.linregress(PRED, Y)
    result = estimate()
    assert result.tuning == pytest.approx(line.slope)
    assert result.value == pytest.approx((line.intercept + line.slope * NEW).sum())
    assert result.predicted == pytest.approx(NEW.sum())


def test_the_expected_total_tunes_less_as_new_rows_are_few():
    """Angelopoulos, Duchi and Zrnic (2023): λ = cov(y, ŷ) / ((1 + n/N) var(ŷ)), with variances of both samples here."""
    spread = len(PRED) / len(NEW) * NEW.var() / PRED.var()
    result = estimate(expected=True)
    assert result.tuning == pytest.approx(stats.linregress(PRED, Y).slope / (1 + spread))


def test_units_and_orders_do_not_matter():
    result, scaled = estimate(), estimate(1e3 * NEW, 1e3 * PRED, 1e3 * Y)
    for end in ("value", "low", "high"):
        assert getattr(scaled, end) == pytest.approx(1e3 * getattr(result, end))
    order = np.random.default_rng(0).permutation(len(Y))
    assert estimate(NEW[::-1], PRED[order], Y[order]).high == pytest.approx(result.high)


def test_any_factor_of_the_predictions_is_tuned_away():
    result, doubled = estimate(), estimate(2 * NEW, 2 * PRED)
    assert (doubled.low, doubled.value, doubled.high) == pytest.approx((result.low, result.value, result.high))
    assert doubled.tuning == pytest.approx(result.tuning / 2)


def test_constant_predictions_leave_the_mean():
    result = estimate(np.ones(2000), np.ones(400))
    assert result.value == pytest.approx(2000 * Y.mean())


def test_clusters_of_one_row_are_rows():
    result = estimate(unit=(np.arange(2000), np.arange(400)))
    assert (result.low, result.high) == pytest.approx((estimate().low, estimate().high))


def test_rows_that_come_in_equal_pairs_say_as_much_as_one_of_each():
    pairs = estimate(
        np.repeat(NEW, 2),
        np.repeat(PRED, 2),
        np.repeat(Y, 2),
        unit=(np.repeat(np.arange(2000), 2), np.repeat(np.arange(400), 2)),
    )
    single = estimate()
    assert (pairs.low, pairs.value, pairs.high) == pytest.approx((2 * single.low, 2 * single.value, 2 * single.high))
    blind = estimate(np.repeat(NEW, 2), np.repeat(PRED, 2), np.repeat(Y, 2))
    assert blind.high - blind.low < 0.8 * (pairs.high - pairs.low)


def test_weights_count_rows():
    """The estimate of a row of weight 3 is that of three rows; its interval is that of one observation."""
    times = np.random.default_rng(3).integers(1, 4, 400)
    weighted = estimate(weight=(np.ones(2000), times))
    repeated = estimate(
        pred=np.repeat(PRED, times), y=np.repeat(Y, times), unit=(np.arange(2000), np.repeat(np.arange(400), times))
    )
    assert weighted.value == pytest.approx(repeated.value)
    assert weighted.units == repeated.units == 400
    twice = estimate(weight=(np.full(2000, 2.0), np.full(400, 2.0)))
    assert (twice.value, twice.high) == pytest.approx((2 * estimate().value, 2 * estimate().high))


def test_rows_of_weight_0_are_not_there():
    result = estimate(
        pred=np.append(PRED, 1e6), y=np.append(Y, 0.0), weight=(np.ones(2000), np.append(np.ones(400), 0.0))
    )
    assert (result.units, result.value) == (400, pytest.approx(estimate().value))


def test_a_cap_is_on_labels_and_predictions():
    result = estimate(cap=2.0)
    again = estimate(np.minimum(NEW, 2.0), np.minimum(PRED, 2.0), np.minimum(Y, 2.0))
    assert (result.low, result.high) == pytest.approx((again.low, again.high))


def test_an_infinite_variance_is_refused_and_the_cap_that_it_names_works():
    y = 3.0 * stats.pareto(1.1).ppf((np.random.default_rng(0).permutation(2000) + 0.5) / 2000)
    result = estimate(pred=np.ones(2000), y=y, new=np.ones(5000))
    assert not result.answered
    assert math.isnan(result.low)
    assert "tail index" in result.sentence()
    cap = float(re.search(r"above ([\d,.]+) counted", result.remedy)[1].replace(",", ""))
    assert estimate(pred=np.ones(2000), y=y, new=np.ones(5000), cap=cap).answered


def test_an_interval_needs_a_variance_that_is_likely_to_be_finite_or_the_assumption():
    """Of ξ = 0.6 ± 0.2 nobody knows whether it is below ½, but it is likelier above."""
    doubtful, light, heavy = AmountTail(0.6, 0.2, 34), AmountTail(0.4, 0.2, 29), AmountTail(0.8, 0.1, 164)
    assert "likelier infinite than finite" in estimate(assumed=False, tail=doubtful).refusal
    assert "may show a lighter tail" in estimate(assumed=False, tail=doubtful).remedy
    assert estimate(assumed=False, tail=light).answered
    assert estimate(tail=doubtful).answered
    assert "the variance is infinite" in estimate(tail=heavy).refusal
    assert "lighter tail" not in estimate(tail=heavy).remedy


def test_the_heavier_the_tail_the_wider_the_interval():
    widths = [(result := estimate(tail=AmountTail(index, 0.05, 500))).high - result.low for index in (0.1, 0.3, 0.5)]
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


def test_one_row_that_decides_is_refused():
    y = np.append(Y, 1e5)
    result = estimate(pred=np.append(PRED, 1.0), y=y)
    assert "carries 100% of the uncertainty" in result.refusal
    assert "label about 4,010" in result.remedy


@pytest.mark.parametrize("count", [0, 1, 59])
def test_few_labels_are_refused_with_how_many_are_missing(count):
    result = estimate(pred=PRED[:count], y=Y[:count])
    assert f"at least {60 - count} more" in result.remedy


def test_95_of_100_intervals_cover_where_plain_ones_do_not():
    """Skewed amounts and few labels: 600 worlds, in which 95 % are known to 0.9 points; plain ones cover 90 %."""
    covered, plain = 0, 0
    for seed in range(600):
        pred, y = world(1100, seed, noise=1.0)
        result = estimate(pred[100:], pred[:100], y[:100])
        truth = y[100:].sum()
        covered += result.low <= truth <= result.high if result.answered else 0.95
        line = stats.linregress(pred[:100], y[:100])
        errors = y[:100] - line.slope * pred[:100]
        half = 1.96 * 1000 * errors.std(ddof=2) * math.sqrt(1 / 100 + 1 / 1000)
        plain += abs(line.slope * pred[100:].sum() + 1000 * errors.mean() - truth) <= half
    assert covered / 600 > 0.95 - 4 * 0.009
    assert plain / 600 < covered / 600
