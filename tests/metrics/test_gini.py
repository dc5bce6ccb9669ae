"""The Gini against the formula of scikit-learn's example on claims, and in closed form."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import auc

from transun.metrics import GINI, Meter


def lorenz_gini(y, pred, exposure):
    """As in scikit-learn's "Tweedie regression on insurance claims": rates, and exposures on the axis."""
    ranking = np.argsort(pred)
    exposure, rate = exposure[ranking], y[ranking]
    claims = np.cumsum(rate * exposure)
    share = np.cumsum(exposure)
    return 1.0 - 2.0 * auc(share / share[-1], claims / claims[-1])


def error_of(*rows):
    meter = Meter(GINI)
    meter.update(*rows)
    return meter.standard_errors()["GINI"]


def test_it_is_the_number_of_scikit_learns_example():
    rng = np.random.default_rng(0)
    n = 5_000
    pred, exposure = rng.gamma(2.0, 100.0, n), rng.uniform(0.05, 1.0, n)
    y = np.where(rng.random(n) < 0.1, pred * rng.gamma(1.0, 10.0, n), 0.0)
    # The example begins its curve at the first row instead of at zero, a difference of order 1/n.
    assert GINI(pred, y, exposure) == pytest.approx(lorenz_gini(y, pred, exposure), abs=2.0 / n)


def test_perfect_order_of_exponential_amounts():
    """The Gini of an exponential law is ½."""
    y = -np.log1p(-(np.arange(20_000) + 0.5) / 20_000)
    assert GINI(y, y) == pytest.approx(0.5, abs=1e-3)
    assert GINI(-y, y) == pytest.approx(-0.5, abs=1e-3)


@pytest.mark.parametrize("levels", [3, 10_000])
def test_its_standard_error_is_that_of_the_bootstrap(levels):
    """Also where many rows are tied. A standard deviation of 1,000 redraws is known to 2.2 %."""
    rng = np.random.default_rng(1)
    n = 800
    pred, weight = np.ceil(levels * rng.random(n)), rng.uniform(0.2, 2.0, n)
    y = pred * rng.lognormal(0.0, 1.0, n)
    drawn = stats.bootstrap(
        (pred, y, weight),
        lambda *rows: GINI(*rows),
        paired=True,
        vectorized=False,
        n_resamples=1000,
        method="basic",
        rng=2,
    )
    assert error_of(pred, y, weight) == pytest.approx(drawn.standard_error, rel=4 * 0.022)


def test_rows_that_say_nothing_have_no_error():
    assert np.isnan(error_of([1.0, 2.0], [0.0, 0.0]))
    assert error_of([1.0] * 5, [0.0, 1.0, 2.0, 3.0, 4.0]) == pytest.approx(0.0, abs=1e-12)
