"""Synthetic tables are judged against the mean of the draws that each seed was trained on."""

import pytest

from transun_paper.lab.synthetic import SyntheticCell, SyntheticProtocol
from transun_paper.lab.synthetic_tables import unbiasedness

# Ten samples whose own means are three standard errors high, as a person meets them who does not choose seeds.
HIGH = [0.003 + 1e-4 * seed for seed in range(10)]


def cell(average, noise=9e-4):
    return SyntheticCell("m", "-", "RS-G", average, 0.1, average, 0.1, HIGH, 0.0, noise, None)


def test_a_method_that_learns_the_mean_of_its_draws_is_unbiased_whatever_the_draws_are():
    learned = cell(HIGH)
    assert learned.sre == pytest.approx(0.00345)
    assert learned.gap == pytest.approx(0.0)
    within, near, _ = unbiasedness([learned])
    assert within.holds
    assert near.holds


def test_a_method_that_misses_the_mean_of_its_draws_is_biased_though_the_truth_is_near():
    lucky = cell([value - 0.003 for value in HIGH])
    assert abs(lucky.sre) < 0.001
    within, near, _ = unbiasedness([lucky])
    assert not within.holds
    assert not near.holds


def test_seeds_are_the_first_ones():
    assert SyntheticProtocol().first_seed == 0
