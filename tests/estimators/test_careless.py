"""What careless users pass to an estimator is read right or refused with the name of the argument and the row."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

from estimators.every_estimator import AROUND, FITS, TREE
from transun import Log1p
from transun.estimators import (
    Balance,
    BalancedRegressor,
    CorrectedRegressor,
    GTSRegressor,
    MulticalibratedRegressor,
    NetworkRegressor,
    UnbiasedRegressor,
)
from transun.estimators.composition import Balanced, WeightedMean

pytestmark = [
    pytest.mark.filterwarnings("ignore::transun.estimators.FitWarning"),
]
ROWS = 40
X = pd.DataFrame(
    {name: np.random.default_rng(seed).normal(size=ROWS) for seed, name in enumerate(("price", "age", "items"))}
)
Y = np.exp(X["price"].to_numpy())


def with_value(value, row=3):
    changed = Y.copy()
    changed[row] = value
    return changed


TARGETS = {
    "a missing one": (with_value(np.nan), r"NaN\. The first one is in row 3"),
    "an infinite one": (with_value(np.inf), "infinity .* in row 3"),
    "a masked one": (np.ma.masked_array(Y, mask=np.arange(ROWS) == 3), r"NaN\. The first one is in row 3"),
    "dates": (pd.date_range("2026-01-01", periods=ROWS), "y holds dates: give amounts"),
    "durations": (pd.to_timedelta(Y, unit="h"), "y holds durations"),
    "text": ([*Y[:-1], "much"], f"y is 'much' in row {ROWS - 1}, which is no number"),
    "complex": (Y + 1j, "Complex data not supported"),
    "too large to be squared": (with_value(1e150), "target of row 3 is 1e.150, too large to be squared"),
    "too small to be squared": (Y * 1e-300, "too small to be squared"),
    "in another order": (pd.Series(Y, index=X.index[::-1]), "X and y have the same row labels in another order"),
    "two columns": (np.column_stack([Y, Y]), "y should be a 1d array"),
    "too few": (Y[:-1], "inconsistent numbers of samples"),
    "none": (None, "the target y is None"),
}
WEIGHTS = {
    "negative": (with_value(-1.0), "sample_weight: it is -1 in row 3. Use 0"),
    "missing": (with_value(np.nan), "sample_weight contains nan. The first one is in row 3"),
    "infinite": (with_value(np.inf), "sample_weight contains inf. The first one is in row 3"),
    "masked": (np.ma.masked_array(Y, mask=np.arange(ROWS) == 3), "sample_weight contains nan.* row 3"),
    "all zero": (0.0 * Y, "all values of sample_weight are zero"),
    "text": (["a"] * ROWS, "sample_weight is 'a' in row 0"),
    "too few": (Y[:-1], r"sample_weight.shape == \(39,\)"),
    "in another order": (pd.Series(Y, index=X.index[::-1]), "X and sample_weight have the same row labels"),
}
WEIGHTED = {kind.__name__: kind(TREE, cv=2) for kind in AROUND} | {"NetworkRegressor": NetworkRegressor()}


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("mistake", TARGETS)
def test_a_target_that_cannot_be_learned_is_refused(name, mistake):
    y, message = TARGETS[mistake]
    with pytest.raises(ValueError, match=message):
        FITS[name](X, y)


def test_every_estimator_with_weights_is_attacked():
    assert set(WEIGHTED) | {"CompactRegressor"} == set(FITS)  # a compact one is made by another estimator


@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize("mistake", WEIGHTS)
def test_a_weight_that_cannot_count_is_refused(name, mistake):
    weight, message = WEIGHTS[mistake]
    with pytest.raises(ValueError, match=message):
        WEIGHTED[name].fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize("name", [kind.__name__ for kind in AROUND])
def test_a_masked_feature_is_a_missing_one(name):
    """The values below the mask are nonsense, which a library that ignores the mask would learn from."""
    missing = np.zeros(X.shape, bool)
    missing[5:15, 1] = True
    masked = np.ma.masked_array(np.where(missing, 1e6, X), mask=missing)
    by_mask, by_nan = (FITS[name](x, Y).predict(x) for x in (masked, np.where(missing, np.nan, X)))
    assert np.array_equal(by_mask, by_nan)


class Broken(RegressorMixin, BaseEstimator):
    """A regressor that predicts what none should, or fails."""

    def __init__(self, predicts=None):
        self.predicts = predicts

    def fit(self, X, y, sample_weight=None):
        if self.predicts is None:
            raise ArithmeticError("singular")
        self.fitted_ = True
        return self

    def predict(self, X):
        return self.predicts(len(X))


WRONG = {
    "too few numbers": (lambda rows: np.ones(rows - 1), "Broken predicts an array of shape .* rows; one number a row"),
    "two a row": (lambda rows: np.ones((rows, 2)), "Broken predicts an array of shape .* one number a row"),
    "one for all": (lambda rows: 1.0, r"Broken predicts an array of shape \(\)"),
    "text": (lambda rows: ["much"] * rows, "prediction of Broken is 'much' in row 0"),
    "NaN": (lambda rows: np.full(rows, np.nan), "Broken predicts nan for row 0, which is no amount"),
    "numbers beyond all targets": (lambda rows: np.full(rows, 1e300), "prediction of Broken of row 0 is 1e.300"),
}


@pytest.mark.parametrize("kind", AROUND)
@pytest.mark.parametrize("mistake", WRONG)
def test_a_regressor_that_predicts_nonsense_is_named(kind, mistake):
    predicts, message = WRONG[mistake]
    with pytest.raises(ValueError, match=message):
        kind(Broken(predicts), cv=2).fit(X, Y)


@pytest.mark.parametrize("kind", AROUND)
def test_the_fold_in_which_a_regressor_fails_is_told(kind):
    with pytest.raises(ArithmeticError) as failure:
        kind(Broken(), cv=KFold(4)).fit(X, Y)
    assert failure.value.__notes__ == ["in the fold that is fitted to 30 rows, the first is row 10, and holds out 10"]


PARAMETERS = [
    *[(kind, {"regressor": "ridge"}, "'regressor' parameter") for kind in AROUND],
    *[(kind, {"regressor": DummyClassifier()}, "regressor is DummyClassifier, a classifier") for kind in AROUND],
    *[(kind, {"regressor": KMeans()}, "regressor is KMeans, a clusterer") for kind in AROUND],
    *[(kind, {"n_jobs": "all"}, "'n_jobs' parameter") for kind in AROUND],
    *[(kind, {"random_state": "luck"}, "'random_state' parameter") for kind in AROUND],
    *[(kind, {"cv": cv}, "cv") for kind in AROUND for cv in ("many", 2.5, [], [([], [0])])],
    *[(kind, {"cv": 1000}, "n_splits=1000 greater than") for kind in AROUND],
    *[
        (kind, {"target_transform": wrong}, "'target_transform' parameter")
        for kind in (CorrectedRegressor, GTSRegressor)
        for wrong in (None, "log", np.log1p, Log1p)
    ],
    (GTSRegressor, {"slope": 1.0}, "'slope' parameter"),
    (GTSRegressor, {"emphasis": np.nan}, "'emphasis' parameter"),
    (GTSRegressor, {"bias_regressor": "ridge"}, "'bias_regressor' parameter"),
    (BalancedRegressor, {"balance": "price"}, "'balance' parameter"),
    (BalancedRegressor, {"balance": Balance("prise")}, "no column 'prise'"),
    (UnbiasedRegressor, {"balance": "price"}, "'balance' parameter"),
    (UnbiasedRegressor, {"budget": -1}, "'budget' parameter"),
    (UnbiasedRegressor, {"early_stopping_rounds": 0}, "'early_stopping_rounds' parameter"),
    (UnbiasedRegressor, {"target_transforms": Log1p()}, "'target_transforms' parameter"),
    (CorrectedRegressor, {"bias_correction": "magic"}, "bias_correction is a Correction, None or one of"),
    (MulticalibratedRegressor, {"by": ["prise"]}, "by names 'prise'"),
]


@pytest.mark.parametrize(
    ("kind", "params", "message"), PARAMETERS, ids=lambda value: getattr(value, "__name__", None) or str(value)
)
def test_a_parameter_that_is_no_such_thing_is_named(kind, params, message):
    with pytest.raises(ValueError, match=message):
        kind(**{"regressor": TREE, "cv": 2, **params}).fit(X, Y)


@pytest.mark.parametrize("kind", AROUND)
def test_a_class_in_place_of_a_regressor_is_named(kind):
    with pytest.raises(TypeError, match="got estimator class instead"):
        kind(Ridge).fit(X, Y)


@pytest.mark.parametrize("kind", AROUND)
def test_groups_are_checked_and_need_not_be_of_one_type(kind):
    model = kind(TREE, cv=2, random_state=0)
    for groups, message in (
        ([None, *range(1, ROWS)], "groups is missing in row 0"),
        (range(3), "groups has the shape"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, Y, groups=groups)
    mixed = model.fit(X, Y, groups=[f"shop {i}" if i % 2 else i for i in range(ROWS)]).predict(X)
    assert mixed.shape == (ROWS,)


@pytest.mark.parametrize("missing", [np.nan, None])
def test_rows_of_a_missing_segment_get_the_factor_of_that_segment(missing):
    """NaN is found in no dict, and None cannot be sorted among text: such rows got the overall factor, or no answer."""
    segment = np.array([1.0, missing] * 1000, dtype=float if missing is np.nan else object)
    pred, y = np.ones(2000), np.where(np.arange(2000) % 2, 5.0, 1.0) * np.tile([0.5, 0.5, 1.5, 1.5], 500)
    learned = Balance(by=0)(pred, y, segment=segment)
    assert set(learned.segments) == {1.0, None}
    by_row = learned.apply(pred, segment)
    assert by_row[1::2].sum() / y[1::2].sum() == pytest.approx(1.0, abs=0.01)  # a thousand rows hardly shrink
    graph = Balanced(WeightedMean([1.0]), learned.factor, 0.0, learned.segments)
    rows = torch.tensor(np.stack([pred, segment.astype(float)]))
    np.testing.assert_allclose(graph(rows).numpy(), by_row, rtol=1e-12)


def test_segments_may_mix_numbers_and_text():
    frame = X.assign(shop=[1, "a", 2.5, None] * (ROWS // 4))
    inner = make_pipeline(make_column_transformer(("passthrough", ["price"])), TREE)
    model = BalancedRegressor(inner, balance=Balance("shop"), cv=2, random_state=0).fit(frame, Y)
    assert set(model.balance_.segments) == {1, "a", 2.5, None}


def test_exposures_beyond_all_numbers_are_refused():
    for exposure, message in (
        (1e300, "too large"),
        (1e-300, "too small"),
        (pd.date_range("2026", periods=ROWS), "dates"),
    ):
        with pytest.raises(ValueError, match=f"exposure .*{message}"):
            GTSRegressor(TREE, cv=2).fit(X, Y, exposure=exposure)
