"""A model exported for serving: raw columns in, predictions out, in one file, which is compared with the model."""

import json
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from transun import __version__
from transun.data.kinds.graph import GraphInput, exposure_input
from transun.models.certificate import Certificate, certificate_json
from transun.models.inference_layout import merge_branches, merge_outputs
from transun.support.files import replacing, write_json, write_text
from transun.support.text_form import dumps
from transun.tables.model import TableModel
from transun.tables.onnx_graph import open_onnx, require_onnx, write_onnx
from transun.tables.prediction import check_levels
from transun.tables.served_model import ServedModel, WithLookups

__all__ = ["Exported", "export", "require_format"]

# The rows that a graph is traced with, and the length of their multi-valued columns.
_ROWS, _LENGTH = 64, 4
# The largest relative difference between model and graph. Both compute in float32 in different orders: this is far
# above their rounding errors, and far below a mistake. The difference is relative to `_SMALLEST` at least.
_TOLERANCE, _SMALLEST = 1e-3, 1e-6

Values = Mapping[str, np.ndarray]
Predict = Callable[[Values], dict[str, np.ndarray]]


@dataclass(frozen=True)
class Exported:
    """The files of an exported model.

    Args:
        path: the graph.
        document: a JSON file that documents the inputs and the outputs of the graph; the graph holds the same text.
        difference: the largest relative difference between predictions of the graph and of the model.
        inputs: name, dtype, shape and meaning of every input.
        outputs: the names of the outputs: `prediction`, then `original` and `quantiles` where they are asked for; each
            with `model_` before it where a column of the table is called so.
        features: a JSON file of the features, by which `Features.encode` makes the inputs that are no raw columns; None
            where all inputs are raw columns.

    """

    path: Path
    document: Path
    difference: float
    inputs: list[dict[str, Any]]
    outputs: list[str]
    features: Path | None = None


def export(
    trained: TableModel,
    path: str | Path,
    *,
    original: bool = True,
    quantiles: Sequence[float] = (),
    encoded: bool = False,
    certificate: Certificate | None = None,
) -> Exported:
    """Write the model as one graph, a .onnx or .pt2 (torch) file, with a JSON file beside it, and compare predictions.

    A file that ends in .aoti.pt2 is compiled: C++ code for the processor of this machine, by AOTInductor.

    The inputs of the graph are the columns of the table, by their names: ids as text or whole numbers, numbers as
    float64 with NaN for missing, times as int64 microseconds since 1970, several ids a row as a matrix whose shorter
    rows are filled up with missing ones. Vocabularies, scales, network, inverse transform, κ, corrections and mixtures
    are inside. The graph takes any number of rows and any length of lists. The exposure of a model that has one is an
    input too, and outputs are amounts, as those of `TableModel.predict`.

    torch has no text: in a .pt2 file columns of text are inputs of codes, as `Features.encode` makes them, and a file
    of the features is written beside it. The same happens in an ONNX file to text in `HashedId` columns, and to kinds
    of your own without a `graph`.

    Args:
        trained: the trained model.
        path: a .pt2 file is loaded by torch alone; writing an .onnx file needs the extra `onnx`, and an .aoti.pt2 file
            a C++ compiler and some ten seconds.
        original: output the prediction before debiasing too, as `original`; it costs a few operations.
        quantiles: levels between 0 and 1 of quantiles to output, (batch, levels), for heads with a law of y|x. A search
            by halving is part of the graph then, which costs more than the network.
        encoded: take tensors of `Features.encode` instead of columns, where ids are codes already.
        certificate: what was measured about the totals of the model; becomes part of the file.

    """
    path = Path(path)
    require_format(path)
    format_ = _format_of(path)
    format_.require()
    trained.model.require_trained()
    model = trained.model.eval()
    check_levels(model, quantiles)
    columns = trained.features.graphs(encoded=encoded, text=format_.has_text)
    exposure = None if trained.exposure is None else exposure_input(trained.exposure)
    arranged = format_.arrange(model)
    served = ServedModel(arranged, columns, original=original, levels=quantiles, exposure=exposure).eval()
    inputs = [
        {"name": each.name, "dtype": each.dtype, "shape": list(each.shape), "meaning": each.meaning}
        for each in served.inputs
    ]
    content = {
        "model": dumps(model.head),
        "target": trained.target,
        "exposure": trained.exposure,
        "inputs": inputs,
        "outputs": [_describe_output(*output, trained, quantiles) for output in served.outputs.items()],
        "certificate": None if certificate is None else certificate_json(certificate),
        "versions": {"transun": __version__, "torch": str(torch.__version__)},
    }
    with replacing(path) as draft:
        difference = _compare(trained, served, format_.write(served, draft, json.dumps(content)))
        if not difference <= _TOLERANCE:
            raise ValueError(
                f"the exported graph differs from the model by {difference:.1e} (relative), so nothing was written: "
                "try the other format, .pt2 or .onnx"
            )
    features = path.with_suffix(".features.json") if any(column.encoded for column in columns) else None
    if features is not None:
        write_text(features, trained.features.to_json())
        content["encoding"] = (
            f"encoded inputs are made by {features.name}: transun.Features.from_json(text).encode(table)"
        )
    document = path.with_suffix(path.suffix + ".json")
    write_json(document, content | {"max_relative_difference": difference})
    return Exported(path, document, difference, inputs, list(served.outputs.values()), features)


def require_format(path: Path) -> None:
    """Raise a `ValueError` if the ending of a file is not that of a format."""
    if _format_of(path) is None:
        raise ValueError(
            f"{path}: cannot tell the format by its name; end it in .onnx, .pt2 (torch) or .aoti.pt2 (compiled)"
        )


def _format_of(path: Path) -> Any:
    return next((format_ for ending, format_ in _FORMATS.items() if path.name.endswith(ending)), None)


def _describe_output(kind: str, name: str, trained: TableModel, quantiles: Sequence[float]) -> dict[str, Any]:
    target = trained.target
    if trained.exposure is not None:
        target = f"{target} over the input {trained.exposure}"
    levels = ", ".join(f"{level:g}" for level in quantiles)
    meaning, width = {
        "prediction": (f"an estimate of the mean of {target}", []),
        "original": (f"the prediction of {target} before debiasing", []),
        "quantiles": (f"quantiles of {target} at the levels {levels}", [len(quantiles)]),
    }[kind]
    return {"name": name, "kind": kind, "dtype": "float32", "shape": ["batch", *width], "meaning": meaning}


def _trace(served: nn.Module, inputs: Mapping[str, Tensor]) -> torch.export.ExportedProgram:
    return torch.export.export(served, (dict(inputs),), dynamic_shapes=(_shapes(inputs),))


def _shapes(inputs: Mapping[str, Tensor]) -> dict[str, dict[int, Any]]:
    rows = torch.export.Dim("batch")
    return {
        name: {0: rows} | ({1: torch.export.Dim(f"length_{index}_{_identifier(name)}")} if value.ndim == 2 else {})
        for index, (name, value) in enumerate(inputs.items())
    }


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def _coded_examples(served: ServedModel) -> dict[str, Tensor]:
    """Inputs to trace a model with whose ids are looked up before; which codes they are does not matter."""
    examples = {}
    for name, each in served.coded_inputs.items():
        lists = each.several or each.separator is not None
        codes = torch.zeros((_ROWS, _LENGTH) if lists else _ROWS, dtype=torch.int64)
        examples[name] = _examples([each])[each.name] if each.lookup is None else codes
    return examples


def _examples(inputs: Sequence[GraphInput]) -> dict[str, Tensor]:
    rng = np.random.default_rng(0)
    return {each.name: torch.from_numpy(each.draw(_ROWS, rng)) for each in inputs}


@torch.no_grad()
def _compare(trained: TableModel, served: ServedModel, predict: Predict) -> float:
    """The largest relative difference in two batches of sizes that the graph was not traced with."""
    reference = ServedModel(trained.model, (), original=served.original, levels=served.levels, exposure=served.exposure)
    largest = 0.0
    for rows, seed in ((1, 1), (3 * _ROWS + 1, 2)):
        rng = np.random.default_rng(seed)
        values = {each.name: each.draw(rows, rng) for each in served.inputs}
        x: dict[str, Tensor] = {}
        for column in served.graphs:
            x |= column.expected(values)
        actual = predict(values)
        exposures = [] if served.exposure is None else [served.exposure.name]
        columns = {each: torch.from_numpy(values[each]) for each in exposures}
        for kind, expected in reference.to_amounts(reference.read(x), columns).items():
            wanted, made = expected.double().numpy(), actual[served.outputs[kind]].astype(np.float64)
            difference = np.abs(made - wanted) / np.abs(wanted).clip(_SMALLEST)
            largest = max(largest, float(difference.max()) if np.isfinite(difference).all() else float("inf"))
    return largest


class _Torch:
    """A .pt2 file, which torch alone loads."""

    has_text = False
    arrange = staticmethod(merge_branches)

    @staticmethod
    def require() -> None:
        """Torch is always installed."""

    @staticmethod
    def write(served: ServedModel, path: Path, document: str) -> Predict:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch, about its own parts; they differ between its versions
            program = _trace(_FlatWeights(WithLookups(served)), _examples(served.inputs))
            with path.open("wb") as file:
                torch.export.save(_remove_squeezed_columns(program), file, extra_files={"transun.json": document})
            with path.open("rb") as written:
                return _with_numpy(torch.export.load(written).module())


class _Compiled:
    """An .aoti.pt2 file of AOTInductor: machine code, which torch loads in Python or C++."""

    has_text = False
    arrange = staticmethod(merge_branches)

    @staticmethod
    def require() -> None:
        """Raise an error if there is no compiler."""
        from torch._inductor.cpp_builder import get_cpp_compiler  # which takes a while to import

        try:
            get_cpp_compiler()
        except RuntimeError as error:
            raise RuntimeError(
                "an .aoti.pt2 file is compiled, and no C++ compiler is installed: install g++ or clang++, or export to "
                ".pt2 or .onnx"
            ) from error

    @staticmethod
    def write(served: ServedModel, path: Path, document: str) -> Predict:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as above
            program = _trace(WithLookups(served), _examples(served.inputs))
            with path.open("wb") as file:
                settings = {"aot_inductor.metadata": {"transun": document}}
                torch._inductor.aoti_compile_and_package(program, package_path=file, inductor_configs=settings)
            with path.open("rb") as written:
                return _with_numpy(torch._inductor.aoti_load_package(written))


def _with_numpy(graph: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> Predict:
    """A loaded graph as a function of numpy arrays."""

    def predict(values: Values) -> dict[str, np.ndarray]:
        outputs = graph({name: torch.from_numpy(value) for name, value in values.items()})
        return {name: output.numpy() for name, output in outputs.items()}

    return predict


class _Onnx:
    """An .onnx file, which onnxruntime loads."""

    has_text = True
    require = staticmethod(require_onnx)
    arrange = staticmethod(merge_outputs)  # onnxruntime fuses other operations itself

    @staticmethod
    def write(served: ServedModel, path: Path, document: str) -> Predict:
        program = _trace(served, _coded_examples(served))
        write_onnx(program, served, path, {"transun": document})
        return open_onnx(path)  # type: ignore[no-any-return]


# By the ending of the file; a longer ending comes before a shorter one in which it ends.
_FORMATS: Mapping[str, Any] = {".aoti.pt2": _Compiled, ".pt2": _Torch, ".onnx": _Onnx}


class _FlatWeights(nn.Module):
    """A module whose weights are all attributes of the module itself.

    A loaded graph looks up every weight at every call, and a name such as `network.stacks.0.1.weight` takes one lookup
    per level.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.inner = (module,)  # in a tuple, so that torch does not register the weights under their old names too
        self.names: dict[str, str] = {}
        for name, weight in (*module.named_parameters(), *module.named_buffers()):
            self.names[name] = f"weight_{len(self.names)}"
            # Buffers become parameters too, because torch looks up an attribute among the parameters first.
            self.register_parameter(self.names[name], nn.Parameter(weight.detach(), requires_grad=False))

    def forward(self, columns: dict[str, Tensor]) -> dict[str, Tensor]:
        weights = {name: getattr(self, flat_name) for name, flat_name in self.names.items()}
        return torch.func.functional_call(self.inner[0], weights, (columns,))  # type: ignore[no-any-return]


def _remove_squeezed_columns(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The same graph without pairs of `unsqueeze` and `squeeze` that cancel."""
    aten = torch.ops.aten
    for squeeze in program.graph.find_nodes(op="call_function", target=aten.squeeze.dim):
        unsqueeze = squeeze.args[0]
        is_output = any(user.op == "output" for user in squeeze.users)  # the program refers to its outputs by name
        if unsqueeze.target is aten.unsqueeze.default and unsqueeze.args[1] == squeeze.args[1] == -1 and not is_output:
            squeeze.replace_all_uses_with(unsqueeze.args[0])
            program.graph.erase_node(squeeze)
            if not unsqueeze.users:
                program.graph.erase_node(unsqueeze)
    program.graph_module.recompile()
    return program
