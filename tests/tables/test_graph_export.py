"""A graph predicts as its model does, whatever the head, the kinds of columns and the number of rows."""

import json
import operator
import shutil
import subprocess
import sys
from collections import Counter
from functools import partial

import numpy as np
import pytest
import torch

from transun import GTS, MSE, ZILN, Features, LogMSE, LogSUN, Recipe, Scaled, calibrate, train
from transun.corrections import BinnedSmearing
from transun.integrations.served_table import ServedTable
from transun.tables import graph_export
from transun.tables.graph_export import export
from transun.tables.model import TableModel, embedding_mlp, tabm
from transun.tables.prediction import predict_in_chunks

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
        "week": rng.integers(30, 34, rows).astype(float),
        "gmv": rng.lognormal(1.0, 1.0, rows),
    }


def trained(data, head, backbone=embedding_mlp):
    from transun import Bag, Datetime, Id, Number, Standardised
    from transun.data import Split

    kinds = {"user.id": Id(), "genres": Bag(Split("|")), "price": Standardised(), "spent": Number(), "when": Datetime()}
    kinds["week"] = Number(periods=True)
    recipe = Recipe(epochs=2, batch_size=32)
    return train(data, "gmv", head, features=Features(kinds), backbone=backbone, recipe=recipe, progress=False)


MIXTURES = {}


def mixture(data):
    """Trees and a network, as by default; trees need more rows. Trained once, since it takes long."""
    if "model" not in MIXTURES:
        MIXTURES["model"] = train_mixture(data)
    return MIXTURES["model"]


def train_mixture(data):
    more = {name: np.concatenate([values] * 3) for name, values in data.items()}
    model = trained(more, None, partial(tabm, hidden=(8,), members=2))
    assert len(model.history.parts) == 4
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


def rows_of(data, rows):
    return {column: values[rows] for column, values in data.items()}


MISSING = -(2**63)  # also what numpy makes of NaT
EXTREME = {
    "user.id": np.array([4, 99, MISSING, 1]),
    "genres": np.array(["x| y |stranger", "", " w", "none of them"], object),
    "price": np.array([np.nan, -3.0, 1e3, 0.0]),
    "spent": np.array([1e12, np.nan, -1e12, 1e-12]),
    "week": np.array([31.0, np.nan, 34.0, 31.5]),
    "when": np.array([MISSING, 0, -1, 4 * 10**15]),
}


def as_inputs(data):
    """The columns of the data as the inputs of an ONNX file."""
    columns = {name: values for name, values in data.items() if name != "gmv"}
    return columns | {
        "genres": data["genres"].astype(object),
        "when": data["when"].astype("datetime64[us]").astype(int),
    }


def as_table(inputs):
    """The inputs of an ONNX file as a table: None for missing."""
    import pyarrow as pa

    missing = {name: values == MISSING for name, values in inputs.items() if values.dtype == np.int64}
    columns = {name: pa.array(values, mask=missing.get(name), from_pandas=True) for name, values in inputs.items()}
    columns["genres"] = pa.array([text or None for text in inputs["genres"]])
    return pa.table(columns | {"when": columns["when"].cast(pa.timestamp("us"))})


@pytest.mark.parametrize("name", HEADS)
def test_the_loaded_graph_predicts_real_rows(data, tmp_path, name):
    model = HEADS[name](data)
    exported = export(model, tmp_path / "m.pt2", encoded=True)
    graph = torch.export.load(exported.path).module()
    features = Features.from_json(exported.features.read_text())
    for rows in (slice(0, 1), slice(0, 240)):
        part = rows_of(data, rows)
        torch.testing.assert_close(
            graph(features.encode(part))["prediction"], model.predict(part), rtol=1e-5, atol=1e-6
        )
    assert exported.difference < 1e-5


def test_a_torch_graph_takes_columns_without_text_as_they_are(data, tmp_path):
    model = HEADS["LogSUN"](data)
    exported = export(model, tmp_path / "m.pt2")
    graph = torch.export.load(exported.path).module()
    for inputs in (as_inputs(data), EXTREME):
        table = as_table(inputs)
        codes = model.features.encode(table)["genres"]
        columns = {name: torch.from_numpy(values) for name, values in inputs.items() if name != "genres"}
        made = graph(columns | {"genres": codes})["prediction"]
        torch.testing.assert_close(made, model.predict(table), rtol=1e-5, atol=1e-6)
    meaning = {entry["name"]: entry["meaning"] for entry in exported.inputs}
    assert meaning["genres"].startswith("encoded: ")
    assert exported.features.is_file()


@pytest.mark.skipif(not shutil.which("g++"), reason="there is no C++ compiler to compile a graph with")
def test_a_compiled_graph_predicts_the_same(tmp_path):
    rng = np.random.default_rng(0)
    table = {"item": rng.integers(0, 5, 60), "price": rng.lognormal(0, 1, 60), "gmv": rng.lognormal(0, 1, 60)}
    small, recipe = partial(embedding_mlp, dim=2, hidden=(4,)), Recipe(epochs=1)
    model = train(table, "gmv", LogSUN(), backbone=small, recipe=recipe, progress=False)
    exported = export(model, tmp_path / "m.aoti.pt2")
    assert exported.difference < 1e-5
    compiled = torch._inductor.aoti_load_package(exported.path)
    columns = {"item": torch.tensor([1, 99]), "price": torch.tensor([1e12, float("nan")], dtype=torch.float64)}
    made = compiled({entry["name"]: columns[entry["name"]] for entry in exported.inputs})["prediction"]
    torch.testing.assert_close(made, model.predict({"item": [1, 99], "price": [1e12, None]}), rtol=1e-5, atol=0.0)


def test_without_a_compiler_the_file_is_refused_before_any_work(data, tmp_path, monkeypatch):
    from torch._inductor import cpp_builder

    def missing():
        raise RuntimeError("No working C++ compiler found")

    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", missing)
    with pytest.raises(RuntimeError, match=r"no C\+\+ compiler is installed: install g\+\+ or clang\+\+, or export"):
        export(HEADS["LogSUN"](data), tmp_path / "m.aoti.pt2")
    assert list(tmp_path.iterdir()) == []


def test_the_document_says_what_goes_in(data, tmp_path):
    model = HEADS["LogSUN"](data)
    exported = export(model, tmp_path / "deep" / "m.pt2", encoded=True)
    document = json.loads(exported.document.read_text())
    x = model.features.encode(data)
    assert {entry["name"]: (entry["dtype"], len(entry["shape"])) for entry in document["inputs"]} == {
        name: (str(value.dtype).removeprefix("torch."), value.ndim) for name, value in x.items()
    }
    meanings = {entry["name"]: entry["meaning"] for entry in document["inputs"]}
    assert meanings == {name: f"encoded: {meaning}" for name, meaning in model.features.meanings.items()}
    assert document["target"] == "gmv"
    assert [entry["name"] for entry in document["outputs"]] == ["prediction", "original"]


def test_a_graph_that_disagrees_is_not_kept(data, tmp_path, monkeypatch):
    model = HEADS["LogSUN"](data)

    def wrong(served, path, document):
        path.write_bytes(b"x")
        rows = lambda values: {name: torch.from_numpy(value) for name, value in values.items()}  # noqa: E731
        return lambda values: {name: 2.0 * out.numpy() for name, out in served(rows(values)).items()}

    monkeypatch.setattr(graph_export._Torch, "write", wrong)
    with pytest.raises(ValueError, match="differs from the model"):
        export(model, tmp_path / "m.pt2", encoded=True)
    assert list(tmp_path.iterdir()) == []


# Opens the file as anybody would, in a process that cannot import torch or this library.
STRANGER = """
import sys
for name in ("torch", "transun", "pyarrow", "sklearn"):
    sys.modules[name] = None
import json, pickle
import onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1])
document = json.loads(session.get_modelmeta().custom_metadata_map["transun"])
with open(sys.argv[2], "rb") as file:
    batches = pickle.load(file)
results = [session.run(["prediction", "original"], batch) for batch in batches]
types = {each.name: each.type for each in session.get_inputs()}
with open(sys.argv[2], "wb") as file:
    pickle.dump((document, types, results), file)
"""


@pytest.mark.parametrize("name", ["corrected", "mixture"])
def test_strangers_predict_from_raw_columns(data, tmp_path, name):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    import pickle

    model = HEADS[name](data)
    exported = export(model, tmp_path / "m.onnx")
    assert exported.features is None
    assert exported.difference < 1e-5
    whole = as_inputs(data)
    batches = [whole, {column: values[3:4] for column, values in whole.items()}, EXTREME]
    (tmp_path / "batches").write_bytes(pickle.dumps(batches))
    call = [sys.executable, "-c", STRANGER, str(tmp_path / "m.onnx"), str(tmp_path / "batches")]
    subprocess.run(call, check=True, env={"PATH": ""})
    document, types, results = pickle.loads((tmp_path / "batches").read_bytes())
    assert types == {
        "user.id": "tensor(int64)",
        "genres": "tensor(string)",
        "price": "tensor(double)",
        "spent": "tensor(double)",
        "when": "tensor(int64)",
        "week": "tensor(double)",
    }
    assert {entry["name"] for entry in document["inputs"]} == set(types)
    for batch, (prediction, original) in zip(batches, results, strict=True):
        table = as_table(batch)
        np.testing.assert_allclose(prediction, model.predict(table), rtol=1e-5)
        with torch.no_grad():
            raw = model.model.raw(model.features.encode(table))
            undebiased = model.model.over_members(model.model.head.undebiased(raw))
        np.testing.assert_allclose(original, undebiased, rtol=1e-5)


def test_quantiles_are_those_of_the_law(data, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    model = HEADS["law"](data)
    export(model, tmp_path / "m.onnx", quantiles=(0.1, 0.9), encoded=True, original=False)
    x = {name: value.numpy() for name, value in model.features.encode(data).items()}
    (made,) = runtime.InferenceSession(tmp_path / "m.onnx").run(["quantiles"], x)
    (chunk,) = predict_in_chunks(model, data, quantiles=(0.1, 0.9))
    np.testing.assert_allclose(made, torch.stack(list(chunk.quantiles.values()), 1), rtol=1e-4)
    with pytest.raises(ValueError, match="has no quantiles"):
        export(HEADS["LogSUN"](data), tmp_path / "n.onnx", quantiles=(0.1,))


def test_quantiles_below_the_share_of_zeros_are_zero(data, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    half = {**data, "gmv": np.where(np.arange(len(data["gmv"])) % 2 == 0, 0.0, data["gmv"])}
    model = trained(half, ZILN())
    export(model, tmp_path / "m.onnx", quantiles=(0.01, 0.99), encoded=True)
    x = {name: value.numpy() for name, value in model.features.encode(half).items()}
    (made,) = runtime.InferenceSession(tmp_path / "m.onnx").run(["quantiles"], x)
    assert (made[:, 0] == 0.0).all()
    assert (made[:, 1] > 0.0).all()


@pytest.mark.parametrize("output", ["prediction", "quantiles"])
def test_a_graph_that_differs_in_any_output_is_not_written(data, tmp_path, monkeypatch, output):
    opened = graph_export.open_onnx

    def harmed(path):
        predict = opened(path)
        return lambda values: (outputs := predict(values)) | {output: 1.01 * outputs[output]}

    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(graph_export, "open_onnx", harmed)
    with pytest.raises(ValueError, match=r"differs from the model by 1\.0e-02"):
        export(HEADS["law"](data), tmp_path / "m.onnx", quantiles=(0.5,), encoded=True)
    assert not (tmp_path / "m.onnx").exists()


@pytest.mark.parametrize("ending", ["onnx", "pt2"])
def test_a_column_may_be_read_twice(tmp_path, ending):
    from transun import Bag, Id
    from transun.data import Numbered

    pytest.importorskip("onnxscript")
    rng = np.random.default_rng(0)
    table = {"item_0": rng.integers(-1, 5, 60), "item_1": rng.integers(3, 9, 60), "gmv": rng.lognormal(0, 1, 60)}
    features = Features({"item": Bag(Numbered(2)), "item_0": Id()})  # -1 is no item, and an id
    model = train(table, "gmv", LogSUN(), features=features, recipe=Recipe(epochs=1), progress=False)
    exported = export(model, tmp_path / f"m.{ending}")
    assert [entry["name"] for entry in exported.inputs] == ["item_0", "item_1"]
    assert exported.difference < 1e-5


def test_empty_text_is_the_same_in_a_frame_in_files_and_in_a_graph(tmp_path):
    """A CSV file and a graph have no other way to write a missing id."""
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    import polars as pl

    frame = pl.DataFrame({"shop": ["a", "", "b"] * 40, "gmv": [1.0, 9.0, 4.0] * 40})
    model = train(frame, "gmv", MSE(), recipe=Recipe(epochs=3, batch_size=16), progress=False)
    first = frame[:3]
    first.write_csv(tmp_path / "rows.csv")
    first.write_parquet(tmp_path / "rows.parquet")
    export(model, tmp_path / "model.onnx")
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    by_graph = session.run(["prediction"], {"shop": np.array(["a", "", "b"], object)})[0]
    sources = [tmp_path / "rows.csv", tmp_path / "rows.parquet", first, {"shop": ["a", None, "b"]}]
    for predicted in (model.predict(source).numpy() for source in sources):
        np.testing.assert_allclose(predicted, by_graph, rtol=1e-5)
    assert len(np.unique(by_graph)) == 3


def test_a_column_called_like_an_output_keeps_its_name(tmp_path):
    """Another model's prediction is a feature that many tables have; inputs and outputs of ONNX share their names."""
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    rows = {
        "prediction": list(np.linspace(0.1, 9.7, 40)),
        "original": ["a", "b"] * 20,
        "model_original": ["c"] * 20 + ["d"] * 20,
    }
    model = train(rows | {"gmv": [1.0, 3.0] * 20}, "gmv", LogSUN(), recipe=Recipe(epochs=1), progress=False)
    names = ["model_prediction", "model_model_original"]
    columns = {name: np.array(values, float if name == "prediction" else object) for name, values in rows.items()}
    exported = export(model, tmp_path / "model.onnx")
    assert exported.outputs == names
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    document = json.loads(session.get_modelmeta().custom_metadata_map["transun"])
    assert [(entry["kind"], entry["name"]) for entry in document["outputs"]] == [
        ("prediction", names[0]),
        ("original", names[1]),
    ]
    predicted = model.predict(rows).numpy()
    np.testing.assert_allclose(session.run([names[0]], columns)[0], predicted, rtol=1e-5)
    served = ServedTable(session)
    np.testing.assert_allclose(served.predict(columns), predicted, rtol=1e-5)
    assert export(model, tmp_path / "model.pt2").outputs == names


class Bare(GTS):
    """The branch's output as it is, so that the last operation of the graph is the one that takes off a dimension."""

    def forward(self, raw):
        return raw[-1].squeeze(-1)


@pytest.mark.parametrize("head", [LogSUN(shared=4), Bare(LogMSE(), shared=4)], ids=["LogSUN", "bare"])
def test_a_branch_that_shares_all_adds_little_to_the_graph(data, tmp_path, head):
    targets = {}
    for name, branches in {"with": head, "without": LogMSE()}.items():
        exported = export(trained(data, branches), tmp_path / f"{name}.pt2", encoded=True, original=False)
        program = torch.export.load(exported.path)
        called = [node.target for node in program.graph.nodes if node.op == "call_function"]
        targets[name] = [target for target in called if target is not operator.getitem]
        # One lookup per weight and call.
        assert all(weight.isidentifier() for weight in program.state_dict)
    # Two operations more than without the branch, one of them for the unit of z: the others replace those of the log
    # target.
    assert len(targets["with"]) <= len(targets["without"]) + 2
    assert torch.ops.aten.addmm.default not in Counter(targets["with"]) - Counter(targets["without"])


def test_a_mixture_is_saved_and_trained_further(data, tmp_path):
    from transun import load

    model = mixture(data)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert torch.equal(loaded.predict(data), model.predict(data))
    later = {name: values[:100] for name, values in data.items()} | {"user.id": np.arange(100) + 3}
    with pytest.warns(UserWarning, match="the trees of this model stay as they are"):
        updated = loaded.update(later, Recipe(epochs=1), progress=False)
    assert updated.features.ids["user.id"] > loaded.features.ids["user.id"]
    assert bool(updated.predict(later).isfinite().all())
