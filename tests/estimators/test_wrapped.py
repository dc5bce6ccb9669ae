"""Regressors around a regressor: what transforms the target is taken off, or refused where it cannot be."""

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, VotingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from estimators.world import world
from transun import Identity
from transun.estimators import BalancedRegressor, CorrectedRegressor, GTSRegressor, UnbiasedRegressor
from transun.estimators.wrapped import transforms_target, without_target_transform

TREE = DecisionTreeRegressor(random_state=0, min_samples_leaf=20)
LOG = TransformedTargetRegressor(TREE, func=np.log1p, inverse_func=np.expm1)
DATA = world(600, seed=3)


@pytest.mark.parametrize(
    ("regressor", "expected"),
    [
        (TREE, False),
        (LOG, True),
        (make_pipeline(StandardScaler(), LOG), True),
        (GridSearchCV(LOG, {}), True),
        (GTSRegressor(TREE), True),
        (UnbiasedRegressor(TREE), True),
        (BalancedRegressor(TREE), False),
        (BalancedRegressor(LOG), True),
    ],
)
def test_who_transforms_the_target(regressor, expected):
    assert transforms_target(regressor) is expected


@pytest.mark.parametrize("wrapper", [LOG, GTSRegressor(TREE), UnbiasedRegressor(LOG)])
def test_the_regressor_inside(wrapper):
    assert without_target_transform(wrapper, None) is TREE
    assert without_target_transform(make_pipeline(StandardScaler(), wrapper), None)[-1].min_samples_leaf == 20


def test_what_none_means_inside():
    assert isinstance(without_target_transform(TransformedTargetRegressor(), None), LinearRegression)
    default = HistGradientBoostingRegressor()
    assert without_target_transform(GTSRegressor(), default) is default


@pytest.mark.parametrize("hidden", [GridSearchCV(LOG, {}), VotingRegressor([("log", LOG), ("plain", TREE)])])
@pytest.mark.parametrize("kind", [UnbiasedRegressor, GTSRegressor])
def test_a_transform_that_cannot_be_taken_off_is_refused(kind, hidden):
    settings = {"target_transform": Identity()} if kind is GTSRegressor else {}
    with pytest.raises(ValueError, match="holds a regressor that transforms its target"):
        kind(hidden, **settings).fit(DATA.X, DATA.y)


def test_the_automatic_choice_around_a_log_target_is_that_around_its_regressor():
    plain, wrapped = (
        UnbiasedRegressor(base, random_state=0).fit(DATA.X, DATA.y).predict(DATA.X) for base in (TREE, LOG)
    )
    assert (plain == wrapped).all()


@pytest.mark.parametrize("kind", [GTSRegressor, CorrectedRegressor])
@pytest.mark.parametrize("inner", [LOG, GTSRegressor(TREE)], ids=["scikit-learn", "ours"])
def test_two_transforms_of_one_target_are_refused(kind, inner):
    with pytest.raises(ValueError, match=r"transforms its target already: give .* the regressor inside it"):
        kind(inner).fit(DATA.X, DATA.y)


def test_a_bias_regressor_must_not_transform():
    with pytest.raises(ValueError, match="bias_regressor is a TransformedTargetRegressor"):
        GTSRegressor(Ridge(), LOG).fit(DATA.X, DATA.y)
