"""Exposures of tables: what is refused, and that rates by Poisson deviance are amounts with an offset."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import optimize

from transun.data.exposure import read_exposure, to_rates


@pytest.mark.parametrize("wrong", [0.0, -1.0, None, float("inf")])
def test_what_is_no_exposure_is_named(wrong):
    with pytest.raises(ValueError, match="column 'years', row 1"):
        read_exposure(pa.table({"years": [1.0, wrong]}), "years")


def test_poisson_deviance_of_weighted_rates_is_that_of_amounts_with_an_offset():
    rng = np.random.default_rng(0)
    exposure, x = rng.uniform(0.1, 1.0, 200), rng.integers(0, 2, 200)
    y = rng.poisson(exposure * np.exp(0.5 + x)).astype(float)
    rate, weight = to_rates(y, None, exposure)

    def of_amounts(beta):
        mean = np.exp(np.log(exposure) + beta[0] + beta[1] * x)
        return np.sum(mean - y * np.log(mean))

    def of_rates(beta):
        mean = np.exp(beta[0] + beta[1] * x)
        return np.sum(weight * (mean - rate * np.log(mean)))

    first, second = (optimize.minimize(cost, np.zeros(2), tol=1e-10).x for cost in (of_amounts, of_rates))
    np.testing.assert_allclose(first, second, atol=1e-4)
