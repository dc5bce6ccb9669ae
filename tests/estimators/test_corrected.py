import numpy as np
import pytest
import torch
from sklearn.dummy import DummyRegressor
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeRegressor

from estimators.world import world
from transun import Identity, NormalTheory, Power, Smearing
from transun.estimators import CorrectedRegressor, TotalWarning
from transun.estimators.corrected import CORRECTIONS

DATA = world(4_000, seed=3)
TREE = DecisionTreeRegressor(random_state=0)


class TestNames:
    """scikit-learn's proposal (PR 34384) by its formulas, on training rows as there."""

    X, y = np.zeros((5, 1)), np.array([1.0, 2.0, 4.0, 8.0, 30.0])
    u = np.log1p(y).mean()
    plain = np.expm1(u)

    def pred(self, name):
        model = CorrectedRegressor(DummyRegressor(), bias_correction=name, cv=None)
        return model.fit(self.X, self.y).predict(self.X[:1]).item()

    def test_none_is_the_plain_inverse(self):
        assert self.pred(None) == pytest.approx(self.plain)

    def test_multiplicative(self):
        assert self.pred("multiplicative") == pytest.approx(self.plain * self.y.mean() / self.plain)

    def test_additive(self):
        assert self.pred("additive") == pytest.approx(self.plain + (self.y - self.plain).mean())

    def test_taylor(self):
        variance = (np.log1p(self.y) - self.u).var()
        assert self.pred("taylor") == pytest.approx(self.plain + 0.5 * variance * np.exp(self.u), rel=1e-6)

    def test_smearing(self):
        # With one point for all rows, the residuals lead back to the targets themselves.
        assert self.pred("smearing") == pytest.approx(self.y.mean())

    def test_normal(self):
        variance = (np.log1p(self.y) - self.u).var()
        # Mass below zero is clamped there, which for this spread lifts the mean a little.
        assert self.pred("normal") == pytest.approx(np.exp(self.u + variance / 2) - 1.0, rel=0.02)

    def test_isotonic(self):
        assert self.pred("isotonic") == pytest.approx(self.y.mean())

    def test_unknown_name(self):
        with pytest.raises(ValueError, match=r"one of smearing, normal, .*, got 'multiply'"):
            self.pred("multiply")


def test_an_object_is_the_same_as_its_name_and_stays_unfitted():
    mine = Smearing()
    by_object, by_name = (
        CorrectedRegressor(TREE, bias_correction=which, random_state=0).fit(DATA.X, DATA.y)
        for which in (mine, "smearing")
    )
    assert (by_object.predict(DATA.X) == by_name.predict(DATA.X)).all()
    assert not mine.residuals.any()
    assert not CORRECTIONS["smearing"].residuals.any()


@pytest.mark.filterwarnings("error::transun.estimators.TotalWarning")
def test_rounding_is_no_wrong_total():
    model = CorrectedRegressor(TREE, cv=KFold(3)).fit(np.arange(60.0).reshape(-1, 1), np.full(60, 1e9))
    assert model.total_ == pytest.approx(1.0, abs=1e-5)


@pytest.mark.filterwarnings("ignore::transun.estimators.TotalWarning")  # full trees: normal theory adds too much
def test_learns_from_rows_that_the_model_did_not_see():
    """A full-grown tree on distinct rows has no training residuals: in-sample smearing corrects nothing."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3_000, 1)), rng.lognormal(0.0, 1.0, 3_000)
    inside, outside = (
        CorrectedRegressor(TREE, bias_correction=NormalTheory(), cv=cv).fit(X, y) for cv in (None, KFold(5))
    )
    assert inside.correction_.sigma == pytest.approx(0.0, abs=1e-6)
    # Out of fold the residual is the difference of two independent draws of ln(1 + y).
    assert outside.correction_.sigma.item() == pytest.approx(np.sqrt(2.0) * np.log1p(y).std(), rel=0.05)


def test_predicts_the_mean_over_fold_models():
    model = CorrectedRegressor(TREE, bias_correction="smearing", cv=KFold(3)).fit(DATA.X, DATA.y)
    by_hand = [model.correction_(torch.from_numpy(each.predict(DATA.X))).numpy() for each in model.regressors_]
    assert model.predict(DATA.X) == pytest.approx(np.average(by_hand, axis=0, weights=model.shares_))


def test_prefit_learns_the_correction_only():
    old, new = DATA[:2_000], DATA[2_000:]
    trained = DecisionTreeRegressor(random_state=0).fit(old.X, np.sqrt(old.y))
    model = CorrectedRegressor(trained, target_transform=Power(0.5), cv="prefit", bias_correction="multiplicative")
    pred = model.fit(new.X, new.y).predict(new.X)
    assert pred.sum() == pytest.approx(new.y.sum())
    assert pred / trained.predict(new.X) ** 2 == pytest.approx(np.full(2_000, model.correction_.factor.item()))


class TestTotals:
    """Half of the rows have no noise, and the residuals of the others are added to their points as well."""

    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 3_000)
    # ln(1 + y) is 1 for x = 0, and for x = 1 it is 3 or 9 with equal chances.
    y = np.expm1(np.where(x == 0, 1.0, 3.0 + 6.0 * rng.integers(0, 2, 3_000)))

    def test_smearing_that_is_wrong_in_total_says_so(self):
        with pytest.warns(TotalWarning, match="corrected predictions of held-out rows add up to") as caught:
            model = CorrectedRegressor(TREE, random_state=0).fit(self.x[:, None], self.y)
        assert len(caught) == 1
        # Half of the residuals are 0 and a quarter each ±3, around the points 1 and 6; amounts below 0 count as 0.
        expected = [np.expm1(point + np.array([0.0, 0.0, -3.0, 3.0])).clip(0.0).mean() for point in (1.0, 6.0)]
        # The share of the rare large residual has a relative error of 4 %.
        assert model.predict([[0], [1]]) == pytest.approx(expected, rel=0.2)
        assert model.total_ == pytest.approx(np.mean(expected) / self.y.mean(), rel=0.2)

    @pytest.mark.parametrize("name", ["isotonic", "multiplicative", "additive"])
    def test_a_correction_that_is_right_in_total_is_silent(self, name):
        model = CorrectedRegressor(TREE, bias_correction=name, random_state=0).fit(self.x[:, None], self.y)
        assert model.total_ == pytest.approx(1.0, abs=0.02)

    def test_whoever_asks_for_no_correction_is_not_warned(self):
        assert CorrectedRegressor(TREE, bias_correction=None, random_state=0).fit(self.x[:, None], self.y).total_ < 0.2


def test_weights_count():
    weight = np.where(np.arange(len(DATA.y)) % 2, 1.0, 0.0)
    model = CorrectedRegressor(DummyRegressor(), target_transform=Identity(), bias_correction="additive", cv=None)
    odd = DATA.y[1::2].mean()
    assert model.fit(DATA.X, DATA.y, sample_weight=weight).predict(DATA.X[:1]) == pytest.approx([odd])
