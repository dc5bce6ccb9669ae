"""Tables written piece by piece, to a file that appears only when it is whole, or to standard output."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from transun.support.extras import need
from transun.support.files import replacing

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["require_ending", "writing"]

Write = Callable[["pa.Table"], None]
STDOUT = Path("-")


@contextmanager
def writing(path: Path) -> Iterator[Write]:
    """A function that appends a table to a .parquet or .csv file, or to standard output as CSV where the path is `-`.

    An error leaves the file that was there before. The first table decides names and types.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "out.csv"
    >>> with writing(path) as write:
    ...     write(read_table({"item": ["a"], "prediction": [1.5]}))
    ...     write(read_table({"item": ["b"], "prediction": [2.0]}))
    >>> path.read_text().split()
    ['"item","prediction"', '"a",1.5', '"b",2']
    """
    if path == STDOUT:
        with _stream(sys.stdout.buffer, ".csv") as write:
            yield write
        return
    require_ending(path)
    try:
        with replacing(path) as draft, draft.open("wb") as file, _stream(file, path.suffix.lower()) as write:
            yield write
    except (NotADirectoryError, FileExistsError, PermissionError, IsADirectoryError) as error:
        raise OSError(f"cannot write {path} ({error.strerror}): name a place that can be written to") from error


def require_ending(path: Path) -> None:
    """Raise a `ValueError` where the ending of a file for a table says no format."""
    if path != STDOUT and path.suffix.lower() not in (".parquet", ".csv"):
        raise ValueError(f"{path}: cannot tell the format by its name; end it in .parquet or .csv, or use - for CSV")


@contextmanager
def _stream(file: IO[bytes], suffix: str) -> Iterator[Write]:
    module = need("pyarrow.parquet" if suffix == ".parquet" else "pyarrow.csv")
    make = module.ParquetWriter if suffix == ".parquet" else module.CSVWriter
    opened: list[Any] = []

    def write(table: "pa.Table") -> None:
        if not opened:
            opened.append((make(file, table.schema), table.schema))
        writer, schema = opened[0]
        writer.write_table(table.cast(schema))

    try:
        yield write
    finally:
        for writer, _ in opened:
            writer.close()
