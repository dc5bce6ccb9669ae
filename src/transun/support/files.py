"""Files that are either the old one or the new one, never a part."""

import hashlib
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["checksum", "new_draft", "publish", "replacing", "write_json", "write_text"]


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A draft to write, which takes the place of `path` at once when the `with` block ends; an error keeps the old one.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "folder" / "note.txt"
    >>> with replacing(path) as draft:
    ...     _ = draft.write_text("done")
    >>> path.read_text()
    'done'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = new_draft(path.parent)
    try:
        yield draft
        publish(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def new_draft(folder: Path) -> Path:
    """A name in the folder that nobody else uses."""
    return folder / f".{uuid.uuid4().hex}.tmp"


def publish(draft: Path, path: Path) -> None:
    """Give a finished file its name at once; its content reaches the disk first, lest a power cut leave only a name."""
    with draft.open("r+b") as file:
        os.fsync(file.fileno())
    draft.replace(path)


def write_text(path: Path, text: str) -> None:
    """Write a text file in one step; its folder is made where it is missing."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON in one step; the folder of the file is made where it is missing."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def checksum(body: Mapping[str, Any]) -> str:
    """The SHA-256 of a JSON object, whatever the order of its keys.

    >>> checksum({"a": 1, "b": 2}) == checksum({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
