"""A served model as an ONNX graph: torch writes what computes with numbers, and what reads text is put before it."""

import logging
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from transun.data.kinds.graph import GraphInput
from transun.support.extras import need, require
from transun.tables.served_model import ServedModel

__all__ = ["open_onnx", "require_onnx", "torch_to_onnx", "write_onnx"]

# ONNX's own names for types.
_TYPES = {"string": "STRING", "int64": "INT64", "float64": "DOUBLE", "float32": "FLOAT"}
# P. J. Acklam's approximation of the quantile function of the normal law, of relative error 1.2e-9: coefficients of the
# highest power first, and the probability below which the tail has another one.
_NORMAL_TAIL = 0.02425
_NORMAL_NEAR: tuple[float, ...] = (
    *(-39.69683028665376, 220.9460984245205, -275.9285104469687),
    *(138.357751867269, -30.66479806614716, 2.506628277459239),
)
_NORMAL_NEAR_DIVISOR: tuple[float, ...] = (
    *(-54.47609879822406, 161.5858368580409, -155.6989798598866),
    *(66.80131188771972, -13.28068155288572),
)
_NORMAL_FAR: tuple[float, ...] = (
    *(-0.007784894002430293, -0.3223964580411365, -2.400758277161838),
    *(-2.549732539343734, 4.374664141464968, 2.938163982698783),
)
_NORMAL_FAR_DIVISOR = (0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416)
# The complementary error function is t·exp(-x² + P(t)) for x ≥ 0 and t = 1 / (1 + x/2), to a relative error of 1.2e-7:
# the coefficients of P in Numerical Recipes (Press and others, section 6.2), the highest power first.
_ERFC: tuple[float, ...] = (
    *(0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807),
    *(-0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223),
)
_LIBRARIES = ("onnx", "onnxscript", "onnxruntime")


def require_onnx() -> None:
    """Raise an error that names the extra if a library is missing."""
    require(*_LIBRARIES)


def write_onnx(
    program: torch.export.ExportedProgram, served: ServedModel, path: Path, metadata: Mapping[str, str]
) -> None:
    """Write the graph of a traced model to a file.

    Args:
        program: the traced model, whose inputs are the coded ones of `served`.
        served: the model.
        path: the file.
        metadata: texts by name, which a runtime shows to whoever asks.

    """
    onnx = need("onnx")
    inputs, coded, outputs = served.inputs, served.coded_inputs, list(served.outputs.values())
    # The names of torch must not meet the names of columns.
    prefix = "graph/"
    while any(each.name.startswith(prefix) for each in inputs):
        prefix += "/"
    model = onnx.compose.add_prefix(torch_to_onnx(program, len(coded), outputs), prefix, rename_outputs=False)
    for name, node_output in zip(outputs, model.graph.output, strict=True):
        node_output.name = name
    reader = _Reader(prefix)
    for number, each in enumerate(coded.values()):
        reader.read(each, f"{prefix}{_name(number)}")
    before, arguments = reader.nodes, [_declare(each) for each in inputs]
    nodes = [*before, *model.graph.node]
    graph = onnx.helper.make_graph(nodes, "transun", arguments, list(model.graph.output), list(model.graph.initializer))
    opsets = [*model.opset_import, onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    whole = onnx.helper.make_model(
        graph, opset_imports=opsets, ir_version=model.ir_version, functions=list(model.functions)
    )
    onnx.helper.set_model_props(whole, dict(metadata))
    path.write_bytes(whole.SerializeToString())


def open_onnx(path: Path) -> Any:
    """A function from the inputs of a graph to its outputs, both by name, as numpy arrays."""
    session = need("onnxruntime").InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    outputs = [each.name for each in session.get_outputs()]

    def predict(values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        used = {each.name: values[each.name] for each in session.get_inputs()}
        return dict(zip(outputs, session.run(outputs, used), strict=True))

    return predict


def _name(number: int) -> str:
    return f"column_{number}"


def torch_to_onnx(program: torch.export.ExportedProgram, inputs: int, outputs: list[str]) -> Any:
    """The ONNX model of a traced module, with inputs `column_0`, `column_1` and so on."""
    with _quiet():
        try:
            written = torch.onnx.export(
                program,
                dynamo=True,
                input_names=[_name(number) for number in range(inputs)],
                output_names=outputs,
                verbose=False,
                external_data=False,
                optimize=False,  # onnxruntime does so when it loads a graph
                custom_translation_table=_translations(),
            )
        except RuntimeError as error:
            line = str(error).splitlines()[0][:200]
            raise ValueError(f"torch could not write this head as ONNX ({line}): export it to .pt2") from error
    if written is None:
        raise ValueError("torch could not write this head as ONNX: export it to .pt2")
    return written.model_proto


@contextmanager
def _quiet() -> Iterator[None]:
    """Inside the `with` block torch and onnxscript do not warn about each other's calls, which a user cannot change."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _translations() -> dict[Any, Any]:
    """Operations that ONNX or onnxruntime lacks, in others that keep their digits.

    torch writes eˣ - 1 and ln(1 + x) as they stand, of which nothing is left near zero in single precision, and does
    not write a binary search at all.
    """
    op, tensor = need("onnxscript").opset20, need("onnx_ir").tensor

    def number(value: float, like: Any) -> Any:
        """A constant in the precision of a value of torch's graph."""
        return op.Constant(value=tensor(value, dtype=like.dtype))

    def expm1(x: Any) -> Any:
        """tanh(x / 2)·(eˣ + 1)."""
        return op.Mul(op.Tanh(op.Mul(x, number(0.5, x))), op.Add(op.Exp(x), number(1.0, x)))

    def log1p(x: Any) -> Any:
        return log1p_like(x, x)

    def log1p_like(x: Any, like: Any) -> Any:
        """x·ln(w) / (w - 1) for w = 1 + x as rounded, whose rounding error cancels; x itself where w is 1."""
        one = number(1.0, like)
        w = op.Add(x, one)
        difference = op.Sub(w, one)
        whole = op.Equal(difference, number(0.0, like))
        return op.Where(whole, x, op.Mul(op.Log(w), op.Div(x, op.Where(whole, one, difference))))

    def softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
        """max(x, 0) + ln(1 + e^-|x|), also in double precision, in which onnxruntime has none."""
        scaled = x if beta == 1.0 else op.Mul(x, number(beta, x))
        value = op.Add(op.Max(scaled, number(0.0, x)), log1p_like(op.Exp(op.Neg(op.Abs(scaled))), x))
        return value if beta == 1.0 else op.Div(value, number(beta, x))

    def sigmoid(x: Any) -> Any:
        """1 / (1 + e⁻ˣ); the operation of that name is wrong by a quarter at -13 in onnxruntime, and 0 at -20."""
        return op.Reciprocal(op.Add(op.Exp(op.Neg(x)), number(1.0, x)))

    def searchsorted(
        edges: Any, values: Any, out_int32: bool = False, right: bool = False, side: Any = None, sorter: Any = None
    ) -> Any:
        """The number of edges below each value, or up to it."""
        passed = (op.GreaterOrEqual if right or side == "right" else op.Greater)(op.Unsqueeze(values, [-1]), edges)
        return op.Cast(op.ReduceSum(op.Cast(passed, to=1), [-1], keepdims=0), to=7)

    def clamp(x: Any, min: Any = None, max: Any = None) -> Any:
        """Without an empty input for the lower bound, over which skl2onnx stumbles."""
        if min is None:
            return op.Neg(op.Clip(op.Neg(x), number(-max, x)))
        return op.Clip(x, number(min, x)) if max is None else op.Clip(x, number(min, x), number(max, x))

    def polynomial(coefficients: Sequence[float], x: Any, like: Any) -> Any:
        """A polynomial, in the precision of a value of torch's graph."""
        value = number(coefficients[0], like)
        for coefficient in coefficients[1:]:
            value = op.Add(op.Mul(value, x), number(coefficient, like))
        return value

    def erfc(x: Any) -> Any:
        """1 - erf(x), whose digits a difference would lose where it is small."""
        size = op.Abs(x)
        t = op.Reciprocal(op.Add(op.Mul(size, number(0.5, x)), number(1.0, x)))
        upper = op.Mul(t, op.Exp(op.Sub(polynomial(_ERFC, t, x), op.Mul(size, size))))
        return op.Where(op.Less(x, number(0.0, x)), op.Sub(number(2.0, x), upper), upper)

    def ndtri(p: Any) -> Any:
        """The quantile of the normal law, by rational functions of (p - ½)², or of √(-2 ln p) in the tails."""
        tail = op.Min(p, op.Sub(number(1.0, p), p))
        root = op.Sqrt(op.Mul(op.Log(tail), number(-2.0, p)))
        ratio = op.Div(polynomial(_NORMAL_FAR, root, p), polynomial((*_NORMAL_FAR_DIVISOR, 1.0), root, p))
        # At 0 the root is infinite, and so are both polynomials.
        far = op.Where(op.Equal(tail, number(0.0, p)), number(-math.inf, p), ratio)
        centred = op.Sub(p, number(0.5, p))
        square = op.Mul(centred, centred)
        near = op.Div(polynomial(_NORMAL_NEAR, square, p), polynomial((*_NORMAL_NEAR_DIVISOR, 1.0), square, p))
        signed = op.Where(op.Less(centred, number(0.0, p)), far, op.Neg(far))
        return op.Where(op.Less(tail, number(_NORMAL_TAIL, p)), signed, op.Mul(near, centred))

    aten = torch.ops.aten
    return {
        torch.ops.prims.ndtri.default: ndtri,
        aten.erfc.default: erfc,
        aten.softplus.default: softplus,
        aten.expm1.default: expm1,
        aten.log1p.default: log1p,
        aten.sigmoid.default: sigmoid,
        aten.searchsorted.Tensor: searchsorted,
        aten.clamp.default: clamp,
    }


def _declare(each: GraphInput) -> Any:
    onnx = need("onnx")
    shape = [dimension if dimension == "batch" else f"{dimension} of {each.name}" for dimension in each.shape]
    return onnx.helper.make_tensor_value_info(
        each.name, getattr(onnx.TensorProto, _TYPES[each.dtype]), shape, doc_string=each.meaning
    )


class _Reader:
    """Collects the nodes that turn inputs into what torch's part of the graph takes."""

    def __init__(self, prefix: str) -> None:
        self.nodes: list[Any] = []
        self.prefix = prefix

    def read(self, each: GraphInput, output: str) -> None:
        """The nodes from an input to the value called `output`."""
        if each.lookup is None:
            self._add("Identity", [each.name], [output])
            return
        name = each.name if each.separator is None else self._split(each.name, each.separator)
        kind = "strings" if each.dtype == "string" else "int64s"
        keys, codes = {f"keys_{kind}": list(each.lookup.keys)}, list(each.lookup.codes)
        self._add("LabelEncoder", [name], [output], domain="ai.onnx.ml", values_int64s=codes, default_int64=0, **keys)

    def _split(self, name: str, separator: str) -> str:
        """The parts of every text (batch, length), without blanks around them."""
        parts = self._step("StringSplit", [name], 2, delimiter=separator)
        # A split by blanks into no more than one part takes the blanks off. Where no text has a part there is nothing
        # to give back, so that one more text takes part, and is dropped.
        flat = self._step("Reshape", [parts, self._constant(np.array([-1]))])
        longer = self._step("Concat", [flat, self._constant(np.array(["-"], object))], axis=0)
        trimmed = self._step(
            "Reshape", [self._step("StringSplit", [longer], 2, maxsplit=0), self._constant(np.array([-1]))]
        )
        without = self._step("Slice", [trimmed, *(self._constant(np.array([end])) for end in (0, -1))])
        return self._step("Reshape", [without, self._step("Shape", [parts])], allowzero=1)

    def _constant(self, value: np.ndarray) -> str:
        return self._step("Constant", [], value=need("onnx").numpy_helper.from_array(value))

    def _step(self, operation: str, inputs: list[str], outputs: int = 1, **attributes: Any) -> str:
        """One more node; the name of its first output."""
        names = [f"{self.prefix}read_{len(self.nodes)}_{number}" for number in range(outputs)]
        self._add(operation, inputs, names, **attributes)
        return names[0]

    def _add(self, operation: str, inputs: list[str], outputs: list[str], domain: str = "", **attributes: Any) -> None:
        make = need("onnx").helper.make_node
        name = f"{self.prefix}read_{len(self.nodes)}"
        self.nodes.append(make(operation, inputs, outputs, name=name, domain=domain, **attributes))
