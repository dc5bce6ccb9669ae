"""What commands read and write: data from files or standard input, models from folders."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from transun.models.description import is_saved_model
from transun.support.paths import is_remote
from transun.support.suggest import did_you_mean

if TYPE_CHECKING:
    from transun.tables.model import TableModel

__all__ = [
    "STDIN",
    "data_name",
    "load_trained",
    "new_folder",
    "readable",
    "refuse_overwriting",
    "require_writable",
    "write_texts",
]

STDIN = Path("-")


@contextmanager
def readable(data: Path) -> Iterator[Path]:
    """The path of the data; standard input is copied into a temporary file first.

    For a folder, a line on standard error says which files are read and which are left out.
    """
    if data != STDIN:
        if data.is_dir():
            from transun.data.formats import describe_folder
            from transun.report.formatting import visible_line

            typer.echo(visible_line(f"{data}: {describe_folder(data)}"), err=True)
        yield data
        return
    from transun.data.columns import spooled

    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError("several ranks cannot share standard input, each would read some of it: name a file")
    # Python has no standard input where the caller has closed it, as some schedulers do.
    if sys.stdin is None or sys.stdin.isatty():
        source = "closed" if sys.stdin is None else "the keyboard"
        raise ValueError(f"standard input is {source}: pipe CSV or Parquet into the command, or name a file")
    with spooled(sys.stdin.buffer) as path:
        yield path


def refuse_overwriting(data: Path, out: Path) -> None:
    """Raise a `ValueError` where the result would take the place of the data it is made from, or become part of it."""
    from transun.data.writing import STDOUT

    if out == STDOUT:
        return
    if is_remote(out) or is_remote(data):
        same = str(out) == str(data)
    else:
        same = data != STDIN and out.exists() and data.exists() and out.samefile(data)
    if same:
        raise ValueError(f"--out {out} is the data itself, which would be lost: name another file")
    if not is_remote(data) and data.is_dir() and out.resolve().is_relative_to(data.resolve()):
        raise ValueError(f"--out {out} is in the folder of the data, and would be read as data next time: name another")


def data_name(data: Path) -> str:
    """What the data is called in reports."""
    return "standard input" if data == STDIN else data.name or str(data)


def load_trained(folder: Path, exposure: str | None = None) -> "TableModel":
    """The model in a folder, or an error that says which folder to give.

    Args:
        folder: of the saved model.
        exposure: the column of exposures, where the data calls it otherwise than the training data did.

    """
    if not folder.exists():
        models = [other.name for other in folder.parent.glob("*") if is_saved_model(other)]
        hint = did_you_mean(folder.name, models, show=str) or "train one first: transun fit DATA --target y"
        raise FileNotFoundError(f"there is no model {folder}: {hint}")
    if not is_saved_model(folder):
        raise ValueError(f"{folder} holds no model: give the folder that `transun fit` wrote")
    from transun.tables.model import load

    trained = load(folder)
    if exposure is None:
        return trained
    if trained.exposure is None:
        raise ValueError(f"{folder} was trained without an exposure: leave out --exposure, or train it with one")
    return replace(trained, exposure=exposure)


def new_folder(folder: Path) -> None:
    """Make the folder for results before any work is done, so that a wrong name costs nothing.

    Drafts that killed runs left there are removed.
    """
    from transun.support.files import new_draft, remove_leftovers, writing_in

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with writing_in(folder):
            draft = new_draft(folder)
            draft.touch()
            draft.unlink()
        remove_leftovers(folder)
    except OSError as error:
        raise OSError(f"cannot write to the folder {folder} ({error.strerror}): name another with --out") from error


def require_writable(folder: Path) -> None:
    """Raise an `OSError` before any work if a folder, which need not exist, cannot be written to; nothing is made."""
    if is_remote(folder):
        return  # stores have no folders; what may not be written is refused when it is
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        reason = "no folder" if not existing.is_dir() else "not writable"
        raise OSError(f"cannot write to the folder {folder} ({existing} is {reason}): name another with --out")


def write_texts(folder: Path, texts: dict[str, str]) -> None:
    """Write files by name, each replaced in one step."""
    from transun.support.files import write_text

    for name, text in texts.items():
        write_text(folder / name, text)
