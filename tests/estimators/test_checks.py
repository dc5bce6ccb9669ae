"""scikit-learn's own checks, for every estimator around a regressor."""

import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from estimators.every_estimator import AROUND
from transun import Asinh, Identity
from transun.estimators import CorrectedRegressor, GTSRegressor, MulticalibratedRegressor

# In tiny check data sets ratios leave the training targets and totals are off; that fit says so is tested apart.
pytestmark = [
    pytest.mark.filterwarnings("ignore::transun.estimators.FitWarning"),
]

SMALL = HistGradientBoostingRegressor(max_iter=20)
BY_LINEAR = [
    *(kind(Ridge()) for kind in AROUND),
    GTSRegressor(Ridge(), target_transform=Asinh(), cv=None),
    CorrectedRegressor(Ridge(), bias_correction="taylor", target_transform=Identity()),
]
# The trees of multicalibration are its own, whatever the regressor.
BY_TREES = [kind(SMALL) for kind in AROUND if kind is not MulticalibratedRegressor]


def of_the_trees(estimator):
    """What histogram gradient boosting itself fails: it puts values into bins without looking at the weights."""
    if isinstance(getattr(estimator, "regressor", None), HistGradientBoostingRegressor):
        return {"check_sample_weight_equivalence_on_dense_data": "bins of the base regressor ignore weights"}
    return {}


@parametrize_with_checks(BY_LINEAR + BY_TREES, expected_failed_checks=of_the_trees)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", AROUND)
def test_works_without_arguments(kind):
    X, y = [[float(i % 7)] for i in range(60)], [float(i % 7) + 1.0 for i in range(60)]
    assert kind().fit(X, y).predict(X).shape == (60,)
