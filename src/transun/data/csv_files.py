"""CSV files: how each is written, what its columns hold, and lines to write.

Delimiter and encoding are recognised by the first line of a file. Types are guessed by pyarrow from the text, with two
amendments. A guess that would lose something is withdrawn: "00100" and integers of 20 digits are names, not numbers,
and stay text. And a comma is a decimal comma where a column of numbers has no other reading.
"""

import codecs
import gzip
import re
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from transun.data.schema import refuse_duplicates
from transun.data.text_values import as_fractions, no_null_texts
from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["GZIP", "CsvLines", "Dialect", "empty_is_missing", "first_line", "read_csv", "sniff"]

GZIP = b"\x1f\x8b"
"""What a gzipped file begins with."""

# What files of other formats begin with, what they are, and what to do with them.
_OTHER_FORMATS = {
    GZIP: ("a gzipped file", "end its name in .gz"),
    b"PAR1": ("a Parquet file", "end its name in .parquet"),
    b"PK\x03\x04": ("a zip archive or a workbook", "unpack it, or save it as CSV"),
}
# What pyarrow says of a line with too many fields, or too few.
_WRONG_FIELDS = re.compile(r"Expected (\d+) columns, got (\d+): (.{0,60})")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_HEAD_BYTES = 1 << 16
_DELIMITERS = (",", ";", "\t", "|")
# Three characters or more: months and weeks are written 01 and 02 too, and are numbers.
_PADDED = r"^\s*[+-]?0\d{2,}\s*$"
_WHOLE = r"^\s*[+-]?\d+\s*$"
# Fields that need quotes, because a reader would split them or take them for missing.
_SPECIAL = r'[",\r\n]|^$'


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written: the character between fields and the encoding, `utf8` or `utf-16`."""

    delimiter: str = ","
    encoding: str = "utf8"

    def options(self, types: dict[str, Any], columns: Collection[str] | None = None) -> dict[str, Any]:
        """The arguments of pyarrow's readers, for columns of these types and the others guessed."""
        csv = need("pyarrow.csv")
        return {
            "read_options": csv.ReadOptions(encoding=self.encoding),
            "parse_options": csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            "convert_options": csv.ConvertOptions(
                column_types=types, include_columns=None if columns is None else list(columns)
            ),
        }


def sniff(file: Path) -> Dialect:
    """The dialect of a file, by its name and its first line.

    The delimiter is a comma if the first line has one, else a semicolon, a tab or a vertical bar if it has one.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "orders.csv"
    >>> _ = path.write_text("item;gmv")
    >>> sniff(path)
    Dialect(delimiter=';', encoding='utf8')
    """
    try:
        with _opened(file) as stream:
            head = stream.read(_HEAD_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(file, error) from error
    for beginning, (format, remedy) in _OTHER_FORMATS.items():
        if head.startswith(beginning):
            raise ValueError(f"{file} is {format} by its first bytes, and not CSV: {remedy}")
    encoding = "utf-16" if head.startswith(_UTF16) else "utf8"
    if encoding == "utf8" and b"\0" in head:
        raise ValueError(
            f"{file} is no CSV file in UTF-8 (it has bytes of 0, as UTF-16 without a mark and other formats have): "
            "write it with a header line, in UTF-8"
        )
    decoder = codecs.getincrementaldecoder(encoding)
    try:
        decoder().decode(head.split(b"\n", 1)[0])
    except UnicodeDecodeError as error:
        raise unreadable(file, error) from error
    if file.name.lower().endswith((".tsv", ".tsv.gz")):
        return Dialect("\t", encoding)
    # Incremental, because the last character may be cut in two.
    header = decoder(errors="ignore").decode(head).split("\n", 1)[0]
    outside_quotes = re.sub('"[^"]*"', "", header)
    return Dialect(next((mark for mark in _DELIMITERS if mark in outside_quotes), ","), encoding)


def read_csv(file: Path, texts: Collection[str] = ()) -> "pa.Table":
    """The whole file, types guessed from all its values; empty text is missing.

    Args:
        file: with a header line, gzipped or not.
        texts: columns whose text is kept as it is written.

    """
    pa = need("pyarrow")
    dialect = sniff(file)
    table = _read(file, dialect, dict.fromkeys(texts, pa.large_string()))
    refuse_duplicates(table.column_names, file)
    guessed = [field.name for field in table.schema if field.name not in texts]
    table = _withdraw_lossy_guesses(file, dialect, table, guessed)
    for name in guessed:
        _require_utf8(file, table, name)
        if table[name].type == pa.string() and (numbers := _decimal_commas(table[name])) is not None:
            table = table.set_column(table.column_names.index(name), name, numbers)
    return empty_is_missing(table)


def _read(file: Path, dialect: Dialect, types: dict[str, Any], columns: Collection[str] | None = None) -> "pa.Table":
    pa, csv = need("pyarrow"), need("pyarrow.csv")
    try:
        with _opened(file) as stream:
            return csv.read_csv(stream, **dialect.options(types, columns))
    except (pa.ArrowException, OSError, EOFError, UnicodeError, zlib.error) as error:
        raise unreadable(file, error) from error


def unreadable(file: Path, error: BaseException) -> ValueError:
    """The error of a file that pyarrow cannot read, in one sentence."""
    reason = first_line(error)
    if isinstance(error, UnicodeError) or "UTF8" in reason:
        return ValueError(f"{file} is not in UTF-8: {_CONVERT}")
    if file.name.lower().endswith(".gz") and isinstance(error, (OSError, EOFError, zlib.error)):
        return ValueError(f"{file} is cut off or no gzipped file ({reason}): write or download it again")
    if fields := _WRONG_FIELDS.search(reason):
        return ValueError(
            f"{file} has {fields[1]} columns, and a line with {fields[2]}, {fields[3]!r}: correct it; a value with the "
            "delimiter or a line break in it is written in quotes"
        )
    return ValueError(f"{file} is no readable CSV file ({reason}): write it with a header line, in UTF-8")


_CONVERT = "convert it, as by iconv -f cp1252 -t utf-8 OLD > NEW for a file of Windows"


def _require_utf8(file: Path, table: "pa.Table", name: str) -> None:
    # pyarrow reads text of another encoding as bytes.
    if need("pyarrow").types.is_binary(table[name].type):
        row = next(row for row, value in enumerate(table[name].to_pylist()) if not _is_utf8(value))
        raise ValueError(f"{file} is not in UTF-8 (column {name!r}, row {row}): {_CONVERT}")


def _is_utf8(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def _withdraw_lossy_guesses(file: Path, dialect: Dialect, table: "pa.Table", names: list[str]) -> "pa.Table":
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    types = pa.types
    doubtful = [
        name
        for name in names
        if types.is_integer(table[name].type)
        # Integers that do not fit in 64 bits are read as floats.
        or (types.is_floating(table[name].type) and (compute.max(compute.abs(table[name])).as_py() or 0.0) >= 2.0**63)
    ]
    if not doubtful:
        return table
    texts = _read(file, dialect, dict.fromkeys(doubtful, pa.large_string()), doubtful)
    for name in doubtful:
        text = empty_is_missing(texts.select([name]))[name]
        padded = compute.any(compute.match_substring_regex(text, _PADDED)).as_py()
        too_long = (
            types.is_floating(table[name].type) and compute.all(compute.match_substring_regex(text, _WHOLE)).as_py()
        )
        if padded or too_long:
            table = table.set_column(table.column_names.index(name), name, text)
    return table


def _decimal_commas(column: "pa.ChunkedArray") -> "pa.Array | None":
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    text = compute.cast(column, pa.large_string()).combine_chunks()
    return as_fractions(no_null_texts(text.chunk(0) if isinstance(text, pa.ChunkedArray) else text))


def empty_is_missing(table: "pa.Table") -> "pa.Table":
    """The table with null in place of empty text, which is how CSV writes a missing value."""
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    for index, field in enumerate(table.schema):
        if field.type in (pa.string(), pa.large_string()):
            empty = compute.equal(table[index], "")
            table = table.set_column(index, field.name, compute.if_else(empty, None, table[index]))
    return table


@contextmanager
def _opened(file: Path) -> Iterator[IO[bytes]]:
    with file.open("rb") as raw:
        yield gzip.GzipFile(fileobj=raw) if file.name.lower().endswith(".gz") else raw  # type: ignore[misc]


class CsvLines:
    """Writes tables as CSV: fields are quoted only where they must be, so that text is written as it was read.

    pyarrow's own writer puts every text in quotes, and text is all that is known about a column that passes through.

    >>> import io, pyarrow
    >>> file = io.BytesIO()
    >>> table = pyarrow.table({"zip": ["00100", None], "say": ['a "b", c', ""], "y": [1.5, 2.0]})
    >>> CsvLines(file, table.schema).write_table(table)
    >>> print(file.getvalue().decode())
    zip,say,y
    00100,"a ""b"", c",1.5
    ,"",2
    <BLANKLINE>
    """

    def __init__(self, file: IO[bytes], schema: "pa.Schema") -> None:
        pa = need("pyarrow")
        self.file = file
        header = [_quoted(pa.array([name], pa.large_string()))[0].as_py() for name in schema.names]
        file.write((",".join(header) + "\n").encode())

    def write_table(self, table: "pa.Table") -> None:
        """Append the rows of a table."""
        pa, compute = need("pyarrow"), need("pyarrow.compute")
        if not len(table):
            return
        fields = [_quoted(_as_text(name, table[name])) for name in table.column_names]
        lines = compute.binary_join_element_wise(*fields, pa.scalar(",", pa.large_string()))
        self.file.write(("\n".join(lines.to_pylist()) + "\n").encode())

    def close(self) -> None:
        """Nothing is left to be written."""


def _as_text(name: str, column: Any) -> Any:
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    if pa.types.is_dictionary(column.type):
        column = compute.cast(column, column.type.value_type)
    try:
        return compute.cast(column, pa.large_string())
    except pa.ArrowException as error:
        raise ValueError(f"CSV cannot hold column {name!r}, which is {column.type}: write a .parquet file") from error


def _quoted(text: Any) -> Any:
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    mark = pa.scalar('"', pa.large_string())
    inside = compute.replace_substring(text, '"', '""')
    within_marks = compute.binary_join_element_wise(mark, inside, mark, pa.scalar("", pa.large_string()))
    return compute.fill_null(compute.if_else(compute.match_substring_regex(text, _SPECIAL), within_marks, text), "")


def first_line(error: BaseException) -> str:
    """The first line of an error message of Arrow, whose further lines are about Arrow's own code."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(". ")
