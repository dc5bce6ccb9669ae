"""A few columns of a table of any size, read in pieces and as often as wanted: files, folders, frames or arrays."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from shutil import copyfileobj
from typing import IO, TYPE_CHECKING, Any, Protocol

import numpy as np

from transun.data.parquet import ParquetFiles
from transun.data.shuffle import segments
from transun.data.table import files, read_table, require
from transun.data.values import as_numbers, read
from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Chunk", "Columns", "is_numeric", "open_columns", "spooled"]

# Rows of a piece of a table in memory: a float64 column of them fits in a core's cache.
_PIECE = 1 << 15
_CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")


@dataclass(frozen=True)
class Chunk:
    """Some consecutive rows.

    Attributes:
        first: number of the first row in the whole source.
        table: the columns asked for, as an Arrow table.
        done: how much of the source is read after this piece, in the units of `Columns.size`.

    """

    first: int
    table: "pa.Table"
    done: int

    def numbers(self, name: str) -> np.ndarray:
        """A column as float64, NaN for missing."""
        return as_numbers(f"column {name!r}", read(self.table, name))

    def codes(self, name: str, values: Sequence[str]) -> np.ndarray:
        """The place of each row's text among the values, len(values) for any other text and one more for none.

        >>> source = open_columns({"country": ["IT", None, "FR", "DE"]}, [], ["country"])
        >>> next(source.chunks()).codes("country", ["FR", "IT"]).tolist()
        [1, 3, 0, 2]
        """
        pa, compute = need("pyarrow"), need("pyarrow.compute")
        text = _as_text(read(self.table, name))
        found = compute.index_in(text, value_set=pa.array(values, pa.large_string()))
        codes: np.ndarray = compute.fill_null(found, len(values)).to_numpy(zero_copy_only=False).astype(np.int64)
        codes[text.is_null().to_numpy(zero_copy_only=False)] = len(values) + 1
        return codes

    def texts(self, name: str, rows: np.ndarray) -> list[str | None]:
        """What the rows at these places say in a column, as text, None where it is missing."""
        found: list[str | None] = _as_text(read(self.table, name).take(rows)).to_pylist()
        return found

    def __len__(self) -> int:
        return len(self.table)


class Columns(Protocol):
    """Columns that can be read again and again; `size` is their length in rows, or in bytes where rows are unknown."""

    size: int

    @property
    def schema(self) -> "pa.Schema":
        """Names and Arrow types of the columns asked for."""

    def chunks(self) -> Iterator[Chunk]:
        """The rows in order, in pieces that fit in a cache."""


def open_columns(source: Any, numbers: Sequence[str], labels: Sequence[str] = ()) -> Columns:
    """The named columns of a source, none of whose rows are read yet.

    Args:
        source: what `read_table` takes, or a folder of CSV files. Paths are streamed, so memory does not grow with
            the rows; everything else is in memory already.
        numbers: columns that must hold numbers. Text is refused here, with the columns that would do.
        labels: columns of any kind that rows are told apart by.

    >>> source = open_columns({"y": [1.0, 2.0], "country": ["IT", "FR"]}, ["y"], ["country"])
    >>> [chunk.numbers("y").tolist() for chunk in source.chunks()]
    [[1.0, 2.0]]

    """
    names = list(dict.fromkeys([*numbers, *labels]))
    if isinstance(source, (str, PathLike)):
        columns = _from_path(Path(source), names)
    else:
        table = read_table(source)
        _require_numbers(table.schema, numbers)
        columns = _Table(table.select(require(table.column_names, names)))
    _require_numbers(columns.schema, numbers)
    return columns


@contextmanager
def spooled(stream: IO[bytes]) -> Iterator[Path]:
    """A temporary file with what a pipe says, CSV or Parquet told apart by its first bytes; a pipe reads only once."""
    with tempfile.TemporaryDirectory() as folder:
        head = stream.read(4)
        path = Path(folder) / ("stdin.parquet" if head == b"PAR1" else "stdin.csv")
        with path.open("wb") as file:
            file.write(head)
            copyfileobj(stream, file)
        if path.stat().st_size == 0:
            raise ValueError("standard input is empty: pipe CSV with a header line, or a Parquet file")
        yield path


def _as_text(array: "pa.Array") -> "pa.Array":
    """Any column as text with null for missing: times, booleans and numbers as they print."""
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    if array.type == pa.large_string():
        return array
    try:
        return compute.cast(array, pa.large_string())
    except pa.ArrowException:  # lists and other nested values
        return pa.array([None if value is None else str(value) for value in array.to_pylist()], pa.large_string())


class _Table:
    """A table in memory."""

    def __init__(self, table: "pa.Table") -> None:
        self.table, self.size = table, len(table)
        if not self.size:
            raise ValueError("the table has no rows: there is nothing to look at")

    @property
    def schema(self) -> "pa.Schema":
        return self.table.schema

    def chunks(self) -> Iterator[Chunk]:
        for first in range(0, self.size, _PIECE):
            piece = self.table.slice(first, _PIECE)
            yield Chunk(first, piece, first + len(piece))


class _Parquet:
    """Parquet files; only their footers are read at first."""

    def __init__(self, path: Path, names: list[str]) -> None:
        # The names are checked before the files are, so that a wrong one is told with its neighbours.
        self.files = ParquetFiles(path, names)
        self.names, self.size = names, sum(self.files.rows)
        parquet = need("pyarrow.parquet")
        schema = parquet.read_schema(self.files.files[0])
        self.schema = need("pyarrow").schema([schema.field(name) for name in names])

    def chunks(self) -> Iterator[Chunk]:
        done = 0
        for piece in self.files.read(segments(self.files.rows, None), self.names):
            done += len(piece.table)
            yield Chunk(done - len(piece.table), piece.table, done)


class _Csv:
    """CSV files with a header; what a column holds is judged by the first megabyte of the first file."""

    def __init__(self, paths: list[Path], names: list[str]) -> None:
        pa = need("pyarrow")
        self.paths, self.names = paths, names
        self.size = sum(path.stat().st_size for path in paths)
        self.types: dict[str, Any] = {}
        with _csv_reader(paths[0], {}, None) as reader:
            there = reader.schema
        for name in require(there.names, names):
            if there.names.count(name) > 1:
                raise ValueError(f"{paths[0]} has {there.names.count(name)} columns {name!r}: rename all but one")
            kind = there.field(name).type
            numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)
            # A column of whole numbers in the first block may hold others later on.
            self.types[name] = pa.float64() if numeric else pa.large_string() if kind == pa.string() else kind
        self.schema = pa.schema([pa.field(name, self.types[name]) for name in names])

    def chunks(self) -> Iterator[Chunk]:
        pa, compute = need("pyarrow"), need("pyarrow.compute")
        first = before = 0
        for path in self.paths:
            with path.open("rb") as raw, _csv_reader(path, self.types, self.names, raw) as reader:
                for batch in _checked(reader, path):
                    table = pa.Table.from_batches([batch])
                    for index, field in enumerate(table.schema):
                        if field.type == pa.large_string():
                            empty = compute.equal(table[index], "")
                            table = table.set_column(index, field.name, compute.if_else(empty, None, table[index]))
                    yield Chunk(first, table, before + raw.tell())
                    first += len(table)
            before += path.stat().st_size
        if not first:
            raise ValueError(f"{self.paths[0]} has no rows below its header")


def _from_path(path: Path, names: list[str]) -> Columns:
    if path.is_dir():
        tables = sorted(part for part in path.rglob("*") if part.name.lower().endswith(_CSV) and part.is_file())
        if tables and not any(path.rglob("*.parquet")):
            return _Csv(tables, names)
        try:
            files(path)
        except ValueError:
            raise ValueError(f"the folder {path} holds no *.parquet and no *.csv file: name another") from None
        return _Parquet(path, names)
    if path.name.lower().endswith(_CSV) and path.is_file() and path.stat().st_size:
        return _Csv([path], names)
    if path.name.lower().endswith(".parquet") and path.is_file() and path.stat().st_size:
        return _Parquet(path, names)
    return _Table(read_table(path))  # which says what is wrong with the path


@contextmanager
def _csv_reader(path: Path, types: dict[str, Any], names: list[str] | None, raw: Any = None) -> Iterator[Any]:
    pa, csv = need("pyarrow"), need("pyarrow.csv")
    opened = path.open("rb") if raw is None else raw
    try:
        stream = pa.CompressedInputStream(opened, "gzip") if path.name.lower().endswith(".gz") else opened
        convert = csv.ConvertOptions(column_types=types, include_columns=names)
        parse = csv.ParseOptions(delimiter="\t" if ".tsv" in path.name.lower() else ",")
        with csv.open_csv(stream, parse_options=parse, convert_options=convert) as reader:
            yield reader
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} is no readable CSV file ({_first_line(error)}): write it with a header line, in UTF-8"
        ) from error
    finally:
        if raw is None:
            opened.close()


def _checked(reader: Any, path: Path) -> Iterator[Any]:
    pa = need("pyarrow")
    try:
        yield from reader
    except pa.ArrowException as error:
        raise ValueError(
            f"{path}: {_first_line(error)}; correct or remove that value, numbers are written as 1234.5"
        ) from error


def is_numeric(columns: Columns, name: str) -> bool:
    """Whether a column holds numbers that can be ordered; truth values cannot.

    >>> is_numeric(open_columns({"age": [1, 2]}, [], ["age"]), "age")
    True
    """
    types = need("pyarrow").types
    kind = columns.schema.field(name).type
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _require_numbers(schema: "pa.Schema", names: Sequence[str]) -> None:
    types = need("pyarrow").types

    def fine(kind: Any) -> bool:
        tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
        return any(test(kind) for test in tests)

    require(schema.names, names)
    others = [field.name for field in schema if fine(field.type)]
    for name in names:
        if not fine(kind := schema.field(name).type):
            what = "text" if "string" in str(kind) else str(kind)
            instead = f"; columns of numbers are {', '.join(others[:10])}" if others else ""
            raise ValueError(
                f"column {name!r} holds {what}, and must hold numbers: convert it or name another{instead}"
            )


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(". ")
