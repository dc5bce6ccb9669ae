"""A graph predicts as its model does, whatever the head, the kinds of columns and the number of rows."""

import json
import operator
from collections import Counter
from functools import partial

import numpy as np
import pytest
import torch

from transun import GTS, MSE, ZILN, Features, LogMSE, LogSUN, Recipe, Scaled, calibrate, train
from transun.corrections import BinnedSmearing
from transun.tables import graph_export
from transun.tables.graph_export import export, sample_rows
from transun.tables.model import TableModel, embedding_mlp, tabm

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    rows = 240
    names = ["x|y", "x", "z|y|x|w", "w|z", "y|w", "x|z|w"]
    return {
        "user.id": rng.integers(0, 6, rows),
        "genres": rng.choice(names, rows),
        "price": rng.normal(size=rows),
        "spent": np.where(rng.random(rows) < 0.1, np.nan, rng.lognormal(0.0, 2.0, rows)),
        "when": np.datetime64("2024-01-01T00:00:00", "us") + rng.integers(0, 10**12, rows).astype("timedelta64[us]"),
        "gmv": rng.lognormal(1.0, 1.0, rows),
    }


def trained(data, head, backbone=embedding_mlp):
    from transun import Bag, Datetime, Id, Number, Standardised
    from transun.data import Split

    kinds = {"user.id": Id(), "genres": Bag(Split("|")), "price": Standardised(), "spent": Number(), "when": Datetime()}
    recipe = Recipe(epochs=2, batch_size=32)
    return train(data, "gmv", head, features=Features(kinds), backbone=backbone, recipe=recipe, progress=False)


def mixture(data):
    """Trees and a network, as by default; trees need more rows."""
    more = {name: np.concatenate([values] * 3) for name, values in data.items()}
    model = trained(more, None, partial(tabm, hidden=(8,), members=2))
    assert len(model.history.parts) == 3
    return model


def corrected(data):
    model = trained(data, LogMSE())
    return TableModel(model.features, calibrate(model.model, model.dataset(data), BinnedSmearing(4)), "gmv")


HEADS = {
    "LogSUN": lambda data: trained(data, LogSUN()),
    "scaled": lambda data: trained(data, Scaled(MSE())),
    "law": lambda data: trained(data, ZILN()),
    "corrected": corrected,
    "mixture": mixture,
}


@pytest.mark.parametrize("name", HEADS)
def test_the_loaded_graph_predicts_real_rows(data, tmp_path, name):
    model = HEADS[name](data)
    exported = export(model, tmp_path / "m.pt2")
    graph = torch.export.load(exported.path).module()
    features = Features.from_json(exported.features.read_text())
    for rows in (slice(0, 1), slice(0, 240)):
        part = {column: values[rows] for column, values in data.items()}
        expected = model.predict(part)
        torch.testing.assert_close(graph(features.encode(part)), expected, rtol=1e-5, atol=1e-6)
    assert exported.difference < 1e-5


def test_the_document_says_what_goes_in(data, tmp_path):
    model = HEADS["LogSUN"](data)
    exported = export(model, tmp_path / "deep" / "m.pt2")
    document = json.loads(exported.document.read_text())
    x = model.features.encode(data)
    assert {entry["name"]: (entry["dtype"], len(entry["shape"])) for entry in document["inputs"]} == {
        name: (str(value.dtype).removeprefix("torch."), value.ndim) for name, value in x.items()
    }
    meanings = {entry["name"]: entry["meaning"] for entry in document["inputs"]}
    assert meanings == model.features.meanings
    assert meanings["spent.rank"].startswith("the rank of a number among those of training, from 0 to 1")
    assert document["target"] == "gmv"


def test_samples_cover_every_id(data):
    model = HEADS["LogSUN"](data)
    x = sample_rows(model, rows=500)
    for name, size in model.features.ids.items():
        assert set(x[name].tolist()) == set(range(size))
    assert all(0 <= float(x[name].min()) < 0.1 < 0.9 < float(x[name].max()) <= 1 for name in model.features.ranks)
    assert int(x["genres"].min()) == -1
    assert int(x["genres"].max()) == model.features.bags["genres"] - 1


def test_a_graph_that_disagrees_is_not_kept(data, tmp_path, monkeypatch):
    model = HEADS["LogSUN"](data)
    wrong = lambda network, batch, path: (path.write_bytes(b"x"), lambda rows: 2.0 * network(rows))[1]  # noqa: E731
    monkeypatch.setitem(graph_export._FORMATS, ".pt2", wrong)
    with pytest.raises(ValueError, match="differs from the model"):
        export(model, tmp_path / "m.pt2")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["corrected", "mixture"])
def test_onnx_has_a_free_batch_and_named_inputs(data, tmp_path, name):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    model = HEADS[name](data)
    exported = export(model, tmp_path / "m.onnx")
    session = runtime.InferenceSession(str(exported.path))
    x = model.features.encode(data)
    assert {argument.name for argument in session.get_inputs()} == set(x)
    for rows in (slice(3, 4), slice(0, 240)):
        expected = model.predict({column: values[rows] for column, values in data.items()})
        got = session.run(["prediction"], {name: value[rows].numpy() for name, value in x.items()})[0]
        np.testing.assert_allclose(got, expected, rtol=1e-4)


class Bare(GTS):
    """The branch's output as it is, so that the last operation of the graph is the one that takes off a dimension."""

    def forward(self, raw):
        return raw[-1].squeeze(-1)


@pytest.mark.parametrize("head", [LogSUN(shared=4), Bare(LogMSE(), shared=4)], ids=["LogSUN", "bare"])
def test_a_branch_that_shares_all_adds_little_to_the_graph(data, tmp_path, head):
    targets = {}
    for name, branches in {"with": head, "without": LogMSE()}.items():
        exported = export(trained(data, branches), tmp_path / f"{name}.pt2")
        program = torch.export.load(exported.path)
        called = [node.target for node in program.graph.nodes if node.op == "call_function"]
        targets[name] = [target for target in called if target is not operator.getitem]
        # One lookup per weight and call.
        assert all(weight.isidentifier() for weight in program.state_dict)
    # One operation more than without the branch: the others replace those of the log target.
    assert len(targets["with"]) <= len(targets["without"]) + 1
    assert torch.ops.aten.addmm.default not in Counter(targets["with"]) - Counter(targets["without"])


def test_a_mixture_is_saved_and_trained_further(data, tmp_path):
    from transun import load

    model = mixture(data)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert torch.equal(loaded.predict(data), model.predict(data))
    later = {name: values[:100] for name, values in data.items()} | {"user.id": np.arange(100) + 3}
    updated = loaded.update(later, Recipe(epochs=1), progress=False)
    assert updated.features.ids["user.id"] > loaded.features.ids["user.id"]
    assert bool(updated.predict(later).isfinite().all())
