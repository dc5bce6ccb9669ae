import numpy as np
import pytest
from lightgbm import LGBMRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from transun.estimators import GTSRegressor
from transun.estimators.fitting import Fitting, evaluation_pairs, weight_parameter, with_deviance


class TestDeviances:
    @pytest.mark.parametrize(
        ("base", "able"),
        [
            (LGBMRegressor(), {"poisson", "gamma", "tweedie"}),
            (HistGradientBoostingRegressor(), {"poisson", "gamma"}),
            (RandomForestRegressor(), {"poisson"}),
            (ExtraTreesRegressor(), {"poisson"}),
            (GradientBoostingRegressor(), set()),
            (LinearRegression(), set()),
            (GTSRegressor(), set()),
        ],
    )
    def test_who_can_minimise_what(self, base, able):
        assert {name for name in ("poisson", "gamma", "tweedie") if with_deviance(base, name) is not None} == able

    def test_a_pipeline_asks_its_last_step(self):
        piped = make_pipeline(StandardScaler(), HistGradientBoostingRegressor())
        assert with_deviance(piped, "poisson")[-1].loss == "poisson"
        assert piped[-1].loss == "squared_error"


class TestStoppedEarly:
    """Noise after twenty rounds or so: a booster that stops by held-out rows has fewer rounds than it may have."""

    rng = np.random.default_rng(0)
    X = rng.standard_normal((2_000, 3))
    y = np.exp(X[:, 0]) * rng.gamma(1.0, 1.0, 2_000)
    fitted, held_out = np.arange(1_500), np.arange(1_500, 2_000)

    @pytest.mark.parametrize(
        ("base", "rounds"),
        [
            (LGBMRegressor(n_estimators=400, verbose=-1, n_jobs=1), lambda model: model.best_iteration_),
            (HistGradientBoostingRegressor(max_iter=400), lambda model: model.n_iter_),
        ],
        ids=["LightGBM", "sklearn"],
    )
    @pytest.mark.parametrize("weighted", [False, True])
    def test_boosters_stop(self, base, rounds, weighted):
        weight = self.rng.uniform(0.5, 2.0, 2_000)
        fitting = Fitting(base, {"sample_weight": weight} if weighted else {})
        stopped = fitting.stopped_early(10, self.X, self.y, self.held_out)
        model = stopped(self.X, self.y[self.fitted], self.fitted)
        assert rounds(model) < 200
        if weighted:
            assert stopped.evaluation_weight == pytest.approx(weight[self.held_out])
        pred = model.predict(self.X[self.held_out])
        full = fitting(self.X, self.y[self.fitted], self.fitted).predict(self.X[self.held_out])
        errors = [np.mean((each - self.y[self.held_out]) ** 2) for each in (pred, full)]
        assert errors[0] < errors[1]

    def test_emphasis_weighs_the_held_out_rows(self):
        emphasis = self.rng.uniform(0.5, 2.0, 2_000)
        fitting = Fitting(LGBMRegressor()).stopped_early(10, self.X, self.y, self.held_out, emphasis)
        assert fitting.evaluation_weight == pytest.approx(emphasis[self.held_out])

    @pytest.mark.parametrize(
        "base",
        [
            LinearRegression(),
            GradientBoostingRegressor(),
            LGBMRegressor(boosting_type="dart"),
            HistGradientBoostingRegressor(early_stopping=False),
            make_pipeline(StandardScaler(), HistGradientBoostingRegressor()),
        ],
        ids=["linear", "no evaluation set", "dart", "told not to", "pipeline"],
    )
    def test_who_cannot_stop_is_left_as_it_is(self, base):
        fitting = Fitting(base)
        assert fitting.stopped_early(10, self.X, self.y, self.held_out) is fitting

    def test_none_changes_nothing(self):
        fitting = Fitting(LGBMRegressor())
        assert fitting.stopped_early(None, self.X, self.y, self.held_out) is fitting


class TestOtherLibraries:
    """XGBoost and CatBoost by their signatures, as both may be missing here."""

    X, y = np.arange(20.0).reshape(-1, 1), np.arange(20.0)

    def regressor(self, package):
        class Booster(LinearRegression):
            def __init__(self, early_stopping_rounds=None):
                super().__init__()
                self.early_stopping_rounds = early_stopping_rounds

        if package == "xgboost":

            def fit(self, X, y, *, sample_weight=None, eval_set=None, verbose=True, sample_weight_eval_set=None):
                self.seen = (eval_set, sample_weight_eval_set, verbose)
                return LinearRegression.fit(self, X, y, sample_weight)
        else:

            def fit(self, X, y=None, sample_weight=None, eval_set=None, verbose=None):
                self.seen = (eval_set, None, verbose)
                return LinearRegression.fit(self, X, y, sample_weight)

        Booster.fit, Booster.__module__ = fit, f"{package}.sklearn"
        return Booster()

    def test_xgboost(self):
        fitting = Fitting(self.regressor("xgboost"), {"sample_weight": np.arange(1.0, 21.0)})
        model = fitting.stopped_early(7, self.X, self.y, np.array([3, 4]))(self.X, self.y[5:], np.arange(5, 20))
        eval_set, weights, verbose = model.seen
        assert model.early_stopping_rounds == 7
        assert eval_set[0][1].tolist() == [3.0, 4.0]
        assert weights[0].tolist() == [4.0, 5.0]
        assert verbose is False

    def test_catboost_stops_without_weights_only(self):
        plain, weighted = (
            Fitting(self.regressor("catboost"), params) for params in ({}, {"sample_weight": np.ones(20)})
        )
        stopped = plain.stopped_early(7, self.X, self.y, np.array([3, 4]))
        assert stopped(self.X, self.y[5:], np.arange(5, 20)).seen[0][0][1].tolist() == [3.0, 4.0]
        assert weighted.stopped_early(7, self.X, self.y, np.array([3, 4])) is weighted


def test_a_regressor_without_weights_is_named():
    with pytest.raises(ValueError, match="KNeighborsRegressor takes no sample_weight"):
        weight_parameter(KNeighborsRegressor())


@pytest.mark.parametrize("eval_set", [[1.0, 2.0], [([[1.0]], [2.0], [3.0])]])
def test_evaluation_sets_are_pairs(eval_set):
    with pytest.raises(ValueError, match=r"one pair \(X, y\) or a list of such pairs"):
        evaluation_pairs(eval_set)
