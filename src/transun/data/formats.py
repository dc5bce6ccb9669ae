"""File formats of tables, in one list: how each is recognised, read whole, streamed and written.

A new format is one subclass of `Format` and one entry in `FORMATS`. `read_table`, `open_columns` (and so `diagnose` and
`predict`) and `writing` (and so every `--out`) then know it.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from transun.data.csv_files import CsvLines, empty_is_missing, first_line, read_csv, sniff, unreadable
from transun.data.encodings import concatenate, in_types
from transun.data.parquet import ParquetFiles
from transun.data.schema import (
    DifferingTypesError,
    MissingColumnError,
    agreed_content,
    content_of,
    refuse_duplicates,
    require_columns,
)
from transun.support.counting import counted_are
from transun.support.extras import need
from transun.support.paths import arrow_arguments
from transun.support.suggest import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "CSV",
    "FORMATS",
    "PARQUET",
    "Format",
    "MemoryStream",
    "ParquetPart",
    "TableSource",
    "TableStream",
    "describe_folder",
    "find_files",
    "format_of",
]

# Rows of a piece of a table in memory: a float64 column of them fits in a core's cache.
_PIECE_ROWS = 1 << 15
# Files of a folder that are no tables: this many in all, and so many more for each that is one. Spark writes a hidden
# file beside every table; a folder with more was named by mistake, and a whole disk takes hours to walk through.
_MOST_OTHERS, _OTHERS_BESIDE = 100_000, 10


class TableStream(ABC):
    """Columns of a table that are read piece by piece, from the first row to the last, as often as wanted."""

    schema: "pa.Schema"
    """Names and Arrow types of the columns."""

    size: int
    """The length of the whole table in rows, or in bytes where the number of rows is not known beforehand."""

    infers_types: bool = False
    """Whether the types of columns are guessed from the first rows. Whole numbers are then read as floats, because
    fractions may follow; integers of more than 15 digits are not exact."""

    @abstractmethod
    def pieces(self) -> Iterator[tuple["pa.Table", int]]:
        """The rows in order, in tables small enough for a cache, each with the part of `size` that is read after it."""


class TableSource(ABC):
    """A table that is not in memory, of which any columns can be streamed; `read_table` and `open_columns` take it."""

    @abstractmethod
    def stream(self, columns: Sequence[str] | None) -> TableStream:
        """The named columns, all if None."""


class MemoryStream(TableStream):
    """The pieces of a table that is in memory already."""

    def __init__(self, table: "pa.Table") -> None:
        if len(table) == 0:
            raise ValueError("the table has no rows: there is nothing to look at")
        self.table, self.schema, self.size = table, table.schema, len(table)

    def pieces(self) -> Iterator[tuple["pa.Table", int]]:
        for first in range(0, self.size, _PIECE_ROWS):
            piece = self.table.slice(first, _PIECE_ROWS)
            yield piece, first + len(piece)


class Writer(Protocol):
    """Appends tables to a file; pyarrow's writers of Parquet and CSV are such."""

    def write_table(self, table: "pa.Table") -> None:
        """Append the rows of a table that has the schema of the file."""

    def close(self) -> None:
        """Write what is left and finish the file."""


class Format(ABC):
    """A file format of tables. A subclass must say how to read a file; streaming and writing are better if it can.

    Attributes:
        endings: how names of such files end, in lower case; the first is the usual one.
        first_bytes: what every such file begins with, by which data from a pipe is recognised; empty if nothing does.
        written_endings: the endings under which `writer` can write; none for a format that is only read.
        plain_text: whether files hold nothing but text, so that a column can pass from one to another as it is written.

    """

    endings: tuple[str, ...]
    first_bytes: bytes = b""
    written_endings: tuple[str, ...] = ()
    plain_text: bool = False

    @abstractmethod
    def read(self, file: Path, columns: Sequence[str] | None) -> "pa.Table":
        """The whole file. The caller needs only the named columns, or all if None; further ones do no harm."""

    def names(self, file: Path) -> list[str]:
        """The names of the columns of a file; by default it is read whole."""
        names: list[str] = self.read(file, None).column_names
        return names

    def read_all(self, files: Sequence[Path], columns: Sequence[str] | None) -> "pa.Table":
        """The rows of several files, one file after the other.

        Columns are found by name, and numbers of any width are alike. A column that only some files have, or that holds
        text in one and numbers in another, is an error that names file and column.
        """
        return _joined(files, [self.read(file, columns) for file in files])

    def verbatim(self, columns: Collection[str]) -> "Format":
        """A copy that keeps the text of some columns as it is written, where files hold nothing but text (CSV)."""
        return self

    def stream(self, files: Sequence[Path], columns: Sequence[str]) -> TableStream:
        """The named columns of the files, one file after the other; by default each file is read whole in its turn."""
        return _FileByFile(self, files, columns)

    def writer(self, file: IO[bytes], schema: "pa.Schema") -> Writer:
        """What appends tables of one schema to an open file."""
        raise NotImplementedError(f"{self.endings[0]} files cannot be written")

    def matches(self, path: Path) -> bool:
        """Whether the name of the file has an ending of this format.

        >>> CSV.matches(Path("orders.CSV.gz")), PARQUET.matches(Path("orders.csv"))
        (True, False)
        """
        return path.name.lower().endswith(self.endings)


def _joined(files: Sequence[Path], tables: "Sequence[pa.Table]") -> "pa.Table":
    pa = need("pyarrow")
    if len(tables) == 1:
        return tables[0]
    names = tables[0].column_names
    contents = dict.fromkeys(names, content_of(pa.null()))
    for file, table in zip(files, tables, strict=True):
        refuse_duplicates(table.column_names, file)
        require_columns(table.column_names, names, file)
        if further := [name for name in table.column_names if name not in contents]:
            raise MissingColumnError(further[0], names, files[0])
        for name in names:
            contents[name] = agreed_content(name, contents[name], table.schema.field(name).type, file, files[0])
    return concatenate(tables)


class _FileByFile(TableStream):
    def __init__(self, format: Format, files: Sequence[Path], columns: Sequence[str]) -> None:
        self.format, self.files, self.columns = format, files, list(columns)
        self.size = sum(file.stat().st_size for file in files)
        self.schema = self._read(files[0]).schema

    def _read(self, file: Path) -> "pa.Table":
        table = self.format.read(file, self.columns)
        return table.select(require_columns(table.column_names, self.columns))

    def pieces(self) -> Iterator[tuple["pa.Table", int]]:
        bytes_before = 0
        for file in self.files:
            bytes_here, table = file.stat().st_size, self._read(file)
            for first in range(0, len(table), _PIECE_ROWS):
                piece = table.slice(first, _PIECE_ROWS)
                yield piece, bytes_before + bytes_here * (first + len(piece)) // len(table)
            bytes_before += bytes_here


class Parquet(Format):
    """Parquet files: columns have types, and only the wanted ones are read."""

    endings = (".parquet",)
    first_bytes = b"PAR1"
    written_endings = (".parquet",)

    def read(self, file: Path, columns: Sequence[str] | None) -> "pa.Table":
        pa, parquet = need("pyarrow"), need("pyarrow.parquet")
        try:
            name, where = arrow_arguments(file)
            with parquet.ParquetFile(name, **where) as opened:
                names = opened.schema_arrow.names
                refuse_duplicates(names, file)
                return opened.read(columns=None if columns is None else require_columns(names, columns))
        except (pa.ArrowException, OSError) as error:
            raise ValueError(
                f"{file} is truncated or no Parquet file ({first_line(error)}): write or download it again"
            ) from error

    def names(self, file: Path) -> list[str]:
        return list(ParquetFiles([file]).contents)

    def stream(self, files: Sequence[Path], columns: Sequence[str]) -> TableStream:
        # Only the footers of the files are read here.
        return _ParquetStream(ParquetFiles(files, columns), columns)

    def writer(self, file: IO[bytes], schema: "pa.Schema") -> Writer:
        writer: Writer = need("pyarrow.parquet").ParquetWriter(file, schema)
        return writer


class _ParquetStream(TableStream):
    def __init__(self, files: ParquetFiles, columns: Sequence[str]) -> None:
        self.files, self.columns = files, list(columns)
        self.size = sum(self.files.rows)
        if self.size == 0:
            raise ValueError(f"{files.files[0]}: the data is empty, the Parquet files have no rows")
        schema = files.schema
        self.schema = need("pyarrow").schema([schema.field(name) for name in columns])

    def pieces(self) -> Iterator[tuple["pa.Table", int]]:
        rows = 0
        for piece in self.files.read(self.files.segments(), self.columns):
            rows += len(piece.table)
            yield in_types(piece.table, self.schema), rows


@dataclass(frozen=True)
class ParquetPart(TableSource):
    """The rows of some Parquet files that a rule holds for."""

    files: ParquetFiles

    def stream(self, columns: Sequence[str] | None) -> TableStream:
        """The named columns, all if None."""
        return _ParquetStream(self.files, list(self.files.contents) if columns is None else columns)

    def __len__(self) -> int:
        return sum(self.files.rows)


class Csv(Format):
    """CSV and TSV files with a header, gzipped or not; types are guessed from the text, and empty text is missing.

    Reading a whole file guesses from all its values. Streaming guesses from the first megabyte of the first file.

    Args:
        texts: columns whose text is kept as it is written.

    """

    endings = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
    written_endings = (".csv",)
    plain_text = True

    def __init__(self, texts: Collection[str] = ()) -> None:
        self.texts = frozenset(texts)

    def names(self, file: Path) -> list[str]:
        with file.open("rb") as raw, _csv_reader(file, raw, {}, None) as reader:
            names: list[str] = reader.schema.names
            return names

    def verbatim(self, columns: Collection[str]) -> "Csv":
        return Csv(self.texts.union(columns))

    def read(self, file: Path, columns: Sequence[str] | None) -> "pa.Table":
        return read_csv(file, self.texts)

    def read_all(self, files: Sequence[Path], columns: Sequence[str] | None) -> "pa.Table":
        try:
            return super().read_all(files, columns)
        except DifferingTypesError as error:
            # Guesses differ, not contents: what is a number in one file may be the digits of a name.
            return self.verbatim([error.column]).read_all(files, columns)

    def stream(self, files: Sequence[Path], columns: Sequence[str]) -> TableStream:
        return _CsvStream(files, columns, self.texts)

    def writer(self, file: IO[bytes], schema: "pa.Schema") -> Writer:
        return CsvLines(file, schema)


class _CsvStream(TableStream):
    infers_types = True

    def __init__(self, files: Sequence[Path], columns: Sequence[str], texts: Collection[str]) -> None:
        pa = need("pyarrow")
        self.files, self.columns = files, list(columns)
        self.size = sum(file.stat().st_size for file in files)
        with files[0].open("rb") as raw, _csv_reader(files[0], raw, {}, None) as reader:
            inferred = reader.schema
        self.types: dict[str, Any] = {}
        fields = []
        for name in require_columns(inferred.names, columns):
            if inferred.names.count(name) > 1:
                raise ValueError(f"{files[0]} has {inferred.names.count(name)} columns {name!r}: rename all but one")
            type_ = pa.large_string() if name in texts else _streamed_type(inferred.field(name).type)
            fields.append(pa.field(name, type_))
            # A column that is empty in the first block may hold anything later on.
            self.types[name] = pa.large_string() if pa.types.is_null(type_) else type_
        self.schema = pa.schema(fields)

    def pieces(self) -> Iterator[tuple["pa.Table", int]]:
        pa = need("pyarrow")
        rows = bytes_before = 0
        for file in self.files:
            with file.open("rb") as raw, _csv_reader(file, raw, self.types, self.columns) as reader:
                for batch in _readable_values(reader, file):
                    rows += len(batch)
                    yield empty_is_missing(pa.Table.from_batches([batch])), bytes_before + raw.tell()
            bytes_before += file.stat().st_size
        if rows == 0:
            raise ValueError(f"{self.files[0]} has no rows below its header")


def _streamed_type(guess: Any) -> Any:
    """The type in which a column is streamed whose first megabyte looks like `guess`."""
    pa = need("pyarrow")
    if pa.types.is_integer(guess) or pa.types.is_floating(guess):
        return pa.float64()  # a column of whole numbers in the first block may hold fractions later on
    return pa.large_string() if guess == pa.string() or pa.types.is_binary(guess) else guess


@contextmanager
def _csv_reader(file: Path, raw: IO[bytes], types: dict[str, Any], columns: list[str] | None) -> Iterator[Any]:
    pa, csv = need("pyarrow"), need("pyarrow.csv")
    options = sniff(file).options(types, columns)
    try:
        stream = pa.CompressedInputStream(raw, "gzip") if file.name.lower().endswith(".gz") else raw
        with csv.open_csv(stream, **options) as reader:
            yield reader
    except (pa.ArrowException, UnicodeError) as error:
        raise unreadable(file, error) from error


def _readable_values(reader: Any, file: Path) -> Iterator[Any]:
    pa = need("pyarrow")
    try:
        yield from reader
    except pa.ArrowException as error:
        if "UTF8" in str(error):
            raise unreadable(file, error) from error
        raise ValueError(
            f"{file}: {first_line(error)}; correct or remove that value, numbers are written as 1234.5"
        ) from error


PARQUET, CSV = Parquet(), Csv()

FORMATS: list[Format] = [PARQUET, CSV]
"""Every format there is."""


def format_of(path: Path) -> Format:
    """The format that the name of a file tells.

    >>> format_of(Path("orders.xlsx"))
    Traceback (most recent call last):
    ValueError: orders.xlsx: cannot tell the format by its name; known endings are .parquet, .csv, .csv.gz, .tsv, ...
    """
    for format in FORMATS:
        if format.matches(path):
            return format
    endings = ", ".join(ending for format in FORMATS for ending in format.endings)
    raise ValueError(f"{path}: cannot tell the format by its name; known endings are {endings}")


def find_files(path: Path) -> tuple[Format, list[Path]]:
    """The files of a table, one or those of a folder in the order of their names, and their format.

    A folder with files of several formats is refused: they may be copies of each other, or parts of one table. So is
    the folder of a Delta or Iceberg table, where files of older versions lie beside those of today.
    """
    if path.is_dir():
        found = _look_into(path)
        return found.format, found.tables
    if not path.exists():
        hint = did_you_mean(path.name, [other.name for other in path.parent.glob("*")], show=str)
        raise FileNotFoundError(f"there is no file {path}; {hint}" if hint else f"there is no file {path}")
    format = format_of(path)
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is an empty file: nothing was ever written to it")
    return format, [path]


@dataclass(frozen=True)
class _Folder:
    """The files of a folder and its subfolders, in the order of their names: those of its one table, and others."""

    format: Format
    tables: list[Path]
    others: list[Path]


def _look_into(folder: Path) -> _Folder:
    """What a folder holds; the walk through it ends as soon as it cannot be the folder of one table."""
    _refuse_versioned(folder)
    tables: dict[Format, list[Path]] = {}
    others: list[Path] = []
    for path in folder.rglob("*"):
        format = _format_in(folder, path)
        if format is not None and path.is_file():
            tables.setdefault(format, []).append(path)
        elif format is None and not _is_folder(path):
            others.append(path)
        if len(tables) > 1:
            one, other = (min(tables[format]).relative_to(folder) for format in FORMATS if format in tables)
            raise ValueError(
                f"the folder {folder} holds files of several formats, as {one} and {other}: name a file, or a folder "
                "with files of one format"
            )
        if len(others) > _MOST_OTHERS + _OTHERS_BESIDE * sum(map(len, tables.values())):
            raise ValueError(
                f"the folder {folder} holds more than {_MOST_OTHERS:,} files that are no tables: name the folder of a "
                "table alone"
            )
    for format, files in tables.items():
        return _Folder(format, sorted(files), sorted(others))
    absent = " and ".join(f"no *{format.endings[0]} file" for format in FORMATS)
    raise ValueError(f"the folder {folder} holds {absent}: name another")


def _format_in(folder: Path, path: Path) -> Format | None:
    """The format of a file of a folder, None for one that is no table.

    Files and folders whose names begin with a dot or an underscore are none: other programs put unfinished or empty
    files there.
    """
    if any(part.startswith((".", "_")) for part in path.relative_to(folder).parts):
        return None
    return next((format for format in FORMATS if format.matches(path)), None)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except PermissionError:
        return False  # nobody may look at it, so that it is left out in any case


def _refuse_versioned(folder: Path) -> None:
    if (folder / "_delta_log").is_dir():
        kind, scan = "Delta", "delta_scan"
    elif (folder / "metadata").is_dir() and any((folder / "metadata").glob("*.metadata.json")):
        kind, scan = "Iceberg", "iceberg_scan"
    else:
        return
    raise ValueError(
        f"{folder} is a table of {kind}, whose folder holds rows of older versions too: write those of today to "
        f"Parquet first, as DuckDB does by COPY (FROM {scan}('{folder}')) TO 'rows.parquet'"
    )


def describe_folder(folder: Path) -> str:
    """Which files of a folder are the table, and what else is there, in a sentence.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("a.csv", "b.csv", ".c.csv", "notes.txt"):
    ...     _ = (folder / name).write_text("gmv")
    >>> describe_folder(folder)
    '2 files are read, a.csv to b.csv; left out: .c.csv, notes.txt'
    """
    found = _look_into(folder)
    names, others = ([str(path.relative_to(folder)) for path in files] for files in (found.tables, found.others))
    last = f" to {names[-1]}" if len(names) > 1 else ""
    read = f"{counted_are(len(names), 'file')} read, {names[0]}{last}"
    more = f" and {len(others) - 5:,} more" if len(others) > 5 else ""
    return f"{read}; left out: {', '.join(others[:5])}{more}" if others else read
