"""Estimators within scikit-learn: pipelines, searches, frames, copies, routing."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import VotingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from estimators.world import world
from transun import Log1p, Power, PowerVariance, ReciprocalTarget
from transun.estimators import BalancedRegressor, CorrectedRegressor, GTSRegressor, UnbiasedRegressor

pytestmark = [
    pytest.mark.filterwarnings("ignore::transun.estimators.FitWarning"),
]
TREE = DecisionTreeRegressor(min_samples_leaf=20, random_state=0)
ALL = [
    GTSRegressor(TREE, random_state=0),
    CorrectedRegressor(TREE, random_state=0),
    BalancedRegressor(TREE, random_state=0),
    UnbiasedRegressor(TREE, random_state=0),
]
DATA = world(600, seed=7)
TABLE = {"level": DATA.X[:, 0], "spread": DATA.X[:, 1], "shop": np.array(["a", "b", "c"])[DATA.X[:, 0].astype(int) % 3]}
each = pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)


@each
def test_survives_pickling_and_cloning(model):
    fitted = clone(model).fit(DATA.X, DATA.y)
    pred = fitted.predict(DATA.X)
    assert (pickle.loads(pickle.dumps(fitted)).predict(DATA.X) == pred).all()
    assert (clone(fitted).fit(DATA.X, DATA.y).predict(DATA.X) == pred).all()


@each
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_through_a_pipeline(model, frame):
    encode = make_column_transformer((OneHotEncoder(sparse_output=False), ["shop"]), remainder="passthrough")
    whole = make_pipeline(encode, clone(model)).fit(frame(TABLE), DATA.y)
    around = clone(model).set_params(regressor=make_pipeline(encode, TREE)).fit(frame(TABLE), DATA.y)
    for fitted in (whole, around):
        assert fitted.predict(frame(TABLE)).shape == DATA.y.shape
    assert list(around.feature_names_in_) == ["level", "spread", "shop"]
    with pytest.raises(ValueError, match="feature names should match"):
        around.predict(frame({"wrong": TABLE["level"], "spread": TABLE["spread"], "shop": TABLE["shop"]}))


@each
def test_pandas_output_of_a_transformer(model):
    scaled = StandardScaler().set_output(transform="pandas").fit_transform(pd.DataFrame(DATA.X, columns=["a", "b"]))
    assert list(clone(model).fit(scaled, DATA.y).feature_names_in_) == ["a", "b"]


@each
def test_in_a_vote_and_out_of_fold(model):
    vote = VotingRegressor([("a", clone(model)), ("b", Ridge())]).fit(DATA.X, DATA.y)
    parts = [fitted.predict(DATA.X) for fitted in vote.estimators_]
    assert vote.predict(DATA.X) == pytest.approx(np.mean(parts, axis=0))
    assert cross_val_predict(clone(model), DATA.X, DATA.y, cv=3).shape == DATA.y.shape


def test_grid_search_over_slopes_transforms_and_inner_parameters():
    grid = {
        "slope": [PowerVariance(0.5), ReciprocalTarget()],
        "target_transform": [Log1p(), Power(0.5)],
        "regressor__min_samples_leaf": [5, 50],
    }
    search = GridSearchCV(GTSRegressor(TREE, cv=2, random_state=0), grid, cv=2).fit(DATA.X, DATA.y)
    assert len(search.cv_results_["params"]) == 8
    assert search.best_estimator_.regressors_[0].min_samples_leaf == search.best_params_["regressor__min_samples_leaf"]


class TestGroups:
    """Rows of a group are copies of each other: a full tree that has seen one of them knows the others."""

    rng = np.random.default_rng(8)
    group = np.repeat(np.arange(40), 10)
    X = group[:, None].astype(float)
    y = np.repeat(rng.lognormal(0.0, 1.0, 40), 10)

    @each
    @pytest.mark.parametrize("cv", [4, GroupKFold(4)], ids=["number", "splitter"])
    def test_no_group_is_in_two_folds(self, model, cv):
        seen = []

        class Remembering(DecisionTreeRegressor):
            def fit(self, X, y, sample_weight=None):
                seen.append(set(X[:, 0]))
                return super().fit(X, y, sample_weight)

        clone(model).set_params(regressor=Remembering(), cv=cv).fit(self.X, self.y, groups=self.group)
        folds = [groups for groups in seen if len(groups) < 40]
        # A model without a fold has seen 30 of the 40 groups whole; with rows in folds it would have seen all of them.
        assert folds
        assert all(len(groups) <= 30 for groups in folds)


class Requesting(Ridge):
    """Remembers the weights it was given."""

    seen: list = []  # noqa: RUF012 - shared by clones on purpose

    def fit(self, X, y, sample_weight=None):
        self.seen.append(sample_weight)
        return super().fit(X, y, sample_weight=sample_weight)


@pytest.fixture
def routing():
    Requesting.seen.clear()
    with sklearn.config_context(enable_metadata_routing=True):
        yield


class TestRouting:
    weight = np.linspace(1.0, 2.0, len(DATA.y))

    def test_weights_reach_every_regressor_that_requests_them(self, routing):
        model = GTSRegressor(
            Requesting().set_fit_request(sample_weight=True), Requesting().set_fit_request(sample_weight=True), cv=2
        )
        model.fit(DATA.X, DATA.y, sample_weight=self.weight)
        assert [len(weight) for weight in Requesting.seen] == [300, 300, 600]

    def test_and_not_one_that_does_not(self, routing):
        model = GTSRegressor(
            Requesting().set_fit_request(sample_weight=False), Requesting().set_fit_request(sample_weight=True), cv=2
        )
        model.fit(DATA.X, DATA.y, sample_weight=self.weight)
        assert [weight is None for weight in Requesting.seen] == [True, True, False]

    def test_no_request_is_an_error(self, routing):
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            GTSRegressor(Requesting(), cv=2).fit(DATA.X, DATA.y, sample_weight=self.weight)

    def test_through_cross_validation(self, routing):
        model = BalancedRegressor(Requesting().set_fit_request(sample_weight=True), cv=2)
        cross_validate(model, DATA.X, DATA.y, params={"sample_weight": self.weight}, cv=2, error_score="raise")
        assert all(weight is not None for weight in Requesting.seen)
