import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeRegressor

from estimators.world import world
from transun import Log1p
from transun.estimators.candidates import GTSCandidate, IsotonicCandidate, PlainCandidate, variance_power
from transun.estimators.cross_fitting import CrossFit
from transun.estimators.fitting import Fitting
from transun.estimators.target import prepare_transform

TREE = DecisionTreeRegressor(random_state=0, min_samples_leaf=20)


def cross_fit(data, base=TREE, count=3):
    return CrossFit(Fitting(base), data.X, data.y, None, list(KFold(count).split(data.X)))


class TestOutOfFold:
    """A prediction does not depend on the target of its own row."""

    data = world(300, seed=5)

    @pytest.mark.parametrize(
        "make",
        [
            lambda t: PlainCandidate("MSE", TREE),
            lambda t: GTSCandidate(t, 1.0, TREE),
            lambda t: IsotonicCandidate(t),
        ],
        ids=["plain", "GTS", "isotonic"],
    )
    def test_a_target_does_not_reach_its_own_prediction(self, make):
        changed = self.data.y.copy()
        rows = np.arange(100)  # the first fold
        changed[rows] = changed[rows][::-1] * 0.5 + 1.0
        other = type(self.data)(self.data.X, changed, self.data.mean)
        transform = prepare_transform(Log1p(), np.array([self.data.y.max() * 2.0]))
        a, b = (make(transform).predict(cross_fit(data)) for data in (self.data, other))
        assert a[rows] == pytest.approx(b[rows])
        assert (a[100:] != b[100:]).any()

    def test_costs_are_the_rows_that_are_fitted(self):
        fitted_rows = []

        class Counting(DummyRegressor):
            def fit(self, X, y, sample_weight=None):
                fitted_rows.append(len(X))
                return super().fit(X, y, sample_weight)

        transform = prepare_transform(Log1p(), self.data.y)
        for candidate in (
            PlainCandidate("MSE", Counting()),
            GTSCandidate(transform, 1.0, Counting()),
            IsotonicCandidate(transform),
        ):
            fresh = cross_fit(self.data, Counting(), count=5)
            expected = candidate.cost(fresh)
            fitted_rows.clear()
            candidate.predict(fresh)
            assert sum(fitted_rows) / 300 == pytest.approx(expected)


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


def test_a_power_must_be_estimated_first():
    data = world(60)
    with pytest.raises(ValueError, match="call estimate"):
        GTSCandidate(prepare_transform(Log1p(), data.y), None, TREE).predict(cross_fit(data))
