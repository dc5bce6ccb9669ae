import warnings

import numpy as np
import pytest
from joblib import parallel_config
from lightgbm import LGBMRegressor, early_stopping
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, PoissonRegressor
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from estimators.world import world
from transun import Identity, Log1p, Power, PowerVariance, ReciprocalTarget
from transun.estimators import AmplificationWarning, GTSRegressor
from transun.estimators.gts import RatioGuard

TREE = DecisionTreeRegressor(random_state=0)


class TestByHand:
    """A mean of T(y), a mean of y·κ, a division."""

    y = np.array([1.0, 1.0, 9.0, 9.0])
    X = np.zeros((4, 1))

    def test_in_sample(self):
        # √y has mean 2, so T⁻¹(u) = 4, κ = 1/(4 + 1), z = mean(y)/5 = 1, and the ratio is the mean.
        model = GTSRegressor(DummyRegressor(), target_transform=Power(0.5), slope=ReciprocalTarget(), cv=None)
        model.fit(self.X, self.y)
        assert model.bias_regressor_.constant_.item() == pytest.approx(1.0)
        assert model.predict([[0.0]]) == pytest.approx([5.0])

    def test_cross_fitted_divides_by_the_mean_over_folds(self):
        # Folds {0, 1} and {2, 3}: u = 3 for the rows with y = 1 and u = 1 for those with y = 9.
        model = GTSRegressor(DummyRegressor(), target_transform=Power(0.5), slope=ReciprocalTarget(), cv=KFold(2))
        pred = model.fit(self.X, self.y).predict([[0.0]])
        z = np.mean([1 / 10, 1 / 10, 9 / 2, 9 / 2])
        assert model.bias_regressor_.constant_.item() == pytest.approx(z)
        assert pred == pytest.approx([z / np.mean([1 / 10, 1 / 2])])

    @pytest.mark.parametrize("emphasis", [0.5, 1.0, 2.0])
    def test_with_emphasis_it_divides_by_the_mean_with_the_weights_of_z(self, emphasis):
        """κ = 1/10 for the rows with y = 1 and 1/2 for those with y = 9, each with the weight κ^-e."""
        model = GTSRegressor(
            DummyRegressor(), target_transform=Power(0.5), slope=ReciprocalTarget(), emphasis=emphasis, cv=KFold(2)
        )
        pred = model.fit(self.X, self.y).predict([[0.0]])
        slope = np.array([1 / 10, 1 / 10, 1 / 2, 1 / 2])
        z = np.average(self.y * slope, weights=slope**-emphasis)
        assert pred == pytest.approx([z / np.average(slope, weights=slope**-emphasis)])

    def test_emphasis_one_keeps_the_total_over_folds_that_disagree(self):
        """Σy / Σ(1/κ) times the mean of 1/κ is the mean of y; a plain mean of κ would predict 2.8 instead of 5."""
        model = GTSRegressor(
            DummyRegressor(), target_transform=Power(0.5), slope=ReciprocalTarget(), emphasis=1.0, cv=KFold(2)
        )
        assert model.fit(self.X, self.y).predict([[0.0]]) == pytest.approx([5.0])

    def test_shares_follow_the_weights(self):
        model = GTSRegressor(DummyRegressor(), target_transform=Power(0.5), cv=KFold(2))
        model.fit(self.X, self.y, sample_weight=[1.0, 1.0, 3.0, 3.0])
        assert model.shares_ == pytest.approx([0.25, 0.75])


class TestUnbiased:
    """Bias by decile of the true mean, against its sampling error."""

    def deciles(self, model, seed=0, n=24_000):
        data = world(n, seed)
        fitted, held = data[: n // 2], data[n // 2 :]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AmplificationWarning)
            pred = model.fit(fitted.X, fitted.y).predict(held.X)
        order = np.argsort(held.mean, kind="stable")
        parts = np.array_split(order, 10)
        # The model has learned from as many rows as are held out, so the error of a part is that of its own targets.
        error = [held.y[part].std() / np.sqrt(len(part)) / held.mean[part].mean() for part in parts]
        bias = [pred[part].sum() / held.mean[part].sum() - 1.0 for part in parts]
        return np.array(bias), np.array(error)

    BASE = LGBMRegressor(n_estimators=60, learning_rate=0.2, min_child_samples=50, verbose=-1, n_jobs=1)

    @pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
    def test_cross_fitted_is_unbiased_at_every_level(self, power):
        bias, error = self.deciles(GTSRegressor(self.BASE, slope=PowerVariance(power), random_state=0))
        assert (np.abs(bias) < 4.0 * error).all()

    @pytest.mark.filterwarnings("ignore::transun.estimators.TotalWarning")
    def test_constant_smearing_is_not(self):
        from transun.estimators import CorrectedRegressor

        bias, error = self.deciles(CorrectedRegressor(self.BASE, random_state=0))
        assert (np.abs(bias) > 6.0 * error).any()

    def test_cross_fitting_removes_what_in_sample_points_have_memorised(self):
        """Full-grown trees on pure noise: in-sample κ knows y, and the ratio is far off."""
        rng = np.random.default_rng(0)
        n = 4_000
        X, y = rng.standard_normal((n, 3)), rng.lognormal(0.0, 1.0, n)
        forest = RandomForestRegressor(20, min_samples_leaf=3, random_state=0, n_jobs=1)
        true = np.exp(0.5)
        fresh = rng.standard_normal((4_000, 3))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AmplificationWarning)
            ratios = [
                GTSRegressor(forest, slope=ReciprocalTarget(), cv=cv, random_state=0).fit(X, y).predict(fresh).mean()
                / true
                for cv in (None, 5)
            ]
        sampling = y.std() / np.sqrt(n) / true
        assert abs(ratios[1] - 1.0) < 4.0 * sampling
        assert abs(ratios[0] - 1.0) > 2.0 * abs(ratios[1] - 1.0)


class TestByDeviance:
    """Where nobody chooses otherwise, z is learned by Poisson deviance with the weights 1/κ."""

    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, (600, 1)).astype(float)
    y = (1.0 + X[:, 0]) * rng.gamma(2.0, 0.5, 600)

    @pytest.mark.parametrize(
        ("regressor", "loss"),
        [(HistGradientBoostingRegressor(), "loss"), (LGBMRegressor(verbose=-1), "objective"), (TREE, "criterion")],
        ids=["sklearn", "lightgbm", "tree"],
    )
    def test_the_bias_regressor_has_the_loss(self, regressor, loss):
        model = GTSRegressor(regressor, random_state=0).fit(self.X, self.y)
        assert model.bias_regressor_.get_params()[loss] == "poisson"
        assert model.regressors_[0].get_params()[loss] == regressor.get_params()[loss]

    def test_the_last_step_of_a_pipeline_has_it(self):
        model = GTSRegressor(make_pipeline(StandardScaler(), TREE)).fit(self.X, self.y)
        assert model.bias_regressor_[-1].criterion == "poisson"

    @pytest.mark.parametrize(
        "settings",
        [{"emphasis": 0.0}, {"bias_regressor": TREE}, {"target_transform": Identity(), "negative": True}],
        ids=["published", "chosen", "negative targets"],
    )
    def test_not_where_somebody_chose_or_a_target_is_negative(self, settings):
        y = self.y - 1.0 if settings.get("negative") else self.y
        chosen = {name: value for name, value in settings.items() if name != "negative"}
        assert GTSRegressor(TREE, **chosen).fit(self.X, y).bias_regressor_.criterion == "squared_error"

    def test_a_tree_that_separates_all_x_predicts_their_means(self):
        """In a leaf κ is nearly constant, so that the weighted mean of y·κ over κ is the mean of y there."""
        model = GTSRegressor(TREE, cv=None).fit(self.X, self.y)
        means = [self.y[self.X[:, 0] == level].mean() for level in range(5)]
        np.testing.assert_allclose(model.predict(np.arange(5.0)[:, None]), means, rtol=1e-6)


class TestPrefit:
    data = world(8_000, seed=1)

    def test_a_trained_model_is_debiased_in_one_call(self):
        old, new = self.data[:4_000], self.data[4_000:]
        biased = TransformedTargetRegressor(TREE, func=np.log1p, inverse_func=np.expm1).fit(old.X, old.y)
        fixed = GTSRegressor(biased, TREE, target_transform=Identity(), cv="prefit").fit(new.X, new.y)
        total = new.y.sum()
        sampling = new.y.std() * np.sqrt(len(new.y)) / total
        assert biased.predict(new.X).sum() / total < 1.0 - 6.0 * sampling
        assert fixed.predict(new.X).sum() / total == pytest.approx(1.0, abs=1e-9)  # a full tree keeps totals
        assert fixed.regressors_[0] is biased

    def test_points_in_the_space_of_t(self):
        old, new = self.data[:4_000], self.data[4_000:]
        trained = DecisionTreeRegressor(random_state=0).fit(old.X, np.log1p(old.y))
        fixed = GTSRegressor(trained, target_transform=Log1p(), cv="prefit").fit(new.X, new.y)
        assert fixed.predict(new.X).sum() == pytest.approx(new.y.sum())

    def test_a_frozen_model_does_not_freeze_z(self):
        """The fit of a frozen regressor does nothing, so that z must be learned by the regressor inside."""
        trained = DecisionTreeRegressor(min_samples_leaf=50, random_state=0).fit(self.data.X, np.log1p(self.data.y))
        plain, frozen = (
            GTSRegressor(each, cv="prefit").fit(self.data.X, self.data.y)
            for each in (trained, FrozenEstimator(trained))
        )
        assert frozen.predict(self.data.X) == pytest.approx(plain.predict(self.data.X))

    def test_units_that_do_not_fit_cause_a_warning(self):
        trained = DecisionTreeRegressor(random_state=0).fit(self.data.X, self.data.y)
        with pytest.warns(UserWarning, match="target_transform=Identity"):
            GTSRegressor(trained, cv="prefit").fit(self.data.X, self.data.y)

    def test_an_untrained_model_is_refused(self):
        with pytest.raises(ValueError, match="not fitted"):
            GTSRegressor(DecisionTreeRegressor(), cv="prefit").fit([[0.0]], [1.0])

    def test_other_words_are_refused(self):
        with pytest.raises(ValueError, match="'prefit', got 'prefitted'"):
            GTSRegressor(cv="prefitted").fit([[0.0], [1.0]], [1.0, 2.0])

    @pytest.mark.parametrize("cv", ["prefit", 5])
    def test_a_model_with_a_target_transform_of_its_own(self, cv):
        """What is learned for z carries no transform, or z would be too low itself."""
        rng = np.random.default_rng(0)
        X = rng.integers(0, 6, (20_000, 1))
        y = np.exp(0.5 * X[:, 0] + rng.standard_normal(20_000))
        biased = TransformedTargetRegressor(TREE, func=np.log1p, inverse_func=np.expm1).fit(X[:9_000], y[:9_000])
        model = GTSRegressor(biased, target_transform=Identity(), cv=cv, random_state=0).fit(
            X[9_000:18_000], y[9_000:18_000]
        )
        assert isinstance(model.bias_regressor_, DecisionTreeRegressor)
        total = y[18_000:].sum()
        assert biased.predict(X[18_000:]).sum() / total < 0.8
        # The noise of a total of 2,000 such rows is about 3 %, of what was learned from 9,000 rows 1.5 %.
        assert abs(model.predict(X[18_000:]).sum() / total - 1.0) < 0.12


class TestFitting:
    data = world(1_200, seed=2)

    def test_weight_zero_is_no_row(self):
        keep = np.arange(1_200) % 3 > 0
        folds = [(np.flatnonzero(np.arange(1_200) % 2 == k), np.flatnonzero(np.arange(1_200) % 2 != k)) for k in (0, 1)]
        cut = [
            (np.searchsorted(np.flatnonzero(keep), a[keep[a]]), np.searchsorted(np.flatnonzero(keep), b[keep[b]]))
            for a, b in folds
        ]
        whole = GTSRegressor(TREE, cv=folds).fit(self.data.X, self.data.y, sample_weight=keep.astype(float))
        part = GTSRegressor(TREE, cv=cut).fit(self.data.X[keep], self.data.y[keep])
        assert whole.predict(self.data.X) == pytest.approx(part.predict(self.data.X))

    def test_evaluation_targets_arrive_in_each_regressors_units(self):
        seen = []

        class Spy(LinearRegression):
            def fit(self, X, y, sample_weight=None, eval_set=None):
                seen.append([values for _, values in eval_set])
                return super().fit(X, y)

        valid = self.data[:10]
        model = GTSRegressor(Spy(), slope=ReciprocalTarget(), cv=2, random_state=0)
        model.fit(self.data.X, self.data.y, eval_set=(valid.X, valid.y))
        assert seen[0][0] == pytest.approx(np.log1p(valid.y))
        assert seen[1][0] == pytest.approx(np.log1p(valid.y))
        points = [np.expm1(each.predict(valid.X)).clip(0.0) for each in model.regressors_]
        slope = np.mean([1.0 / (point + 1.0) for point in points], axis=0)
        assert seen[2][0] == pytest.approx(valid.y * slope)

    @pytest.mark.parametrize(
        ("base", "stops"),
        [
            (LGBMRegressor(n_estimators=500, verbose=-1, n_jobs=1), {"callbacks": [early_stopping(3, verbose=False)]}),
            (HistGradientBoostingRegressor(max_iter=500, early_stopping=True, n_iter_no_change=3), {}),
        ],
        ids=["LightGBM", "HistGradientBoosting"],
    )
    def test_boosters_stop_early_by_the_evaluation_set(self, base, stops):
        fitted, valid = self.data[:800], self.data[800:]
        model = GTSRegressor(base, cv=2, random_state=0)
        model.fit(fitted.X, fitted.y, eval_set=[(valid.X, valid.y)], **stops)
        rounds = [
            getattr(each, "best_iteration_", None) or each.n_iter_
            for each in [*model.regressors_, model.bias_regressor_]
        ]
        assert max(rounds) < 300

    def test_a_regressor_without_evaluation_sets_is_named(self):
        with pytest.raises(ValueError, match="LinearRegression takes no evaluation set"):
            GTSRegressor(LinearRegression()).fit(self.data.X, self.data.y, eval_set=(self.data.X, self.data.y))

    def test_weights_reach_the_last_step_of_a_pipeline(self):
        weight = np.linspace(0.1, 2.0, len(self.data.y))
        plain, piped = (
            GTSRegressor(base, cv=3, random_state=0).fit(self.data.X, self.data.y, sample_weight=weight)
            for base in (TREE, make_pipeline(StandardScaler(), TREE))
        )
        assert piped.predict(self.data.X) == pytest.approx(plain.predict(self.data.X))

    def test_rows_may_be_held_out_twice_or_never(self):
        model = GTSRegressor(TREE, cv=ShuffleSplit(4, test_size=0.4, random_state=0)).fit(self.data.X, self.data.y)
        assert len(model.regressors_) == 4
        assert model.predict(self.data.X).sum() == pytest.approx(self.data.y.sum(), rel=0.1)

    def test_emphasis_one_with_poisson_is_poisson_regression_with_an_offset(self):
        """Against scipy: minimise Σ(μ - y ln μ), ln μ = a + b·x + ln(1/κ)."""
        from scipy.optimize import minimize

        X, y = self.data.X[:, :1], self.data.y
        bias = PoissonRegressor(alpha=0.0, tol=1e-10, max_iter=1000)
        model = GTSRegressor(LinearRegression(), bias, slope=ReciprocalTarget(), emphasis=1.0, cv=None).fit(X, y)
        offset = np.log(np.expm1(model.regressors_[0].predict(X)).clip(0.0) + 1.0)

        def deviance(theta):
            eta = theta[0] + theta[1] * X[:, 0] + offset
            return (np.exp(eta) - y * eta).mean()

        theta = minimize(deviance, np.zeros(2), method="BFGS", options={"gtol": 1e-9}).x
        expected = np.exp(theta[0] + theta[1] * X[:, 0] + offset)
        assert model.predict(X) == pytest.approx(expected, rel=1e-4)
        assert model.predict(X).sum() == pytest.approx(y.sum())  # the stationary condition of the deviance

    def test_same_seed_same_model(self):
        a, b, c = (
            GTSRegressor(TREE, random_state=seed).fit(self.data.X, self.data.y).predict(self.data.X)
            for seed in (0, 0, 1)
        )
        assert (a == b).all()
        assert (a != c).any()

    def test_jobs_change_nothing(self):
        def predictions(jobs):
            with parallel_config(backend="threading"):  # starting processes takes seconds
                return (
                    GTSRegressor(TREE, random_state=0, n_jobs=jobs).fit(self.data.X, self.data.y).predict(self.data.X)
                )

        assert (predictions(1) == predictions(2)).all()


class TestRatioGuard:
    def test_a_ratio_beyond_the_targets_is_replaced_and_fit_warns_once(self):
        class Wild(LinearRegression):
            def predict(self, X):
                return super().predict(X) * 1e6

        X, y = np.arange(60.0).reshape(-1, 1), np.arange(1.0, 61.0)
        with pytest.warns(AmplificationWarning, match="100% of the ratios") as caught:
            model = GTSRegressor(TREE, Wild(), cv=None).fit(X, y)
        assert len(caught) == 1
        assert model.replaced_ == 1.0
        assert model.predict(X).max() <= y.max()

    def test_a_constant_target_is_no_news(self):
        X = np.arange(200.0).reshape(-1, 1)
        for base in (LGBMRegressor(verbose=-1, n_jobs=1), HistGradientBoostingRegressor(), TREE):
            model = GTSRegressor(base).fit(X, np.full(200, 0.1))
            assert model.replaced_ == 0.0
            assert model.predict(X) == pytest.approx(np.full(200, 0.1))

    def test_bins_know_their_own_extremes(self):
        slope = np.repeat([0.1, 1.0], 100)
        y = np.concatenate([np.linspace(5.0, 15.0, 100), np.linspace(0.5, 1.5, 100)])
        guard = RatioGuard.learn(slope, y)
        pred, outside = guard.divide(np.array([2.0, 2.0]), np.array([0.1, 1.0]))  # 20 is above 15, 2 above 1.5
        assert outside.all()
        assert pred == pytest.approx([10.0, 1.0])  # mean of y·κ is 1 in both

    def test_equal_slopes_make_one_bin(self):
        guard = RatioGuard.learn(np.ones(500), np.arange(500.0))
        assert len(guard.mean_z) == 1


class TestMistakes:
    @pytest.mark.parametrize(
        ("X", "y", "message"),
        [
            ([[0.0], [1.0]], [1.0, float("nan")], "Input y contains NaN. The first one is in row 1"),
            ([[0.0], [1.0]], [float("inf"), 1.0], "infinity .* row 0"),
            ([[0.0], [1.0]], [1.0, -2.0], r"target -2 in row 1 is below 0 of Log1p.*Asinh"),
            ([[0.0]] * 3, [1.0, 2.0], "inconsistent numbers of samples"),
            ([[0.0], [1.0]], [1.0, 2.0], "Cannot have number of splits n_splits=5"),
            (np.zeros(4), [1.0] * 4, "Reshape your data"),
            ([[0.0]] * 6, None, "target y is None"),
        ],
    )
    def test_are_named(self, X, y, message):
        with pytest.raises(ValueError, match=message):
            GTSRegressor(TREE).fit(X, y)

    def test_all_weights_zero(self):
        with pytest.raises(ValueError, match="all values of sample_weight are zero"):
            GTSRegressor(TREE).fit([[0.0]] * 6, [1.0] * 6, sample_weight=np.zeros(6))

    def test_a_constant_target(self):
        assert GTSRegressor(TREE).fit([[0.0], [1.0]] * 5, [3.0] * 10).predict([[0.0]]) == pytest.approx([3.0])

    def test_all_targets_zero(self):
        assert GTSRegressor(TREE).fit([[0.0], [1.0]] * 5, [0.0] * 10).predict([[0.0]]) == pytest.approx([0.0])

    def test_predictions_that_are_not_finite(self):
        class Broken(DummyRegressor):
            def predict(self, X):
                return super().predict(X) + np.inf

        with pytest.raises(ValueError, match="Broken predicts inf for row 0"):
            GTSRegressor(Broken()).fit([[0.0]] * 6, [1.0] * 6)
