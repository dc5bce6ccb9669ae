"""Rows from Parquet files larger than memory, read in the background and shuffled in a buffer."""

import copy
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, Self

import torch
from torch import Tensor

from transun.data import hashing
from transun.data.column import tensor
from transun.data.dataset import Batch
from transun.data.parquet import ParquetFiles, Paths, Piece
from transun.data.prefetch import prefetch
from transun.data.shuffle import Segment, buffers, cuts, segments

# Targets that a head looks at to learn its constants: the error of a mean is a thousandth of a deviation.
_TARGETS = 1 << 20

# Columns of some rows: features by name, the target and the weight by these numbers, which no feature is called.
_Y, _WEIGHT = 0, 1
Columns = dict[str | int, Tensor]


class Encoder(Protocol):
    """What turns rows of a table into features, each row by itself; `Features` does."""

    @property
    def sources(self) -> Sequence[str]:
        """The columns of the table that it reads."""

    def encode(self, table: Any) -> dict[str, Tensor]:
        """The features of a `pyarrow.Table`."""


class ParquetStream:
    """Rows of one Parquet file or of a folder of them, read in batches without ever holding them all.

    A thread reads and encodes the next buffer of rows while the last one is handed out, so that memory is that of two
    buffers, 2 · shuffle_rows · 8 bytes · values a row, whatever the number of rows; decoding takes some 4 MB a column
    besides. With a seed, row groups are read in an order drawn from it and rows are shuffled inside each buffer: rows
    of one batch come from the few row groups of a buffer, so write row groups much smaller than it (65,536 rows are
    good). Where all rows fit in one buffer, the batches are those of a `Dataset` of the same rows under the same seed,
    to the last bit.

    Args:
        path: a Parquet file, a folder of them, or a list of files; see `ParquetFiles`.
        features: fitted encoder of the feature columns.
        target: name of the target column, numbers; a missing or infinite value is an error that names file and row.
        weight: name of the column of what each row counts, not negative; None: every row counts once.
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
        self, path: Paths, features: Encoder, target: str, weight: str | None = None, *, shuffle_rows: int = 1 << 20
    ) -> None:
        if shuffle_rows < 1:
            raise ValueError(f"shuffle_rows={shuffle_rows}: a buffer has at least one row")
        self.features, self.target, self.weight, self.shuffle_rows = features, target, weight, shuffle_rows
        self._numbers = [target] if weight is None else [target, weight]
        self._files = ParquetFiles(path, dict.fromkeys([*self._numbers, *features.sources]))
        for name in self._numbers:
            if (kind := self._files.kinds[name]) != "numbers":
                raise ValueError(
                    f"{self._files.files[0]}: column {name!r} holds {kind}; targets and weights are numbers"
                )
        self._index, self._count = 0, 1
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
        seed they are consecutive. A shard can be cut again, e.g. by process and then by loader. One row more may mean
        one batch more: workers that wait for each other must stop at the fewest.
        """
        if not 0 <= index < count:
            raise ValueError(f"shard {index} of {count}: shards are numbered 0..count-1")
        part = copy.copy(self)
        part._index, part._count = self._index * count + index, self._count * count
        return part

    def to(self, device: torch.device | str) -> Self:
        """The same rows with batches on another device: buffers are moved there whole, in the background."""
        moved = copy.copy(self)
        moved._device = torch.device(device)
        return moved

    def targets(self) -> Tensor:
        """The targets of all rows, from which a head prepares its constants; no other column is read.

        A shard gives those of the whole too: workers that prepare different constants train different models. Of rows
        that do not fit in a buffer, and are more than 1,048,576, it is a sample of about that many, drawn by a hash of
        the row's number, the same each time.
        """
        total, place, parts = sum(self._files.rows), 0, []
        share = 1.0 if total <= self.shuffle_rows else min(1.0, _TARGETS / total)
        for piece in self._files.read(segments(self._files.rows, None), [self.target]):
            y = _finite(piece, self.target)
            rows = torch.arange(place, place + len(y))
            place += len(y)
            parts.append(y[hashing.uniform(rows, 0, "parquet.targets") < share])
        return torch.cat(parts).to(self._device)

    def batches(self, size: int, *, seed: int | None = None, drop_last: bool = False) -> Iterator[Batch]:
        """Every row once, `size` rows at a time.

        Args:
            size: rows of a batch; the last batch has the rest.
            seed: None keeps the order of the files; a number shuffles by it. Pass another seed each epoch, and the
                same one to every worker.
            drop_last: leave out a last batch of fewer rows, so that every step has the same shape.

        """
        if size < 1:
            raise ValueError(f"batch size {size}: a batch has at least one row")
        return self._batches(size, seed, drop_last)

    def _batches(self, size: int, seed: int | None, drop_last: bool) -> Iterator[Batch]:
        rest: Columns = {}
        for block in prefetch(self._blocks(seed)):
            rows = len(block[_Y])
            # The first batch begins with what the last block has left over.
            for start in range(-len(rest[_Y]) if rest else 0, rows, size):
                picked = {name: column[max(start, 0) : start + size] for name, column in block.items()}
                if start < 0:
                    picked = {name: torch.cat((rest[name], column)) for name, column in picked.items()}
                # A copy: a view would keep the whole block alive.
                rest = {name: column.clone() for name, column in picked.items()} if start + size > rows else {}
                if not rest:
                    yield _batch(picked)
            del block, picked  # before the next block is asked for, and the one after it begun
        if rest and not drop_last:
            yield _batch(rest)

    def _blocks(self, seed: int | None) -> Iterator[Columns]:
        """Buffers of encoded rows, shuffled: the thread that trains has only to cut them."""
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        whole = self._count == 1 and len(self) <= self.shuffle_rows
        # One buffer takes in everything: row groups stay in order, so that rows are permuted as a `Dataset` does.
        pieces = self._pieces(segments(self._files.rows, None if whole else seed, self._index, self._count))
        piece: Columns = {}
        used = have = 0
        for rows in buffers(len(self), self.shuffle_rows):
            block: Columns = {}
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

    def _pieces(self, chosen: list[Segment]) -> Iterator[Columns]:
        needed = list(dict.fromkeys([*self._numbers, *self.features.sources]))
        for piece in self._files.read(chosen, needed):
            try:
                encoded = self.features.encode(piece.table.select(list(self.features.sources)))
            except ValueError as error:
                last = piece.first + len(piece.table) - 1
                raise ValueError(f"{piece.file}, rows {piece.first}..{last}: {error}") from error
            columns: Columns = dict(encoded.items())
            columns[_Y] = _finite(piece, self.target)
            if self.weight is not None:
                columns[_WEIGHT] = _finite(piece, self.weight, least=0.0)
            yield columns


def _batch(columns: Columns) -> Batch:
    x = {name: column for name, column in columns.items() if isinstance(name, str)}
    return Batch(x, columns[_Y], columns.get(_WEIGHT))


def _finite(piece: Piece, name: str, least: float = -torch.inf) -> Tensor:
    """The numbers of a column as float32, every one finite and at least `least`."""
    values = tensor(name, piece.table[name].cast("float64").to_numpy())
    numbers = values.float()
    wrong = ~numbers.isfinite() | (numbers < least)
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        what = "is missing" if piece.table[name][row].as_py() is None else f"is {values[row].item():g}"
        raise ValueError(
            f"{piece.file}, row {piece.first + row}: column {name!r} {what}, expected a finite float32 number"
            + (f" of at least {least:g}" if least > -torch.inf else "")
            + "; leave the row out of the file or fill the value"
        )
    return numbers
