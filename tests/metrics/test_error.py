import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, root_mean_squared_error

from transun.metrics import NMAE, NRMSE, RMSE, TRE, XAUC
from transun.metrics.error import PRINTED_NRMSE
from transun.metrics.ranking import XAUC_TPM

# paper/methods.md §10.1: two groups of rows, {3,3,3} and {8,1,1}; LogMSE predicts 3 and 2, TranSUN the means.
Y = np.array([3.0, 3.0, 3.0, 8.0, 1.0, 1.0])
LOG = np.array([3.0, 3.0, 3.0, 2.0, 2.0, 2.0])
SUN = np.array([3.0, 3.0, 3.0, 10 / 3, 10 / 3, 10 / 3])


@pytest.mark.parametrize("weighted", [False, True])
def test_against_scikit_learn(weighted):
    rng = np.random.default_rng(0)
    pred, y = rng.gamma(2, 1, 100), rng.gamma(1, 3, 100)
    w = rng.random(100) if weighted else None
    mean = np.average(y, weights=w)
    assert RMSE(pred, y, w) == pytest.approx(root_mean_squared_error(y, pred, sample_weight=w), rel=1e-12)
    assert NRMSE(pred, y, w) == pytest.approx(root_mean_squared_error(y, pred, sample_weight=w) / mean, rel=1e-12)
    assert NMAE(pred, y, w) == pytest.approx(mean_absolute_error(y, pred, sample_weight=w) / mean, rel=1e-12)


def test_the_worked_example():
    assert TRE(LOG, Y) == pytest.approx(4 / 15)
    assert TRE(SUN, Y) == pytest.approx(0, abs=1e-15)
    assert PRINTED_NRMSE(LOG, Y) == pytest.approx(0.324, abs=5e-4)
    assert PRINTED_NRMSE(SUN, Y) == pytest.approx(0.301, abs=5e-4)
    assert NRMSE(LOG, Y) == pytest.approx(0.795, abs=5e-4)
    assert NRMSE(SUN, Y) == pytest.approx(0.737, abs=5e-4)
    assert NMAE(LOG, Y) == pytest.approx(0.421, abs=5e-4)
    assert NMAE(SUN, Y) == pytest.approx(0.491, abs=5e-4)
    assert XAUC(LOG, Y) == pytest.approx(7 / 11)
    assert XAUC(SUN, Y) == pytest.approx(4 / 11)
    assert XAUC_TPM(LOG, Y) == pytest.approx((7 + 4) / 15)  # the four pairs of equal targets count as right


def test_printed_formula_is_smaller_by_the_root_of_n():
    assert NRMSE(LOG, Y) == pytest.approx(PRINTED_NRMSE(LOG, Y) * 6**0.5, rel=1e-12)


@pytest.mark.parametrize("metric", [NRMSE, NMAE, PRINTED_NRMSE, RMSE])
def test_turning_all_signs_around_changes_no_error(metric):
    rng = np.random.default_rng(0)
    pred, y = rng.gamma(2.0, 3.0, 50), rng.gamma(2.0, 3.0, 50)
    assert metric(-pred, -y) == pytest.approx(metric(pred, y), rel=1e-12)
    assert metric.standard_error(-pred, -y) == pytest.approx(metric.standard_error(pred, y), rel=1e-9)
