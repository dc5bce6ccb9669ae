"""fit, predict, evaluate, compare, debias, export and info: what they write, print and return."""

import contextlib
import io
import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import replace as changed
from types import SimpleNamespace

import numpy as np
import pytest

from shop import orders
from transun.cli import compare, debias, evaluate, export, fit, info, predict
from transun.data import Features, read_table
from transun.data.fingerprint import fingerprint
from transun.tables.model import load
from transun.tables.training import hold_out
from transun.training.early_stopping import EarlyStopping

pl = pytest.importorskip("polars")

COMMANDS = {
    "fit": fit.fit,
    "predict": predict.predict,
    "evaluate": evaluate.evaluate,
    "compare": compare.compare,
    "debias": debias.debias,
    "export": export.export,
    "info": info.info,
}
COLUMNS = ("--target", "gmv", "--exclude", "refunded", "--exclude", "predicted", "--exclude", "order")
FIT = (*COLUMNS, "--epochs", 2)


def example(name):
    (line,) = [line for line in (COMMANDS[name].__doc__ or "").splitlines() if "Example:" in line]
    return shlex.split(line.split("Example: transun ")[1])


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_of_the_help_runs(here, run, name):
    if name == "fit":
        (here / "model").unlink()  # the shop's own must stay
    assert run(*example(name)).out
    helped = " ".join(run(name, "--help").out.split())
    assert " ".join(example(name)[:3]) in helped.replace(" │ ", " ")
    assert "Exit codes" in helped


def test_fit_tells_its_plan_and_saves_a_model_with_its_proof(here, run):
    found = run("fit", "orders.csv", *FIT, "--by", "country", "--out", "new")
    assert "boosted trees and a network, mixed as validation rows decide" in found.out
    assert "network: the target is not negative and skewed" in found.out
    assert "item_id" in found.out
    assert "refunded" not in found.out  # excluded, no part of the plan
    names = {path.name for path in (here / "new").iterdir()}
    assert {"transun.json", "certificate.json", "report.html", "report.md", "report.json"} <= names
    assert not any(name.startswith("training") for name in names)
    certificate = json.loads((here / "new" / "certificate.json").read_text())
    assert {part["value"] for part in certificate["segments"]} == {"IT", "FR", "DE"}
    assert sum(part["rows"] for part in certificate["segments"]) == certificate["whole"]["rows"]
    report = json.loads((here / "new" / "report.json").read_text())
    assert report["rows"]["test"] == certificate["whole"]["rows"]
    assert sum(report["rows"].values()) == 1500
    assert len(report["checks"]) == 2
    assert sum(part["share"] for part in report["mixture"]["parts"]) == pytest.approx(1.0)
    assert "The prediction is a mixture:" in found.out
    assert {name.rpartition(".")[2] for name in report["curves"]} == {"deviance", "point", "bias", "nll"}


def test_the_certificate_is_of_rows_that_were_held_out(here, run):
    """Predictions of exactly the rows that the split names give the metrics of the certificate."""
    run("fit", "orders.parquet", *FIT, "--out", "new", "--seed", 3, "--test-share", 0.3)
    _, test = hold_out(read_table("orders.parquet"), 0.3, seed=3)
    pred = load("new").predict(test).double().numpy()
    y = test["gmv"].to_numpy()
    whole = json.loads((here / "new" / "certificate.json").read_text())["whole"]
    assert whole["rows"] == len(y)
    assert whole["metrics"]["PGR"]["value"] == pytest.approx(pred.sum() / y.sum(), rel=1e-6)
    assert whole["metrics"]["TRE"]["value"] == pytest.approx(abs(1 - y.sum() / pred.sum()), rel=1e-6)
    used = [*load("new").features.sources, "gmv"]
    assert json.loads((here / "new" / "certificate.json").read_text())["fingerprint"] == fingerprint(test, used)


@pytest.mark.parametrize(
    ("target", "head"),
    [
        ("balance", "Scaled(TranSUN(Asinh()))"),
        (
            "gmv",
            "Blend((Scaled(Poisson()), Scaled(LogSUN(shared='all')), EGMN(entropy=0, regression=0)), "
            "(0.5, 0.5, 0), (0.25, 0.25, 0.5), shared='all', costs=(1, 1, 0.1))",
        ),
    ],
)
def test_fit_recommends_by_the_target(here, run, target, head):
    found = run("fit", "orders.csv", "--target", target, "--epochs", 1, "--out", "new", "--json")
    assert json.loads(found.out)["head"] == head


@pytest.mark.parametrize(("only", "parts"), [("trees", 3), ("network", 0)])
def test_fit_trains_trees_or_a_network_alone(here, run, only, parts):
    found = run("fit", "orders.csv", *COLUMNS, "--budget", 2, "--only", only, "--out", "new", "--json")
    mixture = json.loads(found.out)["mixture"]
    assert len(mixture["parts"] if mixture else []) == parts
    assert run("predict", "new", "orders.csv", "--out", "p.csv").out.startswith("1,500 predictions")


def test_only_is_trees_or_network(here, run):
    assert "not 'forest'" in run("fit", "orders.csv", *FIT, "--only", "forest", code=2).err
    both = run("fit", "orders.csv", *COLUMNS, "--only", "trees", "--head", "LogSUN()", code=2)
    assert "trees have a loss of their own" in both.err


@pytest.mark.parametrize("option", [("--rate", 0.1), ("--epochs", 50), ("--no-balance",)], ids=lambda each: each[0])
def test_settings_of_the_network_are_refused_for_trees_alone(here, run, option):
    name = option[0].replace("--no-", "--")
    refused = run("fit", "orders.csv", *COLUMNS, *option, "--only", "trees", code=2)
    assert f"{name} is for networks, and --only trees trains none; leave it out" in refused.err


def test_fit_says_why_there_are_no_trees(here, run):
    """A tenth of 100 training rows is too few to choose anything by."""
    lines = (here / "orders.csv").read_text().splitlines()[:126]
    (here / "few.csv").write_text("\n".join(lines))
    found = run("fit", "few.csv", *FIT, "--out", "new")
    assert "No trees were boosted beside the network: trees need 200 training rows" in found.out
    assert json.loads((here / "new" / "report.json").read_text())["mixture"] is None


def test_a_target_without_skewness_needs_no_transform(here, run):
    assert json.loads(run("fit", "orders.csv", "--target", "weight", "--epochs", 1, "--out", "n", "--json").out)[
        "head"
    ] == ("Scaled(MSE())")


def weights(folder):
    return json.loads((folder / "transun.json").read_text())["weights"]


def test_an_interrupted_fit_goes_on_to_the_same_model(here, run, monkeypatch):
    whole = ("fit", "orders.csv", *FIT, "--out")
    run(*whole, "straight")
    check, seen = EarlyStopping.check, []

    def stop(self, step):
        seen.append(step)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return check(self, step)

    monkeypatch.setattr(EarlyStopping, "check", stop)
    found = run(*whole, "broken", code=130)
    assert "--resume" in found.err
    assert (here / "broken" / "training.pt").exists()
    assert not (here / "broken" / "transun.json").exists()
    again = run(*whole, "broken", code=2)
    assert "add --resume" in again.err
    run(*whole, "broken", "--resume")
    assert weights(here / "broken") == weights(here / "straight")
    checks = [json.loads((here / name / "report.json").read_text())["checks"] for name in ("broken", "straight")]
    assert checks[0] == checks[1]
    assert not (here / "broken" / "training.pt").exists()


def test_a_real_interrupt_leaves_a_run_to_go_on_with(here, run):
    call = ["orders.csv", *FIT[:-1], "2000", "--patience", "2000", "--batch-size", "16", "--out", "long"]
    terminal, stderr = pty.openpty()  # on a terminal the progress bar shows the loss of a step
    with subprocess.Popen([sys.executable, "-m", "transun", "fit", *call], stderr=stderr, stdout=-3) as process:
        os.close(stderr)
        told = b""
        while b"loss" not in told and process.poll() is None:
            told += os.read(terminal, 1000)
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # the end of a terminal
            while part := os.read(terminal, 1000):
                told += part
    assert process.returncode == 130
    assert b"--resume continues from" in b" ".join(told.split())
    assert b"Traceback" not in told
    assert (here / "long" / "training.pt").exists()


def test_predict_writes_what_the_model_says_in_the_order_of_the_rows(here, run):
    run("predict", "model", "orders.parquet", "--keep", "order", "--keep", "weight", "--out", "p.parquet")
    table = pl.read_parquet("p.parquet")
    assert table.columns == ["order", "weight", "prediction"]
    assert table["order"].to_list() == [f"o{index}" for index in range(1500)]
    assert table["weight"].dtype == pl.Int64
    expected = load("model").predict("orders.parquet")
    np.testing.assert_allclose(table["prediction"], expected, rtol=1e-6)


def test_predict_streams_through_standard_input_and_output(here, run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((here / "orders.csv").read_bytes())))
    found = run("predict", "model", "-", "--keep", "order", "--out", "-")
    table = pl.read_csv(io.StringIO(found.out))
    expected = load("model").predict("orders.parquet").numpy()
    np.testing.assert_allclose(table["prediction"], expected, rtol=1e-5)


def test_a_large_csv_is_streamed_to_the_same_predictions(here, run, monkeypatch):
    monkeypatch.setattr("transun.tables.prediction._WHOLE", 0)
    run("predict", "model", "orders.csv", "--keep", "item_id", "--out", "p.csv")
    np.testing.assert_allclose(pl.read_csv("p.csv")["prediction"], load("model").predict("orders.parquet"), rtol=1e-5)


def test_ids_too_long_for_a_float_are_not_written_down_wrong(here, run, monkeypatch):
    frame = pl.read_csv("orders.csv").with_columns(long=pl.lit(2**60 + 1))
    frame.write_csv("long.csv")
    run("predict", "model", "long.csv", "--keep", "long", "--out", "p.parquet")
    assert pl.read_parquet("p.parquet")["long"][0] == 2**60 + 1
    monkeypatch.setattr("transun.tables.prediction._WHOLE", 0)
    run("predict", "model", "long.csv", "--keep", "long", "--out", "p.csv")
    assert pl.read_csv("p.csv")["long"][0] == 2**60 + 1
    assert "as Parquet" in run("predict", "model", "long.csv", "--keep", "long", "--out", "q.parquet", code=2).err
    assert not (here / "q.parquet").exists()


def test_quantiles_of_a_head_with_a_law(here, run):
    """Half of lognormal targets lie below the median; a tenth above the 0.9 quantile."""
    run("fit", "orders.csv", *FIT, "--head", "LogNormal()", "--batch-size", 64, "--rate", 0.01, "--out", "law")
    run("predict", "law", "orders.csv", "--keep", "gmv", "--quantile", 0.5, "--quantile", 0.9, "--out", "q.parquet")
    table = pl.read_parquet("q.parquet")
    for level in (0.5, 0.9):
        below = (table["gmv"] <= table[f"quantile_{level:g}"]).mean()
        assert below == pytest.approx(level, abs=0.12)
    assert (table["quantile_0.5"] < table["quantile_0.9"]).all()


def test_evaluate_holds_a_pipeline_to_its_requirement(here, run):
    good = run("evaluate", "model", "orders.csv", "--require", "0.1 < pgr < 10", "--by", "country")
    assert "holds: 0.1 < pgr < 10" in good.out
    assert "country IT" in good.out
    bad = run("evaluate", "other", "orders.csv", "--require", "pgr >= 2", "--require", "xauc > 0", code=1)
    assert bad.err.startswith("broken: pgr >= 2: pgr is 0.")
    assert "below 2" in bad.err


def test_evaluate_speaks_json_and_its_numbers_are_right(here, run):
    found = json.loads(run("evaluate", "other", "orders.csv", "--json", "--require", "nrmse < 0", code=1).out)
    pred = load("other").predict("orders.csv").double().numpy()
    y = read_table("orders.csv")["gmv"].to_numpy()
    metrics = {one["name"]: one for one in found["assessment"]["metrics"]}
    assert metrics["PGR"]["value"] == pytest.approx(pred.sum() / y.sum(), rel=1e-6)
    assert metrics["NRMSE"]["value"] == pytest.approx(np.sqrt(((pred - y) ** 2).mean()) / y.mean(), rel=1e-6)
    assert metrics["PGR"]["low"] < metrics["PGR"]["value"] < metrics["PGR"]["high"]
    assert found["requirements"][0]["holds"] is False


def test_evaluate_looks_at_the_certificate_without_data(here, run):
    held_out = json.loads(run("evaluate", "model", "--certificate", "--json").out)
    value = held_out["whole"]["metrics"]["PGR"]["value"]
    run("evaluate", "model", "--certificate", "--require", f"pgr <= {value + 0.01}")
    run("evaluate", "model", "--certificate", "--require", f"pgr <= {value - 0.01}", code=1)


def test_evaluate_can_certify_anew(here, run):
    run("fit", "orders.csv", *FIT, "--out", "new")
    (here / "new" / "certificate.json").write_text("{}")
    assert "certify the model again" in run("evaluate", "new", "--certificate", code=2).err
    assert "no certificate" in run("info", "new").out  # and is no obstacle
    run("predict", "new", "orders.csv", "--out", "p.csv")
    orders(700, 7).write_csv("fresh.csv")
    run("evaluate", "new", "fresh.csv", "--certify")
    assert json.loads(run("evaluate", "new", "--certificate", "--json").out)["whole"]["rows"] == 700


def test_rows_without_a_target_are_told_and_left_out(here, run):
    frame = pl.read_csv("orders.csv")
    frame.with_columns(gmv=pl.when(pl.col("item_id") == 3).then(None).otherwise(pl.col("gmv"))).write_csv("gaps.csv")
    gone = int((frame["item_id"] == 3).sum())
    assert f"{gone:,} rows without a finite target" in run("evaluate", "model", "gaps.csv").out
    found = json.loads(run("evaluate", "model", "gaps.csv", "--json").out)["assessment"]
    there = (frame["item_id"] != 3).to_numpy()
    pred = load("model").predict("orders.csv").double().numpy()[there]
    pgr = {one["name"]: one["value"] for one in found["metrics"]}["PGR"]
    assert pgr == pytest.approx(pred.sum() / frame["gmv"].to_numpy()[there].sum(), rel=1e-6)
    assert f"{gone:,} rows without a finite target" in run("fit", "gaps.csv", *FIT, "--out", "new").out
    told = run("debias", "other", "gaps.csv", "--epochs", 1, "--out", "debiased", "--json")
    assert f"{gone:,} rows without a finite target" in told.err
    assert "debiased" in json.loads(told.out)["out"]


def test_compare_pairs_models(here, run):
    found = json.loads(run("compare", "other", "model", "orders.csv", "--out", "c", "--json").out)
    assert found == json.loads((here / "c" / "comparison.json").read_text())
    pgr = {name: {m["name"]: m["value"] for m in one["metrics"]}["PGR"] for name, one in found["models"].items()}
    (difference,) = [one for one in found["differences"] if one["metric"] == "PGR"]
    assert difference["value"] == pytest.approx(pgr["model"] - pgr["other"], rel=1e-9)
    assert difference["low"] < difference["value"] < difference["high"]
    assert sorted(path.name for path in (here / "c").iterdir()) == [
        "comparison.html",
        "comparison.json",
        "comparison.md",
    ]
    assert "Paired differences" in (here / "c" / "comparison.md").read_text()


def test_compare_needs_two_rows(here, run):
    pl.read_csv("orders.csv")[:1].write_csv("one.csv")
    assert "give two rows or more" in run("compare", "other", "model", "one.csv", code=2).err


def test_debias_makes_a_column_of_predictions_add_up(here, run):
    """ln y has σ = 0.9 around the prediction, so totals are low by e^-0.405; corrected ones are right."""
    frame = pl.read_csv("scored.csv").with_columns(gmv=pl.when(pl.int_range(pl.len()) < 1400).then(pl.col("gmv")))
    frame.write_csv("some.csv")
    found = json.loads(
        run("debias", "some.csv", "--target", "gmv", "--pred", "predicted", "--out", "c.csv", "--json").out
    )
    assert (found["learned"], found["applied"]) == (1400, 100)
    before, after = found["outcomes"][0], next(o for o in found["outcomes"] if o["name"] == found["chosen"])
    assert before["pgr"]["value"] == pytest.approx(np.exp(-0.405), rel=0.1)
    assert before["pgr"]["high"] < 1.0
    assert after["pgr"]["low"] < 1.0 < after["pgr"]["high"]
    table = pl.read_csv("c.csv")
    ratio = (table["corrected"] / table["predicted"])[1400:]
    assert ratio.mean() == pytest.approx(np.exp(0.405), rel=0.2)
    assert table.columns == [*frame.columns, "corrected"]


def test_debias_by_segments_makes_each_of_them_add_up(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    country = rng.choice(["FR", "IT"], 1_600)
    amount = np.where(country == "FR", 5.0, 20.0) * rng.gamma(4.0, 0.25, 1_600)
    pl.DataFrame({"country": country, "amount": amount, "predicted": 10.0}).write_csv("scored.csv")
    line = ("debias", "scored.csv", "--target", "amount", "--pred", "predicted", "--out", "c.csv", "--json")
    assert "multicalibration" not in [each["name"] for each in json.loads(run(*line).out)["outcomes"]]
    assert json.loads(run(*line, "--by", "country").out)["chosen"] == "multicalibration"
    sums = pl.read_csv("c.csv").group_by("country").agg(pl.col("amount", "corrected").sum())
    # 800 amounts of a country are known to 0.5/√800 = 1.8 %, and taught as many.
    assert (sums["corrected"] / sums["amount"]).to_list() == pytest.approx([1.0, 1.0], abs=0.1)


def test_debias_puts_a_branch_beside_a_model(here, run):
    call = ("debias", "low", "many.parquet", "--epochs", 20, "--batch-size", 256, "--out", "d", "--json")
    found = json.loads(run(*call).out)
    pgr = {side: {m["name"]: m for m in found[side]["metrics"]}["PGR"] for side in ("before", "after")}
    assert pgr["before"]["high"] < 1.0
    assert pgr["after"]["low"] < 1.0 < pgr["after"]["high"]
    assert found["head"].startswith("GTS(PointHead(Log1p(")
    assert found["seen_by_base"] == 0.0  # the same seed holds the same rows out
    assert "all rows" in run("info", "d").out


@pytest.mark.parametrize("ending", ["pt2", "onnx"])
def test_export_predicts_as_the_model_does(here, run, ending):
    import torch

    if ending == "onnx":
        runtime = pytest.importorskip("onnxruntime")
        pytest.importorskip("onnxscript")
    told = json.loads(run("export", "model", "--out", f"m.{ending}", "--encoded", "--json").out)
    assert told["max_relative_difference"] < 1e-4
    features = Features.from_json((here / "m.features.json").read_text())
    x = features.encode("orders.csv")
    expected = load("model").predict("orders.csv").numpy()
    assert expected.std() > 1.0
    if ending == "onnx":
        session = runtime.InferenceSession(f"m.{ending}")
        found = session.run(["prediction"], {name: value.numpy() for name, value in x.items()})[0]
    else:
        found = torch.export.load(f"m.{ending}").module()(x)["prediction"].detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    document = json.loads((here / f"m.{ending}.json").read_text())
    assert {one["name"]: one["dtype"] for one in document["inputs"]} == {
        name: str(value.dtype).removeprefix("torch.") for name, value in x.items()
    }
    assert document["certificate"]["whole"]["rows"] > 0


def test_info_of_data_model_and_installation(here, run):
    table = json.loads(run("info", "orders.parquet", "--json").out)
    assert table["rows"] == 1500
    assert {column["name"]: column["type"] for column in table["columns"]}["country"] == "string"
    gmv = read_table("orders.parquet")["gmv"].to_numpy()
    (column,) = (each for each in table["columns"] if each["name"] == "gmv")
    assert (column["smallest"], column["largest"], column["missing"]) == (gmv.min(), gmv.max(), 0.0)
    model = json.loads(run("info", "model", "--json").out)
    assert model["target"] == "gmv"
    assert model["certificate"]["whole"]["rows"] > 200
    assert json.loads(run("info", "--json").out)["torch"]


def test_looking_at_a_certificate_does_not_import_torch(here):
    script = """
import sys
from transun.cli import app
for call in (["info"], ["evaluate", "model", "--certificate", "--require", "pgr > 0"]):
    try:
        app(call)
    except SystemExit as stop:
        assert not stop.code, stop.code
assert "torch" not in sys.modules
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_weights_count(here, run):
    run("fit", "orders.csv", *FIT, "--weight", "weight", "--out", "new")
    found = json.loads(run("evaluate", "new", "orders.csv", "--json").out)["assessment"]
    pred = load("new").predict("orders.csv").double().numpy()
    table = read_table("orders.csv")
    y, weight = table["gmv"].to_numpy(), table["weight"].to_numpy()
    pgr = {one["name"]: one["value"] for one in found["metrics"]}["PGR"]
    assert pgr == pytest.approx((weight * pred).sum() / (weight * y).sum(), rel=1e-6)


class TestRowsOfTheTraining:
    """The model was trained on four fifths of orders.csv; fresh.csv has rows of the same law."""

    @pytest.fixture(autouse=True)
    def _fresh(self, here):
        orders(1500, 7).write_csv(here / "fresh.csv")

    def test_evaluate_warns(self, here, run):
        told = run("evaluate", "model", "orders.csv").out
        assert "% of these rows are training rows of the model" in told
        assert json.loads(run("evaluate", "model", "orders.csv", "--json").out)["seen"] == pytest.approx(0.8, abs=0.05)
        assert "are training rows" not in run("evaluate", "model", "fresh.csv").out
        assert json.loads(run("evaluate", "model", "fresh.csv", "--json").out)["seen"] == 0.0

    def test_any_format_is_recognised(self, here, run):
        for data in ("orders.csv", "orders.parquet"):
            assert "are training rows of the model" in run("evaluate", "model", data).out

    def test_compare_warns_on_terminal_and_page(self, here, run):
        told = run("compare", "model", "low", "orders.csv", "--out", "c")
        assert "are training rows of model, on which" in told.out
        assert "training rows of low" not in told.out  # which was trained on other rows
        assert "are training rows of model, on which" in (here / "c" / "comparison.html").read_text()
        run("compare", "model", "other", "fresh.csv", "--out", "c")
        assert "are training rows" not in (here / "c" / "comparison.html").read_text()

    def test_a_certificate_on_training_rows_never_replaces_one(self, here, run):
        shutil.copytree(here / "model", here / "mine")
        before = (here / "mine" / "certificate.json").read_bytes()
        found = run("evaluate", "mine", "orders.csv", "--certify", code=2)
        assert "certify it on rows that it has not seen" in found.err
        assert (here / "mine" / "certificate.json").read_bytes() == before

    def test_debias_gives_no_certificate_on_training_rows_of_its_base(self, here, run):
        told = run("debias", "other", "orders.csv", "--epochs", 1, "--seed", 5, "--out", "d").out
        assert "of the rows held out are training rows of other, so that there will be no certificate" in told
        assert not (here / "d" / "certificate.json").exists()
        # What the base has seen, the debiased model has seen too, directly or by the weights it started from.
        assert json.loads(run("evaluate", "d", "orders.csv", "--json").out)["seen"] > 0.9


class TestHoldOut:
    """orders.csv with a day, of which every fifth row has a new one, and users of five rows each."""

    @pytest.fixture(autouse=True)
    def _dated(self, here):
        frame = orders(1500, 0)
        days = pl.date(2024, 1, 1) + pl.duration(days=pl.int_range(pl.len()) % 30)
        frame.with_columns(day=days, user_id=pl.int_range(pl.len()) // 5).write_csv(here / "dated.csv")

    def test_the_last_days_are_held_out_and_the_certificate_says_so(self, here, run):
        told = run("fit", "dated.csv", *FIT, "--holdout", "time:day", "--out", "new")
        assert "held out: the last rows by 'day', from 2024-01-25" in told.out
        certificate = json.loads(run("evaluate", "new", "--certificate", "--json").out)
        assert certificate["whole"]["rows"] == 300  # six of thirty days
        assert "0.2 of dated.csv: the last rows by 'day', from 2024-01-25" in certificate["held_out"]
        report = json.loads((here / "new" / "report.json").read_text())
        assert report["rows"] == {"training": 1100, "validation": 100, "test": 300}  # 22, 2 and 6 days
        assert "the last rows by 'day'" in (here / "new" / "report.md").read_text()

    def test_groups_are_held_out_whole_and_their_ids_are_no_feature(self, here, run):
        told = run("fit", "dated.csv", *FIT, "--holdout", "group:user_id", "--out", "new").out
        assert "'user_id' is no feature" in told
        rows = json.loads((here / "new" / "report.json").read_text())["rows"]
        assert all(count % 5 == 0 for count in rows.values())
        assert "user_id" not in load("new").features.columns

    def test_the_recommended_rules_are_printed_unless_somebody_chose(self, here, run):
        told = run("fit", "dated.csv", *FIT, "--out", "new").out
        assert "'day' is a time: if the model will predict later rows, hold those out: --holdout time:day" in told
        assert "--holdout group:user_id" in told
        assert "hold those out" not in run("fit", "dated.csv", *FIT, "--holdout", "rows", "--out", "new").out

    def test_debias_holds_out_by_the_same_rules(self, here, run):
        run("fit", "dated.csv", *FIT, "--head", "LogMSE()", "--holdout", "time:day", "--out", "base")
        call = ("debias", "base", "dated.csv", "--epochs", 1, "--out", "d")
        assert "no certificate" in run(*call).out
        assert "the last rows by 'day'" in run(*call, "--holdout", "time:day").out
        certificate = json.loads(run("evaluate", "d", "--certificate", "--json").out)
        assert "the last rows by 'day'" in certificate["held_out"]


def test_segments_are_not_called_a_way_to_hold_out(here, run):
    told = run("fit", "orders.csv", *FIT, "--by", "country", "--out", "new").out
    assert "held out for the certificate\n" in told
    assert "the certificate looks into every value of country" in told


def test_a_full_disk_is_reported_before_the_first_epoch(here, run, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=10**6))
    monkeypatch.setattr("transun.tables.training.train_plan", None)
    told = run("fit", "orders.csv", *FIT, "--out", "new", code=2)
    assert "the disk of new has 1 MB free" in told.err


def test_a_certificate_belongs_to_the_whole_model(here, run):
    """The weights are the same and all checksums fit, but the head multiplies by a thousand."""
    from transun.models.description import describe_model, write_description

    run("fit", "orders.csv", *FIT, "--head", "Scaled(LogMSE())", "--out", "mine")
    run("evaluate", "mine", "--certificate")
    description = describe_model("mine")
    (number,) = re.findall(r"[0-9.]+(?=\)$)", description.head)
    head = f"{description.head[: -len(number) - 1]}{1000 * float(number)})"
    write_description(changed(description, head=head), here / "mine")
    assert load("mine").predict("orders.csv").sum() > 100.0
    assert "belongs to another model" in run("evaluate", "mine", "--certificate", code=2).err


def test_a_folder_of_csv_files(here, run):
    (here / "days").mkdir()
    frame = pl.read_csv("orders.csv")
    frame[:700].write_csv("days/1.csv")
    frame[700:].write_csv("days/2.csv")
    run("fit", "days", *FIT, "--out", "folder")
    run("fit", "orders.csv", *FIT, "--out", "file")
    assert weights(here / "folder") == weights(here / "file")
    assert json.loads(run("info", "days", "--json").out)["rows"] == 1500
    run("predict", "folder", "days", "--out", "p.csv")
    assert len(pl.read_csv("p.csv")) == 1500


def test_a_folder_of_parquet_files(here, run):
    (here / "days").mkdir()
    frame = pl.read_csv("orders.csv")
    frame[:700].write_parquet("days/1.parquet")
    frame[700:].write_parquet("days/2.parquet")
    run("predict", "model", "days", "--out", "p.parquet")
    assert len(pl.read_parquet("p.parquet")) == 1500
