"""Multicalibration around a regressor."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyRegressor

from transun.estimators import MulticalibratedRegressor


class Level(RegressorMixin, BaseEstimator):
    """A trained model from elsewhere: it predicts the column "level", and knows of nothing else."""

    def fit(self, X, y, sample_weight=None):
        return self

    def predict(self, X):
        return X["level"].to_numpy(dtype=float)


def table(rows, seed):
    """A prediction between 5 and 20 that is 40 % too high in one country and 60 % too low in small shops of another."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "level": rng.uniform(5.0, 20.0, rows),
            "country": rng.choice(["FR", "IT", "PT"], rows),
            "size": rng.choice(["small", "large"], rows),
        }
    )
    wrong = np.select([X.country == "FR", (X.country == "IT") & (X["size"] == "small")], [0.6, 1.6], 1.0)
    return X, X.level.to_numpy() * wrong * rng.gamma(4.0, 0.25, rows)


@pytest.fixture(scope="module")
def fitted():
    X, y = table(4_000, 0)
    return MulticalibratedRegressor(Level(), random_state=0, cv=2).fit(X, y)


def test_totals_are_right_in_segments_of_several_columns(fitted):
    X, y = table(12_000, 1)
    pred = fitted.predict(X)
    ratios = pd.DataFrame({"pred": pred, "y": y}).groupby([X.country, X["size"]]).sum().eval("pred / y")
    # 2,000 rows a segment here and 670 in training, of which an amount is known to 50 %: 1.1 % and 1.9 %.
    assert ratios.to_numpy() == pytest.approx(np.ones(6), abs=0.1)
    assert "multicalibrated by 4,000 rows" in str(fitted.ratio_)


def test_some_columns_alone_may_describe_segments():
    X, y = table(2_000, 2)
    model = MulticalibratedRegressor(Level(), by=["country"], random_state=0, cv=2).fit(X, y)
    same = X.iloc[:2].assign(level=10.0, country="IT", size=["small", "large"])
    assert np.ptp(model.predict(same)) == 0.0
    with pytest.raises(ValueError, match="by names 'county', and X has level, country, size"):
        MulticalibratedRegressor(Level(), by=["county"]).fit(X, y)


def test_exposure_makes_amounts_of_rates():
    rng = np.random.default_rng(3)
    segment, exposure = rng.integers(0, 2, (3_000, 1)), rng.uniform(0.1, 1.0, 3_000)
    y = exposure * np.where(segment[:, 0] == 0, 1.0, 3.0) * rng.gamma(4.0, 0.25, 3_000)
    model = MulticalibratedRegressor(DummyRegressor(), random_state=0, cv=2).fit(segment, y, exposure=exposure)
    # 1,500 rows of unequal exposure: the rate is known to 1.5 %.
    assert model.predict([[0], [1]], exposure=[1.0, 0.5]) == pytest.approx([1.0, 1.5], rel=0.08)
    with pytest.raises(ValueError, match="pass exposure to predict"):
        model.predict([[0]])


def test_another_fit_forgets_the_intervals_of_the_one_before():
    X, y = table(400, 0)
    model = MulticalibratedRegressor(Level(), random_state=0, cv=2).fit(X, y)
    assert model.calibrate_intervals(*table(400, 1)).predict_interval(X).shape == (400, 2)
    with pytest.raises(ValueError, match="call calibrate_intervals"):
        model.fit(X, 100.0 * y).predict_interval(X)


def test_signed_targets_are_refused():
    with pytest.raises(ValueError, match="y is -1 in row 1"):
        MulticalibratedRegressor(DummyRegressor()).fit([[0], [1]], [1.0, -1.0])


def test_a_trained_model_gets_the_ratio_alone(fitted):
    X, y = table(4_000, 0)
    trained = Level().fit(X, y)
    trained.fitted_ = True
    model = MulticalibratedRegressor(trained, random_state=0, cv="prefit").fit(X, y)
    assert model.regressor_ is trained
    # The model has nothing to learn, so that folds or none make no difference.
    np.testing.assert_allclose(model.predict(X), fitted.predict(X), rtol=1e-6)
    with pytest.raises(ValueError, match="got 'folds'"):
        MulticalibratedRegressor(trained, cv="folds").fit(X, y)
