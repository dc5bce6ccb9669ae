"""The total by a certificate: the ratio estimator, with the interval that labelled rows would give."""

import numpy as np
import pytest
from scipy import stats

from transun.diagnosis.error_sums import ErrorSums
from transun.diagnosis.tail import AmountTail, relative_amounts
from transun.models.noise import Noise
from transun.totals import total_of
from transun.totals.certified import certified_total


def noise_of(pred, y):
    sums = ErrorSums.of(y - y.sum() / pred.sum() * pred, AmountTail.of(relative_amounts(y, pred)))
    tail = (sums.tail.index, sums.tail.error, sums.tail.count)
    powers = (sums.squares, sums.cubes, sums.fourths, sums.largest)
    return Noise(900, len(y), len(y), None, float(y.sum()), float(pred.sum()), *powers, *tail)


def test_it_is_what_labelled_rows_say_where_predictions_are_constant():
    """A ratio and a difference are then the same; the difference alone knows that a mean was estimated (leverage)."""
    y = np.random.default_rng(0).gamma(2.0, 3.0, 1000)
    ones = np.ones(1000)
    result, expected = certified_total(noise_of(ones, y), 5000.0, 5000), total_of(np.ones(5000), ones, y).whole
    assert result.value == pytest.approx(expected.value)
    assert (result.low, result.high) == pytest.approx((expected.low, expected.high), rel=1e-3)


def test_predictions_that_are_half_of_what_comes_are_doubled():
    y = np.random.default_rng(1).gamma(2.0, 3.0, 1000)
    assert certified_total(noise_of(y / 2, y), 70.0, 10).value == pytest.approx(140.0)


def test_refusals_pass_on():
    y = stats.pareto(1.5).ppf((np.arange(2000) + 0.5) / 2000)
    assert "tail index" in certified_total(noise_of(np.ones(2000), y), 50.0, 50).refusal
    y = np.random.default_rng(1).gamma(2.0, 3.0, 100)
    assert "do not add up" in certified_total(noise_of(np.ones(100), y), -5.0, 5).refusal
