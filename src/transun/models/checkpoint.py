"""A model in a folder: one JSON file that says what it is and one safetensors file of numbers.

Loading runs nothing that the files hold: the description is parsed as text of `transun.models.spec` and the numbers are
numbers, so a folder from a stranger can at worst be refused. Classes of one's own are lent by the caller as plugins,
never named by the files.
"""

import ast
import copy
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from transun import __version__
from transun.backbones import Backbone
from transun.heads import Head
from transun.models import spec
from transun.models.network import Model
from transun.support.extras import need
from transun.support.files import checksum, new_draft, publish, replacing

__all__ = ["Description", "describe_model", "grow", "load_model", "save_model"]

_FORMAT = 1
_JSON = "transun.json"
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_SHA256 = "[0-9a-f]{64}"
_KINDS = {"backbone": str, "head": str, "seed": int, "prepared": bool, "weights": str, "versions": dict, "extra": dict}
# What malformed input makes of code that expects the well-formed.
_BROKEN = (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)


@dataclass(frozen=True)
class Description:
    """What the JSON file of a saved model says: its parts as `transun.models.spec` text, and where its numbers are."""

    backbone: str
    head: str
    seed: int
    prepared: bool
    weights: str
    """SHA-256 of the file of numbers, which is named after it."""
    versions: dict[str, str] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The name of the file of numbers."""
        return f"weights-{self.weights[:16]}.safetensors"


def save_model(model: Model, folder: str | Path, extra: Mapping[str, Any] | None = None) -> None:
    """Write the model into the folder, in place of one saved there before.

    The JSON file is replaced last and at once, and names the numbers by their checksum: a save that fails or is
    interrupted at any moment leaves the model saved before it, and other files in the folder stay. Optimiser state is
    not kept. Needs the extra `save`.

    Args:
        model: what to write; on any device, prepared or not.
        folder: made if it is not there.
        extra: anything JSON can hold, such as how the model was trained; `describe_model` gives it back.

    """
    safetensors = need("safetensors")
    folder = Path(folder)
    texts = _text("backbone", model.backbone), _text("head", model.head)
    extra = _plain(extra or {})
    state = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    _require_numbers("the model", state)
    folder.mkdir(parents=True, exist_ok=True)
    before = _before(folder)
    draft = new_draft(folder)
    try:
        need("safetensors.torch").save_file(state, draft)
        versions = {"transun": __version__, "torch": str(torch.__version__)}
        said = Description(*texts, model.seed, model.prepared, _digest(draft), versions, extra)
        publish(draft, folder / said.file)
    except RuntimeError as error:  # such as a module that holds one parameter under two names
        raise ValueError(f"cannot save the weights: {error}") from error
    except safetensors.SafetensorError as error:  # such as a full disk
        raise OSError(f"cannot write {draft}: {error}") from error
    finally:
        draft.unlink(missing_ok=True)
    try:
        _write(folder / _JSON, said)
    except BaseException:
        if said.file != before:
            (folder / said.file).unlink(missing_ok=True)
        raise
    if before not in (None, said.file):
        (folder / str(before)).unlink(missing_ok=True)


def load_model(folder: str | Path, plugins: Mapping[str, Callable[..., Any]] | None = None) -> Model:
    """The model saved in the folder, on the CPU and ready to predict; `fit` goes on training it.

    Args:
        folder: as given to `save_model`.
        plugins: classes and functions of your own that the model is made of, by name.

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
        said = describe_model(folder)
        try:
            return _load(folder, said, plugins)
        except FileNotFoundError:
            if describe_model(folder) == said:
                raise
            # A save came in between and took the numbers of the description just read with it.


def describe_model(folder: str | Path) -> Description:
    """What the saved model in the folder is, from its JSON file alone."""
    path = Path(folder) / _JSON
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there: give the folder that `save_model` wrote, whole")
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        number, noted, expected = said.pop("format"), said.pop("checksum", None), checksum(said)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON ({error}): copy it again, or save the model anew") from None
    except (AttributeError, IndexError, KeyError, TypeError):
        raise ValueError(f"{path} does not describe a transun model: give the folder that `save_model` wrote") from None
    if number != _FORMAT:
        raise ValueError(
            f"{path} has format {number}, this transun {__version__} reads {_FORMAT}: load it with the version that "
            "wrote it, or a newer one"
        )
    if noted != expected:
        raise ValueError(f"{path} was changed after it was saved: copy it again, or load, change and save the model")
    if {name: type(value) for name, value in said.items()} != _KINDS or not re.fullmatch(_SHA256, said["weights"]):
        raise ValueError(f"{path} does not describe a transun model: it needs {', '.join(_KINDS)}")
    return Description(**said)


def grow(model: Model, sizes: Mapping[str, int]) -> Model:
    """The model with room for more ids: old rows of its tables keep their vectors bit for bit.

    For yesterday's model and today's ids. New rows start as those of a new model with the same seed; the head keeps its
    constants, so `fit` goes on from here. The given model stays as it is.

    Args:
        model: prepared or not.
        sizes: the new number of ids for some columns with a table of their own.

    >>> model = Model(EmbeddingMLP({"item": 2}), MSE()).prepare(torch.tensor([1.0, 3.0]))
    >>> larger = grow(model, {"item": 3})
    >>> larger({"item": torch.tensor([2])}).item()
    2.0

    """
    if not isinstance(model.backbone, _Growing):
        raise ValueError(f"{type(model.backbone).__name__} has no tables that could grow")
    grown = Model(model.backbone.grow(sizes), copy.deepcopy(model.head), model.seed)
    state = grown.state_dict()
    for name, old in model.state_dict().items():
        state[name] = torch.cat([old, state[name][len(old) :].to(old)]) if old.ndim else old.clone()
    grown.load_state_dict(state, assign=True)
    grown.prepared = model.prepared
    return grown.train(model.training)


@runtime_checkable
class _Growing(Protocol):
    def grow(self, sizes: Mapping[str, int]) -> Backbone: ...


def _load(folder: Path, said: Description, plugins: Mapping[str, Callable[..., Any]] | None) -> Model:
    model = _build(folder / _JSON, said, plugins)
    path = folder / said.file
    state = _read(path, said.weights)
    expected = model.state_dict()
    wrong = [f"lacks {name!r}" for name in expected if name not in state]
    wrong += [f"has {name!r} too many" for name in state if name not in expected]
    for name, tensor in expected.items():
        if name in state and state[name].shape != tensor.shape:
            wrong.append(f"has {name!r} of shape {tuple(state[name].shape)} instead of {tuple(tensor.shape)}")
        elif name in state and state[name].dtype not in (_FLOATS if tensor.is_floating_point() else (tensor.dtype,)):
            wrong.append(f"has {name!r} in {state[name].dtype}")
    if wrong:
        raise ValueError(f"{path} does not fit the model in {_JSON}: it {wrong[0]}; save the model anew")
    _require_numbers(str(path), state)
    model.load_state_dict(state, assign=True)
    model.prepared = said.prepared
    return model.eval()


def _build(path: Path, said: Description, plugins: Mapping[str, Callable[..., Any]] | None) -> Model:
    try:
        backbone, head = spec.loads(said.backbone, plugins), spec.loads(said.head, plugins)
        if isinstance(backbone, type) or not isinstance(backbone, Backbone) or not isinstance(head, Head):
            raise ValueError("these are not a backbone and a head")
        # Weights without memory, since the file brings them: neither time nor room is spent on initial ones, whatever
        # sizes the text claims. A plugin may need real ones.
        with torch.device("cpu" if plugins else "meta"):
            return Model(backbone, head, said.seed)
    except _BROKEN as error:
        raise ValueError(
            f"{path} describes Model({said.backbone:.200}, {said.head:.200}), which cannot be built: {error}; "
            "lend classes and functions of your own as plugins={'name': ...}"
        ) from error


def _read(path: Path, digest: str) -> dict[str, Tensor]:
    safetensors = need("safetensors")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there: copy the whole folder")
    if _digest(path) != digest:
        raise ValueError(f"{path} is cut off or changed: copy it again, or save the model anew")
    try:
        with safetensors.safe_open(path, "pt") as file:
            # Cloned, so that the model does not live in a mapped file that may be replaced.
            return {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (safetensors.SafetensorError, *_BROKEN) as error:
        raise ValueError(f"{path} is not a safetensors file ({error}): save the model anew") from error


def _require_numbers(where: str, state: Mapping[str, Tensor]) -> None:
    for name, tensor in state.items():
        # A head may keep an infinite edge; a weight is finite.
        fine = tensor.isfinite() if name.startswith("network.") else ~tensor.isnan()
        if not bool(fine.all()):
            raise ValueError(
                f"{where} holds NaN or infinite numbers in {name!r}: training diverged; "
                "lower the learning rate or set `clip`, and train again"
            )


def _text(name: str, value: Any) -> str:
    try:
        text = spec.dumps(value)
        ast.parse(text, mode="eval")
    except (SyntaxError, *_BROKEN) as error:
        raise ValueError(
            f"cannot save the {name}, it has no text form ({error}); name a function with `def` instead of `lambda`, "
            "and store every constructor argument under its own name"
        ) from error
    return text


def _plain(extra: Mapping[str, Any]) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = json.loads(json.dumps(extra, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"extra must be what JSON can hold: {error}") from None
    if plain != extra:
        raise ValueError("extra must come back from JSON as it is: lists instead of tuples, text as keys")
    return plain


def _before(folder: Path) -> str | None:
    try:
        return describe_model(folder).file
    except (OSError, ValueError):
        return None


def _write(path: Path, said: Description) -> None:
    body = asdict(said)
    text = json.dumps({"format": _FORMAT, **body, "checksum": checksum(body)}, indent=2, ensure_ascii=False)
    with replacing(path) as draft:
        draft.write_text(text + "\n", encoding="utf-8")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
