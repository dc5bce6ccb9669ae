"""Parquet files as one long table: their row groups, whether the files agree, and how to read some of the rows."""

import copy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from transun.data import hashing
from transun.data.encodings import concatenate
from transun.data.schema import NOTHING, agreed_content, require_columns
from transun.support.arrays import Integers
from transun.support.extras import need
from transun.support.memory import return_freed_memory
from transun.support.paths import arrow_arguments

if TYPE_CHECKING:
    from transun.data.row_rules import RowRule

__all__ = ["ParquetFiles", "Piece", "RowGroup", "RowRange", "cuts", "segments"]

# Rows decoded at a time: few enough for their temporaries to be small beside a buffer, enough to outweigh fixed costs.
_PIECE_ROWS = 1 << 15
# Compressed bytes held of each column, so that a single huge row group does not come into memory whole.
_BUFFER_BYTES = 1 << 17
# Pieces after which freed memory goes back to the system: 2 million rows, beside which that takes no time.
_PIECES = 64


class RowGroup(NamedTuple):
    """One row group: its file, its number there, and its rows first..first+rows-1 of the file."""

    file: Path
    number: int
    first: int
    rows: int


class RowRange(NamedTuple):
    """Rows start..stop-1 of one row group."""

    group: int
    start: int
    stop: int


class Piece(NamedTuple):
    """A few rows of one row group as an Arrow table; row i of it is row `rows[i]` of `file`."""

    file: Path
    group: int
    rows: Integers
    table: Any


class ParquetFiles:
    """The row groups of some Parquet files, in the order of the files.

    Opening reads the footers only. Files must agree in what every column holds: numbers of any width are alike, and so
    is text in any encoding. Text where another file has numbers is refused here; training would otherwise fail in the
    middle of an epoch.

    Args:
        files: at least one.
        columns: the columns that will be read; others may differ or be absent. None: all of the first file.

    """

    def __init__(self, files: Sequence[Path], columns: Iterable[str] | None = None) -> None:
        self.files = list(files)
        self.groups: list[RowGroup] = []
        self.contents: dict[str, str] = {}
        """What each column holds, such as "numbers" or "text"."""
        self._schemas: list[Any] = []  # the different ones
        for file in self.files:
            with _opened(file) as opened:
                metadata = opened.metadata
                types = _types(file, opened.schema_arrow, self.contents or columns)
                schema = need("pyarrow").schema(types)
                if not any(schema.equals(other) for other in self._schemas):
                    self._schemas.append(schema)
                for name, type_ in types.items():
                    known = self.contents.get(name, NOTHING)
                    self.contents[name] = agreed_content(name, known, type_, file, self.files[0])
                first = 0
                for number in range(metadata.num_row_groups):
                    rows = metadata.row_group(number).num_rows
                    self.groups.append(RowGroup(file, number, first, rows))
                    first += rows
        self.rows = [group.rows for group in self.groups]
        """The number of rows of each row group that are read."""
        self.rule: RowRule | None = None
        self._before = list(accumulate((group.rows for group in self.groups), initial=0))

    @property
    def schema(self) -> Any:
        """Names and Arrow types of the columns; where files differ in a type, one that holds the values of all."""
        return concatenate([schema.empty_table() for schema in self._schemas]).schema

    def where(self, rule: "RowRule", rows: Sequence[int]) -> "ParquetFiles":
        """The same files with the rows alone that a rule holds for.

        Args:
            rule: it sees the numbers of rows in all files together.
            rows: for how many rows of each row group it holds. Whoever knows that has read all rows; the shares of
                workers and the number of batches follow from it.

        """
        part = copy.copy(self)
        part.rule, part.rows = rule, list(rows)
        return part

    def numbers(self, piece: Piece) -> Integers:
        """The number of each row of a piece, counted over all files."""
        return piece.rows + (self._before[piece.group] - self.groups[piece.group].first)

    def segments(self, seed: int | None = None, index: int = 0, count: int = 1) -> list[RowRange]:
        """The rows that worker `index` of `count` reads, by default all of them in order; see `segments`."""
        return segments(self.rows, seed, index, count)

    def read(self, segments: Iterable[RowRange], columns: Sequence[str]) -> Iterator[Piece]:
        """The rows of the segments in small pieces, only the named columns."""
        needed = list(dict.fromkeys([*columns, *(self.rule.columns if self.rule else ())]))
        pieces = 0
        for number, start, stop in segments:
            group = self.groups[number]
            with _opened(group.file) as opened:
                first, row = group.first, 0  # of the batch: in the file, and among the rows of the group that are read
                for batch in opened.iter_batches(_PIECE_ROWS, row_groups=[group.number], columns=needed):
                    if row >= stop:
                        break
                    pieces += 1
                    if pieces % _PIECES == 0:
                        return_freed_memory()
                    table = need("pyarrow").Table.from_batches([batch])
                    piece = self._kept(Piece(group.file, number, np.arange(first, first + len(table)), table))
                    first += len(table)
                    low, high = max(start - row, 0), min(stop - row, len(piece.rows))
                    row += len(piece.rows)
                    if low < high:
                        table = piece.table.slice(low, high - low).select(list(columns))
                        yield piece._replace(rows=piece.rows[low:high], table=table)
                if row < stop:
                    raise ValueError(f"{group.file} has lost rows since it was opened: read it anew")

    def _kept(self, piece: Piece) -> Piece:
        if self.rule is None:
            return piece
        kept = self.rule.holds(piece.table, self.numbers(piece))
        return piece._replace(rows=piece.rows[kept], table=piece.table.filter(need("pyarrow").array(kept)))


def cuts(total: int, parts: int) -> list[int]:
    """Where to cut `total` rows into `parts` that differ by one row at most: ⌊total·i / parts⌋, i = 0..parts.

    Shares nest: shard 0 of 2, cut in 2 again, is shards 0 and 1 of 4.

    >>> cuts(10, 3)
    [0, 3, 6, 10]
    """
    return [total * part // parts for part in range(parts + 1)]


def segments(rows: Sequence[int], seed: int | None, index: int = 0, count: int = 1) -> list[RowRange]:
    """The rows that worker `index` of `count` reads: an equal share of the rows of all row groups, in their order.

    Args:
        rows: the number of rows of each row group.
        seed: None keeps the groups in their order. A number permutes them, the same way for every worker, so that the
            shares are a partition of the rows; another seed is another partition.
        index: which worker.
        count: how many workers.

    >>> segments([4, 4], seed=None, index=0, count=2), segments([4, 4], seed=None, index=1, count=4)
    ([RowRange(group=0, start=0, stop=4)], [RowRange(group=0, start=2, stop=4)])

    """
    order = list(range(len(rows)))
    if seed is not None:
        order = hashing.bits(torch.arange(len(rows)), seed, "parquet.groups").argsort().tolist()
    first, last = cuts(sum(rows), count)[index : index + 2]
    chosen, before = [], 0  # rows of the groups before this one, in the permuted order
    for group in order:
        start, stop = max(first - before, 0), min(last - before, rows[group])
        if start < stop:
            chosen.append(RowRange(group, start, stop))
        before += rows[group]
    return chosen


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    arrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    try:
        # A memory map would be faster on a repeated pass, and count every page of the file as memory of the process.
        name, where = arrow_arguments(file)
        with parquet.ParquetFile(name, buffer_size=_BUFFER_BYTES, pre_buffer=False, **where) as opened:
            yield opened
    except FileNotFoundError:
        raise FileNotFoundError(f"{file} is gone: somebody removed it while it was read") from None
    except (arrow.ArrowException, OSError) as error:
        size = f"{file.stat().st_size:,d} bytes" if file.exists() else "gone"
        raise ValueError(
            f"{file} ({size}) is not a whole Parquet file: {error}; it was cut short or is of another format, write it "
            "again"
        ) from error


def _types(file: Path, schema: Any, columns: Iterable[str] | None) -> dict[str, Any]:
    names = schema.names
    for name in columns or names:
        if names.count(name) > 1:
            raise ValueError(f"{file} has {names.count(name)} columns {name!r}: rename or drop all but one")
    return {name: schema.field(name).type for name in require_columns(names, columns or names, file)}
