"""Corrections and advice: applied to rows that they were not learned from, and right where the truth is known."""

import numpy as np
import pytest

from transun.diagnosis import diagnose
from transun.diagnosis.advice import advise, choose_head, variance_power_by_bins
from transun.diagnosis.candidates import log_like
from transun.diagnosis.correction_trials import FOLDS, TrialRows, correction_trials, fit_folds, out_of_fold, run_trials
from transun.diagnosis.result import Verdict
from transun.metrics import Estimate
from transun.models.spec import dumps, loads
from transun.schemes import PowerVariance


def biased(rows=20_000, sigma=0.8, seed=0):
    rng = np.random.default_rng(seed)
    typical = np.exp(3.0 + 0.8 * rng.normal(size=rows))
    return typical * rng.lognormal(0.0, sigma, rows), typical, rng.integers(0, FOLDS, rows)


def test_every_correction_repairs_the_total_of_a_log_model():
    y, pred, fold = biased()
    trials = correction_trials(log_like(y), PowerVariance(2.0), len(y))
    found = [each.result for each in run_trials(trials, TrialRows(y, pred, np.ones_like(y)), fold, False)]
    assert found[0].pgr.value == pytest.approx(np.exp(-0.32), rel=0.05)
    assert len(found) == 5
    for result in found[1:]:
        assert result.pgr.low <= 1.0 <= result.pgr.high, result.name
        assert result.nrmse.value < found[0].nrmse.value


def corrected(trial, y, pred, fold):
    rows = TrialRows(y, pred, np.ones_like(y))
    return out_of_fold(trial, fit_folds(trial, rows, fold), rows, fold)


def test_a_row_does_not_see_itself():
    """Changing one target changes the corrected predictions of other folds only."""
    y, pred, fold = biased(rows=1000)
    for trial in correction_trials(log_like(y), PowerVariance(1.0), len(y)):
        before = corrected(trial, y, pred, fold)
        spoiled = y.copy()
        spoiled[7] = 1e6
        after = corrected(trial, spoiled, pred, fold)
        own = fold == fold[7]
        np.testing.assert_array_equal(after[own], before[own])
        assert not np.array_equal(after[~own], before[~own])


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_the_variance_power_is_found(power):
    rng = np.random.default_rng(2)
    mean = np.exp(rng.uniform(0.0, 4.0, 40_000))
    y = mean + mean ** (power / 2.0) * rng.normal(size=len(mean))
    found = variance_power_by_bins(y, mean, np.ones_like(y))
    assert found.low - 0.1 <= power <= found.high + 0.1
    assert found.value == pytest.approx(power, abs=0.1)
    # A biased prediction must not look like noise that grows.
    assert variance_power_by_bins(y, 0.5 * mean, np.ones_like(y)).value == pytest.approx(power, abs=0.1)


@pytest.mark.parametrize(
    ("power", "transform", "kappa"), [(0.1, "Identity()", 0.0), (0.9, "Power()", 1.0), (2.1, "Log1p()", 2.0)]
)
def test_t_and_kappa_make_the_noise_even(power, transform, kappa):
    y = np.array([1.0, 10.0, 100.0])
    named, scheme, reason = choose_head(y, y, Estimate("", power, power, power), effective_rows=1e6)
    assert dumps(named.transform) == transform
    assert scheme.power == kappa
    assert "grows like the mean" in reason


def test_a_heavy_tail_keeps_kappa_gentle():
    y = np.array([1.0, 10.0, 100.0])
    _, scheme, reason = choose_head(y, y, Estimate("", 2.0, 2.0, 2.0), effective_rows=10.0)
    assert scheme.power == 1.0
    assert "10 rows" in reason


def test_without_different_predictions_the_skewness_decides():
    rng = np.random.default_rng(3)
    nothing = Estimate("", np.nan, np.nan, np.nan)
    skewed, _, why = choose_head(rng.lognormal(3.0, 1.0, 5000), np.ones(5000), nothing, 1e6)
    assert skewed.formula == "ln(1 + y)"
    assert "skewness" in why
    symmetric, _, _ = choose_head(rng.normal(50.0, 10.0, 5000).clip(0.0), np.ones(5000), nothing, 1e6)
    assert symmetric.formula == "y"


def test_the_recommended_head_can_be_built():
    y, pred, _ = biased(rows=3000)
    advice = diagnose(y, pred).advice
    assert len(loads(advice.head).branches) == 2
    assert loads(advice.transform) is not None
    assert loads(advice.kappa).power <= 2.0


@pytest.mark.parametrize("kind", ["fine", "unclear", "uneven", "undefined"])
def test_the_advice_agrees_with_a_verdict_that_finds_no_bias(kind):
    nothing = Estimate("", np.nan, np.nan, np.nan)
    named, scheme, reason = choose_head(np.array([1.0, 2.0, 9.0]), np.ones(3), nothing, 1e6)
    advice = advise(named, scheme, reason, nothing, [], Verdict(kind, "", biased=False))
    assert ("Nothing" in advice.now) == (kind == "fine")


def test_the_best_correction_is_named():
    y, pred, _ = biased()
    assert "becomes" in diagnose(y, pred).advice.now
    assert diagnose(y, pred * np.exp(0.32)).advice.now.startswith("Nothing")


def test_predictions_that_are_a_multiple_of_the_amounts_can_be_corrected():
    """Only rounding is left of the errors, and the interval of a total is a point beside 1."""
    y = np.random.default_rng(0).lognormal(size=400)
    assert diagnose(y, 0.7 * y).advice.now.startswith("Apply isotonic")
