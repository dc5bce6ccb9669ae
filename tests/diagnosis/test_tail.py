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


def test_a_power_law_has_the_index_and_the_error_of_hill():
    """Of a power law, k·M₁/ξ has the Gamma law of shape k, also among samples that were found to follow one.

    The mean of exponential variables is independent of how well their law fits (Basu).
    """
    samples = stats.pareto(2.0).rvs((400, 1000), random_state=0)
    first = [tail for tail in map(AmountTail.of, samples) if tail.count == 950]  # above the smallest twentieth
    # The test leaves nine of ten; three standard errors of a share.
    assert len(first) / 400 == pytest.approx(0.9, abs=3 * math.sqrt(0.09 / 400))
    assert stats.kstest([tail.index for tail in first], stats.gamma(950, scale=0.5 / 950).cdf).pvalue > 1e-3
    assert all(tail.error == pytest.approx(tail.index / math.sqrt(950)) for tail in first)


def test_a_power_law_is_looked_for_by_the_test_of_anderson_and_darling():
    """scipy's statistic of ln(x / threshold), with the critical value that leaves nine of ten."""
    samples = stats.pareto(1.0).rvs((100, 200), random_state=2)
    fits = []
    for sample in np.sort(samples)[:, ::-1]:
        excesses = np.log(sample[:190] / sample[190])
        fit = stats.goodness_of_fit(stats.expon, excesses, known_params={"loc": 0}, statistic="ad", n_mc_samples=1)
        fits.append(fit.statistic * (1 + 0.6 / 190) < 1.062)
    assert fits == [AmountTail.of(sample).count == 190 for sample in samples]
    assert 0 < sum(fits) < 100


def test_the_standard_error_of_other_tails_is_that_of_many_samples():
    """Dekkers, Einmahl and de Haan (1989): the variance is (1 + ξ²)/k for ξ ≥ 0; Student's t of 2 has ξ = ½."""
    samples = np.abs(stats.t(2.0).rvs((400, 1000), random_state=0))
    tails = [AmountTail.of(sample) for sample in samples]
    assert {tail.count for tail in tails} == {int(1000**0.75)}
    spread = np.std([tail.index for tail in tails])
    # The standard deviation of 400 numbers is known to 1/√800, and the formula is that of the limit.
    assert spread == pytest.approx(np.mean([tail.error for tail in tails]), rel=0.25)
    # At an index of just ½ nothing is shown but in 5 of 100 samples on each side, and the limit is not reached yet.
    assert np.mean([tail.finite_variance for tail in tails]) < 0.1 + 3 * math.sqrt(0.1 * 0.9 / 400)
    assert np.mean([tail.infinite_variance for tail in tails]) < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


def test_a_few_hundred_amounts_tell_power_laws_apart():
    """Hill's index of 285 amounts is off by ξ/√285, far less than ½ is from 1/1.5 and from 1/2.5.

    A power law fits nine of ten samples above the first threshold, and some of the others above the next.
    """
    for power, finite in ((1.5, False), (2.5, True)):
        tails = [AmountTail.of(sample) for sample in stats.pareto(power).rvs((400, 300), random_state=1)]
        wrong = stats.gamma(285, scale=1 / power / 285).cdf(0.5)
        right = 0.9 * (wrong if finite else 1.0 - wrong)
        share = np.mean([tail.likely_finite_variance == finite for tail in tails])
        assert share > right - 3 * math.sqrt(right * (1.0 - right) / 400)


@pytest.mark.parametrize(
    "law", [stats.lognorm(0.5), stats.lognorm(2.0), stats.expon(), stats.gamma(0.3), stats.lomax(3)]
)
def test_other_laws_are_not_taken_for_power_laws(law):
    assert AmountTail.of(quantiles(law, 300)).count == int(300**0.75)


@pytest.mark.parametrize("prices", [[1.0, 10.0], [5.0, 10.0, 15.0, 20.0, 50.0]])
def test_a_few_prices_are_no_power_law(prices):
    """Their logarithms may have the mean and the spread of one."""
    assert AmountTail.of(np.repeat(prices, 300 // len(prices))).count == int(300**0.75)


def test_amounts_with_an_upper_end_are_no_power_law():
    sample = quantiles(stats.pareto(1.5), 300)
    assert AmountTail.of(sample).count == 285
    assert AmountTail.of(sample, bounded=True).count == int(300**0.75)


def test_few_amounts_are_not_taken_for_a_power_law():
    """Whatever they are: 90 cannot tell it from others."""
    assert AmountTail.of(quantiles(stats.pareto(1.5), 90)).count == int(90**0.75)


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
