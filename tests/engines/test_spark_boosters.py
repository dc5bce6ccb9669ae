"""GTS by XGBoost in a Spark session against the estimator of one process, on the same folds."""

import sys

import numpy as np
import pytest

from cluster_gts import FOLDS, assert_learns_like_one_process, orders

pyspark = pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")
SETTINGS = {"n_estimators": 40, "max_depth": 4}


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
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql.functions import pandas_udf
    from xgboost.spark import SparkXGBRegressor

    from transun.engines.spark_boosters import fit_gts

    X, y, _ = orders(0)
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

    @pandas_udf("double")
    def predicted(price: pd.Series, noise: pd.Series) -> pd.Series:
        return pd.Series(together.predict(np.column_stack([price, noise])))

    by_workers = frame.select("`price.net`", "noise", predicted("`price.net`", "noise").alias("pred")).toPandas()
    expected = together.predict(by_workers[features].to_numpy())
    np.testing.assert_allclose(by_workers["pred"], expected, rtol=1e-6)
    assert_learns_like_one_process(together, xgboost.XGBRegressor(n_jobs=1, **SETTINGS))


def test_a_booster_of_one_process_is_refused():
    from transun.engines.spark_boosters import fit_gts

    with pytest.raises(ValueError, match=r"XGBRegressor does not train in a Spark cluster: give SparkXGBRegressor"):
        fit_gts(xgboost.XGBRegressor(), None, "gmv", [])
