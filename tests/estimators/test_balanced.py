import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_predict

from estimators.world import world
from transun.estimators import Balance, BalancedRegressor

DATA = world(2_000, seed=4)
FOREST = RandomForestRegressor(10, min_samples_leaf=20, random_state=0, n_jobs=1)


def test_the_factor_is_that_of_out_of_fold_predictions():
    model = BalancedRegressor(FOREST, cv=KFold(4)).fit(DATA.X, DATA.y)
    held_out = cross_val_predict(FOREST, DATA.X, DATA.y, cv=KFold(4))
    assert model.balance_.factor == pytest.approx(DATA.y.sum() / held_out.sum())
    plain = FOREST.fit(DATA.X, DATA.y).predict(DATA.X)
    assert model.predict(DATA.X) == pytest.approx(model.balance_.factor * plain)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_segments_by_name(frame):
    table = {"level": DATA.X[:, 0], "spread": DATA.X[:, 1]}
    model = BalancedRegressor(DummyRegressor(), balance=Balance(by="level"), random_state=0)
    pred = model.fit(frame(table), DATA.y).predict(frame(table))
    for level in np.unique(table["level"]):
        rows = table["level"] == level
        assert pred[rows].sum() == pytest.approx(DATA.y[rows].sum(), rel=0.05)


def test_segments_by_position():
    model = BalancedRegressor(LinearRegression(), balance=Balance(by=0)).fit(DATA.X + 1.0, DATA.y)
    assert set(model.balance_.segments) == set(np.unique(DATA.X[:, 0]) + 1.0)


def test_a_missing_column_is_named():
    with pytest.raises(ValueError, match="X has no column 'country'"):
        BalancedRegressor(DummyRegressor(), balance=Balance(by="country")).fit(
            pd.DataFrame({"a": range(10)}), np.arange(10.0)
        )
