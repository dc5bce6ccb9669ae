"""The index of a tail: that of a power law where there is one, and below it where there is none."""

import numpy as np
import pytest
from scipy import stats

from transun.diagnosis.tail import ErrorTail


def quantiles(law, n):
    """A sample that is as even as can be."""
    return law.ppf((np.arange(n) + 0.5) / n)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.5, 4.0])
def test_a_power_law_has_its_index(power):
    tail = ErrorTail.of(quantiles(stats.pareto(power), 100_000) * np.tile([1.0, -1.0], 50_000))
    assert tail.index == pytest.approx(1 / power, abs=0.05)
    assert tail.infinite_variance == (power < 2.0)


@pytest.mark.parametrize("law", [stats.norm(), stats.expon(), stats.uniform(), stats.lognorm(1.0)])
def test_lighter_laws_have_a_variance(law):
    assert not ErrorTail.of(quantiles(law, 20_000)).infinite_variance


def test_the_standard_error_is_that_of_many_samples():
    """Dekkers, Einmahl and de Haan (1989): the variance is (1 + ξ²)/k for ξ ≥ 0."""
    samples = stats.pareto(2.0).rvs((400, 1000), random_state=0)
    tails = [ErrorTail.of(sample) for sample in samples]
    spread = np.std([tail.index for tail in tails])
    # The standard deviation of 400 numbers is known to 1/√800, and the formula is that of the limit.
    assert spread == pytest.approx(np.mean([tail.error for tail in tails]), rel=0.25)


def test_units_do_not_matter():
    sample = stats.pareto(3.0).rvs(500, random_state=1)
    assert ErrorTail.of(sample * 1e6 + 5e3).index == pytest.approx(ErrorTail.of(sample).index)


@pytest.mark.parametrize("errors", [np.zeros(0), np.ones(100), np.array([0.0] * 95 + [1.0] * 5)])
def test_where_nearly_all_errors_are_alike_nothing_is_claimed(errors):
    tail = ErrorTail.of(errors)
    assert np.isnan(tail.index)
    assert not tail.infinite_variance


def test_equal_largest_errors_are_no_tail():
    assert ErrorTail.of(np.tile([0.0, 1.0], 500)).index == 0.0
