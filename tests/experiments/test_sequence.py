"""The always-valid interval: its formula, its best width, and its level under as many looks as there are users."""

import math

import numpy as np
import pytest
from scipy import optimize

from transun.experiments.sequence import always_valid_errors


def margin_by_the_paper(t, rho2, alpha):
    """The half width of arXiv 2103.06476 for unit variance, over the standard error 1/√t."""
    half = math.sqrt(2.0 * (t * rho2 + 1.0) / (t**2 * rho2) * math.log(math.sqrt(t * rho2 + 1.0) / alpha))
    return half * math.sqrt(t)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_no_other_rho_is_narrower_at_the_horizon(level):
    best = optimize.minimize_scalar(
        lambda log_rho2: margin_by_the_paper(5_000, math.exp(log_rho2), 1.0 - level), bounds=(-15, 0), method="bounded"
    )
    assert always_valid_errors(5_000, level, horizon=5_000) == pytest.approx(best.fun, rel=1e-6)


def test_it_is_the_formula_of_the_paper_at_every_time():
    # At the horizon r = ρ²·horizon, which the width there determines; elsewhere the same ρ² must hold.
    r = optimize.brentq(lambda r: r - math.log(1.0 + r) - 2.0 * math.log(20.0), 1.0, 100.0)
    for users in (10, 1_000, 10_000, 10**6):
        expected = margin_by_the_paper(users, r / 10_000, 0.05)
        assert always_valid_errors(users, 0.95, 10_000) == pytest.approx(expected, rel=1e-9)


def test_looking_after_every_user_keeps_the_level():
    """Of 1,000 random walks of 2,000 steps, at most 5 % ever leave the interval; most leave the usual one."""
    rng = np.random.default_rng(0)
    times = np.arange(50, 2_001)
    walks = rng.standard_normal((1_000, 2_000)).cumsum(axis=1)[:, times - 1] / np.sqrt(times)
    width = np.array([always_valid_errors(int(t), 0.95, horizon=1_000) for t in times])
    always, usual = (np.abs(walks) > width).any(axis=1).mean(), (np.abs(walks) > 1.96).any(axis=1).mean()
    assert always < 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / 1_000)
    assert usual > 0.3


def test_impossible_sizes_are_named():
    with pytest.raises(ValueError, match="users=0"):
        always_valid_errors(0)
    with pytest.raises(ValueError, match="horizon=0"):
        always_valid_errors(10, horizon=0)
