import pickle

import numpy as np
import pytest
from lightgbm import LGBMRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from estimators.world import world
from transun.estimators import UnbiasedRegressor

DATA = world(3_000, seed=9)
TREE = DecisionTreeRegressor(random_state=0)
BOOSTER = LGBMRegressor(n_estimators=60, min_child_samples=50, verbose=-1, n_jobs=1)


def mixture(base=BOOSTER, y=DATA.y, **rows):
    return UnbiasedRegressor(base, random_state=0).fit(DATA.X, y, **rows)


@pytest.mark.parametrize(
    ("base", "parameter", "loss"),
    [(BOOSTER, "objective", "tweedie"), (HistGradientBoostingRegressor(max_iter=60), "loss", "poisson")],
    ids=["LightGBM", "sklearn"],
)
def test_reproduces_the_mixture_with_the_same_total(base, parameter, loss):
    model = mixture(base)
    small = model.compact(DATA.X, DATA.y)
    assert small.predict(DATA.X).sum() == pytest.approx(model.predict(DATA.X).sum())
    # Both features have six values, so that every x of a fold is known: the distance is what boosting leaves.
    assert small.agreement.distance < 0.1 * small.agreement.nrmse
    assert small.agreement.nrmse == pytest.approx(small.agreement.mixture_nrmse, rel=0.02)
    assert abs(small.agreement.total - 1.0) < 4.0 * small.agreement.total_error
    assert type(small.regressor) is type(base)
    assert small.regressor.get_params()[parameter] == loss


def test_a_full_tree_is_the_mixture_where_all_x_are_known():
    """A tree that separates all x imitates without error, on rows of other folds too."""
    model = mixture()
    small = model.compact(DATA.X, DATA.y, regressor=TREE)
    assert small.predict(DATA.X) == pytest.approx(model.predict(DATA.X))
    assert small.agreement.distance == pytest.approx(0.0, abs=1e-9)


def test_numbers_are_of_rows_that_nobody_saw():
    """Pure noise with a row number as the feature: in sample a tree would know every target."""
    rng = np.random.default_rng(0)
    X, y = np.arange(600.0)[:, None], rng.lognormal(0.0, 1.0, 600)
    small = UnbiasedRegressor(TREE, random_state=0).fit(X, y).compact(X, y)
    best_possible = y.std() / y.mean()
    assert small.agreement.nrmse > 0.95 * best_possible


def test_signed_targets_are_imitated_by_squares_and_shifted():
    y = DATA.y - 20.0
    model = mixture(y=y)
    small = model.compact(DATA.X, y)
    assert small.regressor.objective is None
    assert small.predict(DATA.X).mean() == pytest.approx(model.predict(DATA.X).mean())


def test_exposures_and_weights():
    exposure = np.random.default_rng(1).uniform(0.2, 3.0, len(DATA.y))
    model = mixture(exposure=exposure)
    small = model.compact(DATA.X, DATA.y, exposure=exposure, regressor=TREE)
    assert small.predict(DATA.X, exposure) == pytest.approx(model.predict(DATA.X, exposure))
    with pytest.raises(ValueError, match="pass exposure to predict"):
        small.predict(DATA.X)
    with pytest.raises(ValueError, match="rows that the mixture was fitted to, with their exposures"):
        model.compact(DATA.X, DATA.y)


def test_other_rows_are_refused():
    with pytest.raises(ValueError, match="rows that the mixture was fitted to"):
        mixture(Ridge()).compact(DATA.X[:10], DATA.y[:10])


def test_survives_pickling_and_prints():
    small = mixture(Ridge()).compact(DATA.X, DATA.y)
    assert (pickle.loads(pickle.dumps(small)).predict(DATA.X) == small.predict(DATA.X)).all()
    assert "predicted / actual total" in str(small.agreement)
