import math

import numpy as np
import pytest
from scipy import stats

from transun.metrics.spread import OutlierShare, outlier_share, relative_variance, skewness, variance


def test_against_scipy_and_numpy():
    v = np.random.default_rng(0).lognormal(0, 1, 500)
    assert variance(v) == pytest.approx(np.var(v), rel=1e-10)
    assert relative_variance(v) == pytest.approx(stats.variation(v) ** 2, rel=1e-10)
    assert skewness(v) == pytest.approx(stats.skew(v), rel=1e-10)
    assert outlier_share(v) == pytest.approx(np.mean(np.abs(stats.zscore(v)) > 3), rel=1e-12)
    assert OutlierShare(deviations=1.0)(v, v) == pytest.approx(np.mean(np.abs(stats.zscore(v)) > 1), rel=1e-12)


def test_weights_by_hand():
    # 0 with weight 3, 4 with weight 1: mean 1, variance (3·1 + 9)/4 = 3, third (−3 + 27)/4 = 6
    assert variance([0.0, 4.0], [3.0, 1.0]) == pytest.approx(3.0)
    assert relative_variance([0.0, 4.0], [3.0, 1.0]) == pytest.approx(3.0)
    assert skewness([0.0, 4.0], [3.0, 1.0]) == pytest.approx(6 / 3**1.5)


@pytest.mark.parametrize("value", [0.1, 1e6 / 3, 5.0])
def test_a_constant_array(value):
    v = [value] * 7
    assert variance(v) == 0.0
    assert relative_variance(v) == 0.0
    assert math.isnan(skewness(v))
    assert outlier_share(v) == 0.0
