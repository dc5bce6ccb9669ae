"""Files that are replaced in one step, so that a reader sees the old content or the new one, and checksums of them."""

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
    """A temporary file to write to, which replaces `path` in one step when the `with` block ends without an error.

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
    """The path of a temporary file in the folder that no other process uses."""
    return folder / f".{uuid.uuid4().hex}.tmp"


def publish(draft: Path, path: Path) -> None:
    """Rename a finished draft in one step; its content reaches the disk first, lest a power cut leave an empty file."""
    with draft.open("r+b") as file:
        os.fsync(file.fileno())
    draft.replace(path)


def write_text(path: Path, text: str) -> None:
    """Write a text file in one step and create its folder if it does not exist."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write a value as a JSON file in one step and create its folder if it does not exist."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def checksum(body: Mapping[str, Any]) -> str:
    """The SHA-256 of a JSON object, which does not depend on the order of its keys.

    >>> checksum({"a": 1, "b": 2}) == checksum({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
