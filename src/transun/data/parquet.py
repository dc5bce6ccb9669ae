"""Parquet files as one long table: which row groups there are, whether the files agree, and how to read some rows."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from transun.data.shuffle import Segment
from transun.data.table import files, require
from transun.support.extras import need

Paths = str | Path | Sequence[str | Path]

# Rows decoded at a time: the temporaries of a piece are small beside a buffer, its fixed costs beside its rows.
_PIECE = 1 << 15
# Compressed bytes held of each column, so that a single huge row group does not come into memory whole.
_BYTES = 1 << 17
# The kind of a column that is missing in every row of a file: it agrees with any other.
_NOTHING = "null"


class RowGroup(NamedTuple):
    """One row group: its file, its number there, and its rows first..first+rows-1 of the file."""

    file: Path
    number: int
    first: int
    rows: int


class Piece(NamedTuple):
    """A few rows as an Arrow table, which begin at row `first` of `file`."""

    file: Path
    first: int
    table: Any


class ParquetFiles:
    """The row groups of one Parquet file, of a folder of them or of a list, in the order of the paths.

    Opening reads the footers only. Files must agree in what every column holds: numbers of any width are alike, and
    text in any encoding; but text where another file has numbers would be found out in the middle of training only.

    Args:
        path: a file, a folder (its `*.parquet` at any depth), or a list of files.
        columns: the columns that will be read; others may differ or be absent. None: all of the first file.

    """

    def __init__(self, path: Paths, columns: Iterable[str] | None = None) -> None:
        self.groups: list[RowGroup] = []
        self.kinds: dict[str, str] = {}
        self.files = _find(path)
        for file in self.files:
            with _opened(file) as opened:
                metadata = opened.metadata
                self._agree(file, _kinds(file, opened.schema_arrow, self.kinds or columns))
                first = 0
                for number in range(metadata.num_row_groups):
                    rows = metadata.row_group(number).num_rows
                    self.groups.append(RowGroup(file, number, first, rows))
                    first += rows
        self.rows = [group.rows for group in self.groups]
        if not sum(self.rows):
            raise ValueError(f"{path}: the data is empty, the Parquet files have no rows")

    def _agree(self, file: Path, kinds: dict[str, str]) -> None:
        for name, kind in kinds.items():
            known = self.kinds.get(name, _NOTHING)
            if _NOTHING not in (kind, known) and kind != known:
                raise ValueError(
                    f"{file}: column {name!r} holds {kind}, but {known} in {self.files[0]}: write both files alike"
                )
            self.kinds[name] = known if kind == _NOTHING else kind

    def read(self, segments: Iterable[Segment], columns: Sequence[str]) -> Iterator[Piece]:
        """The rows of the segments in small pieces, only the columns named."""
        for number, start, stop in segments:
            group = self.groups[number]
            with _opened(group.file) as opened:
                place = 0
                for batch in opened.iter_batches(_PIECE, row_groups=[group.number], columns=list(columns)):
                    if place >= stop:
                        break
                    low, high = max(start - place, 0), min(stop - place, len(batch))
                    if low < high:
                        table = need("pyarrow").Table.from_batches([batch.slice(low, high - low)])
                        yield Piece(group.file, group.first + place + low, table)
                    place += len(batch)
                if place < stop:
                    raise ValueError(f"{group.file} has lost rows since it was opened: read it anew")


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    arrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    try:
        # A memory map would be faster on a repeated pass, and count every page of the file as memory of the process.
        with parquet.ParquetFile(file, buffer_size=_BYTES, pre_buffer=False) as opened:
            yield opened
    except FileNotFoundError:
        raise FileNotFoundError(f"{file} is gone: somebody removed it while it was read") from None
    except (arrow.ArrowException, OSError) as error:
        size = f"{file.stat().st_size:,d} bytes" if file.exists() else "gone"
        raise ValueError(
            f"{file} ({size}) is not a whole Parquet file: {error}; it was cut short or is of another format, write it "
            "again"
        ) from error


def _find(path: Paths) -> list[Path]:
    if not isinstance(path, str | Path):
        found = [Path(file) for file in path]
        missing = [file for file in found if not file.is_file()]
        if missing or not found:
            raise FileNotFoundError(f"there is no file {missing[0]}" if missing else "the list of files is empty")
        return found
    place = Path(path)
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise FileNotFoundError(f"there is no file or folder {place} (seen from {Path.cwd()})")
    return files(place)


def _kinds(file: Path, schema: Any, columns: Iterable[str] | None) -> dict[str, str]:
    names = schema.names
    for name in columns or names:
        if names.count(name) > 1:
            raise ValueError(f"{file} has {names.count(name)} columns {name!r}: rename or drop all but one")
    try:
        return {name: _kind(schema.field(name).type) for name in require(names, columns or names)}
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None


def _kind(arrow: Any) -> str:
    """What the values of an Arrow type are, whatever their width and encoding."""
    types = need("pyarrow.types")
    if types.is_dictionary(arrow):
        return _kind(arrow.value_type)
    if types.is_list(arrow) or types.is_large_list(arrow) or types.is_fixed_size_list(arrow):
        return f"lists of {_kind(arrow.value_type)}"
    if types.is_integer(arrow) or types.is_floating(arrow) or types.is_boolean(arrow) or types.is_decimal(arrow):
        return "numbers"
    if str(arrow) in ("string", "large_string", "string_view"):
        return "text"
    return str(arrow)
