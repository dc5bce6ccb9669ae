"""Amounts over an exposure: the rate is learned, and a prediction is the rate times the exposure."""

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from transun import Identity
from transun.estimators import GTSRegressor, UnbiasedRegressor
from transun.estimators.exposure import check_exposure

TREE = DecisionTreeRegressor(random_state=0)
BOTH = pytest.mark.parametrize("kind", [UnbiasedRegressor, GTSRegressor])


class TestPortfolio:
    """Two kinds of policies, each in force for a part of the year, with claims at a rate of 2 and 10 a year."""

    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 4_000)
    exposure = rng.uniform(0.05, 1.0, 4_000)
    y = rng.poisson(np.where(kind, 10.0, 2.0) * exposure).astype(float)
    X = kind[:, None].astype(float)

    @BOTH
    def test_the_rate_is_that_of_the_totals(self, kind):
        """Σ amounts / Σ exposures in each group, which is what the Poisson likelihood of a rate has as its maximum."""
        model = kind(TREE, random_state=0).fit(self.X, self.y, exposure=self.exposure)
        rates = [self.y[self.kind == k].sum() / self.exposure[self.kind == k].sum() for k in (0, 1)]
        assert model.predict([[0.0], [1.0]], exposure=1.0) == pytest.approx(rates, rel=0.02)

    @BOTH
    def test_amounts_are_proportional_to_the_exposure(self, kind):
        model = kind(TREE, random_state=0).fit(self.X, self.y, exposure=self.exposure)
        assert model.predict(self.X, exposure=2.0 * self.exposure) == pytest.approx(
            2.0 * model.predict(self.X, exposure=self.exposure)
        )
        assert model.predict(self.X, exposure=self.exposure).sum() == pytest.approx(self.y.sum(), rel=0.02)

    @BOTH
    def test_units_of_the_exposure_do_not_matter(self, kind):
        years, days = (
            kind(TREE, random_state=0)
            .fit(self.X, self.y, exposure=unit * self.exposure)
            .predict(self.X, exposure=unit * self.exposure)
            for unit in (1.0, 365.0)
        )
        # Transforms bend at 1, and rates per day are smaller: the two differ by what this changes in GTS.
        assert years == pytest.approx(days, rel=0.02)

    def test_a_weight_is_something_else(self):
        """As weights the same numbers leave the prediction at the amount of a row of average exposure."""
        model = UnbiasedRegressor(TREE, random_state=0).fit(self.X, self.y, sample_weight=self.exposure)
        assert model.predict([[1.0]]) < 8.0  # 10 a year would be the rate; rows weighed by exposure have 0.68 years

    def test_exposures_and_weights_multiply(self):
        doubled = np.repeat(np.arange(4_000), 1 + self.kind)
        by_weight, by_rows = (
            GTSRegressor(DummyRegressor(), target_transform=Identity(), cv=None).fit(
                self.X[rows], self.y[rows], sample_weight=weight, exposure=self.exposure[rows]
            )
            for rows, weight in ((np.arange(4_000), 1.0 + self.kind), (doubled, None))
        )
        assert by_weight.predict([[0.0]], exposure=1.0) == pytest.approx(by_rows.predict([[0.0]], exposure=1.0))


class TestMistakes:
    X, y = [[0.0], [1.0]] * 10, [1.0, 2.0] * 10

    @BOTH
    def test_an_exposure_that_is_missing_in_predict(self, kind):
        model = kind(LinearRegression()).fit(self.X, self.y, exposure=np.ones(20))
        with pytest.raises(ValueError, match="fitted with exposure: pass exposure to predict"):
            model.predict(self.X)

    @BOTH
    def test_an_exposure_that_was_missing_in_fit(self, kind):
        with pytest.raises(ValueError, match="fitted without exposure"):
            kind(LinearRegression()).fit(self.X, self.y).predict(self.X, exposure=np.ones(20))

    @pytest.mark.parametrize(
        ("exposure", "message"),
        [
            ([1.0, -1.0], "exposure is -1.0 in row 1"),
            ([np.nan, 1.0], "exposure is nan in row 0"),
            ([1.0, 2.0, 3.0], r"shape \(3,\), and there are 2 rows"),
        ],
    )
    def test_exposures_that_are_no_exposures(self, exposure, message):
        with pytest.raises(ValueError, match=message):
            check_exposure(exposure, 2)

    def test_a_regressor_that_takes_no_weights(self):
        with pytest.raises(ValueError, match="KNeighborsRegressor takes no sample_weight"):
            UnbiasedRegressor(KNeighborsRegressor()).fit(self.X, self.y, exposure=np.ones(20))

    def test_an_eval_set_has_no_exposures(self):
        with pytest.raises(ValueError, match="one of eval_set and exposure"):
            GTSRegressor(LinearRegression()).fit(self.X, self.y, exposure=np.ones(20), eval_set=(self.X, self.y))
