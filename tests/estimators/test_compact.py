import pickle
import warnings

import numpy as np
import pytest
from lightgbm import LGBMRegressor
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import KFold, ShuffleSplit, cross_val_predict
from sklearn.tree import DecisionTreeRegressor

from estimators.every_estimator import AROUND
from estimators.world import world
from transun.estimators import AmplificationWarning, GTSRegressor, MulticalibratedRegressor, UnbiasedRegressor

DATA, FEW = world(3_000, seed=9), world(600, seed=10)
TREE = DecisionTreeRegressor(random_state=0)
LEAVES = DecisionTreeRegressor(min_samples_leaf=50, random_state=0)
BOOSTER = LGBMRegressor(n_estimators=60, min_child_samples=50, verbose=-1, n_jobs=1)


@pytest.mark.parametrize("kind", [UnbiasedRegressor, GTSRegressor])
@pytest.mark.parametrize(
    ("base", "parameter", "loss"),
    [(BOOSTER, "objective", "tweedie"), (HistGradientBoostingRegressor(max_iter=60), "loss", "poisson")],
    ids=["LightGBM", "sklearn"],
)
def test_reproduces_its_teacher_with_the_same_total(kind, base, parameter, loss):
    model = kind(base, random_state=0).fit(DATA.X, DATA.y)
    small = model.compact(DATA.X, DATA.y)
    assert small.predict(DATA.X).sum() == pytest.approx(model.predict(DATA.X).sum())
    # Both features have six values, so that every x of a fold is known: the distance is what boosting leaves.
    assert small.agreement.distance < 0.1 * small.agreement.nrmse
    assert small.agreement.nrmse == pytest.approx(small.agreement.teacher_nrmse, rel=0.02)
    assert abs(small.agreement.total - 1.0) < 4.0 * small.agreement.total_error
    assert type(small.regressor) is type(base)
    assert small.regressor.get_params()[parameter] == loss


@pytest.mark.parametrize("kind", AROUND)
@pytest.mark.filterwarnings("ignore::transun.estimators.TotalWarning")
def test_a_full_tree_is_its_teacher_where_all_x_are_known(kind):
    """A tree that separates all x imitates without error, on rows of other folds too."""
    model = kind(LEAVES, cv=2, random_state=0).fit(FEW.X, FEW.y)
    small = model.compact(FEW.X, FEW.y, regressor=TREE, cv=2)
    assert small.predict(FEW.X) == pytest.approx(model.predict(FEW.X))
    assert small.agreement.distance == pytest.approx(0.0, abs=1e-6)  # multicalibration is in single precision


@pytest.mark.parametrize("kind", AROUND)
@pytest.mark.filterwarnings("ignore::transun.estimators.TotalWarning")
def test_the_teacher_is_measured_as_scikit_learn_cross_validates_it(kind):
    model = kind(LEAVES, cv=2, random_state=0)
    folds = KFold(3, shuffle=True, random_state=1)
    pred = cross_val_predict(clone(model), FEW.X, FEW.y, cv=folds)
    agreement = model.fit(FEW.X, FEW.y).compact(FEW.X, FEW.y, cv=folds).agreement
    assert agreement.teacher_nrmse == pytest.approx(root_mean_squared_error(FEW.y, pred) / FEW.y.mean())


def test_what_a_fit_warned_of_is_not_said_again():
    """Around pure noise by full trees the guard replaces ratios, in every fold too."""
    rng = np.random.default_rng(0)
    X, y = np.arange(600.0)[:, None], rng.lognormal(0.0, 1.0, 600)
    with pytest.warns(AmplificationWarning):
        model = GTSRegressor(TREE, cv=2, emphasis=0.0, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.compact(X, y)


def test_rows_that_no_fold_holds_out_are_not_measured():
    split = ShuffleSplit(1, test_size=0.2, random_state=0)
    model = GTSRegressor(LEAVES, cv=2, random_state=0)
    ((fitted, held_out),) = split.split(DATA.X)
    pred, y = clone(model).fit(DATA.X[fitted], DATA.y[fitted]).predict(DATA.X[held_out]), DATA.y[held_out]
    agreement = model.fit(DATA.X, DATA.y).compact(DATA.X, DATA.y, cv=split).agreement
    assert agreement.teacher_nrmse == pytest.approx(root_mean_squared_error(y, pred) / y.mean())


@pytest.mark.parametrize("kind", [UnbiasedRegressor, GTSRegressor])
@pytest.mark.filterwarnings("ignore::transun.estimators.AmplificationWarning")
def test_numbers_are_of_rows_that_nobody_saw(kind):
    """Pure noise with a row number as the feature: in sample a tree would know every target."""
    rng = np.random.default_rng(0)
    X, y = np.arange(600.0)[:, None], rng.lognormal(0.0, 1.0, 600)
    small = kind(TREE, random_state=0).fit(X, y).compact(X, y)
    best_possible = y.std() / y.mean()
    assert small.agreement.nrmse > 0.95 * best_possible
    assert small.agreement.teacher_nrmse > 0.95 * best_possible


def test_signed_targets_are_imitated_by_squares_and_shifted():
    y = DATA.y - 20.0
    model = UnbiasedRegressor(BOOSTER, random_state=0).fit(DATA.X, y)
    small = model.compact(DATA.X, y)
    assert small.regressor.objective is None
    assert small.predict(DATA.X).mean() == pytest.approx(model.predict(DATA.X).mean())


@pytest.mark.parametrize("kind", [UnbiasedRegressor, GTSRegressor, MulticalibratedRegressor])
def test_exposures(kind):
    exposure = np.random.default_rng(1).uniform(0.2, 3.0, len(FEW.y))
    model = kind(LEAVES, cv=2, random_state=0).fit(FEW.X, FEW.y, exposure=exposure)
    small = model.compact(FEW.X, FEW.y, exposure=exposure, regressor=TREE)
    assert small.predict(FEW.X, exposure) == pytest.approx(model.predict(FEW.X, exposure))
    with pytest.raises(ValueError, match="pass exposure to predict"):
        small.predict(FEW.X)
    with pytest.raises(ValueError, match="compact needs the exposures of the rows"):
        model.compact(FEW.X, FEW.y)


@pytest.mark.parametrize("kind", AROUND)
def test_exposures_that_the_fit_did_not_have_are_refused(kind):
    with pytest.raises(ValueError, match="compact takes no exposure here"):
        kind(LEAVES, cv=2).fit(FEW.X, FEW.y).compact(FEW.X, FEW.y, exposure=np.ones(len(FEW.y)))


def test_rows_of_weight_zero_are_neither_learned_nor_measured():
    weight = (np.arange(len(DATA.y)) % 3 > 0).astype(float)
    counted = weight > 0.0
    y = np.where(counted, DATA.y, 1e3)
    model = GTSRegressor(LEAVES, cv=2, random_state=0).fit(DATA.X, y, weight)
    small = model.compact(DATA.X, y, weight, regressor=TREE)
    assert small.agreement.total == pytest.approx(1.0, abs=5.0 * small.agreement.total_error)
    assert small.predict(DATA.X)[counted].sum() == pytest.approx(model.predict(DATA.X)[counted].sum())


def test_a_model_that_was_trained_before_stays_as_it_is():
    """Around log sizes of a tree, z is fitted again in every fold, and the tree is not."""
    sizes = LEAVES.fit(DATA.X[:1_000], np.log1p(DATA.y[:1_000]))
    X, y = DATA.X[1_000:], DATA.y[1_000:]
    model = GTSRegressor(sizes, cv="prefit").fit(X, y)
    small = model.compact(X, y, regressor=TREE)
    assert small.predict(X) == pytest.approx(model.predict(X))
    assert model.regressors_[0] is sizes


@pytest.mark.filterwarnings("ignore::transun.estimators.AmplificationWarning")
def test_no_group_is_in_two_folds():
    """A feature that is the number of a group tells the mean of known groups, and nothing about others."""
    rng = np.random.default_rng(2)
    group = np.repeat(np.arange(200), 10)
    X, y = rng.permutation(200)[group][:, None], rng.lognormal(0.0, 1.0, 200)[group]
    model = GTSRegressor(TREE, cv=2, random_state=0).fit(X, y, groups=group)
    known, unknown = (
        model.compact(X, y, fit_params=params).agreement.teacher_nrmse for params in ({}, {"groups": group})
    )
    assert known < 0.5 * y.std() / y.mean() < 0.95 * y.std() / y.mean() < unknown


def test_other_rows_are_refused():
    model = UnbiasedRegressor(Ridge(), random_state=0).fit(DATA.X, DATA.y)
    with pytest.raises(ValueError, match="needs the 3,000 rows of the fit, and was given 10"):
        model.compact(DATA.X[:10], DATA.y[:10])
    with pytest.raises(ValueError, match="X has 1 features"):
        model.compact(DATA.X[:, :1], DATA.y)


def test_splits_that_name_rows_cannot_be_used_for_fewer_rows():
    folds = list(KFold(3).split(DATA.X))
    model = GTSRegressor(Ridge(), cv=folds).fit(DATA.X, DATA.y)
    with pytest.raises(ValueError, match="cv of this GTSRegressor lists the rows of its splits"):
        model.compact(DATA.X, DATA.y)


def test_survives_pickling_and_prints():
    small = UnbiasedRegressor(Ridge(), random_state=0).fit(DATA.X, DATA.y).compact(DATA.X, DATA.y)
    assert (pickle.loads(pickle.dumps(small)).predict(DATA.X) == small.predict(DATA.X)).all()
    assert "predicted / actual total" in str(small.agreement)
