import numpy as np
import pytest
from lightgbm import LGBMRegressor
from sklearn.dummy import DummyRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.tree import DecisionTreeRegressor

from estimators.world import world
from transun import Asinh, Log1p, Power
from transun.estimators.candidates import (
    GTSCandidate,
    IsotonicCandidate,
    PlainCandidate,
    make_candidates,
    variance_power,
)
from transun.estimators.cross_fitting import CrossFit, NewRows
from transun.estimators.fitting import Fitting
from transun.estimators.target import prepare_transform

TREE = DecisionTreeRegressor(random_state=0, min_samples_leaf=20)
DATA = world(300, seed=5)


def cross_fit(data, base=TREE, count=3):
    return CrossFit(Fitting(base), data.X, data.y, None, list(KFold(count).split(data.X)))


class TestHeldOut:
    """A held-out prediction does not depend on the target of its own row, but for slopes and calibration of others."""

    changed, rows = DATA.y.copy(), np.arange(100)  # the first fold
    changed[rows] = changed[rows][::-1] * 0.5 + 1.0
    transform = prepare_transform(Log1p(), np.array([DATA.y.max() * 2.0]))

    @pytest.mark.parametrize(
        "candidate",
        [PlainCandidate("MSE", TREE), GTSCandidate(transform, 0.0, TREE)],
        ids=["plain", "GTS with a constant slope"],
    )
    def test_a_target_does_not_reach_its_own_prediction(self, candidate):
        other = type(DATA)(DATA.X, self.changed, DATA.mean)
        a, b = (candidate.fit(cross_fit(data)).held_out for data in (DATA, other))
        assert a[self.rows] == pytest.approx(b[self.rows])
        assert (a[100:] != b[100:]).any()

    def test_the_point_of_a_row_does_not_depend_on_its_target(self):
        other = type(DATA)(DATA.X, self.changed, DATA.mean)
        a, b = (cross_fit(data).points(self.transform).predictions for data in (DATA, other))
        assert a[self.rows] == pytest.approx(b[self.rows])


class TestByHand:
    X, y = np.zeros((4, 1)), np.array([1.0, 1.0, 9.0, 9.0])
    small = CrossFit(Fitting(DummyRegressor()), X, y, None, list(KFold(2).split(X)))

    def test_plain_is_cross_val_predict_and_a_mean_of_the_folds(self):
        fitted = PlainCandidate("MSE", DummyRegressor()).fit(self.small)
        assert fitted.held_out == pytest.approx(cross_val_predict(DummyRegressor(), self.X, self.y, cv=KFold(2)))
        assert fitted.predict(NewRows([[0.0]]), self.small.shares) == pytest.approx([5.0])

    def test_gts_divides_the_mean_of_z_by_the_mean_slope(self):
        # Folds {0, 1} and {2, 3}: u = √y = 3 for the rows with y = 1, and 1 for those with y = 9; κ = 1/(u² + 1).
        fitted = GTSCandidate(prepare_transform(Power(0.5), self.y), 2.0, DummyRegressor()).fit(self.small)
        z = np.array([9.0 / 2.0, 1.0 / 10.0])  # each learned from the rows of the other fold
        slope = np.mean([1.0 / 10.0, 1.0 / 2.0])
        assert fitted.predict(NewRows([[0.0]]), self.small.shares) == pytest.approx([z.mean() / slope])

    def test_calibrated_points_are_isotonic_regression_on_the_points(self):
        """With few values of the points smoothing has nothing to smooth within them."""
        transform = prepare_transform(Log1p(), DATA.y)
        rows = cross_fit(DATA)
        fitted = IsotonicCandidate(transform).fit(rows)
        points = cross_val_predict(TREE, DATA.X, np.log1p(DATA.y), cv=KFold(3))
        means = IsotonicRegression(out_of_bounds="clip").fit(points[100:], DATA.y[100:]).predict(points[:100])
        # SmoothIsotonic interpolates between steps; the totals agree within the steps' own differences.
        assert fitted.held_out[:100].mean() == pytest.approx(means.mean(), rel=0.1)


def test_costs_are_the_fits_and_points_are_shared():
    calls = []

    class Counting(DummyRegressor):
        def fit(self, X, y, sample_weight=None):
            calls.append(len(X))
            return super().fit(X, y, sample_weight)

    transform, rows = prepare_transform(Log1p(), DATA.y), cross_fit(DATA, Counting(), count=5)
    costs = []
    for candidate in (
        PlainCandidate("MSE", Counting()),
        IsotonicCandidate(transform),
        GTSCandidate(transform, 1.0, Counting()),
        GTSCandidate(transform, 2.0, Counting()),
    ):
        expected = candidate.cost(rows)
        calls.clear()
        candidate.fit(rows)
        assert len(calls) == expected
        costs.append(expected)
    assert costs == [5, 5, 5, 5]


def test_an_ensemble_predicts_new_rows_once():
    predicted = []

    class Counting(DummyRegressor):
        def predict(self, X):
            predicted.append(len(X))
            return super().predict(X)

    transform, rows = prepare_transform(Log1p(), DATA.y), cross_fit(DATA, Counting())
    fitted = [IsotonicCandidate(transform).fit(rows), GTSCandidate(transform, 1.0, Counting()).fit(rows)]
    new = NewRows(DATA.X[:7])
    predicted.clear()
    for each in fitted:
        each.predict(new, rows.shares)
    assert predicted == [7] * 6  # three models of T(y), three of z


class TestWhichCandidates:
    """Gamma noise around a mean of one feature: its variance is a power of the mean."""

    rng = np.random.default_rng(1)
    X = rng.uniform(0.0, 2.0, (4_000, 1))
    mean = np.exp(2.0 * X[:, 0])

    def names(self, regressor, y):
        rows = CrossFit(Fitting(regressor), self.X[: len(y)], y, None, list(KFold(4).split(y)))
        transform = prepare_transform(Log1p() if y.min() >= 0.0 else Asinh(), y)
        return [each.name for each in make_candidates(rows, [transform], [1.0])]

    @pytest.mark.parametrize(("power", "loss"), [(0.0, "MSE"), (1.0, "Poisson"), (1.6, "Tweedie"), (2.0, "Tweedie")])
    def test_the_loss_of_the_variance_comes_first(self, power, loss):
        shape = self.mean ** (2.0 - power)  # Gamma noise of variance mean^power
        y = self.rng.gamma(shape, self.mean / shape)
        base = LGBMRegressor(n_estimators=30, min_child_samples=50, verbose=-1, n_jobs=1)
        names = self.names(base, y)
        assert names[:3] == ["Log1p + isotonic", loss, "GTS Log1p, p = 1, Poisson of z"]
        assert names[-1] == "Gamma"
        assert set(names[1:]) == {"MSE", "Poisson", "Tweedie", "Gamma", "GTS Log1p, p = 1, Poisson of z"}

    def test_a_regressor_without_deviances(self):
        assert self.names(Ridge(), self.mean) == ["Log1p + isotonic", "MSE", "GTS Log1p, p = 1, MSE of z"]

    def test_no_deviance_of_negative_targets_or_of_zeros_alone(self):
        assert self.names(TREE, self.mean - 5.0)[1:] == ["MSE", "GTS Asinh, p = 1, MSE of z"]
        assert self.names(TREE, np.zeros(40))[1:] == ["MSE", "GTS Log1p, p = 1, MSE of z"]


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

    def test_a_constant_that_differs_by_rounding_tells_nothing(self):
        base = np.nextafter(100.0, np.repeat([0.0, 200.0], 50))
        y = np.concatenate([np.tile([99.0, 101.0], 25), np.tile([1.0, 199.0], 25)])
        assert variance_power(base, y) == 1.0
