"""Rows in memory: features, targets and weights, checked once and handed out in batches."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transun.data import hashing
from transun.data.column import feature, finite, tensor

Features = Tensor | dict[str, Tensor]


class Batch(NamedTuple):
    """Some rows: features `x`, targets `y` (B,), and their `weight` (B,) or None where every row counts once."""

    x: Features
    y: Tensor
    weight: Tensor | None = None


class Dataset:
    """n rows (x, y, weight) held in memory, on one device.

    Every check is made here, once, so that a training loop needs none; a bad value is named by column and row.
    Values become int64 (ids) or float32 (numbers, `y`, `weight`), the types that networks compute with; an array that
    already has that type is shared with the caller, not copied.

    Args:
        x: a matrix of numbers (n, d); or named columns: ids (n,) of an integer type, multi-valued ids (n, L) of an
            integer type padded with -1, numbers (n,) of a float type. The type decides the meaning: a category stored
            as float is taken for a number.
        y: targets (n,), finite.
        weight: what each row counts (n,), not negative and not all zero; None: every row counts once.

    >>> data = Dataset({"item": [3, 1, 4], "price": [1.0, 2.0, 8.0]}, [10.0, 20.0, 30.0])
    >>> [batch.y.tolist() for batch in data.batches(2)]
    [[10.0, 20.0], [30.0]]
    >>> data.take([2, 0]).x["item"].tolist()
    [4, 3]

    """

    x: Features
    y: Tensor
    weight: Tensor | None

    def __init__(self, x: Mapping[str, Any] | Any, y: Any, weight: Any = None) -> None:
        self.y = tensor("y", y)
        if self.y.ndim != 1:
            raise ValueError(f"y has shape {tuple(self.y.shape)}, expected (n,): pass y.reshape(-1), one target a row")
        rows = len(self.y)
        if rows == 0:
            raise ValueError("the data is empty: y has no rows")
        self.y = finite("y", self.y)
        if isinstance(x, Mapping):
            if not x:
                raise ValueError("x has no columns: name at least one, e.g. {'item': ids}")
            self.x = {name: feature(name, values, rows) for name, values in x.items()}
        else:
            self.x = _matrix(x, rows)
        self.weight = None if weight is None else _weights(weight, rows)

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        columns = ", ".join(self.x) if isinstance(self.x, dict) else f"{self.x.shape[1]} numbers"
        weighted = "" if self.weight is None else ", weighted"
        return f"Dataset({len(self)} rows of {columns}{weighted})"

    def targets(self) -> Tensor:
        """All targets y (n,), from which a head prepares its constants."""
        return self.y

    def batches(self, size: int, *, seed: int | None = None, drop_last: bool = False) -> Iterator[Batch]:
        """Every row once, `size` rows at a time.

        Args:
            size: rows of a batch; the last batch has the rest.
            seed: None keeps the order, and batches are views that cost no copy; a number shuffles by it, the same way
                on every device. Pass another seed each epoch (e.g. seed + epoch): one seed is one order.
            drop_last: leave out a last batch of fewer rows, so that every step has the same shape. With seed None it
                is always the same rows that are never seen.

        >>> data = Dataset(torch.zeros(5, 1), torch.arange(5.0))
        >>> [len(batch.y) for batch in data.batches(2)], [len(batch.y) for batch in data.batches(2, drop_last=True)]
        ([2, 2, 1], [2, 2])
        >>> sorted(torch.cat([batch.y for batch in data.batches(2, seed=0)]).tolist())
        [0.0, 1.0, 2.0, 3.0, 4.0]

        """
        if size < 1:
            raise ValueError(f"batch size {size}: a batch has at least one row")
        # The checks run at the call, not at the first batch; hence the generator is another function.
        return self._batches(size, seed, len(self) - len(self) % size if drop_last else len(self))

    def _batches(self, size: int, seed: int | None, stop: int) -> Iterator[Batch]:
        if seed is None:
            for start in range(0, stop, size):
                yield self._rows(slice(start, min(start + size, stop)))
            return
        # Drawn on the CPU whatever the device: generators of different devices disagree.
        order = torch.randperm(len(self), generator=torch.Generator().manual_seed(seed))
        order = order[:stop].to(self.y.device)
        for start in range(0, stop, size):
            yield self._rows(order[start : start + size])

    def _rows(self, rows: Tensor | slice) -> Batch:
        def pick(column: Tensor) -> Tensor:
            return column[rows] if isinstance(rows, slice) else column.index_select(0, rows)

        x = {name: pick(column) for name, column in self.x.items()} if isinstance(self.x, dict) else pick(self.x)
        return Batch(x, pick(self.y), None if self.weight is None else pick(self.weight))

    def take(self, indices: Any) -> "Dataset":
        """Rows by index, in the order given; an index may repeat, as in a bootstrap.

        >>> Dataset(torch.zeros(3, 1), [10.0, 20.0, 30.0]).take([2, 2, 0]).y.tolist()
        [30.0, 30.0, 10.0]
        """
        rows = tensor("indices", indices)
        if rows.ndim != 1 or rows.is_floating_point() or rows.dtype == torch.bool:
            raise ValueError(
                f"indices are {rows.dtype} of shape {tuple(rows.shape)}, expected integers (k,): "
                "turn a mask into indices with mask.nonzero()"
            )
        outside = (rows < 0) | (rows >= len(self))
        if bool(outside.any()):
            raise ValueError(f"index {int(rows[outside][0])} is outside the {len(self)} rows")
        return Dataset(*self._rows(rows.to(self.y.device, torch.int64)))

    def split(self, share: float, seed: int) -> tuple["Dataset", "Dataset"]:
        """Two parts, the first of about `share` of the rows: row i is in it when hash(seed, i) < share.

        A row stays on its side when rows are appended, so tomorrow's training data never contains today's test rows.
        The price is that the first part has `share` of the rows only on average.

        >>> train, test = Dataset(torch.zeros(1000, 1), torch.arange(1000.0)).split(0.8, seed=0)
        >>> len(train) + len(test), 760 < len(train) < 840
        (1000, True)
        """
        if not 0 < share < 1:
            raise ValueError(f"share {share} must lie strictly between 0 and 1")
        first = hashing.uniform(torch.arange(len(self)), seed, "dataset.split") < share
        if bool(first.all()) or not bool(first.any()):
            raise ValueError(f"{len(self)} rows are too few to split by share {share}: one part came out empty")
        return self.take(first.nonzero().squeeze(-1)), self.take((~first).nonzero().squeeze(-1))

    def to(self, device: torch.device | str) -> "Dataset":
        """The same rows on another device; batches then cost no transfer.

        >>> Dataset(torch.zeros(2, 1), [1.0, 2.0]).to("cpu").y.device.type
        'cpu'
        """
        x = (
            {name: column.to(device) for name, column in self.x.items()}
            if isinstance(self.x, dict)
            else self.x.to(device)
        )
        return Dataset(x, self.y.to(device), None if self.weight is None else self.weight.to(device))


def _matrix(x: Any, rows: int) -> Tensor:
    matrix = tensor("x", x)
    if matrix.ndim != 2:
        raise ValueError(
            f"x has shape {tuple(matrix.shape)}, expected (n, d): pass x.reshape(len(x), -1), or a dict of columns"
        )
    if len(matrix) != rows:
        raise ValueError(f"x has {len(matrix)} rows but y has {rows}: give one row of x for each target")
    return finite("x", matrix)


def _weights(weight: Any, rows: int) -> Tensor:
    values = tensor("weight", weight)
    if values.shape != (rows,):
        raise ValueError(f"weight has shape {tuple(values.shape)} but y has {rows} rows: give one weight a row")
    values = finite("weight", values)
    if bool((values < 0).any()):
        row = int((values < 0).nonzero()[0])
        raise ValueError(f"weight, row {row}: {values[row]:g} is negative; use 0 to leave a row out")
    if not bool(values.any()):
        raise ValueError("every weight is zero: nothing is left to learn from; pass weight=None to count rows equally")
    return values
