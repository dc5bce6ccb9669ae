"""A few columns of a table of any size, read in chunks and as often as wanted: of files, folders, frames or arrays."""

import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfileobj
from typing import IO, TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np

from transun.data.csv_files import GZIP
from transun.data.formats import CSV, FORMATS, MemoryStream, TableSource, TableStream, find_files
from transun.data.logical import FractionType
from transun.data.schema import holds_numbers, require_columns
from transun.data.table import as_numbers, column_array, read_table
from transun.data.text_values import WRITE_NUMBERS, looks_numeric
from transun.support.extras import need
from transun.support.files import naming_full_disk
from transun.support.paths import as_path, is_path
from transun.support.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Addable",
    "Chunk",
    "Columns",
    "Rows",
    "column_names",
    "is_numeric",
    "open_columns",
    "require_numbers",
    "spooled",
]

WHOLE_BELOW = 1 << 28
"""Bytes of CSV files up to which they are read whole, so that types are guessed from all values and not from some."""


@dataclass(frozen=True)
class Chunk:
    """Some consecutive rows.

    Attributes:
        first: number of the first row in the whole source.
        table: the columns asked for, as an Arrow table.
        done: how much of the source has been read after this chunk, in the units of `Columns.size`.

    """

    first: int
    table: "pa.Table"
    done: int

    def numbers(self, name: str) -> np.ndarray:
        """A column as float64, NaN for missing."""
        return as_numbers(f"column {name!r}", column_array(self.table, name))

    def codes(self, name: str, values: Sequence[str]) -> np.ndarray:
        """The index of each row's text in `values`; len(values) for any other text, len(values) + 1 for missing.

        >>> source = open_columns({"country": ["IT", None, "FR", "DE"]}, [], ["country"])
        >>> next(source.chunks()).codes("country", ["FR", "IT"]).tolist()
        [1, 3, 0, 2]
        """
        pa, compute = need("pyarrow"), need("pyarrow.compute")
        text = _as_text(column_array(self.table, name))
        index = compute.index_in(text, value_set=pa.array(values, pa.large_string()))
        codes: np.ndarray = compute.fill_null(index, len(values)).to_numpy(zero_copy_only=False).astype(np.int64)
        codes[text.is_null().to_numpy(zero_copy_only=False)] = len(values) + 1
        return codes

    def texts(self, name: str, rows: np.ndarray) -> "pa.Array":
        """The values of a column in some rows of the chunk, as text; null where it is missing."""
        return _as_text(column_array(self.table, name).take(rows))

    def __len__(self) -> int:
        return len(self.table)


class Addable(Protocol):
    """A summary of some rows; `a + b` is the summary of the rows of both, and `+` may be taken in any order."""

    def __add__(self, other: Self, /) -> Self: ...


S = TypeVar("S", bound=Addable)


class Rows(Protocol):
    """Rows wherever they are: in memory, in files, or in the frame of another engine.

    Whatever is computed from all rows is the sum of summaries of chunks, because a sum does not care which machine had
    which rows. An engine that implements `total` can run everything that is written with it.
    """

    @property
    def schema(self) -> "pa.Schema":
        """Names and Arrow types of the columns."""

    def total(self, summarise: Callable[[Chunk], S], label: str = "reading", show: bool | None = None) -> S:
        """The sum of `summarise(chunk)` over chunks that together hold every row once, in any order and grouping.

        Args:
            summarise: a function of a chunk that depends on nothing else; it may be called in another process.
            label: what the work is called on a progress bar.
            show: whether to show one; None shows it on a terminal.

        """


@dataclass(frozen=True)
class Columns:
    """Columns that can be read again and again; no row is in memory until `chunks` is iterated over.

    They are `Rows` of this machine.

    >>> Columns(MemoryStream(read_table({"y": [1.0, 2.0, 3.0]}))).total(lambda chunk: chunk.numbers("y").sum())
    np.float64(6.0)
    """

    stream: TableStream

    @property
    def schema(self) -> "pa.Schema":
        """Names and Arrow types of the columns."""
        return self.stream.schema

    @property
    def size(self) -> int:
        """Their length in rows, or in bytes where the number of rows is not known."""
        return self.stream.size

    @property
    def infers_types(self) -> bool:
        """Whether types were guessed from the first rows, so that whole numbers are read as floats."""
        return self.stream.infers_types

    def chunks(self) -> Iterator[Chunk]:
        """The rows in order, in chunks that fit in a cache."""
        first = 0
        for table, done in self.stream.pieces():
            yield Chunk(first, table, done)
            first += len(table)

    def total(self, summarise: Callable[[Chunk], S], label: str = "reading", show: bool | None = None) -> S:
        """The sum of `summarise(chunk)` over all chunks; see `Rows.total`."""
        total: S | None = None
        with Progress(label, self.size, show) as bar:
            for chunk in self.chunks():
                summary = summarise(chunk)
                total = summary if total is None else total + summary
                bar.advance(chunk.done)
        if total is None:
            raise ValueError("the data has no rows: there is nothing to look at")
        return total


def open_columns(
    source: Any,
    numbers: Sequence[str],
    labels: Sequence[str] = (),
    *,
    verbatim: Collection[str] = (),
    whole_below: int = WHOLE_BELOW,
) -> Columns:
    """The named columns of a source, none of whose rows are read yet.

    Args:
        source: what `read_table` takes. Paths are streamed, so memory does not grow with the rows; everything else is
            in memory already.
        numbers: columns that must hold numbers. Text is refused here, and the message lists the columns of numbers.
        labels: columns of any kind, whose values tell groups of rows apart.
        verbatim: columns of which a CSV file is read as text, as it is written, and no type is guessed.
        whole_below: files of fewer bytes in all whose types would be guessed from their first rows (CSV) are read
            whole instead, so that types are guessed from all values, as `read_table` does.

    >>> source = open_columns({"y": [1.0, 2.0], "country": ["IT", "FR"]}, ["y"], ["country"])
    >>> [chunk.numbers("y").tolist() for chunk in source.chunks()]
    [[1.0, 2.0]]

    """
    names = list(dict.fromkeys([*numbers, *labels]))
    if isinstance(source, TableSource):
        stream = source.stream(names)
        require_numbers(stream.schema, numbers)
        return Columns(stream)
    if is_path(source):
        format, files = find_files(as_path(source))
        stream = format.verbatim(verbatim).stream(files, names)
        if not (stream.infers_types and stream.size < whole_below):
            require_numbers(stream.schema, numbers)
            return Columns(stream)
    table = read_table(source, verbatim=verbatim)
    require_columns(table.column_names, names)
    for name in numbers:
        # Digits that a guess would lose, as those of 2⁷⁰, are text in a CSV file; a float is what is wanted here.
        values = FractionType().convert(f"column {name!r}", column_array(table, name))
        _refuse_some_text(name, values)
        table = table.set_column(table.column_names.index(name), name, values)
    require_numbers(table.schema, numbers, examples=table)
    return Columns(MemoryStream(table.select(names)))


def column_names(path: Path) -> list[str]:
    """The names of the columns of a file, or of the first file of a folder, whose rows are not read."""
    format, files = find_files(path)
    return format.names(files[0])


@contextmanager
def spooled(stream: IO[bytes]) -> Iterator[Path]:
    """A temporary file with the bytes of a pipe, which can be read only once; its first bytes tell its format.

    What begins like no other format is CSV, gzipped or not.
    """
    with tempfile.TemporaryDirectory() as folder:
        head = stream.read(max(len(GZIP), *(len(format.first_bytes) for format in FORMATS)))
        recognised = (format for format in FORMATS if format.first_bytes and head.startswith(format.first_bytes))
        compressed = ".gz" if head.startswith(GZIP) else ""
        path = Path(folder) / f"stdin{next(recognised, CSV).endings[0]}{compressed}"
        with naming_full_disk(path, "make room, or set TMPDIR to a folder on another disk"), path.open("wb") as file:
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


def is_numeric(columns: Rows, name: str) -> bool:
    """Whether a column holds numbers that can be ordered; truth values cannot.

    >>> is_numeric(open_columns({"age": [1, 2]}, [], ["age"]), "age")
    True
    """
    types = need("pyarrow").types
    type_ = columns.schema.field(name).type
    return bool(types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_))


def _refuse_some_text(name: str, values: "pa.Array") -> None:
    """Name the first text in a column where most values are numbers: it is the value that is wrong, not the column."""
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    if values.type != pa.large_string():
        return
    numeric = looks_numeric(values)
    if (compute.mean(numeric).as_py() or 0.0) > 0.5:
        row = compute.index(numeric, False).as_py()
        raise ValueError(
            f"column {name!r}, row {row}: {values[row].as_py()!r} is text, not a number; correct or remove that value, "
            f"or {WRITE_NUMBERS}"
        )


def require_numbers(schema: "pa.Schema", names: Sequence[str], examples: "pa.Table | None" = None) -> None:
    """Raise a `ValueError` for a column that does not hold numbers; it lists those that do.

    Args:
        schema: names and types of all columns.
        names: the columns that must hold numbers.
        examples: rows, where they are in memory; the error shows what is written in the first of them.

    """
    require_columns(schema.names, names)
    is_null = need("pyarrow").types.is_null
    numeric = [field.name for field in schema if holds_numbers(field.type) or is_null(field.type)]
    for name in names:
        if name not in numeric:
            type_ = str(schema.field(name).type)
            content, remedy = type_, "convert it"
            if "string" in type_:
                content = "text" if examples is None else f"text such as {_first_value(examples, name)!r}"
                remedy = f"{WRITE_NUMBERS},"
            instead = f"; columns of numbers are {', '.join(numeric[:10])}" if numeric else ""
            raise ValueError(
                f"column {name!r} holds {content}, and must hold numbers: {remedy} or name another{instead}"
            )


def _first_value(table: "pa.Table", name: str) -> Any:
    values = column_array(table, name).drop_null()
    return values[0].as_py() if len(values) else None
