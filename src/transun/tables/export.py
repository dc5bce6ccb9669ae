"""A model as one file for serving: network, transform, κ and correction in one graph, checked after it was written."""

import json
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
from transun.support.extras import need
from transun.support.files import replacing
from transun.support.text_form import dumps
from transun.tables.model import TableModel

__all__ = ["Exported", "export_model", "require_format", "sample_rows"]

_ROWS, _LENGTH = 64, 4
# Both sides compute in float32, in another order: this is far above its rounding, and far below a mistake.
_TOLERANCE = 1e-3
_SMALLEST = 1e-6

Predict = Callable[[dict[str, Tensor]], Tensor]


@dataclass(frozen=True)
class Exported:
    """What was written: the graph, the JSON that documents it, what encodes raw columns, and how well it agrees."""

    path: Path
    document: Path
    features: Path
    difference: float
    inputs: list[dict[str, Any]]


def sample_rows(trained: TableModel, rows: int = _ROWS, seed: int = 0) -> dict[str, Tensor]:
    """Rows that the model's network can eat: every id column over its whole table, unseen ids among them.

    Made from the sizes of the tables, so that a saved model need not carry anybody's data.

    >>> trained = train({"item": ["a", "b"], "gmv": [1.0, 3.0]}, "gmv", MSE())
    >>> sorted(set(sample_rows(trained)["item"].tolist()))  # two items and the index of unseen ones
    [0, 1, 2]
    """
    features = trained.features
    tables = {**features.ids, **features.bags}
    draw = torch.Generator().manual_seed(seed)

    def size(name: str) -> int:
        found = tables[name]
        return size(found) if isinstance(found, str) else found

    x: dict[str, Tensor] = {}
    for name in features.ids:
        x[name] = (torch.arange(rows) + torch.randint(size(name), (1,), generator=draw)) % size(name)
    for name in features.bags:
        x[name] = torch.randint(-1, size(name), (rows, _LENGTH), generator=draw)
    for name in features.numeric:
        x[name] = torch.randn(rows, generator=draw)
    return x


def export_model(trained: TableModel, path: str | Path) -> Exported:
    """Write the model's graph to a .pt2 (torch) or .onnx file, with two JSON files beside it, and compare predictions.

    The number of rows is free, as is the length of multi-valued columns. Raw columns are not: ids must come as the
    codes, numbers as the scaled values, that `Features.encode` makes; the file of features holds all that it needs.

    Args:
        trained: the model.
        path: .pt2 needs torch alone to load; .onnx needs the extra `onnx` to be written.

    """
    path = Path(path)
    require_format(path)
    model = trained.model.eval()
    if not model.prepared:
        raise ValueError("the model was never trained: fit it first")
    batch = sample_rows(trained)
    written = _FORMATS[path.suffix]
    with replacing(path) as draft:
        again = written(model, batch, draft)
        difference = _compare(model, again, trained)
        if not difference <= _TOLERANCE:
            raise ValueError(
                f"the exported graph differs from the model by {difference:.1e} (relative), so nothing was written: "
                "try the other format, .pt2 or .onnx"
            )
    inputs = [_describe(trained, name, value) for name, value in batch.items()]
    features, document = path.with_suffix(".features.json"), path.with_suffix(path.suffix + ".json")
    _write(features, trained.features.to_json())
    told = {
        "model": dumps(model.head),
        "target": trained.target,
        "output": {"name": "prediction", "dtype": "float32", "shape": ["batch"], "unit": f"that of {trained.target}"},
        "inputs": inputs,
        "encoding": f"raw columns become inputs by {features.name}: transun.Features.from_json(text).encode(table)",
        "max_relative_difference": difference,
        "versions": {"transun": __version__, "torch": str(torch.__version__)},
    }
    _write(document, json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    return Exported(path, document, features, difference, inputs)


def require_format(path: Path) -> None:
    """Raise a `ValueError` where the ending of a file for a graph says no format."""
    if path.suffix not in (".pt2", ".onnx"):
        raise ValueError(f"{path}: cannot tell the format by its name; end it in .pt2 (torch) or .onnx")


def _graph(model: nn.Module, batch: dict[str, Tensor]) -> torch.export.ExportedProgram:
    return torch.export.export(model, (batch,), dynamic_shapes=(_shapes(batch),))


class _Flat(nn.Module):
    """A module with all its weights at the top: a loaded graph looks every one up at every call, level by level."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.inner = (module,)  # out of torch's sight, so that the weights have no second name
        self.names: dict[str, str] = {}
        for name, weight in module.named_parameters():
            self.names[name] = f"weight_{len(self.names)}"
            self.register_parameter(self.names[name], nn.Parameter(weight.detach(), requires_grad=False))
        for name, buffer in module.named_buffers():
            self.names[name] = f"weight_{len(self.names)}"
            self.register_buffer(self.names[name], buffer)

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        weights = {name: getattr(self, own) for name, own in self.names.items()}
        return torch.func.functional_call(self.inner[0], weights, (batch,))  # type: ignore[no-any-return]


def _shortened(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The same graph without columns that are given a dimension only to lose it again."""
    aten = torch.ops.aten
    for node in program.graph.find_nodes(op="call_function", target=aten.squeeze.dim):
        given = node.args[0]
        ends = any(user.op == "output" for user in node.users)  # an output keeps the name that the program knows
        if given.target is aten.unsqueeze.default and given.args[1] == node.args[1] == -1 and not ends:
            node.replace_all_uses_with(given.args[0])
            program.graph.erase_node(node)
            if not given.users:
                program.graph.erase_node(given)
    program.graph_module.recompile()
    return program


def _torch(model: Model, batch: dict[str, Tensor], path: Path) -> Predict:
    with path.open("wb") as file:
        torch.export.save(_shortened(_graph(_Flat(merge_branches(model)), batch)), file)
    with path.open("rb") as file:
        loaded = torch.export.load(file).module()
    return lambda rows: loaded(rows)


def _onnx(model: Model, batch: dict[str, Tensor], path: Path) -> Predict:
    for module in ("onnx", "onnxscript", "onnxruntime"):
        need(module)
    runtime = need("onnxruntime")
    with warnings.catch_warnings():
        # torch and onnxscript warn about each other's calls, which nobody here can change.
        warnings.simplefilter("ignore")
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        try:
            program = torch.onnx.export(
                _graph(model, batch),
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
    names = [one.name for one in session.get_inputs()]

    def predict(rows: dict[str, Tensor]) -> Tensor:
        return torch.from_numpy(session.run(None, {name: rows[name].numpy() for name in names})[0])

    return predict


_FORMATS: Mapping[str, Callable[[Model, dict[str, Tensor], Path], Predict]] = {".pt2": _torch, ".onnx": _onnx}


def _shapes(batch: Mapping[str, Tensor]) -> dict[str, dict[int, Any]]:
    rows = torch.export.Dim("batch")
    return {
        name: {0: rows} | ({1: torch.export.Dim(f"length_{index}_{_plain(name)}")} if value.ndim == 2 else {})
        for index, (name, value) in enumerate(batch.items())
    }


@torch.no_grad()
def _compare(model: nn.Module, again: Predict, trained: TableModel) -> float:
    """The largest relative difference over two batches of other sizes than the graph was made from."""
    worst = 0.0
    for rows, seed in ((1, 1), (3 * _ROWS + 1, 2)):
        batch = sample_rows(trained, rows, seed)
        expected, found = model(batch).double(), again(batch).double()
        gap = (found - expected).abs() / expected.abs().clamp(min=_SMALLEST)
        worst = max(worst, float(gap.max()) if bool(gap.isfinite().all()) else float("inf"))
    return worst


def _describe(trained: TableModel, name: str, value: Tensor) -> dict[str, Any]:
    features = trained.features
    if name in features.numeric:
        meaning = "a scaled number a row"
    else:
        size = {**features.ids, **features.bags}[name]
        codes = f"codes 0..{size - 1}" if isinstance(size, int) else f"codes as those of {size!r}"
        meaning = f"{codes}, 0 for unseen or missing ones" + ("; -1 pads shorter rows" if value.ndim == 2 else "")
    shape = ["batch", "length"] if value.ndim == 2 else ["batch"]
    return {"name": name, "dtype": str(value.dtype).removeprefix("torch."), "shape": shape, "meaning": meaning}


def _write(path: Path, text: str) -> None:
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def _plain(name: str) -> str:
    return re.sub(r"\W", "_", name, flags=re.ASCII)
