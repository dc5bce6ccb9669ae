"""Intervals of totals from sums of powers: Student's, Hall's, and the luck of the new rows."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

from transun.diagnosis.error_sums import ErrorSums, TotalError
from transun.diagnosis.tail import AmountTail

LIGHT, INDEX = AmountTail(0.3, 0.01, 1000), 0.3


def again(units):
    """How often the largest error is counted again: 45·ξ²/∛n."""
    return 45.0 * INDEX**2 / units ** (1 / 3)


def test_sums_are_those_of_scipy():
    errors = stats.gamma(2.0).rvs(500, random_state=0)
    sums = ErrorSums.of(errors, LIGHT)
    assert sums.squares == pytest.approx(500 * errors.var())
    assert sums.cubes == pytest.approx(500 * stats.skew(errors) * errors.std() ** 3)
    assert sums.fourths == pytest.approx(500 * stats.kurtosis(errors, fisher=False) * errors.var() ** 2)


def test_even_errors_get_students_interval():
    """Errors of ±1 have kurtosis 1; what may still come adds a part of a square, and a trace of skewness."""
    found = ErrorSums.of(np.tile([-1.0, 1.0], 50), LIGHT).interval(7.0, TotalError(scale=3.0), 0.99)
    low, high = stats.t.interval(0.99, 99, loc=7.0, scale=3.0 * math.sqrt(100 * 100 / 99 + again(100)))
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-2)


def test_ends_are_where_halls_cubic_meets_students_quantiles():
    """The cubic of Hall (1992) for a mean, with the moments of the sample and a part of its largest error again."""
    errors = stats.gamma(1.5).rvs(300, random_state=1)
    sums, n = ErrorSums.of(errors, LIGHT), 300
    u = errors - errors.mean()
    largest = u[np.abs(u).argmax()]
    squares = (u**2).sum() * n / (n - 1) + again(n) * largest**2
    skew = math.sqrt(n) * ((u**3).sum() + again(n) * largest**3) / squares**1.5
    freedom = 2 / (((u**4).sum() + again(n) * largest**4) / squares**2 - 1 / n)

    def cubic(t):
        return t + skew * t**2 / (3 * math.sqrt(n)) + skew**2 * t**3 / (27 * n) + skew / (6 * math.sqrt(n))

    tau = stats.t(freedom).ppf(0.975)
    upper, lower = (optimize.brentq(lambda t, tau=tau: cubic(t) - tau, -50, 50) for tau in (tau, -tau))
    found = sums.interval(0.0, TotalError(scale=1.0), 0.95)
    assert (found.low, found.high) == pytest.approx((-upper * math.sqrt(squares), -lower * math.sqrt(squares)))


def test_with_as_many_new_rows_as_labelled_ones_skewness_of_both_cancels():
    """D = Σu - Σu' has no skewness; what is left is that the variance is estimated from one side alone."""
    sums = ErrorSums.of(stats.expon().rvs(1000, random_state=2), LIGHT)
    alone = sums.interval(0.0, TotalError(1.0), 0.95)
    both = sums.interval(0.0, TotalError(1.0, new_rows=(1.0, 1.0)), 0.95)
    assert both.high - both.low == pytest.approx(math.sqrt(2) * (alone.high - alone.low), rel=0.02)
    assert both.high / -both.low < alone.high / -alone.low


def test_four_times_the_labels_halve_an_interval_without_luck():
    sums = ErrorSums.of(np.tile([-1.0, 1.0], 50), LIGHT)
    assert sums.units_to_halve(TotalError(2.0)) == pytest.approx(400)
    assert sums.units_to_halve(TotalError(1.0, new_rows=(1.0, 1.0))) == math.inf
    # Variances 9 and 1 of labels and luck, together 10: a quarter is 2.5, of which 1.5 is left to the labels.
    assert sums.units_to_halve(TotalError(3.0, new_rows=(1.0, 1.0))) == pytest.approx(100 * 9 / 1.5)


def test_refusals_give_their_reason():
    assert "there are 59 labelled" in ErrorSums.of(np.arange(59.0), LIGHT).refusal()
    assert "there is 1 labelled" in ErrorSums.of(np.arange(1.0), LIGHT).refusal()
    assert ErrorSums.of(np.arange(60.0), LIGHT).refusal() == ""
    assert "tail index 0.70" in ErrorSums.of(np.arange(60.0), AmountTail(0.7, 0.1, 100)).refusal(assumed=True)
    doubtful = ErrorSums.of(np.arange(60.0), AmountTail(0.55, 0.1, 100))
    assert "likelier infinite" in doubtful.refusal()
    assert doubtful.refusal(assumed=True) == ""
    assert "carries 99%" in ErrorSums.of(np.append(np.linspace(-1, 1, 200), 100.0), LIGHT).refusal()


def test_errors_that_are_all_equal_allow_no_interval():
    sums = ErrorSums.of(np.full(70, 3.0), LIGHT)
    assert "the errors of all 70 labelled are the same" in sums.refusal()
    found = sums.interval(9.0, TotalError(2.0), 0.95)  # a point, which nobody is shown
    assert (found.low, found.high) == (9.0, 9.0)
