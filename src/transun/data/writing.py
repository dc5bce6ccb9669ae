"""Tables written piece by piece, to a file that appears only when it is complete, or to standard output."""

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from transun.data.formats import CSV, FORMATS, Format, Writer
from transun.support.files import replacing
from transun.support.paths import is_remote

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["STDOUT", "Write", "require_ending", "writes_plain_text", "writing"]

Write = Callable[["pa.Table"], None]
STDOUT = Path("-")


@contextmanager
def writing(path: Path) -> Iterator[Write]:
    """A function that appends a table to a file, in the format of its ending, or to standard output as CSV (path `-`).

    The file, on this machine or in an object store, is replaced when the `with` block ends; after an error the old one
    is still there. The first table decides names and types.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "out.csv"
    >>> with writing(path) as write:
    ...     write(read_table({"item": ["a"], "prediction": [1.5]}))
    ...     write(read_table({"item": ["b"], "prediction": [2.0]}))
    >>> path.read_text().split()
    ['item,prediction', 'a,1.5', 'b,2']
    """
    format = _written_format(path)
    if path == STDOUT:
        if sys.stdout is None:  # the caller has closed it, as some schedulers do
            raise ValueError("standard output is closed: name a file with --out")
        with _append(sys.stdout.buffer, format) as write:
            yield write
        return
    if is_remote(path):
        # Through a file of this machine: a store must not get half a file when something fails on the way.
        with tempfile.TemporaryFile(prefix="transun-") as local:
            with _append(local, format) as write:
                yield write
            local.seek(0)
            with path.open("wb") as stored:
                shutil.copyfileobj(local, stored)
        return
    with replacing(path) as draft, draft.open("wb") as file, _append(file, format) as write:
        yield write


def require_ending(path: Path) -> None:
    """Raise a `ValueError` if the ending of an output file names no format that can be written.

    >>> require_ending(Path("out.xlsx"))
    Traceback (most recent call last):
    ValueError: out.xlsx: cannot tell the format by its name; end it in .parquet or .csv, or use - for CSV
    """
    _written_format(path)


def writes_plain_text(path: Path) -> bool:
    """Whether the output holds nothing but text, so that columns of a CSV file can pass through as they are written.

    >>> writes_plain_text(Path("out.csv")), writes_plain_text(STDOUT), writes_plain_text(Path("out.parquet"))
    (True, True, False)
    """
    return _written_format(path).plain_text


def _written_format(path: Path) -> Format:
    if path == STDOUT:
        return CSV
    for format in FORMATS:
        if format.written_endings and path.name.lower().endswith(format.written_endings):
            return format
    endings = " or ".join(ending for format in FORMATS for ending in format.written_endings)
    raise ValueError(f"{path}: cannot tell the format by its name; end it in {endings}, or use - for CSV")


@contextmanager
def _append(file: IO[bytes], format: Format) -> Iterator[Write]:
    writer: Writer | None = None
    schema: pa.Schema = None

    def write(table: "pa.Table") -> None:
        nonlocal writer, schema
        if writer is None:
            writer, schema = format.writer(file, table.schema), table.schema
        writer.write_table(table.cast(schema))

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()
