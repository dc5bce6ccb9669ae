"""Every estimator fits and predicts a frame of any library, with the numbers of the same rows in an array."""

import numpy as np
import pyarrow as pa
import pytest

import transun.estimators
from estimators.every_estimator import FITS
from frame_libraries import LIBRARIES
from transun.estimators import BalancedRegressor, GTSRegressor

pytestmark = [
    pytest.mark.filterwarnings("ignore::transun.estimators.FitWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:modin"),
]
ROWS, NEW = 300, 40


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    price = rng.normal(size=ROWS + NEW)
    columns = {"price": price, "age": rng.uniform(18.0, 80.0, ROWS + NEW), "items": rng.integers(1, 9, ROWS + NEW)}
    missing = rng.random(ROWS + NEW) < 0.1
    table = pa.table(columns | {"age": pa.array(columns["age"], mask=missing)})
    return table.slice(0, ROWS), np.exp(price[:ROWS] + rng.normal(size=ROWS)), table.slice(ROWS)


@pytest.fixture(scope="module")
def expected(rows):
    """The predictions of each estimator by name, from pandas frames."""
    known, y, new = rows
    return {name: fit(known.to_pandas(), y).predict(new.to_pandas()) for name, fit in FITS.items()}


def test_every_exported_estimator_is_fitted_here():
    exported = {name for name in transun.estimators.__all__ if hasattr(getattr(transun.estimators, name), "predict")}
    assert set(FITS) == exported


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", FITS)
def test_predictions_do_not_depend_on_the_library(name, library, rows, expected):
    (known, y, new), frame = rows, LIBRARIES[library]
    model = FITS[name](frame(known), y)
    np.testing.assert_allclose(model.predict(frame(new)), expected[name], rtol=1e-6)


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_evaluation_set_may_be_a_frame(library, rows):
    booster = pytest.importorskip("lightgbm").LGBMRegressor(n_estimators=5, verbose=-1, n_jobs=1)
    (known, y, new), frame = rows, LIBRARIES[library]
    model = GTSRegressor(booster, cv=2, random_state=0)
    made = model.fit(frame(known), y, eval_set=(frame(known), y)).predict(frame(new))
    plain = model.fit(known.to_pandas(), y, eval_set=(known.to_pandas(), y)).predict(new.to_pandas())
    assert np.array_equal(made, plain)


@pytest.mark.parametrize("library", ["polars", "lazy polars", "Arrow"])
def test_categories_reach_a_booster_as_categories(library):
    """LightGBM itself ends the process at a polars column of categories."""
    booster = pytest.importorskip("lightgbm").LGBMRegressor(n_estimators=20, min_child_samples=5, verbose=-1, n_jobs=1)
    shop = np.tile(["a", "b", "c", "d"], 100)
    y = np.select([shop == "a", shop == "b", shop == "c"], [1.0, 100.0, 2.0], 50.0)
    table = pa.table({"shop": pa.array(shop).dictionary_encode()})
    made = BalancedRegressor(booster, cv=2, random_state=0).fit(LIBRARIES[library](table), y).predict(table)
    assert np.corrcoef(made, y)[0, 1] > 0.99  # one split by an order of the names could not tell b and d from a and c


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_empty_frame_is_refused(library, rows):
    known, y, _ = rows
    model = FITS["NetworkRegressor"](known, y)
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        model.predict(LIBRARIES[library](known.slice(0, 0)))
