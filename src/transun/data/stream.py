"""Rows from Parquet files larger than memory, read in the background and shuffled in a buffer."""

import copy
import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import torch
from torch import Tensor

from transun.data import hashing
from transun.data.dataset import Batch, tensor
from transun.data.exposure import read_exposure, to_rates
from transun.data.formats import PARQUET, find_files
from transun.data.parquet import ParquetFiles, Piece, RowRange, cuts
from transun.data.prefetch import prefetch
from transun.data.row_rules import RowRule
from transun.data.table import as_numbers, column_array
from transun.support.arrays import Floats
from transun.support.paths import as_path, is_path

__all__ = ["Encoder", "ParquetStream", "buffers"]

Paths = str | Path | Sequence[str | Path]

# Targets from which a head learns its constants: the error of their mean is a thousandth of a standard deviation.
_TARGETS = 1 << 20

# Columns of some rows: features by name, target and weight by these numbers, because a feature may have any name.
_Y, _WEIGHT = 0, 1
ColumnTensors = dict[str | int, Tensor]


class Encoder(Protocol):
    """Turns rows of a table into features, each row by itself; `Features` is one."""

    @property
    def sources(self) -> Sequence[str]:
        """The columns of the table that it reads."""

    def encode(self, table: Any) -> dict[str, Tensor]:
        """The features of a `pyarrow.Table`."""


class ParquetStream:
    """Rows of one Parquet file or of a folder of them, read in batches without ever holding them all.

    A thread reads and encodes the next buffer of rows while training consumes the last one (prefetching), so that
    memory is that of two buffers, 2 · shuffle_rows · 8 bytes · values a row, whatever the number of rows; decoding
    takes another 4 MB or so for each column. With a seed, row groups are read in an order drawn from it and rows are
    shuffled inside each buffer: rows of one batch come from the few row groups of a buffer, so write row groups much
    smaller than it (65,536 rows are good). Where all rows fit in one buffer, the batches are those of a `Dataset` of
    the same rows under the same seed, to the last bit.

    Args:
        path: a Parquet file, a folder (its `*.parquet` files at any depth), or a list of files.
        features: fitted encoder of the feature columns.
        target: name of the target column, numbers; a missing or infinite value is an error that names file and row.
        weight: name of the column of sample weights, not negative; None: every row counts once.
        exposure: name of the column that amounts were collected over: targets are then amounts per unit of it, and
            count by it; see `transun.data.exposure`.
        shuffle_rows: rows of the buffer. More mixes better and takes more memory.

    >>> import tempfile, pyarrow, pyarrow.parquet
    >>> class Price:
    ...     sources = ("price",)
    ...     def encode(self, table):
    ...         return {"price": torch.tensor(table["price"].to_pylist())}
    >>> table = pyarrow.table({"price": [1.0, 2.0, 3.0], "gmv": [10, 20, 30]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pyarrow.parquet.write_table(table, f"{folder}/a.parquet")
    ...     stream = ParquetStream(folder, Price(), target="gmv")
    ...     [(batch.x["price"].tolist(), batch.y.tolist()) for batch in stream.batches(2)]
    ...     [len(stream.shard(worker, 2)) for worker in range(2)]
    [([1.0, 2.0], [10.0, 20.0]), ([3.0], [30.0])]
    [1, 2]

    """

    def __init__(
        self,
        path: Paths,
        features: Encoder,
        target: str,
        weight: str | None = None,
        exposure: str | None = None,
        *,
        shuffle_rows: int = 1 << 20,
    ) -> None:
        if shuffle_rows < 1:
            raise ValueError(f"shuffle_rows={shuffle_rows}: a buffer has at least one row")
        self.features, self.target, self.weight, self.exposure = features, target, weight, exposure
        self.shuffle_rows = shuffle_rows
        self._numbers = [name for name in (target, weight, exposure) if name is not None]
        self._files = ParquetFiles(_find(path), dict.fromkeys([*self._numbers, *features.sources]))
        if not sum(self._files.rows):
            raise ValueError(f"{path}: the data is empty, the Parquet files have no rows")
        for name in self._numbers:
            if (content := self._files.contents[name]) not in ("numbers", "booleans"):
                raise ValueError(
                    f"{self._files.files[0]}: column {name!r} holds {content}; targets, weights and exposures are "
                    "numbers"
                )
        self._index, self._count = 0, 1
        self._known_targets: Tensor | None = None
        self._device = torch.device("cpu")

    def __len__(self) -> int:
        start, stop = cuts(sum(self._files.rows), self._count)[self._index : self._index + 2]
        return stop - start

    def __repr__(self) -> str:
        shard = f", shard {self._index} of {self._count}" if self._count > 1 else ""
        return f"ParquetStream({len(self)} rows of {', '.join(self.features.sources)}{shard})"

    def shard(self, index: int, count: int) -> Self:
        """Worker `index`'s share of the rows, of `count` shares that differ by one row at most.

        With one seed for all workers the shares are a partition of the rows, another one in every epoch; without a
        seed they are consecutive. A shard can be cut again, e.g. by process and then by loader. A share with one row
        more may have one batch more: workers that wait for each other must all stop after the smallest number.
        """
        if not 0 <= index < count:
            raise ValueError(f"shard {index} of {count}: shards are numbered 0..count-1")
        part = copy.copy(self)
        part._index, part._count = self._index * count + index, self._count * count
        return part

    def where(self, rule: RowRule, rows: Sequence[int]) -> Self:
        """The rows alone that a rule holds for; see `ParquetFiles.where`. A part that is sharded is not cut again."""
        part = copy.copy(self)
        part._files, part._known_targets = self._files.where(rule, rows), None
        return part

    def to(self, device: torch.device | str) -> Self:
        """The same rows with batches on another device; whole buffers are moved there in the background."""
        moved = copy.copy(self)
        moved._device = torch.device(device)
        return moved

    def targets(self) -> Tensor:
        """The targets of all rows, from which a head prepares its constants; no other column is read.

        A shard returns those of all shards: workers that prepare different constants would train different models. Of
        more than 1,048,576 rows that do not fit in a buffer, it is a sample of about that many, chosen by a hash of the
        row's number, the same each time. The files are read the first time only.
        """
        if self._known_targets is None:
            self._known_targets = self._read_targets()
        return self._known_targets.to(self._device)

    def _read_targets(self) -> Tensor:
        total, first, parts = sum(self._files.rows), 0, []
        share = 1.0 if total <= self.shuffle_rows else min(1.0, _TARGETS / total)
        columns = [name for name in (self.target, self.exposure) if name is not None]
        for piece in self._files.read(self._files.segments(), columns):
            y, _ = self._targets(piece, None)
            rows = torch.arange(first, first + len(y))
            first += len(y)
            parts.append(y[hashing.uniform(rows, 0, "parquet.targets") < share])
        return torch.cat(parts)

    def batches(self, size: int, *, seed: int | None = None) -> Iterator[Batch]:
        """Every row once, `size` rows at a time.

        Args:
            size: rows of a batch; the last batch has the rest.
            seed: None keeps the order of the files; a number shuffles by it. Pass another seed each epoch, and the
                same one to every worker.

        """
        if size < 1:
            raise ValueError(f"batch size {size}: a batch has at least one row")
        return self._batches(size, seed)

    def _batches(self, size: int, seed: int | None) -> Iterator[Batch]:
        rest: ColumnTensors = {}
        # Closed at once when the loop is left: an interpreter may keep what nobody refers to for a while.
        with closing(prefetch(self._blocks(seed))) as blocks:
            for block in blocks:
                rows = len(block[_Y])
                # The first batch begins with the rows that the block before has left over.
                for start in range(-len(rest[_Y]) if rest else 0, rows, size):
                    picked = {name: column[max(start, 0) : start + size] for name, column in block.items()}
                    if start < 0:
                        picked = {name: torch.cat((rest[name], column)) for name, column in picked.items()}
                    # A copy: a view would keep the whole block alive.
                    rest = {name: column.clone() for name, column in picked.items()} if start + size > rows else {}
                    if not rest:
                        yield _batch(picked)
                del block, picked  # free their memory before the thread begins another block
        if rest:
            yield _batch(rest)

    def _blocks(self, seed: int | None) -> Iterator[ColumnTensors]:
        """Buffers of encoded and shuffled rows; the training thread only has to cut them into batches."""
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        whole = self._count == 1 and len(self) <= self.shuffle_rows
        # If all rows fit in one buffer, row groups stay in order, so that rows are permuted as in a `Dataset`.
        pieces = self._pieces(self._files.segments(None if whole else seed, self._index, self._count))
        piece: ColumnTensors = {}
        used = have = 0
        for rows in buffers(len(self), self.shuffle_rows):
            block: ColumnTensors = {}
            filled = 0
            while filled < rows:
                if used == have:
                    piece, used = next(pieces), 0
                    have = len(piece[_Y])
                # Filled in place: joining pieces at the end would need the memory of the buffer twice.
                block = block or {name: column.new_empty((rows, *column.shape[1:])) for name, column in piece.items()}
                count = min(rows - filled, have - used)
                for name, column in piece.items():
                    block[name][filled : filled + count] = column[used : used + count]
                used, filled = used + count, filled + count
            # Drawn on the CPU whatever the device: generators of different devices disagree.
            order = None if generator is None else torch.randperm(rows, generator=generator).to(self._device)
            for name, column in block.items():
                moved = column.to(self._device)
                block[name] = moved if order is None else moved.index_select(0, order)
            yield block

    def _pieces(self, chosen: list[RowRange]) -> Iterator[ColumnTensors]:
        needed = list(dict.fromkeys([*self._numbers, *self.features.sources]))
        for piece in self._files.read(chosen, needed):
            try:
                encoded = self.features.encode(piece.table.select(list(self.features.sources)))
            except ValueError as error:
                raise ValueError(f"{piece.file}, rows {piece.rows[0]}..{piece.rows[-1]}: {error}") from error
            columns: ColumnTensors = dict(encoded.items())
            columns[_Y], weight = self._targets(piece, self.weight)
            if weight is not None:
                columns[_WEIGHT] = weight
            yield columns

    def _targets(self, piece: Piece, weight: str | None) -> tuple[Tensor, Tensor | None]:
        """Targets and weights of some rows; with an exposure the targets are rates, which count by it."""
        y = _finite(piece, self.target)
        weights = None if weight is None else _finite(piece, weight, lowest=0.0)
        if self.exposure is not None:
            exposures = read_exposure(piece.table, self.exposure, piece.file, piece.rows)
            y, weights = to_rates(y, weights, exposures)
        return tensor("targets", y).float(), None if weights is None else tensor("weights", weights).float()


def buffers(rows: int, capacity: int) -> list[int]:
    """The rows of each buffer: as few buffers of at most `capacity` rows as possible, of equal size up to one row.

    Of equal size, because a last buffer of a few rows would hardly be shuffled.

    >>> buffers(10, 4)
    [3, 3, 4]
    """
    return [stop - start for start, stop in pairwise(cuts(rows, -(-rows // capacity)))] if rows else []


def _find(path: Paths) -> list[Path]:
    if not isinstance(path, (str, Path)) and not is_path(path):
        files = [as_path(file) for file in path]
        missing = [file for file in files if not file.is_file()]
        if missing or not files:
            raise FileNotFoundError(f"there is no file {missing[0]}" if missing else "the list of files is empty")
        return files
    path = as_path(path)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise FileNotFoundError(f"there is no file or folder {path} (seen from {Path.cwd()})")
    format, files = find_files(path)
    if format is not PARQUET:
        raise ValueError(f"the folder {path} holds no *.parquet file")
    return files


def _batch(columns: ColumnTensors) -> Batch:
    x = {name: column for name, column in columns.items() if isinstance(name, str)}
    return Batch(x, columns[_Y], columns.get(_WEIGHT))


def _finite(piece: Piece, name: str, lowest: float = -math.inf) -> Floats:
    """The numbers of a column, every one finite in float32 and at least `lowest`."""
    values: Floats = as_numbers(f"column {name!r}", column_array(piece.table, name))
    with np.errstate(over="ignore"):
        wrong = ~np.isfinite(values.astype(np.float32)) | (values < lowest)
    if wrong.any():
        row = int(wrong.argmax())
        state = "is missing" if piece.table[name][row].as_py() is None else f"is {values[row]:g}"
        raise ValueError(
            f"{piece.file}, row {piece.rows[row]}: column {name!r} {state}, expected a finite float32 number"
            + (f" of at least {lowest:g}" if lowest > -math.inf else "")
            + "; leave the row out of the file or fill the value"
        )
    return values
