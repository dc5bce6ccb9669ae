"""The rows of every batch that this rank trains on: a share of them, or those that only this rank has.

The batches of a training do not depend on the number of ranks: every batch is cut into one part for each rank, sums
over the parts are added up, and the sum is divided by the rows of the whole batch. A part may be empty. So nothing is
trained on twice, as where a sampler repeats rows until all ranks have equally many, and nothing is left out.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

import torch
from torch import Tensor

from transun.backbones import Inputs
from transun.backbones.boosting import TargetRows
from transun.data import Batch
from transun.support.group import Group, current_group

__all__ = ["BatchPart", "BatchSource", "LocalRows", "RowBatch", "own_parts"]


class RowBatch(TargetRows, Protocol):
    """A batch: features, targets (B,), and weights (B,) or None."""


class BatchSource(Protocol):
    """Data that is read in batches, in order or, with a seed, shuffled. `Dataset` is one."""

    def __len__(self) -> int: ...
    def targets(self) -> Tensor:
        """All targets (n,), from which a head learns its constants."""

    def batches(self, size: int, *, seed: int | None = None) -> Iterator[RowBatch]:
        """The rows in batches of at most `size`."""


@dataclass(frozen=True)
class BatchPart:
    """The rows of a batch on this rank: features, targets (B,), weights (B,) or None; and where they are in the batch.

    They begin at `start` of `rows` in all. `total` is the weight of all rows, by which a sum over them is divided to
    become a mean.
    """

    x: Inputs
    y: Tensor
    weight: Tensor | None
    start: int
    rows: int
    total: float | Tensor


@runtime_checkable
class PartedSource(Protocol):
    """Data that knows by itself which rows of a batch belong to which rank."""

    def parts(self, group: Group, size: int, seed: int | None) -> Iterator[BatchPart]: ...


def own_parts(data: BatchSource, group: Group, size: int, *, seed: int | None = None) -> Iterator[BatchPart]:
    """The part of every batch that is this rank's, an empty one where a batch has fewer rows than there are ranks.

    Args:
        data: all rows, the same ones on every rank; or those of this rank alone, as `LocalRows`.
        group: the ranks.
        size: rows of a batch, over all ranks.
        seed: shuffles the rows; None keeps their order.

    >>> data = Dataset({"a": [0.0, 1.0, 2.0]}, [1.0, 2.0, 3.0])
    >>> [(part.y.tolist(), part.rows, part.total) for part in own_parts(data, Group(), 2)]
    [([1.0, 2.0], 2, 2.0), ([3.0], 1, 1.0)]

    """
    if isinstance(data, PartedSource):
        yield from data.parts(group, size, seed)
        return
    for batch in data.batches(size, seed=seed):
        rows = len(batch.y)
        total = float(rows) if batch.weight is None else batch.weight.sum()
        start, stop = group.cut(rows)
        own = batch if group.size == 1 else _slice(batch, start, stop)
        yield BatchPart(own.x, own.y, own.weight, start, rows, total)


class LocalRows:
    """Rows that only this rank holds, as a cluster hands them out: Ray's shards, Spark's partitions.

    Ranks may hold very different numbers of rows, and none. An epoch of N rows in batches of B has ⌈N / B⌉ steps, and
    in each of them a rank contributes the same share of its own rows, so that all ranks finish in the same step. With a
    seed, every rank shuffles its own rows. Which rows meet in a batch therefore depends on how they are spread over the
    ranks; where every rank can read all rows, pass them to `fit` as they are, and it does not.

    Every rank must make one, at the same time.

    Args:
        source: this rank's rows; None if it has none.
        group: the ranks; None is the current group.

    >>> rows = LocalRows(Dataset({"a": [0.0, 1.0, 2.0]}, [1.0, 2.0, 3.0]))
    >>> len(rows), [part.y.tolist() for part in rows.parts(Group(), 2, None)]
    (3, [[1.0], [2.0, 3.0]])

    """

    def __init__(self, source: BatchSource | None, group: Group | None = None) -> None:
        self.source, self.group = source, group or current_group()
        own = 0 if source is None else len(source)
        self._rows = [int(rows) for (rows,) in self.group.gather_numbers([own])]
        if not sum(self._rows):
            raise ValueError("no rank has any rows: give at least one rank a source")
        # A rank without rows learns from the others what a row looks like.
        sample = None if source is None else _slice(next(iter(source.batches(1))), 0, 0)
        samples = [sample for sample in self.group.gather_objects(sample) if sample is not None]
        if len({sample.weight is None for sample in samples}) > 1:
            raise ValueError("some ranks have weights and others have none: give every row a weight, or none")
        self._nothing = samples[0] if sample is None else sample
        if sample is None and self._nothing.y.is_cuda:  # of another rank, hence perhaps on its GPU
            self._nothing = self._nothing.map(lambda column: column.cuda())

    def __len__(self) -> int:
        """The rows of all ranks."""
        return sum(self._rows)

    def targets(self) -> Tensor:
        """The targets of all ranks, since all must learn the same constants from them."""
        own = self._nothing.y if self.source is None else self.source.targets()
        return torch.cat(self.group.gather(own))

    def batches(self, size: int, *, seed: int | None = None) -> Iterator[RowBatch]:
        """The rows of this rank alone."""
        return iter(()) if self.source is None else self.source.batches(size, seed=seed)

    def parts(self, group: Group, size: int, seed: int | None) -> Iterator[BatchPart]:
        """The part on this rank of every batch of about `size` rows."""
        steps = math.ceil(len(self) / size)
        reader = _Reader(self.batches(size, seed=seed), self._nothing)
        for step in range(steps):
            counts = [rows * (step + 1) // steps - rows * step // steps for rows in self._rows]
            own = reader.read(counts[group.rank])
            total = float(sum(counts))
            if own.weight is not None:
                total = sum(number for (number,) in group.gather_numbers([float(own.weight.sum())]))
            yield BatchPart(own.x, own.y, own.weight, sum(counts[: group.rank]), sum(counts), total)


class _Reader:
    """Batches of any size, put together from batches of another size."""

    def __init__(self, batches: Iterator[RowBatch], nothing: Batch) -> None:
        self.batches, self.rest = batches, nothing

    def read(self, rows: int) -> Batch:
        while len(self.rest.y) < rows:
            self.rest = _join(self.rest, next(self.batches))
        taken, self.rest = _slice(self.rest, 0, rows), _slice(self.rest, rows, len(self.rest.y))
        return taken


def _slice(batch: RowBatch, start: int, stop: int) -> Batch:
    return Batch(batch.x, batch.y, batch.weight).map(lambda column: column[start:stop])


def _join(first: Batch, second: RowBatch) -> Batch:
    """The rows of both; lists of ids are padded to the longer ones."""
    if isinstance(first.x, Tensor):
        x: Any = torch.cat([first.x, cast(Tensor, second.x)])
    else:
        x = {name: _stack(column, cast(Mapping[str, Tensor], second.x)[name]) for name, column in first.x.items()}
    weight = None if first.weight is None else torch.cat([first.weight, cast(Tensor, second.weight)])
    return Batch(x, torch.cat([first.y, second.y]), weight)


def _stack(first: Tensor, second: Tensor) -> Tensor:
    if first.ndim > 1 and first.shape[1] != second.shape[1]:
        width = max(first.shape[1], second.shape[1])
        first, second = (torch.nn.functional.pad(ids, (0, width - ids.shape[1]), value=-1) for ids in (first, second))
    return torch.cat([first, second])
