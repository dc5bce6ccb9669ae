"""Every engine gets the numbers of a single reading; the tests of an engine that is not installed are skipped."""

import sys
from contextlib import contextmanager
from dataclasses import asdict

import numpy as np
import pyarrow
import pytest

from scattered import assert_same
from transun import Features, Id, LogMSE, Model, TableModel, embedding_mlp
from transun.data import read_table
from transun.diagnosis import diagnose_table
from transun.diagnosis.evaluation import evaluate_model
from transun.engines.rows import first_rows

# The engines warn of much that nobody here can change.
pytestmark = pytest.mark.filterwarnings("ignore")


def orders(rows=3000):
    rng = np.random.default_rng(0)
    item = rng.integers(0, 9, rows)
    typical = 1.0 + item
    y = np.where(rng.random(rows) < 0.01, np.nan, typical * rng.lognormal(0.0, 1.0, rows))
    country = np.where(rng.random(rows) < 0.02, None, rng.choice(["IT", "FR"], rows))
    return read_table(
        {"item": item, "gmv": y, "p": typical, "country": country, "age": rng.normal(40, 9, rows), "w": item % 3}
    )


@contextmanager
def spark(table):
    pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
    from pyspark.sql import SparkSession

    from transun.engines.spark import SparkRows

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # of the workers
        session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        try:
            yield SparkRows(session.createDataFrame(table)), lambda frame: frame.toArrow()
        finally:
            session.stop()


@contextmanager
def ray(table):
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    import ray

    from transun.engines.ray import RayRows

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    try:
        parts = [table.slice(0, 1000), table.slice(1000, 1), table.slice(1001)]
        yield RayRows(ray.data.from_arrow(parts)), lambda data: pyarrow.concat_tables(ray.get(data.to_arrow_refs()))
    finally:
        ray.shutdown()


@contextmanager
def dask(table):
    pytest.importorskip("dask.dataframe", reason="the extra `dask` is not installed")
    from dask.dataframe import from_pandas
    from distributed import Client, LocalCluster

    from transun.engines.dask import DaskRows

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        frame = from_pandas(table.to_pandas(), npartitions=3)
        yield DaskRows(frame), lambda found: read_table(found.compute())


@contextmanager
def duckdb(table):
    pytest.importorskip("duckdb", reason="the extra `duckdb` is not installed")
    import duckdb

    from transun.engines.duckdb import DuckdbRows

    with duckdb.connect() as connection:
        yield DuckdbRows(connection.from_arrow(table)), lambda reader: reader.read_all()


@pytest.mark.parametrize("engine", [spark, ray, dask, duckdb])
def test_an_engine_gets_the_numbers_of_one_file(engine):
    table = orders()
    known = table.filter(pyarrow.array(np.isfinite(table["gmv"].to_numpy())))
    features = Features({"item": Id()}).fit(known)
    model = TableModel(features, Model(embedding_mlp(features, hidden=(8,)), LogMSE()), "gmv", "w")
    model.model.prepare(model.dataset(known).targets())
    diagnosis = diagnose_table(table, "gmv", "p", ["country", "age"], "w", name="data", progress=False)
    evaluation = evaluate_model(model, table, ["country"], progress=False)
    with engine(table) as (rows, collected):
        assert_same(asdict(diagnosis), asdict(rows.diagnose("gmv", "p", ["country", "age"], "w")))
        elsewhere = rows.evaluate(model, ["country"])
        assert_same(asdict(evaluation.assessment), asdict(elsewhere.assessment))
        assert (evaluation.dropped, evaluation.shift) == (elsewhere.dropped, elsewhere.shift)
        predicted = collected(rows.predict(model))
        assert predicted.column_names == [*table.column_names, "prediction"]
        assert predicted["item"].to_pylist() == table["item"].to_pylist()
        np.testing.assert_allclose(predicted["prediction"].to_numpy(), model.predict(table).numpy(), rtol=1e-6)
        with pytest.raises(ValueError, match="has a column 'p' already"):
            rows.predict(model, "p")
        with pytest.raises(ValueError, match="'predicted'"):
            rows.diagnose("gmv", "predicted")


def test_partitions_are_numbered_one_after_the_other():
    assert first_rows([2, 0, 3]) == [0, 2, 2]
    assert first_rows([]) == []
