import numpy as np
import pytest
from lightgbm import LGBMRegressor
from scipy.optimize import minimize
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from estimators.world import world
from transun import Log1p, Power
from transun.estimators import Balance, GTSRegressor, UnbiasedRegressor
from transun.estimators.candidates import Calibrated, Direct, Ratio
from transun.estimators.deviances import with_deviance
from transun.estimators.fitting import Fitting
from transun.estimators.mixing import judge, mix
from transun.estimators.trial import Trial, prepared, variance_power

TREE = DecisionTreeRegressor(random_state=0, min_samples_leaf=20)


def trial(data, base=TREE, count=3, weight=None):
    return Trial(Fitting(base), data.X, data.y, weight, list(KFold(count).split(data.X)))


class TestTrial:
    """Nothing in a prediction has seen the row that it is for."""

    data = world(300, seed=5)

    @pytest.mark.parametrize(
        "make",
        [
            lambda t: Direct("MSE", TREE),
            lambda t: Ratio(t, 1.0, TREE),
            lambda t: Calibrated(t),
        ],
        ids=["direct", "ratio", "calibrated"],
    )
    def test_a_target_does_not_reach_its_own_prediction(self, make):
        changed = self.data.y.copy()
        rows = np.arange(100)  # the first fold
        changed[rows] = changed[rows][::-1] * 0.5 + 1.0
        other = type(self.data)(self.data.X, changed, self.data.mean)
        transform = prepared(Log1p(), np.array([self.data.y.max() * 2.0]))
        a, b = (make(transform).judge(trial(data)) for data in (self.data, other))
        assert a[rows] == pytest.approx(b[rows])
        assert (a[100:] != b[100:]).any()

    def test_points_by_hand(self):
        """Three folds of one row each: the model that leaves out two knows the third alone."""
        X, y = np.zeros((3, 1)), np.array([1.0, 4.0, 16.0])
        small = Trial(Fitting(DummyRegressor()), X, y, None, list(KFold(3).split(X)))
        points = small.points(prepared(Power(0.5), y))
        assert points == pytest.approx(
            np.array([[np.nan, 4.0, 2.0], [4.0, np.nan, 1.0], [2.0, 1.0, np.nan]]), nan_ok=True
        )
        assert small.base(prepared(Power(0.5), y)) == pytest.approx([10.0, 8.5, 2.5])

    def test_costs_are_the_rows_that_are_fitted(self):
        seen = []

        class Counting(DummyRegressor):
            def fit(self, X, y, sample_weight=None):
                seen.append(len(X))
                return super().fit(X, y, sample_weight)

        transform = prepared(Log1p(), self.data.y)
        for candidate in (Direct("MSE", Counting()), Ratio(transform, 1.0, Counting()), Calibrated(transform)):
            fresh = trial(self.data, Counting(), count=5)
            expected = candidate.cost(fresh)
            seen.clear()
            candidate.judge(fresh)
            assert sum(seen) / 300 == pytest.approx(expected)


class TestVariancePower:
    @pytest.mark.parametrize("power", [0.0, 1.0, 1.5, 2.0])
    def test_recovers_the_power_of_simulated_noise(self, power):
        rng = np.random.default_rng(0)
        mean = rng.lognormal(3.0, 1.0, 40_000)
        shape = mean ** (2.0 - power) / 4.0  # Gamma noise of variance 4·mean^power
        y = rng.gamma(shape, mean / shape)
        assert variance_power(0.3 * mean, y) == pytest.approx(power, abs=0.12)  # a base off by a factor does no harm

    def test_nothing_to_learn_from(self):
        assert variance_power(np.zeros(5), np.ones(5)) == 1.0
        assert variance_power(np.ones(5), np.ones(5)) == 1.0


class TestMixing:
    def test_equals_a_general_optimiser_on_the_simplex(self):
        rng = np.random.default_rng(1)
        y = rng.lognormal(0.0, 1.0, 400)
        predictions = np.column_stack([y + rng.standard_normal(400) * s for s in (1.0, 1.2, 2.0)])
        found = mix(predictions, y)

        def error(w):
            return np.mean((predictions @ w - y) ** 2)

        best = minimize(
            error, np.full(3, 1 / 3), bounds=[(0, 1)] * 3, constraints={"type": "eq", "fun": lambda w: w.sum() - 1}
        )
        assert found.sum() == pytest.approx(1.0)
        assert error(found) == pytest.approx(best.fun, rel=1e-3)

    def test_weights_are_rows_counted_often(self):
        rng = np.random.default_rng(2)
        y, times = rng.standard_normal(50), rng.integers(1, 4, 50)
        predictions = y[:, None] + rng.standard_normal((50, 2))
        again = np.repeat(np.arange(50), times)
        assert mix(predictions, y, times.astype(float)) == pytest.approx(mix(predictions[again], y[again]))

    def test_standard_error_is_that_of_paired_differences(self):
        rng = np.random.default_rng(3)
        errors = rng.gamma(1.0, 1.0, (200, 2)) + np.array([0.0, 5.0])
        gap = errors[:, 1] - errors[:, 0]
        found = judge(errors)
        assert found[0].worse_by == 0.0
        assert found[1].worse_by == pytest.approx(gap.mean())
        assert found[1].standard_error == pytest.approx(gap.std(ddof=1) / np.sqrt(200))


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


class TestRegressor:
    data = world(3_000, seed=6)
    base = HistGradientBoostingRegressor(max_iter=30, min_samples_leaf=30, random_state=0)

    def test_near_the_truth_with_the_right_total(self):
        fitted, held = self.data[:2_000], self.data[2_000:]
        model = UnbiasedRegressor(self.base, random_state=0).fit(fitted.X, fitted.y)
        pred = model.predict(held.X)
        sampling = fitted.y.std() / np.sqrt(2_000) / fitted.y.mean()
        assert abs(pred.sum() / held.mean.sum() - 1.0) < 4.0 * sampling
        plain = np.expm1(self.base.fit(fitted.X, np.log1p(fitted.y)).predict(held.X))
        errors = [np.mean((each - held.mean) ** 2) for each in (pred, plain)]
        assert errors[0] < errors[1]

    def test_the_choice_is_explained(self):
        model = UnbiasedRegressor(self.base, random_state=0).fit(self.data.X, self.data.y)
        names = [row.name for row in model.choice_.rows]
        assert names[:3] == ["MSE", "Poisson", "Gamma"]
        assert sum(row.weight for row in model.choice_.rows) == pytest.approx(1.0)
        assert len(model.estimators_) == sum(row.weight > 0 for row in model.choice_.rows)
        best = min(model.choice_.rows, key=lambda row: row.nrmse)
        assert best.worse_by == 0.0
        assert all(name in str(model.choice_) for name in names)

    def test_the_budget_is_kept_and_what_it_left_out_is_said(self):
        model = UnbiasedRegressor(self.base, budget=12, random_state=0).fit(self.data.X, self.data.y)
        assert model.cost_ <= 12
        assert any("would cost" in reason for reason in model.choice_.skipped.values())
        assert "left out" in str(model.choice_)

    def test_the_first_candidate_is_judged_whatever_the_budget(self):
        model = UnbiasedRegressor(self.base, budget=0, random_state=0).fit(self.data.X, self.data.y)
        assert [row.name for row in model.choice_.rows] == ["MSE"]

    def test_units_of_the_target_do_not_matter(self):
        small, large = (
            UnbiasedRegressor(TREE, random_state=0).fit(self.data.X, self.data.y * unit).predict(self.data.X) / unit
            for unit in (1e-6, 1e6)
        )
        assert small == pytest.approx(large, rel=1e-4)

    def test_signed_targets(self):
        y = self.data.y - 10.0
        model = UnbiasedRegressor(TREE, random_state=0).fit(self.data.X, y)
        assert not any(row.name in ("Poisson", "Gamma") for row in model.choice_.rows)
        assert model.predict(self.data.X).mean() == pytest.approx(y.mean(), abs=4.0 * y.std() / np.sqrt(len(y)))

    def test_without_balance_predictions_are_the_combination(self):
        model = UnbiasedRegressor(TREE, balance=None, random_state=0).fit(self.data.X, self.data.y)
        parts = [each.predict(self.data.X) for each in model.estimators_]
        assert model.predict(self.data.X) == pytest.approx(
            np.average(parts, axis=0, weights=model.weights_) * model.unit_
        )

    def test_balance_by_segment(self):
        model = UnbiasedRegressor(Ridge(), balance=Balance(by=1), random_state=0).fit(self.data.X, self.data.y)
        assert set(model.balanced_.segments) == set(range(6))

    def test_a_loss_that_a_fold_cannot_take_is_skipped(self):
        """One positive target: some fold has none, and Poisson deviance refuses it there."""
        y = np.zeros(60)
        y[7] = 5.0
        model = UnbiasedRegressor(self.base, random_state=0).fit(np.arange(60.0).reshape(-1, 1), y)
        assert "Poisson" in model.choice_.skipped
        assert np.isfinite(model.predict([[7.0]])).all()

    def test_regressors_need_not_be_hashable(self):
        """CatBoost's are not."""

        class Unhashable(Ridge):
            def __eq__(self, other):
                return self is other

            __hash__ = None

        assert UnbiasedRegressor(Unhashable(), random_state=0).fit(self.data.X, self.data.y).weights_.sum() == 1.0

    @pytest.mark.parametrize("cv", [2, ShuffleSplit(5)])
    def test_folds_must_be_a_partition_of_three_or_more(self, cv):
        with pytest.raises(ValueError, match="at least 3 folds that hold out every row exactly once"):
            UnbiasedRegressor(self.base, cv=cv).fit(self.data.X, self.data.y)

    def test_evaluation_sets_are_refused(self):
        with pytest.raises(ValueError, match="takes no eval_set"):
            UnbiasedRegressor().fit(self.data.X, self.data.y, eval_set=(self.data.X, self.data.y))

    def test_what_the_first_candidate_raises_is_raised(self):
        with pytest.raises(ValueError, match="could not convert"):
            UnbiasedRegressor(Ridge()).fit([["a"]] * 10, np.arange(10.0))
