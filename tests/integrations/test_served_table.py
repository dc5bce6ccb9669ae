"""The module that MLflow gets beside the ONNX file reads frames as the model does, and imports nothing of transun."""

import ast
from pathlib import Path

import numpy as np
import pytest

from transun import export
from transun.integrations import served_table
from transun.integrations.served_table import to_input
from wide_rows import new_rows, wide_model

pd = pytest.importorskip("pandas", reason="pandas is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
MISSING = -(2**63)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    model = wide_model()
    path = export(model, tmp_path_factory.mktemp("served") / served_table.GRAPH).path
    return model, served_table._load_pyfunc(str(path.parent))


def test_it_imports_neither_transun_nor_torch():
    tree = ast.parse(Path(served_table.__file__).read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported == {"json", "pathlib", "typing", "numpy", "onnxruntime"}


def test_frames_are_predicted_as_by_the_model(served):
    model, table = served
    rows = new_rows()
    np.testing.assert_allclose(table.predict(rows), model.predict(rows).numpy(), rtol=1e-5)
    assert np.ptp(table.predict(rows) / rows["years"]) > 0.0


def test_types_that_pandas_makes_of_missing_values_do_not_matter(served):
    _, table = served
    rows = new_rows()
    expected = table.predict(rows)
    rows["shop"] = rows["shop"].astype("float64")
    rows["item"] = rows["item"].astype("Int64")
    rows["country"] = rows["country"].astype(object)
    rows["ordered"] = rows["ordered"].astype("datetime64[ns]")
    rows["vip"] = rows["vip"].astype(object)
    np.testing.assert_array_equal(table.predict(rows), expected)


def test_outputs_are_named(served):
    _, table = served
    rows = new_rows()
    original = table.predict(rows, {"output": "original"})
    assert not np.allclose(original, table.predict(rows))
    with pytest.raises(ValueError, match="take one of prediction, original"):
        table.predict(rows, {"output": "median"})


def test_a_missing_column_is_named(served):
    with pytest.raises(ValueError, match="there is no column 'price'"):
        served[1].predict(new_rows().drop(columns="price"))


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        (np.array([1, 2], np.int32), "int64", [1, 2]),
        (np.array([True, False]), "int64", [1, 0]),
        (np.array([7, None, np.nan], object), "int64", [7, MISSING, MISSING]),
        (np.array(["1970-01-01T00:00:01", "NaT"], "datetime64[s]"), "int64", [10**6, MISSING]),
        (np.array([1, None], object), "float64", [1.0, np.nan]),
        (np.array(["a", None, np.nan, 12, True], object), "string", ["a", "", "", "12", "true"]),
    ],
)
def test_values_are_written_as_the_graph_reads_them(values, dtype, expected):
    converted = to_input(values, {"dtype": dtype, "shape": ["batch"]})
    np.testing.assert_array_equal(converted, np.array(expected, object if dtype == "string" else dtype))


def test_lists_are_filled_up():
    wanted = {"dtype": "int64", "shape": ["batch", "length"]}
    rows = np.array([[1, 2, 3], None, [4, None]], object)
    assert to_input(rows, wanted).tolist() == [[1, 2, 3], [MISSING] * 3, [4, MISSING, MISSING]]
    assert to_input(np.array([None, None], object), wanted).shape == (2, 0)


def test_pandas_has_its_own_missing_value():
    assert to_input(pd.array([1, None], "Int64").to_numpy(object), {"dtype": "int64", "shape": [""]}).tolist() == [
        1,
        MISSING,
    ]
