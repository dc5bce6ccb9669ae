"""Serves the ONNX file of a table model from frames of pandas, without transun.

MLflow keeps a copy of this module in the folder of a logged model and calls `_load_pyfunc`, so that nothing of transun
may be imported here. Whoever serves the model needs numpy, onnxruntime and pandas.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["ServedTable"]

GRAPH = "model.onnx"
"""The file that is served, in a folder that MLflow or the Hugging Face hub hands over."""
_MISSING = np.iinfo(np.int64).min


class ServedTable:
    """Frames in, amounts out: what MLflow calls.

    Args:
        session: of onnxruntime, with a graph that `transun.export` wrote.

    """

    def __init__(self, session: Any) -> None:
        self.session = session
        self.document = json.loads(session.get_modelmeta().custom_metadata_map["transun"])

    def predict(self, data: Any, params: dict[str, Any] | None = None) -> np.ndarray:
        """An output of the graph for every row, mostly `prediction`; amounts, where the model has an exposure.

        Args:
            data: a frame, or anything else that has columns by name.
            params: `output` names the output, such as `original`, the prediction before debiasing.

        """
        inputs = {each["name"]: to_input(column(data, each["name"]), each) for each in self.document["inputs"]}
        output = (params or {}).get("output", "prediction")
        outputs = {each["kind"]: each["name"] for each in self.document["outputs"]}
        if output not in outputs:
            raise ValueError(f"there is no output {output!r}: take one of {', '.join(outputs)}")
        # A column that the network does not use is no input of the graph.
        used = {each.name: inputs[each.name] for each in self.session.get_inputs()}
        values: np.ndarray = self.session.run([outputs[output]], used)[0].astype(np.float64)
        return values


def column(data: Any, name: str) -> Any:
    """A column as an array, or a `ValueError` that names it."""
    try:
        values = data[name]
    except KeyError:
        raise ValueError(f"there is no column {name!r}: add it, with missing values where nothing is known") from None
    return values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)


def to_input(values: np.ndarray, wanted: dict[str, Any]) -> np.ndarray:
    """The values of a column as the graph wants them: in its type, and missing ones written as it reads them.

    Args:
        values: (n,), each a list where a row has several.
        wanted: `dtype` and `shape` of the input.

    >>> to_input(np.array([7.0, np.nan]), {"dtype": "int64", "shape": ["batch"]}).tolist()
    [7, -9223372036854775808]
    >>> to_input(np.array(["DE", None], object), {"dtype": "string", "shape": ["batch"]}).tolist()
    ['DE', '']
    >>> lists = np.array([["a", "b"], None], object)
    >>> to_input(lists, {"dtype": "string", "shape": ["batch", "length"]}).tolist()
    [['a', 'b'], ['', '']]

    """
    convert = _CONVERTED[wanted["dtype"]]
    if len(wanted["shape"]) == 1:
        return convert(values)
    rows = [[] if is_missing(row) else list(row) for row in values.tolist()]
    length = max((len(row) for row in rows), default=0)
    flat = np.array([*(each for row in rows for each in row + [None] * (length - len(row))), None], object)[:-1]
    return convert(flat).reshape(len(rows), length)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # NA is neither equal to itself nor unequal; a list is compared value by value
        return type(value).__name__ == "NAType"


def _texts(values: np.ndarray) -> np.ndarray:
    return np.array([*("" if is_missing(value) else _text(value) for value in values.tolist()), None], object)[:-1]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _whole_numbers(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "M":  # NaT is the smallest whole number
        return values.astype("datetime64[us]").astype(np.int64)
    if values.dtype.kind in "iub":
        return values.astype(np.int64)
    return np.array([_MISSING if is_missing(value) else _whole_number(value) for value in values.tolist()], np.int64)


def _whole_number(value: Any) -> int:
    if hasattr(value, "isoformat"):
        return int(np.datetime64(value, "us").astype(np.int64))
    return int(value)


def _fractions(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "iubf":
        return values.astype(np.float64)
    return np.array([np.nan if is_missing(value) else float(value) for value in values.tolist()], np.float64)


_CONVERTED = {"string": _texts, "int64": _whole_numbers, "float64": _fractions}


def _load_pyfunc(path: str) -> ServedTable:
    """The model in a folder; MLflow calls a function of this name."""
    import onnxruntime

    return ServedTable(onnxruntime.InferenceSession(Path(path) / GRAPH, providers=["CPUExecutionProvider"]))
