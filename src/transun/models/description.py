"""The JSON file of a saved model, which describes it: its parts as text, and the name of the file with its weights.

Reading it needs no torch, so that a command can inspect a model without loading it.
"""

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from transun import __version__
from transun.support.files import checksum, replacing
from transun.support.paths import as_path

__all__ = ["MODEL_FILE", "Description", "describe_model", "is_saved_model", "write_description"]

MODEL_FILE = "transun.json"
_FORMAT = 1
_SHA256 = "[0-9a-f]{64}"


@dataclass(frozen=True)
class Description:
    """The content of the JSON file: backbone and head as text of `transun.models.spec`, and where the weights are."""

    backbone: str
    head: str
    seed: int
    prepared: bool
    weights: str
    """SHA-256 of the weights file, which is named after it."""
    versions: dict[str, str] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The name of the weights file."""
        return f"weights-{self.weights[:16]}.safetensors"

    def weights_in(self, folder: str | Path) -> Path:
        """The weights file in the folder of the model; an error where it was left behind."""
        path = Path(folder) / self.file
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not there: copy the whole folder")
        return path

    @property
    def checksum(self) -> str:
        """SHA-256 of the whole description, and so of everything that a prediction depends on."""
        return checksum(asdict(self))


_TYPES = {name: get_origin(hint) or hint for name, hint in get_type_hints(Description).items()}


def is_saved_model(folder: str | Path) -> bool:
    """Whether a folder holds a saved model.

    >>> import tempfile
    >>> is_saved_model(tempfile.mkdtemp())
    False
    """
    return (as_path(folder) / MODEL_FILE).is_file()


def describe_model(folder: str | Path) -> Description:
    """The description of the saved model in a folder, from its JSON file alone."""
    path = Path(folder) / MODEL_FILE
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there: give the folder of a saved model, whole")
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        file_format, stored_checksum, actual_checksum = body.pop("format"), body.pop("checksum", None), checksum(body)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON ({error}): copy it again, or save the model anew") from None
    except (AttributeError, IndexError, KeyError, TypeError):
        raise ValueError(f"{path} does not describe a transun model: give the folder of a saved model") from None
    if file_format != _FORMAT:
        raise ValueError(
            f"{path} has format {file_format}, this transun {__version__} reads {_FORMAT}: load it with the version "
            "that wrote it, or a newer one"
        )
    if stored_checksum != actual_checksum:
        raise ValueError(f"{path} was changed after it was saved: copy it again, or load, change and save the model")
    if {name: type(value) for name, value in body.items()} != _TYPES or not re.fullmatch(_SHA256, body["weights"]):
        raise ValueError(f"{path} does not describe a transun model: it needs {', '.join(_TYPES)}")
    return Description(**body)


def write_description(description: Description, folder: Path) -> None:
    """Write the JSON file into a folder, in place of an older one and in one step."""
    body = asdict(description)
    text = json.dumps({"format": _FORMAT, **body, "checksum": description.checksum}, indent=2, ensure_ascii=False)
    with replacing(folder / MODEL_FILE) as draft:
        draft.write_text(text + "\n", encoding="utf-8")
