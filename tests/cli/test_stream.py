"""The commands on a folder that is streamed: the same files, and what is learned from a sample is said."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from transun import load
from transun.data import HoldOutGroups, read_table
from transun.data.holdout import Split
from transun.tables import folder
from transun.tables.folder import survey_folder


def orders(rows, seed):
    rng = np.random.default_rng(seed)
    item = rng.integers(0, 40, rows)
    return pa.table(
        {
            "item_id": item,
            "shop": rng.choice(["a", "b"], rows),
            "price": rng.lognormal(1.0, 1.0, rows),
            "gmv": (1.0 + item % 7) * rng.lognormal(0.0, 0.5, rows),
        }
    )


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders").mkdir()
    for number in range(2):
        pq.write_table(orders(1500, number), tmp_path / "orders" / f"{number}.parquet", row_group_size=500)
    return tmp_path


FIT = ["fit", "orders", "--target", "gmv", "--epochs", "2", "--batch-size", "64", "--no-progress"]


def test_a_folder_is_fitted_certified_and_judged_as_it_is_streamed(here, run, monkeypatch):
    monkeypatch.setattr(folder, "_SAMPLE_BYTES", 1)
    monkeypatch.setattr(folder, "_FEWEST", 1000)
    told = run(*FIT, "--stream", "--by", "shop").out
    assert "the network reads all" in told
    assert "learned from a random" in told
    certificate = json.loads((here / "model" / "certificate.json").read_text())
    surveyed = survey_folder(here / "orders", "gmv", Split(test_share=0.2), progress=False)
    assert certificate["whole"]["rows"] == len(surveyed.test)
    assert {part["value"] for part in certificate["segments"]} == {"a", "b"}
    test = read_table(surveyed.test)
    total = load(here / "model").predict(test).double().sum().item() / test["gmv"].to_numpy().sum()
    assert certificate["whole"]["metrics"]["PGR"]["value"] == pytest.approx(total, rel=1e-6)
    # Of the rows held out none was trained on; of all rows most were.
    assert load(here / "model").seen_share(test) == 0.0
    assert load(here / "model").seen_share(read_table(here / "orders")) > 0.5
    run("predict", "model", "orders", "--out", "predictions.parquet", "--no-progress")
    assert pq.read_metadata(here / "predictions.parquet").num_rows == 3000


def test_rates_and_calibration_rows_of_a_folder(here, run):
    """Prices as exposures: the certificate is about rates, and its total is that of the amounts."""
    settings = ["--exposure", "price", "--calibration-share", "0.2", "--test-share", "0.3", "--head", "Poisson()"]
    assert "price" not in run(*FIT, "--stream", *settings).out  # it is no feature
    certificate = json.loads((here / "model" / "certificate.json").read_text())
    split = Split(test_share=0.3, calibration_share=0.2)
    surveyed = survey_folder(here / "orders", "gmv", split, exposure="price", progress=False)
    test, model = read_table(surveyed.test), load(here / "model")
    assert certificate["whole"]["rows"] == len(test)
    total = model.predict(test).double().sum().item() / test["gmv"].to_numpy().sum()
    assert certificate["whole"]["metrics"]["PGR"]["value"] == pytest.approx(total, rel=1e-6)
    assert model.seen_share(read_table(surveyed.calibration)) == pytest.approx(1.0, abs=0.1)


def test_groups_held_out_are_the_units_of_the_certificate(here, run):
    run(*FIT, "--stream", "--holdout", "group:item_id")
    noise = json.loads((here / "model" / "certificate.json").read_text())["noise"]
    split = Split(HoldOutGroups("item_id"), test_share=0.2)
    surveyed = survey_folder(here / "orders", "gmv", split, progress=False)
    test = read_table(surveyed.test)
    assert (noise["cluster"], noise["units"]) == ("item_id", len(test["item_id"].unique()))
    # The errors y - Rŷ of an item are added up before they are squared.
    y, pred = test["gmv"].to_numpy(), load(here / "model").predict(test).double().numpy()
    errors = np.bincount(test["item_id"].to_numpy(), y - y.sum() / pred.sum() * pred)
    assert noise["squares"] == pytest.approx((errors**2).sum(), rel=1e-5)


def test_a_model_is_debiased_on_a_folder_that_is_streamed(here, run):
    run(*FIT, "--stream", "--head", "LogMSE()", "--out", "biased")
    found = json.loads(
        run(
            "debias", "biased", "orders", "--stream", "--epochs", "2", "--batch-size", "64", "--json", "--no-progress"
        ).out
    )
    assert found["seen_by_base"] == 0.0
    assert found["after"]["rows"] == found["before"]["rows"]
    before, after = (
        next(each["value"] for each in found[when]["metrics"] if each["name"] == "TRE") for when in ("before", "after")
    )
    assert after < before


def test_what_is_too_large_for_memory_is_streamed_without_being_asked(here, run, monkeypatch):
    monkeypatch.setattr(folder, "free_memory", lambda: 1000)
    head = ["--head", "LogSUN()", "--seed", "3"]
    asked = run(*FIT, *head, "--stream", "--json", "--out", "asked").out
    assert (
        json.loads(run(*FIT, *head, "--json", "--out", "unasked").out)["assessment"] == json.loads(asked)["assessment"]
    )
    in_memory = json.loads(run(*FIT, *head, "--no-stream", "--json", "--out", "memory").out)
    assert in_memory["assessment"] != json.loads(asked)["assessment"]  # other rows are held out


def test_mistakes_are_named_before_any_work(here, run):
    assert "'gnv'" in run("fit", "orders", "--target", "gnv", "--stream", code=2).err
    assert "test share" in run(*FIT, "--stream", "--test-share", "1.5", code=2).err
    assert "'years'" in run(*FIT, "--stream", "--exposure", "years", code=2).err
    (here / "one.csv").write_text("gmv,x\n1,2\n")
    assert "no Parquet files" in run("fit", "one.csv", "--target", "gmv", "--stream", code=2).err
