from functools import wraps

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import ShuffleSplit
from sklearn.tree import DecisionTreeRegressor

from estimators.world import world
from transun.estimators import Balance, UnbiasedRegressor
from transun.estimators.cross_fitting import NewRows

TREE = DecisionTreeRegressor(random_state=0, min_samples_leaf=20)


class TestUnbiasedRegressor:
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
        assert names == ["Log1p + isotonic", "Poisson", "GTS Log1p, p = 1, Poisson of z"]
        assert sum(row.weight for row in model.choice_.rows) == pytest.approx(1.0)
        assert len(model.predictors_) == sum(row.weight > 0 for row in model.choice_.rows)
        best = min(model.choice_.rows, key=lambda row: row.nrmse)
        assert best.worse_by == 0.0
        assert all(name in str(model.choice_) for name in names)

    @pytest.mark.parametrize(("budget", "fits"), [(None, 12), (8, 8), (16, 16)])
    def test_the_budget_is_the_number_of_fits(self, budget, fits, monkeypatch):
        """Counted from outside, final fits included: there are none."""
        rows, original = [], HistGradientBoostingRegressor.fit

        @wraps(original)
        def count(self, X, *args, **kwargs):
            rows.append(len(X))
            return original(self, X, *args, **kwargs)

        monkeypatch.setattr(HistGradientBoostingRegressor, "fit", count)
        settings = {} if budget is None else {"budget": budget}
        model = UnbiasedRegressor(self.base, random_state=0, **settings).fit(self.data.X, self.data.y)
        assert len(rows) == model.cost_ == fits
        assert set(rows) == {2_250}  # three of four folds
        assert "left out, it takes 4 fits, and 0 of the budget are left" in str(model.choice_)

    def test_the_first_candidate_is_tried_whatever_the_budget(self):
        model = UnbiasedRegressor(self.base, budget=0, random_state=0).fit(self.data.X, self.data.y)
        assert [row.name for row in model.choice_.rows] == ["Log1p + isotonic"]
        assert model.cost_ == 4

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
        parts = [each.predict(NewRows(self.data.X), model.shares_) for each in model.predictors_]
        assert model.predict(self.data.X) == pytest.approx(
            np.average(parts, axis=0, weights=model.weights_) * model.unit_
        )

    def test_balance_by_segment(self):
        model = UnbiasedRegressor(Ridge(), balance=Balance(by=1), random_state=0).fit(self.data.X, self.data.y)
        assert set(model.balance_.segments) == set(range(6))

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

    @pytest.mark.parametrize("cv", [None, ShuffleSplit(5)])
    def test_folds_must_be_a_partition_of_two_or_more(self, cv):
        with pytest.raises(ValueError, match="at least 2 folds that hold out every row exactly once"):
            UnbiasedRegressor(self.base, cv=cv).fit(self.data.X, self.data.y)

    @pytest.mark.parametrize("name", ["eval_set", "eval_X", "X_val"])
    def test_evaluation_sets_are_refused(self, name):
        with pytest.raises(ValueError, match=f"takes no {name}: regressors stop early by the rows of their fold"):
            UnbiasedRegressor().fit(self.data.X, self.data.y, **{name: self.data.X})

    def test_the_held_out_total_is_exact(self):
        model = UnbiasedRegressor(self.base, random_state=0).fit(self.data.X, self.data.y)
        assert model.held_out_.sum() == pytest.approx(self.data.y.sum())

    def test_what_the_first_candidate_raises_is_raised(self):
        with pytest.raises(ValueError, match="could not convert"):
            UnbiasedRegressor(Ridge()).fit([["a"]] * 10, np.arange(10.0))
