"""`transun predict --interval`: intervals of rows that fit learned from the rows it held out."""

import shutil

import pytest

from shop import orders

pl = pytest.importorskip("polars")


def test_predict_writes_intervals_that_hold(here, run):
    new = orders(2000, 7)
    new.write_csv(here / "new.csv")
    run("predict", "low", "new.csv", "--interval", 0.8, "--keep", "gmv", "--out", "predictions.parquet")
    found = pl.read_parquet(here / "predictions.parquet")
    assert found.columns == ["gmv", "prediction", "low_0.8", "high_0.8"]
    covered = found.select((pl.col("low_0.8") <= pl.col("gmv")) & (pl.col("gmv") <= pl.col("high_0.8"))).mean().item()
    # 1,600 rows held out and 2,000 new ones: 80 % is known to 1.4 points.
    assert covered == pytest.approx(0.8, abs=4 * 0.014)
    assert "Intervals of single rows" in (here / "low" / "report.html").read_text()


def test_a_model_without_them_is_told_how_to_get_them(here, run):
    orders(600, 8).write_csv(here / "other.csv")
    shutil.copytree(here / "model", here / "bare")
    (here / "bare" / "intervals.json").unlink()
    found = run("predict", "bare", "other.csv", "--interval", 0.9, "--out", "p.csv", code=2)
    assert "evaluate MODEL DATA --certify" in found.err
    run("evaluate", "bare", "other.csv", "--certify")
    assert run("predict", "bare", "other.csv", "--interval", 0.9, "--out", "p.csv").out
    assert "such as 0.9, got 90" in run("predict", "bare", "other.csv", "--interval", 90, "--out", "p.csv", code=2).err
