"""A folder for the hub is the same model again, with a card whose front matter no name from the data can break."""

import json
import re
from importlib.util import find_spec

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch
from safetensors import safe_open
from typer.testing import CliRunner

from transun import load
from transun.cli import app
from transun.models.certificate import read_certificate, write_certificate
from transun.models.description import describe_model

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

# Names with signs that mean something in YAML, in Markdown and in HTML.
TARGET, ITEM = "gmv: '€' - \"x\" # ---", "item|id` <b>"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub")
    rng = np.random.default_rng(0)
    item = rng.integers(0, 4, 400)
    price = rng.lognormal(0.0, 1.0, 400)
    table = pa.table({ITEM: item, "price": price, TARGET: (1.0 + item) * rng.lognormal(0.0, 0.5, 400)})
    pyarrow.parquet.write_table(table, folder / "orders: #1.parquet")
    line = ["fit", str(folder / "orders: #1.parquet"), "--target", TARGET, "--head", "LogSUN()", "--epochs", "1"]
    result = CliRunner().invoke(app, [*line, "--out", str(folder / "model")])
    assert result.exit_code == 0, result.output
    return folder / "model"


@pytest.fixture(scope="module")
def hub(model):
    """The folder that the command writes, twice: the second time over the files of the first."""
    folder = model.parent / "hub"
    for _ in range(2):
        result = CliRunner().invoke(app, ["export", str(model), "--out", str(folder), "--format", "huggingface"])
        assert result.exit_code == 0, result.output
    assert "nothing was uploaded" in result.output
    return folder


def front_matter(folder):
    """The entries before the card; each value is JSON, and hence YAML."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"\A---\n(.*?)\n---\n", text, re.DOTALL)
    return {key: json.loads(value) for key, _, value in (line.partition(": ") for line in block.splitlines())}


def test_the_folder_is_the_model_again(model, hub):
    rows = {ITEM: [0, 3, 99], "price": [1.0, 4.0, 2.0]}
    before, after = load(model), load(hub)
    assert torch.equal(before.predict(rows), after.predict(rows))
    assert torch.equal(before.predict_interval(rows), after.predict_interval(rows))
    assert read_certificate(hub) == read_certificate(model)
    assert describe_model(hub) == describe_model(model)


def test_the_graph_predicts_as_the_model_does(hub):
    rows = {ITEM: np.array([0, 3, 99]), "price": np.array([1.0, 4.0, 2.0])}
    session = onnxruntime.InferenceSession(hub / "model.onnx")
    np.testing.assert_allclose(session.run(["prediction"], rows)[0], load(hub).predict(rows).numpy(), rtol=1e-5)


def test_nothing_in_it_can_be_executed(hub):
    assert {path.suffix for path in hub.iterdir()} == {".json", ".md", ".onnx", ".safetensors"}


def test_the_index_names_every_tensor(hub):
    index = json.loads((hub / "model.safetensors.index.json").read_text())["weight_map"]
    (weights,) = hub.glob("*.safetensors")
    with safe_open(weights, framework="np") as opened:
        assert index == dict.fromkeys(opened.keys(), weights.name)


def test_the_card_has_the_numbers_of_the_certificate(hub):
    matter, whole = front_matter(hub), read_certificate(hub).whole
    assert matter["library_name"] == "transun"
    assert matter["pipeline_tag"] in matter["tags"]
    (entry,) = matter["model-index"]
    values = {metric["type"]: metric["value"] for metric in entry["results"][0]["metrics"]}
    assert values == {name: measured.value for name, measured in whole.metrics.items()}
    assert matter["metrics"] == list(values)
    assert "orders: #1" in entry["results"][0]["dataset"]["name"]
    card = (hub / "README.md").read_text(encoding="utf-8")
    assert f"| predicted / actual total (PGR) | {whole.metrics['PGR'].value:.3f} |" in card
    assert f"{whole.rows:,} rows" in card
    assert "<b>" not in re.sub(r"^```.*?^```", "", card, flags=re.DOTALL | re.MULTILINE)


def test_libraries_read_the_front_matter(hub):
    if find_spec("yaml"):
        import yaml

        text = (hub / "README.md").read_text(encoding="utf-8")
        assert next(yaml.safe_load_all(text)) == front_matter(hub)
    if find_spec("huggingface_hub"):
        from huggingface_hub import ModelCard

        data = ModelCard.load(hub / "README.md").data
        pgr = read_certificate(hub).whole.metrics["PGR"].value
        assert data.library_name == "transun"
        assert {result.metric_type: result.metric_value for result in data.eval_results}["PGR"] == pgr


def test_a_model_without_a_certificate_says_so(model, hub):
    certificate = read_certificate(model)
    (model / "certificate.json").unlink()
    try:
        result = CliRunner().invoke(app, ["export", str(model), "--out", str(model), "--format", "huggingface"])
    finally:
        write_certificate(certificate, model)
    assert result.exit_code == 0, result.output
    card = (model / "README.md").read_text(encoding="utf-8")
    assert "Nobody has certified" in card
    assert "model-index" not in front_matter(model)
    assert load(model).target == TARGET


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--format", "tar"], "--format is huggingface"), (["--format", "huggingface", "--encoded"], "leave them out")],
)
def test_what_the_format_does_not_know_is_refused(model, tmp_path, options, message):
    result = CliRunner().invoke(app, ["export", str(model), "--out", str(tmp_path / "new"), *options])
    assert message in str(result.exception)
    assert not (tmp_path / "new").exists()
