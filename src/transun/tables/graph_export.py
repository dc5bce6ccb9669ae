"""A model exported for serving: network, transform, κ and correction in one graph, compared with the model."""

import logging
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from transun import __version__
from transun.models.inference_layout import merge_branches
from transun.models.network import Model
from transun.support.extras import need, require
from transun.support.files import replacing, write_json, write_text
from transun.support.text_form import dumps
from transun.tables.model import TableModel

__all__ = ["Exported", "export", "require_format", "sample_rows"]

# The rows that a graph is traced with, and the length of their multi-valued columns.
_ROWS, _LENGTH = 64, 4
# The largest relative difference between model and graph. Both compute in float32 in different orders: this is far
# above their rounding errors, and far below a mistake. The difference is relative to `_SMALLEST` at least.
_TOLERANCE, _SMALLEST = 1e-3, 1e-6

Predict = Callable[[dict[str, Tensor]], Tensor]


@dataclass(frozen=True)
class Exported:
    """The files of an exported model.

    Args:
        path: the graph.
        document: a JSON file that documents the inputs and the output of the graph.
        features: a JSON file of the features, which encode raw columns.
        difference: the largest relative difference between predictions of the graph and of the model.
        inputs: name, dtype, shape and meaning of every input.

    """

    path: Path
    document: Path
    features: Path
    difference: float
    inputs: list[dict[str, Any]]


def sample_rows(trained: TableModel, rows: int = _ROWS, seed: int = 0) -> dict[str, Tensor]:
    """Encoded rows for the model's network, whose id columns cover their whole tables, the code of unseen ids included.

    They are made from the sizes of the tables, so that a saved model need not contain anybody's data.

    >>> trained = train({"item": ["a", "b"], "gmv": [1.0, 3.0]}, "gmv", MSE())
    >>> sorted(set(sample_rows(trained)["item"].tolist()))  # two items and the index of unseen ones
    [0, 1, 2]
    """
    features = trained.features
    tables = {**features.ids, **features.bags}
    generator = torch.Generator().manual_seed(seed)

    def size(name: str) -> int:
        size_or_column = tables[name]  # the size of its table, or the column that it shares a table with
        return size(size_or_column) if isinstance(size_or_column, str) else size_or_column

    x: dict[str, Tensor] = {}
    for name in features.ids:
        x[name] = (torch.arange(rows) + torch.randint(size(name), (1,), generator=generator)) % size(name)
    for name in features.bags:
        x[name] = torch.randint(-1, size(name), (rows, _LENGTH), generator=generator)
    for name in features.numeric:
        x[name] = torch.randn(rows, generator=generator)
    for name in features.ranks:
        x[name] = torch.rand(rows, generator=generator)
    return x


def export(trained: TableModel, path: str | Path) -> Exported:
    """Write the model's graph to a .pt2 (torch) or .onnx file with two JSON files beside it, and compare predictions.

    The graph takes any number of rows and any length of multi-valued columns. It does not take raw columns: ids must be
    codes and numbers must be scaled, as by `Features.encode`; the JSON file of the features is all that this needs.

    Args:
        trained: the trained model.
        path: a .pt2 file is loaded by torch alone; writing an .onnx file needs the extra `onnx`.

    """
    path = Path(path)
    require_format(path)
    model = trained.model.eval()
    if not model.prepared:
        raise ValueError("the model was never trained: fit it first")
    batch = sample_rows(trained)
    write_graph = _FORMATS[path.suffix]
    with replacing(path) as draft:
        difference = _compare(model, write_graph(model, batch, draft), trained)
        if not difference <= _TOLERANCE:
            raise ValueError(
                f"the exported graph differs from the model by {difference:.1e} (relative), so nothing was written: "
                "try the other format, .pt2 or .onnx"
            )
    inputs = [_describe(trained, name, value) for name, value in batch.items()]
    features, document = path.with_suffix(".features.json"), path.with_suffix(path.suffix + ".json")
    write_text(features, trained.features.to_json())
    content = {
        "model": dumps(model.head),
        "target": trained.target,
        "output": {"name": "prediction", "dtype": "float32", "shape": ["batch"], "unit": _unit(trained)},
        "inputs": inputs,
        "encoding": f"raw columns become inputs by {features.name}: transun.Features.from_json(text).encode(table)",
        "max_relative_difference": difference,
        "versions": {"transun": __version__, "torch": str(torch.__version__)},
    }
    write_json(document, content)
    return Exported(path, document, features, difference, inputs)


def _unit(trained: TableModel) -> str:
    if trained.exposure is None:
        return f"that of {trained.target}"
    return f"that of {trained.target} per unit of {trained.exposure}: multiply it by the exposure of the row"


def require_format(path: Path) -> None:
    """Raise a `ValueError` if the ending of a file is not that of a format."""
    if path.suffix not in _FORMATS:
        raise ValueError(f"{path}: cannot tell the format by its name; end it in .pt2 (torch) or .onnx")


def _trace(model: nn.Module, batch: dict[str, Tensor]) -> torch.export.ExportedProgram:
    return torch.export.export(model, (batch,), dynamic_shapes=(_shapes(batch),))


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

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        weights = {name: getattr(self, flat_name) for name, flat_name in self.names.items()}
        return torch.func.functional_call(self.inner[0], weights, (batch,))  # type: ignore[no-any-return]


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


def _write_torch(model: Model, batch: dict[str, Tensor], path: Path) -> Predict:
    with path.open("wb") as file:
        torch.export.save(_remove_squeezed_columns(_trace(_FlatWeights(merge_branches(model)), batch)), file)
    with path.open("rb") as file:
        loaded = torch.export.load(file).module()
    return lambda rows: loaded(rows)


def _write_onnx(model: Model, batch: dict[str, Tensor], path: Path) -> Predict:
    require("onnx", "onnxscript", "onnxruntime")
    runtime = need("onnxruntime")
    with warnings.catch_warnings():
        # torch and onnxscript warn about each other's calls, which a user cannot change.
        warnings.simplefilter("ignore")
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        try:
            program = torch.onnx.export(
                _trace(model, batch),
                dynamo=True,
                input_names=list(batch),
                output_names=["prediction"],
                verbose=False,
                external_data=False,
            )
        except RuntimeError as error:
            line = str(error).splitlines()[0][:200]
            raise ValueError(f"torch could not write this head as ONNX ({line}): export it to .pt2") from error
    if program is None:
        raise ValueError("torch could not write this head as ONNX: export it to .pt2")
    program.save(str(path))
    session = runtime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    names = [argument.name for argument in session.get_inputs()]

    def predict(rows: dict[str, Tensor]) -> Tensor:
        return torch.from_numpy(session.run(None, {name: rows[name].numpy() for name in names})[0])

    return predict


_FORMATS: Mapping[str, Callable[[Model, dict[str, Tensor], Path], Predict]] = {
    ".pt2": _write_torch,
    ".onnx": _write_onnx,
}


def _shapes(batch: Mapping[str, Tensor]) -> dict[str, dict[int, Any]]:
    rows = torch.export.Dim("batch")
    return {
        name: {0: rows} | ({1: torch.export.Dim(f"length_{index}_{_identifier(name)}")} if value.ndim == 2 else {})
        for index, (name, value) in enumerate(batch.items())
    }


@torch.no_grad()
def _compare(model: nn.Module, predict: Predict, trained: TableModel) -> float:
    """The largest relative difference in two batches of sizes that the graph was not traced with."""
    largest = 0.0
    for rows, seed in ((1, 1), (3 * _ROWS + 1, 2)):
        batch = sample_rows(trained, rows, seed)
        expected, actual = model(batch).double(), predict(batch).double()
        difference = (actual - expected).abs() / expected.abs().clamp(min=_SMALLEST)
        largest = max(largest, float(difference.max()) if bool(difference.isfinite().all()) else float("inf"))
    return largest


def _describe(trained: TableModel, name: str, value: Tensor) -> dict[str, Any]:
    meaning = trained.features.meanings[name]
    shape = ["batch", "length"] if value.ndim == 2 else ["batch"]
    return {"name": name, "dtype": str(value.dtype).removeprefix("torch."), "shape": shape, "meaning": meaning}


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name, flags=re.ASCII)
