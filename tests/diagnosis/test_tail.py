"""The index of a tail: that of a power law where there is one, and below it where there is none."""

import math

import numpy as np
import pytest
from scipy import stats

from transun.diagnosis.tail import AmountTail, relative_amounts


def quantiles(law, n):
    """A sample that is as even as can be."""
    return law.ppf((np.arange(n) + 0.5) / n)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.5, 4.0])
def test_a_power_law_has_its_index(power):
    tail = AmountTail.of(quantiles(stats.pareto(power), 100_000))
    assert tail.index == pytest.approx(1 / power, abs=0.05)
    assert (tail.finite_variance, tail.infinite_variance) == (power > 2.0, power < 2.0)
    assert tail.likely_finite_variance == (power > 2.0)


@pytest.mark.parametrize("law", [stats.expon(), stats.uniform(), stats.lognorm(1.0)])
def test_lighter_laws_have_a_variance(law):
    assert AmountTail.of(quantiles(law, 20_000)).finite_variance


def test_the_standard_error_is_that_of_many_samples():
    """Dekkers, Einmahl and de Haan (1989): the variance is (1 + ξ²)/k for ξ ≥ 0."""
    samples = stats.pareto(2.0).rvs((400, 1000), random_state=0)
    tails = [AmountTail.of(sample) for sample in samples]
    spread = np.std([tail.index for tail in tails])
    # The standard deviation of 400 numbers is known to 1/√800, and the formula is that of the limit.
    assert spread == pytest.approx(np.mean([tail.error for tail in tails]), rel=0.25)
    # At an index of just ½ nothing is shown but in 5 of 100 samples on each side, and the limit is not reached yet.
    assert np.mean([tail.finite_variance for tail in tails]) < 0.1 + 3 * math.sqrt(0.1 * 0.9 / 400)
    assert np.mean([tail.infinite_variance for tail in tails]) < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


def test_units_and_zeros_do_not_matter():
    sample = stats.pareto(3.0).rvs(500, random_state=1)
    assert AmountTail.of(sample * 1e6).index == pytest.approx(AmountTail.of(sample).index)
    assert AmountTail.of(np.append(sample, np.zeros(5000))) == AmountTail.of(sample)


@pytest.mark.parametrize("values", [np.zeros(0), np.zeros(100), np.array([0.0] * 95 + [1.0] * 5)])
def test_where_few_amounts_are_above_0_nothing_is_claimed(values):
    tail = AmountTail.of(values)
    assert np.isnan(tail.index)
    assert not tail.infinite_variance
    assert not tail.finite_variance
    assert not tail.likely_finite_variance
    assert "too few amounts" in tail.refusal()


def test_equal_largest_amounts_are_no_tail():
    assert AmountTail.of(np.tile([0.0, 1.0], 500)).index == 0.0


def test_two_samples_say_as_much_as_both_together():
    """Indices are averaged by precision, and precisions add up; a sample that says nothing changes nothing."""
    both = AmountTail(0.2, 0.1, 100).joined(AmountTail(0.5, 0.2, 25))
    assert (both.index, both.error) == pytest.approx(((0.2 * 100 + 0.5 * 25) / 125, 1 / math.sqrt(125)))
    nothing = AmountTail.of(np.zeros(0))
    assert both.joined(nothing) == nothing.joined(both) == both.joined(None) == both


def test_amounts_that_the_model_expects_have_no_tail():
    """Amounts of a power law that are predicted to a factor of 2 are a model's success, and no surprise."""
    pred = quantiles(stats.pareto(1.5), 10_000)
    y = pred * np.tile([0.5, 1.5], 5_000)
    assert AmountTail.of(y).infinite_variance
    assert AmountTail.of(relative_amounts(y, pred)).finite_variance


def test_predictions_near_0_count_as_a_tenth_of_the_mean():
    assert relative_amounts(np.array([1.0, 1.0, -4.0]), np.array([1e-9, 0.0, 6.0])).tolist() == pytest.approx(
        [5.0, 5.0, 4 / 6]
    )
