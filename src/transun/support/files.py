"""Files that are replaced in one step, so that a reader sees the old content or the new one, and checksums of them.

New content is first written to a draft, a temporary file in the same folder. A process that is killed leaves its draft
behind; `remove_leftovers` removes it, and a lock on the folder keeps it from removing the draft of a living process.
"""

import errno
import hashlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = [
    "FullDiskError",
    "checksum",
    "naming_full_disk",
    "new_draft",
    "publish",
    "remove_leftovers",
    "replacing",
    "require_space",
    "write_json",
    "write_text",
    "writing_in",
]

_DRAFT = re.compile(r"\.[0-9a-f]{32}\.tmp")


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
    with _naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with writing_in(path.parent):
        draft = new_draft(path.parent)
        try:
            with naming_full_disk(path):
                with _naming(path):
                    draft.touch()  # a folder that cannot be written to is told before the work, not after it
                yield draft
                with _naming(path):
                    publish(draft, path)
        finally:
            with suppress(OSError):  # the folder may not even be one
                draft.unlink(missing_ok=True)


def new_draft(folder: Path) -> Path:
    """The path of a temporary file in the folder that no other process uses; make it inside `writing_in`."""
    return folder / f".{uuid.uuid4().hex}.tmp"


def publish(draft: Path, path: Path) -> None:
    """Rename a finished draft in one step; its content reaches the disk first, lest a power cut leave an empty file.

    The file gets the permissions of any new file, whatever those of the draft: some libraries write drafts that only
    their owner may read.
    """
    draft.chmod(0o666 & ~_umask())
    with draft.open("r+b") as file:
        os.fsync(file.fileno())
    draft.replace(path)


@contextmanager
def writing_in(folder: Path) -> Iterator[None]:
    """Keeps `remove_leftovers` of other processes away from the folder while the `with` block runs."""
    with _locked(folder, alone=False):
        yield


def remove_leftovers(folder: Path, name: re.Pattern[str] = _DRAFT, keep: str | None = None) -> None:
    """Remove the files that killed processes left in a folder; nothing happens while another process writes there.

    Args:
        folder: it need not exist.
        name: what leftovers are called; drafts unless told otherwise.
        keep: a file that is no leftover.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> new_draft(folder).touch()
    >>> remove_leftovers(folder)
    >>> list(folder.iterdir())
    []

    """
    if not folder.is_dir():
        return
    with _locked(folder, alone=True) as alone:
        if not alone:
            return
        for path in folder.iterdir():
            if name.fullmatch(path.name) and path.name != keep:
                path.unlink(missing_ok=True)


def require_space(folder: Path, size: int) -> None:
    """Raise an `OSError` if the disk of a folder has less than `size` bytes free; call it before long work.

    >>> require_space(Path("."), 10**30)
    Traceback (most recent call last):
    OSError: the disk of . has ... MB free and ... MB are needed: make room, or name a folder on another disk
    """
    free = shutil.disk_usage(folder).free
    if free < size:
        raise OSError(
            f"the disk of {folder} has {free // 10**6:,} MB free and {-(-size // 10**6):,} MB are needed: make room, "
            "or name a folder on another disk"
        )


class FullDiskError(OSError):
    """There is no room to write a file."""


@contextmanager
def naming_full_disk(path: Path, remedy: str = "make room, or name a place on another disk") -> Iterator[None]:
    """Turns whatever a library raises where the disk is full into an error that names the file and a remedy.

    Args:
        path: what is written in the `with` block.
        remedy: what helps.

    >>> with naming_full_disk(Path("model/weights")):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
    transun.support.files.FullDiskError: no room to write model/weights (No space left on device), which is as ...

    """
    try:
        yield
    except Exception as error:  # torch, safetensors, pyarrow and onnx have their own
        reason = None if isinstance(error, FullDiskError) else _full_disk(error)
        if reason is None:
            raise
        raise FullDiskError(f"no room to write {path} ({reason}), which is as it was before: {remedy}") from error


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Names the file and a remedy where a folder is missing, is a file, or may not be written to."""
    try:
        yield
    except OSError as error:
        if _full_disk(error):
            raise
        raise OSError(
            f"cannot write {path} ({error.strerror or error}): name a place that can be written to"
        ) from error


def _full_disk(error: BaseException | None) -> str | None:
    """How the system says that there is no room, where that is what an error, or one before it, is about."""
    if error is None:
        return None
    number = getattr(error, "errno", None)
    for full in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        reason = os.strerror(full)
        if number == full or reason.lower() in str(error).lower():
            return reason
    return _full_disk(error.__context__)  # an attempt to close the file may have failed too


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


@contextmanager
def _locked(folder: Path, *, alone: bool) -> Iterator[bool]:
    """Whether a lock on the folder was obtained: one for this process alone, at once or never, or a shared one.

    The system releases the lock of a process that ends in any way. Where folders cannot be locked, as on Windows and on
    some network disks, nobody is alone.
    """
    try:
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
            obtained = True
        except OSError:
            obtained = False
        yield obtained
    finally:
        os.close(descriptor)


def _umask() -> int:
    # There is no way to read the mask without setting it.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
