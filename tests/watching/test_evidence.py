"""The e-process: its value in closed form and by integration, and that quiet series seldom convince it."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from transun.watching.evidence import ChangeWatch, recursive_residuals


def by_integration(history, watched, start, effect):
    """The ratio of marginal likelihoods over σ, whose prior is dσ/σ, of a mean effect·σ from `start` on to mean 0."""
    changed = np.concatenate([np.zeros(len(history) + start), np.ones(len(watched) - start)])
    x = np.concatenate([history, watched])

    def likelihood(log_sigma, mean):
        return math.exp(stats.norm.logpdf(x, mean * changed * math.exp(log_sigma), math.exp(log_sigma)).sum())

    over, under = (integrate.quad(likelihood, -6.0, 3.0, (mean,), limit=200)[0] for mean in (effect, 0.0))
    return over / under


def test_the_evidence_is_the_mean_of_the_likelihood_ratios():
    rng = np.random.default_rng(0)
    history, watched = rng.normal(0.0, 0.2, 20), rng.normal(0.1, 0.2, 6)
    watch = ChangeWatch(horizon=6, step=3, sizes=(0.1,))
    spread = math.sqrt(np.mean(history**2))
    ratios = [by_integration(history, watched, start, sign * 0.1 / spread) for start in (0, 3) for sign in (1.0, -1.0)]
    assert math.exp(watch(history, watched).log_e[-1]) == pytest.approx(np.mean(ratios), rel=1e-4)


def test_starts_that_have_not_come_contribute_one():
    watch = ChangeWatch(horizon=100, step=50, sizes=(0.1,))
    history, first = np.array([0.1, -0.1] * 10), np.array([0.3])
    ratios = [by_integration(history, first, 0, sign) for sign in (1.0, -1.0)]
    # Of the four pairs of start and sign, two begin at 50.
    assert math.exp(watch(history, first).log_e[0]) == pytest.approx((sum(ratios) + 2.0) / 4.0, rel=1e-4)


def test_no_unit_matters():
    rng = np.random.default_rng(1)
    history, watched = rng.normal(0.0, 0.2, 20), rng.normal(0.1, 0.2, 9)
    small, large = (
        ChangeWatch(9, 2, (0.05 * unit, 0.1 * unit))(unit * history, unit * watched).log_e for unit in (1.0, 1e6)
    )
    np.testing.assert_allclose(small, large, rtol=1e-9)


def test_quiet_series_seldom_raise_an_alarm_whatever_the_spread_is():
    rng = np.random.default_rng(2)
    watch = ChangeWatch(horizon=40, step=4, sizes=(0.05, 0.1), level=0.2)
    alarms = sum(
        watch(rng.normal(0.0, spread, 15), rng.normal(0.0, spread, 40)).alarm is not None
        for spread in (0.02, 0.1, 0.5)
        for _ in range(100)
    )
    # At most 20 % of 300, beyond which 60 + 3·√(300·0.2·0.8) = 81 is three standard errors away.
    assert alarms <= 81


def test_a_change_is_found_with_its_direction_and_start():
    rng = np.random.default_rng(3)
    history, watched = rng.normal(0.0, 0.05, 60), rng.normal(0.0, 0.05, 80)
    watched[40:] -= 0.1  # two standard deviations
    evidence = ChangeWatch(horizon=80, step=5, sizes=(0.05, 0.1))(history, watched)
    assert evidence.alarm is not None
    # A start within a few periods of the true one, at which the likelihood peaks sharply.
    assert 30 <= evidence.begin <= 45
    assert not evidence.up


def test_a_watch_of_one_direction_is_blind_to_the_other():
    rng = np.random.default_rng(4)
    history, watched = rng.normal(0.0, 0.05, 60), rng.normal(-0.1, 0.05, 40)
    up, down = (ChangeWatch(40, 5, (0.05, 0.1), signs=(sign,))(history, watched) for sign in (1.0, -1.0))
    assert (up.log_e <= 0.0).all()
    assert down.alarm is not None
    assert not down.up


def test_recursive_residuals_are_uncorrelated_and_of_one_variance():
    """Brown, Durbin and Evans: rows of an orthogonal matrix without the constant."""
    matrix = np.stack([recursive_residuals(row) for row in np.eye(6)], 1)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(5), atol=1e-12)
    np.testing.assert_allclose(matrix @ np.ones(6), 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"horizon": 0}, "horizon and step >= 1"),
        ({"horizon": 9, "sizes": ()}, "sizes above 0"),
        ({"horizon": 9, "level": 1.0}, "0 < level < 1"),
        ({"horizon": 9, "signs": ()}, "signs 1 and -1"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        ChangeWatch(**settings)


def test_a_history_without_scatter_is_refused():
    with pytest.raises(ValueError, match="at least two periods of history"):
        ChangeWatch(9)(np.full(20, 1e-16), np.zeros(3))
    with pytest.raises(ValueError, match="12 periods are watched, and the horizon is 9"):
        ChangeWatch(9)(np.ones(20), np.ones(12))
