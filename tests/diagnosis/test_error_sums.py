"""Intervals of totals from sums of powers: Student's, Hall's, and the luck of the new rows."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

from transun.diagnosis.error_sums import Composition, ErrorSums


def test_sums_are_those_of_scipy():
    errors = stats.gamma(2.0).rvs(500, random_state=0)
    sums = ErrorSums.of(errors)
    assert sums.squares == pytest.approx(500 * errors.var())
    assert sums.cubes == pytest.approx(500 * stats.skew(errors) * errors.std() ** 3)
    assert sums.fourths == pytest.approx(500 * stats.kurtosis(errors, fisher=False) * errors.var() ** 2)


def test_even_errors_get_students_interval():
    """Errors of ±1 have kurtosis 1; the one that may still come adds half a square, and a trace of skewness."""
    found = ErrorSums.of(np.tile([-1.0, 1.0], 50)).interval(7.0, Composition(scale=3.0), 0.99)
    low, high = stats.t.interval(0.99, 99, loc=7.0, scale=3.0 * math.sqrt(100 * 100 / 99 + 0.5))
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-3)


def test_ends_are_where_halls_cubic_meets_students_quantiles():
    """The cubic of Hall (1992) for a mean, with the moments of the sample and half of its largest error again."""
    errors = stats.gamma(1.5).rvs(300, random_state=1)
    sums, n = ErrorSums.of(errors), 300
    u = errors - errors.mean()
    largest = u[np.abs(u).argmax()]
    squares = (u**2).sum() * n / (n - 1) + 0.5 * largest**2
    skew = math.sqrt(n) * ((u**3).sum() + 0.5 * largest**3) / squares**1.5
    freedom = 2 / (((u**4).sum() + 0.5 * largest**4) / squares**2 - 1 / n)

    def cubic(t):
        return t + skew * t**2 / (3 * math.sqrt(n)) + skew**2 * t**3 / (27 * n) + skew / (6 * math.sqrt(n))

    tau = stats.t(freedom).ppf(0.975)
    upper, lower = (optimize.brentq(lambda t, tau=tau: cubic(t) - tau, -50, 50) for tau in (tau, -tau))
    found = sums.interval(0.0, Composition(scale=1.0), 0.95)
    assert (found.low, found.high) == pytest.approx((-upper * math.sqrt(squares), -lower * math.sqrt(squares)))


def test_with_as_many_new_rows_as_labelled_ones_skewness_of_both_cancels():
    """D = Σu - Σu' has no skewness; what is left is that the variance is estimated from one side alone."""
    sums = ErrorSums.of(stats.expon().rvs(1000, random_state=2))
    alone = sums.interval(0.0, Composition(1.0), 0.95)
    both = sums.interval(0.0, Composition(1.0, luck=(1.0, 1.0)), 0.95)
    assert both.high - both.low == pytest.approx(math.sqrt(2) * (alone.high - alone.low), rel=0.02)
    assert both.high / -both.low < alone.high / -alone.low


def test_four_times_the_labels_halve_an_interval_without_luck():
    sums = ErrorSums.of(np.tile([-1.0, 1.0], 50))
    assert sums.units_to_halve(Composition(2.0)) == pytest.approx(400)
    assert sums.units_to_halve(Composition(1.0, luck=(1.0, 1.0))) == math.inf
    # Variances 9 and 1 of labels and luck, together 10: a quarter is 2.5, of which 1.5 is left to the labels.
    assert sums.units_to_halve(Composition(3.0, luck=(1.0, 1.0))) == pytest.approx(100 * 9 / 1.5)


def test_refusals_give_their_reason():
    assert "29 labelled" in ErrorSums.of(np.arange(29.0)).refusal()
    assert ErrorSums.of(np.arange(30.0)).refusal() == ""
    power_law = stats.pareto(1.5).ppf((np.arange(5000) + 0.5) / 5000)
    assert "tail index" in ErrorSums.of(power_law).refusal()
    assert "carries 99%" in ErrorSums.of(np.append(np.linspace(-1, 1, 200), 100.0)).refusal()


def test_errors_that_are_all_equal_allow_no_interval():
    sums = ErrorSums.of(np.full(50, 3.0))
    assert "the errors of all 50 labelled are the same" in sums.refusal()
    found = sums.interval(9.0, Composition(2.0), 0.95)  # a point, which nobody is shown
    assert (found.low, found.high) == (9.0, 9.0)
