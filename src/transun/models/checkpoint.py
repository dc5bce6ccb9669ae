"""A model saved in a folder: a JSON file that describes it and a safetensors file with its weights.

Loading executes nothing from the files: the description is parsed as text of `transun.models.spec` and the weights are
plain numbers, so that the worst a file from a stranger can do is to be refused. Classes that are not part of transun
are passed by the caller as plugins; a file cannot import them.
"""

import ast
import copy
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from transun import __version__
from transun.backbones import Backbone
from transun.backbones.sharded import own_rows, shards_in, whole_state
from transun.heads import Head
from transun.models import spec
from transun.models.description import MODEL_FILE, Description, describe_model, write_description
from transun.models.network import Model
from transun.support.extras import need
from transun.support.files import naming_full_disk, new_draft, publish, remove_leftovers, replacing, writing_in

__all__ = ["copy_model", "grow", "load_model", "save_model", "writes_model"]

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_WEIGHTS_FILE = re.compile(r"weights-[0-9a-f]{16}\.safetensors")
# The exceptions that malformed input can raise in code that expects well-formed input.
_MALFORMED = (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)


def save_model(model: Model, folder: str | Path, extra: Mapping[str, Any] | None = None) -> None:
    """Write the model into the folder, in place of one saved there before.

    The JSON file is replaced last and in one step, and names the weights file by its checksum: a save that fails or is
    interrupted at any moment leaves the previously saved model intact. What a killed save left behind is removed; other
    files in the folder are not touched.
    The state of the optimiser is not saved. A model whose tables are sharded over ranks is saved by all of them
    together: rank 0 collects the rows and writes an ordinary model.

    Args:
        model: on any device, prepared or not.
        folder: created if it does not exist.
        extra: anything that JSON can hold, such as how the model was trained; `describe_model` returns it.

    """
    need("safetensors")
    folder = Path(folder)
    texts = _to_text("backbone", model.backbone), _to_text("head", model.head)
    extra = _require_json(extra or {})
    state = {name: tensor.contiguous() for name, tensor in whole_state(model).items()}
    if not writes_model(model):
        return
    _require_finite("the model", state)
    folder.mkdir(parents=True, exist_ok=True)
    with writing_in(folder):
        _write(
            state, folder, lambda weights: Description(*texts, model.seed, model.prepared, weights, _versions(), extra)
        )
    remove_leftovers(folder)
    remove_leftovers(folder, _WEIGHTS_FILE, keep=describe_model(folder).file)


def writes_model(model: Model) -> bool:
    """Whether this process writes the files of a model: all do, but of ranks that share its tables rank 0 alone."""
    return all(table.group.leads for table in shards_in(model).values())


def copy_model(source: str | Path, folder: str | Path) -> None:
    """Copy a saved model into another folder, byte for byte, in place of one saved there before.

    Certificates and other files beside the model are not copied.

    Args:
        source: the folder of the saved model.
        folder: created if it does not exist.

    """
    source, folder = Path(source), Path(folder)
    description = describe_model(source)
    folder.mkdir(parents=True, exist_ok=True)
    with writing_in(folder):
        # The description is copied last: it makes the weights beside it a model.
        for name in (description.file, MODEL_FILE):
            with replacing(folder / name) as draft:
                shutil.copyfile(source / name, draft)
    remove_leftovers(folder, _WEIGHTS_FILE, keep=description.file)


def load_model(folder: str | Path, plugins: Mapping[str, Callable[..., Any]] | None = None) -> Model:
    """The model saved in the folder, on the CPU and in evaluation mode; `fit` can train it further.

    Inside `sharding`, every rank keeps its own rows of large tables.

    Args:
        folder: the folder that `save_model` wrote.
        plugins: classes and functions that the model contains and transun does not define, by name.

    >>> import tempfile
    >>> model = Model(Constant(), LogSUN()).prepare(torch.tensor([1.0, 2.0, 6.0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, folder, extra={"note": "a first try"})
    ...     note, again = describe_model(folder).extra["note"], load_model(folder)
    >>> note, round(again(torch.zeros(1, 1)).item(), 4)
    ('a first try', 3.0)

    """
    folder = Path(folder)
    while True:
        description = describe_model(folder)
        try:
            return _load(folder, description, plugins)
        except FileNotFoundError:
            if describe_model(folder) == description:
                raise
            # Another process saved a model after the description was read, and removed its weights file: read again.


def grow(model: Model, sizes: Mapping[str, int]) -> Model:
    """A copy of the model with larger embedding tables, in which the old rows keep their vectors bit for bit.

    For yesterday's model and today's ids. New rows start as those of a new model with the same seed; the head keeps its
    constants, so that `fit` can train the copy further.

    Args:
        model: prepared or not; it is not changed.
        sizes: the new number of ids of some columns that have their own table.

    >>> model = Model(EmbeddingMLP({"item": 2}), MSE()).prepare(torch.tensor([1.0, 3.0]))
    >>> larger = grow(model, {"item": 3})
    >>> larger({"item": torch.tensor([2])}).item()
    2.0

    """
    if not isinstance(model.backbone, _GrowingBackbone):
        raise ValueError(f"{type(model.backbone).__name__} has no tables that could grow")
    grown = Model(model.backbone.grow(sizes), copy.deepcopy(model.head), model.seed)
    state = grown.state_dict()
    for name, old in model.state_dict().items():
        state[name] = torch.cat([old, state[name][len(old) :].to(old)]) if old.ndim else old.clone()
    grown.load_state_dict(state, assign=True)
    grown.prepared = model.prepared
    return grown.train(model.training)


@runtime_checkable
class _GrowingBackbone(Protocol):
    def grow(self, sizes: Mapping[str, int]) -> Backbone: ...


def _write(state: dict[str, Tensor], folder: Path, describe: Callable[[str], Description]) -> None:
    """Write the weights under a name of their own, then the description, which makes them the model's."""
    safetensors = need("safetensors")
    previous_file = _weights_file(folder)
    draft = new_draft(folder)
    try:
        with naming_full_disk(folder / "weights"):
            need("safetensors.torch").save_file(state, draft)
            description = describe(_sha256(draft))
            publish(draft, folder / description.file)
    except RuntimeError as error:  # such as a module that holds one parameter under two names
        raise ValueError(f"cannot save the weights: {error}") from error
    except safetensors.SafetensorError as error:  # such as a disk that fails
        raise OSError(f"cannot write {draft}: {error}") from error
    finally:
        draft.unlink(missing_ok=True)
    try:
        write_description(description, folder)
    except BaseException:
        if description.file != previous_file:
            (folder / description.file).unlink(missing_ok=True)
        raise
    if previous_file not in (None, description.file):
        (folder / str(previous_file)).unlink(missing_ok=True)


def _versions() -> dict[str, str]:
    return {"transun": __version__, "torch": str(torch.__version__)}


def _load(folder: Path, description: Description, plugins: Mapping[str, Callable[..., Any]] | None) -> Model:
    model = _build(folder / MODEL_FILE, description, plugins)
    path = description.weights_in(folder)
    state = own_rows(model, _read_weights(path, description.weights))
    expected = model.state_dict()
    wrong = [f"lacks {name!r}" for name in expected if name not in state]
    wrong += [f"has {name!r} too many" for name in state if name not in expected]
    for name, tensor in expected.items():
        if name in state and state[name].shape != tensor.shape:
            wrong.append(f"has {name!r} of shape {tuple(state[name].shape)} instead of {tuple(tensor.shape)}")
        elif name in state and state[name].dtype not in (_FLOATS if tensor.is_floating_point() else (tensor.dtype,)):
            wrong.append(f"has {name!r} in {state[name].dtype}")
    # A model may be saved in another precision as a whole; layers that differ from each other cannot compute together.
    weights = [name for name, tensor in expected.items() if name.startswith("network.") and tensor.is_floating_point()]
    for name in weights if not wrong else []:
        if state[name].dtype != state[weights[0]].dtype and expected[name].dtype == expected[weights[0]].dtype:
            wrong.append(f"has {name!r} in {state[name].dtype} and {weights[0]!r} in {state[weights[0]].dtype}")
    if wrong:
        raise ValueError(f"{path} does not fit the model in {MODEL_FILE}: it {wrong[0]}; save the model anew")
    _require_finite(str(path), state)
    model.load_state_dict(state, assign=True)
    model.prepared = description.prepared
    return model.eval()


def _build(path: Path, description: Description, plugins: Mapping[str, Callable[..., Any]] | None) -> Model:
    try:
        backbone, head = spec.loads(description.backbone, plugins), spec.loads(description.head, plugins)
        if isinstance(backbone, type) or not isinstance(backbone, Backbone) or not isinstance(head, Head):
            raise ValueError("these are not a backbone and a head")
        # The weights come from the file, so that the initial ones need neither time nor memory, whatever sizes the text
        # asks for. A plugin may compute with them and gets real ones.
        with torch.device("cpu" if plugins else "meta"):
            return Model(backbone, head, description.seed)
    except _MALFORMED as error:
        raise ValueError(
            f"{path} describes Model({description.backbone:.200}, {description.head:.200}), which cannot be built: "
            f"{error}; lend classes and functions of your own as plugins={{'name': ...}}"
        ) from error


def _read_weights(path: Path, digest: str) -> dict[str, Tensor]:
    safetensors = need("safetensors")
    if _sha256(path) != digest:
        raise ValueError(f"{path} is cut off or changed: copy it again, or save the model anew")
    try:
        with safetensors.safe_open(path, "pt") as file:
            # The tensors are views of a memory-mapped file, which may be replaced: clone them.
            return {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (safetensors.SafetensorError, *_MALFORMED) as error:
        raise ValueError(f"{path} is not a safetensors file ({error}): save the model anew") from error


def _require_finite(where: str, state: Mapping[str, Tensor]) -> None:
    for name, tensor in state.items():
        if not bool(tensor.isfinite().all()):
            raise ValueError(
                f"{where} holds NaN or infinite numbers in {name!r}: training diverged; "
                "lower the learning rate and train again"
            )


def _to_text(name: str, value: Any) -> str:
    try:
        text = spec.dumps(value)
        ast.parse(text, mode="eval")
    except (SyntaxError, *_MALFORMED) as error:
        raise ValueError(
            f"cannot save the {name}, it has no text form ({error}); name a function with `def` instead of `lambda`, "
            "and store every constructor argument under its own name"
        ) from error
    return text


def _require_json(extra: Mapping[str, Any]) -> dict[str, Any]:
    try:
        restored: dict[str, Any] = json.loads(json.dumps(extra, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"extra must be what JSON can hold: {error}") from None
    if restored != extra:
        raise ValueError("extra must come back from JSON as it is: lists instead of tuples, text as keys")
    return restored


def _weights_file(folder: Path) -> str | None:
    """The name of the weights file of the model in the folder, or None if there is no readable model."""
    try:
        return describe_model(folder).file
    except (OSError, ValueError):
        return None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
