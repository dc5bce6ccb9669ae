"""Files that are either the old one or the new one, never a part."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["new_draft", "publish", "replacing"]


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
