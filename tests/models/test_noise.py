"""The noise of a total: the standard error of a mean, by clusters, and of both samples together."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from transun.models.noise import Noise

RNG = np.random.default_rng(0)
Y = RNG.gamma(0.5, 2.0, 400)
ERRORS = Y - Y.mean()  # those of a model that predicts the mean
NOISE = Noise(
    1600, 400, 400, None, Y.sum(), Y.sum(), (ERRORS**2).sum(), 0.0, 0.0, float(ERRORS.max()), math.nan, math.nan, 0
)


def test_of_a_constant_model_it_is_the_standard_error_of_the_mean():
    quantile = stats.norm.ppf(0.995)
    assert NOISE.variation == pytest.approx(Y.var(ddof=1) / Y.mean() ** 2)
    assert NOISE.held_out == pytest.approx(quantile * stats.sem(Y) / Y.mean())
    assert NOISE.training == pytest.approx(NOISE.held_out / 2)
    assert NOISE.together == pytest.approx(NOISE.held_out * math.sqrt(1.25))


def test_the_numbers_of_issue_22():
    """At V/E² = 264 and 4,290 training rows the total is known to 25 %."""
    noise = replace(NOISE, training_rows=4290, squares=264 * NOISE.actual**2 * 399 / 400**2)
    assert noise.training / stats.norm.ppf(0.995) == pytest.approx(0.248, abs=5e-4)


def test_what_is_not_known_has_its_own_reason():
    assert replace(NOISE, units=1).sentence().endswith("cannot be said, as a single row shows no scatter.")
    assert "a single value of 'user' shows" in replace(NOISE, units=1, cluster="user").sentence()
    assert replace(NOISE, actual=0.0).sentence().endswith("as the actual total is not above 0 or has no square.")


def test_four_times_the_rows_halve_it():
    large = replace(
        NOISE, training_rows=6400, rows=1600, units=1600, actual=4 * NOISE.actual, squares=4 * NOISE.squares
    )
    assert large.together == pytest.approx(NOISE.together / 2, rel=2e-3)
    assert "four times as many rows in all, 8,000" in NOISE.sentence()


def test_clusters_count_instead_of_rows():
    """Rows in equal pairs: half the units, each with twice the error, and √2 times the noise of rows that differ."""
    pairs = replace(NOISE, units=200, cluster="user", squares=2 * NOISE.squares)
    assert pairs.held_out == pytest.approx(math.sqrt(2) * NOISE.held_out, rel=2e-3)
    assert pairs.training == pytest.approx(pairs.held_out / 2)
    assert "The 200 values of 'user' held out" in pairs.sentence()


def test_what_is_not_known_is_not_claimed():
    assert "four times as many, 1,600" in replace(NOISE, training_rows=0).sentence()
    for actual in (0.0, -1.0, 1e-300):  # the last one has a square of 0
        assert "cannot be said" in replace(NOISE, actual=actual).sentence()
