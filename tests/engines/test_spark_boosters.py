"""GTS by XGBoost in a Spark session against the estimator of one process, on the same folds."""

import sys

import numpy as np
import pytest

from transun import GTSRegressor
from transun.metrics import PGR

pyspark = pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")
ROWS, FOLDS = 8000, 3
SETTINGS = {"n_estimators": 40, "max_depth": 4}


def orders(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (ROWS, 2)).astype(float)
    mean = np.exp(0.5 * X[:, 0])
    sigma = 0.3 + 0.18 * X[:, 1]
    return X, mean * np.exp(sigma * rng.standard_normal(ROWS)), mean * np.exp(0.5 * sigma**2)


@pytest.fixture
def session():
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # of the workers
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


def test_the_cluster_learns_what_one_process_learns(session):
    import pyarrow as pa
    from xgboost.spark import SparkXGBRegressor

    from transun.engines.boosters import fold_of_rows
    from transun.engines.spark_boosters import fit_gts

    X, y, _ = orders(0)
    new, y_new, mean = orders(1)
    frame = session.createDataFrame(pa.table({"price.net": X[:, 0], "gmv": y, "noise": X[:, 1]}))
    booster = SparkXGBRegressor(num_workers=2, **SETTINGS)
    features = ["price.net", "noise"]
    with pytest.raises(ValueError, match="from 0 on"):
        fit_gts(booster, frame.selectExpr("`price.net`", "noise", "-gmv AS gmv"), "gmv", features)
    with pytest.raises(ValueError, match="'gmv' lacks 1 of 2 values"):
        fit_gts(booster, session.sql("SELECT 1.0 AS noise, 2.0 AS gmv UNION ALL SELECT 1.0, NULL"), "gmv", ["noise"])
    with pytest.raises(ValueError, match="no column 'colour'"):
        fit_gts(booster, frame, "gmv", ["colour"])
    together = fit_gts(booster, frame, "gmv", features, folds=FOLDS)

    fold = fold_of_rows(np.arange(ROWS), FOLDS, 0)
    splits = [(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(FOLDS)]
    alone = GTSRegressor(xgboost.XGBRegressor(n_jobs=1, **SETTINGS), cv=splits).fit(X, y)
    assert together.shares_.tolist() == pytest.approx(alone.shares_.tolist())
    pred, expected = together.predict(new), alone.predict(new)
    error = y_new.std() / y_new.mean() / ROWS**0.5
    assert PGR(pred, y_new) == pytest.approx(1.0, abs=0.02 + 3 * error)
    # Workers find other bins than one process does: both err alike, and far less from each other than from the truth.
    distance = np.sqrt(np.mean((pred - expected) ** 2))
    assert distance < 0.5 * np.sqrt(np.mean((expected - mean) ** 2)) + 0.02 * mean.mean()


def test_a_booster_of_one_process_is_refused():
    from transun.engines.spark_boosters import fit_gts

    with pytest.raises(ValueError, match=r"XGBRegressor does not train in a Spark cluster: give SparkXGBRegressor"):
        fit_gts(xgboost.XGBRegressor(), None, "gmv", [])
