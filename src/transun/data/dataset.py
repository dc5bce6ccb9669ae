"""Rows in memory: features, targets and weights, checked once and iterated over in batches."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from transun.data import hashing
from transun.support.counting import counted, counted_are

__all__ = ["Batch", "Dataset", "tensor"]

FeatureTensors = Tensor | dict[str, Tensor]


class Batch(NamedTuple):
    """Some rows: features `x`, targets `y` (B,), and their `weight` (B,), or None if every row counts once."""

    x: Tensor | Mapping[str, Tensor]
    y: Tensor
    weight: Tensor | None = None

    def map(self, change: Callable[[Tensor], Tensor]) -> "Batch":
        """The rows after the same change of all columns, targets and weights.

        >>> Batch({"a": torch.tensor([1, 2])}, torch.tensor([3.0, 4.0])).map(lambda column: column[1:]).y.tolist()
        [4.0]
        """
        columns = self.x
        x = (
            {name: change(column) for name, column in columns.items()}
            if isinstance(columns, Mapping)
            else change(columns)
        )
        return Batch(x, change(self.y), None if self.weight is None else change(self.weight))


class Dataset:
    """n rows (x, y, weight) held in memory, on one device.

    All checks are made here, once, so that a training loop needs none; an error names column and row of a bad value.
    Values become int64 (ids) or float32 (numbers, `y`, `weight`), the types that networks compute with; an array that
    already has that type is shared with the caller, not copied.

    Args:
        x: a matrix of numbers (n, d); or named columns: ids (n,) of an integer type, multi-valued ids (n, L) of an
            integer type padded with -1, numbers (n,) of a float type. The type decides the meaning: a category stored
            as float is treated as a number.
        y: targets (n,), finite.
        weight: how much each row counts (n,), not negative and not all zero; None: every row counts once.

    >>> data = Dataset({"item": [3, 1, 4], "price": [1.0, 2.0, 8.0]}, [10.0, 20.0, 30.0])
    >>> [batch.y.tolist() for batch in data.batches(2)]
    [[10.0, 20.0], [30.0]]
    >>> data.take([2, 0]).x["item"].tolist()
    [4, 3]

    """

    x: FeatureTensors
    y: Tensor
    weight: Tensor | None

    def __init__(self, x: Mapping[str, Any] | Any, y: Any, weight: Any = None) -> None:
        self.y = tensor("y", y)
        if self.y.ndim != 1:
            raise ValueError(f"y has shape {tuple(self.y.shape)}, expected (n,): pass y.reshape(-1), one target a row")
        rows = len(self.y)
        if rows == 0:
            raise ValueError("the data is empty: y has no rows")
        self.y = _finite("y", self.y)
        if isinstance(x, Mapping):
            if not x:
                raise ValueError("x has no columns: name at least one, e.g. {'item': ids}")
            self.x = {name: _feature(name, values, rows) for name, values in x.items()}
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

    def batches(self, size: int, *, seed: int | None = None) -> Iterator[Batch]:
        """Every row once, `size` rows at a time.

        Args:
            size: rows of a batch; the last batch has the rest.
            seed: None keeps the order, and batches are views that cost no copy; a number shuffles by it, the same way
                on every device. Pass another seed each epoch (e.g. seed + epoch): one seed is one order.

        >>> data = Dataset(torch.zeros(5, 1), torch.arange(5.0))
        >>> [len(batch.y) for batch in data.batches(2)]
        [2, 2, 1]
        >>> sorted(torch.cat([batch.y for batch in data.batches(2, seed=0)]).tolist())
        [0.0, 1.0, 2.0, 3.0, 4.0]

        """
        if size < 1:
            raise ValueError(f"batch size {size}: a batch has at least one row")
        # The check runs at the call, not at the first batch: a generator would postpone it.
        return self._batches(size, seed)

    def _batches(self, size: int, seed: int | None) -> Iterator[Batch]:
        if seed is None:
            for start in range(0, len(self), size):
                yield self._rows(slice(start, start + size))
            return
        # Drawn on the CPU whatever the device: generators of different devices disagree.
        order = torch.randperm(len(self), generator=torch.Generator().manual_seed(seed)).to(self.y.device)
        for start in range(0, len(self), size):
            yield self._rows(order[start : start + size])

    def _rows(self, rows: Tensor | slice) -> Batch:
        def pick(column: Tensor) -> Tensor:
            return column[rows] if isinstance(rows, slice) else column.index_select(0, rows)

        return Batch(self.x, self.y, self.weight).map(pick)

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
            raise ValueError(
                f"{counted_are(len(self), 'row')} too few to split by share {share}: one part came out empty"
            )
        return self.take(first.nonzero().squeeze(-1)), self.take((~first).nonzero().squeeze(-1))

    def joined(self, other: "Dataset") -> "Dataset":
        """The rows of both, which have the same columns.

        >>> Dataset(torch.zeros(2, 1), [1.0, 2.0]).joined(Dataset(torch.zeros(1, 1), [3.0])).y.tolist()
        [1.0, 2.0, 3.0]
        """
        x = self.x if isinstance(self.x, dict) else {"": self.x}
        others = other.x if isinstance(other.x, dict) else {"": other.x}
        if x.keys() != others.keys() or (self.weight is None) != (other.weight is None):
            raise ValueError(f"{self} and {other} cannot be joined: give both the same columns, and weights to both")
        columns = {name: _stacked(values, others[name]) for name, values in x.items()}
        weight = None if self.weight is None or other.weight is None else torch.cat([self.weight, other.weight])
        return Dataset(columns if isinstance(self.x, dict) else columns[""], torch.cat([self.y, other.y]), weight)

    def to(self, device: torch.device | str) -> "Dataset":
        """The same rows on another device; batches then cost no transfer.

        >>> Dataset(torch.zeros(2, 1), [1.0, 2.0]).to("cpu").y.device.type
        'cpu'
        """
        return Dataset(*Batch(self.x, self.y, self.weight).map(lambda column: column.to(device)))


def _stacked(first: Tensor, second: Tensor) -> Tensor:
    """The rows of both; the rows of bags are filled up with -1 to the width of the widest.

    >>> _stacked(torch.tensor([[1, 2]]), torch.tensor([[3]])).tolist()
    [[1, 2], [3, -1]]
    """
    if first.ndim == 2 and not first.is_floating_point():
        width = max(first.shape[1], second.shape[1])
        first, second = (nn.functional.pad(bag, (0, width - bag.shape[1]), value=-1) for bag in (first, second))
    return torch.cat([first, second])


def tensor(name: str, values: Any) -> Tensor:
    """A tensor of numbers from a tensor, an array or a list; shares memory where it can.

    Text, dates and objects are refused, and the error names the column: an encoding guessed here would give ids that
    hold for one data set only.

    >>> tensor("y", [1.0, 2.0]).dtype
    torch.float64
    """
    if isinstance(values, Tensor):
        if values.is_complex():
            raise ValueError(f"{name} holds {values.dtype}: give real numbers or integer ids")
        return values.detach()
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        row = int(np.ma.getmaskarray(values).reshape(len(values), -1).any(1).argmax())
        raise ValueError(f"{name}, row {row}: the value is masked; drop the row or fill the value")
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} has rows of unequal length: pad every row to one length with -1") from error
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} holds {array.dtype} values: give real numbers or integer ids "
            "(np.unique(values, return_inverse=True)[1] makes ids of text)"
        )
    # torch knows neither foreign byte orders nor reversed strides, and warns about read-only memory.
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _finite(name: str, values: Tensor) -> Tensor:
    """The values as float32, every one finite; `values` is (n,) or (n, d).

    A single NaN would turn every weight of the network into NaN in one step, and nothing would point back to its row.

    >>> _finite("price", torch.tensor([1.0, float("nan")]))
    Traceback (most recent call last):
    ValueError: price, row 1: nan is not a finite float32 number; drop the row or fill the value
    """
    numbers = values.to(torch.float32)
    # The sum is finite only if every value is. It needs no mask of n values, and is infinite without need only where
    # it overflows, which the second test sorts out.
    if not bool(numbers.sum().isfinite()) and not bool(numbers.isfinite().all()):
        row, *rest = (~numbers.isfinite()).nonzero()[0].tolist()
        where = f"{name}, row {row}" + "".join(f", column {column}" for column in rest)
        value = values[(row, *rest)].item()
        raise ValueError(f"{where}: {value} is not a finite float32 number; drop the row or fill the value")
    return numbers


def _feature(name: str, values: Any, rows: int) -> Tensor:
    """One named column: ids (n,) or (n, L) as int64, or numbers (n,) as float32.

    Ids of a (n, L) column may be -1, which means "no more values"; any other negative id is an error, because an
    embedding would read it as a row counted from the end or fail without saying where.

    >>> _feature("history", [[7, -1], [3, 5]], rows=2).dtype
    torch.int64
    """
    where = f"column {name!r}"
    column = tensor(where, values)
    if column.ndim not in (1, 2):
        raise ValueError(f"{where} has shape {tuple(column.shape)}, expected (n,), or (n, L) for multi-valued ids")
    if len(column) != rows:
        raise ValueError(f"{where} has {counted(len(column), 'row')} but y has {rows}: give one value a row")
    if column.is_floating_point():
        if column.ndim == 2:
            raise ValueError(
                f"{where} is {column.dtype} of shape {tuple(column.shape)}: a 2-D column holds multi-valued ids; "
                "cast it to int64 with -1 for padding, or give each number its own column"
            )
        return _finite(where, column)
    ids = column.to(torch.int64)
    lowest = -1 if ids.ndim == 2 else 0
    if ids.numel() and int(ids.min()) < lowest:
        row = int((ids < lowest).nonzero()[0, 0])
        raise ValueError(
            f"{where}, row {row}: negative id {int(ids[row].min())}; ids start at 0"
            + (" and -1 pads" if lowest else ": give missing values an id of their own")
        )
    return ids


def _matrix(x: Any, rows: int) -> Tensor:
    matrix = tensor("x", x)
    if matrix.ndim != 2:
        raise ValueError(
            f"x has shape {tuple(matrix.shape)}, expected (n, d): pass x.reshape(len(x), -1), or a dict of columns"
        )
    if len(matrix) != rows:
        raise ValueError(f"x has {counted(len(matrix), 'row')} but y has {rows}: give one row of x for each target")
    return _finite("x", matrix)


def _weights(weight: Any, rows: int) -> Tensor:
    values = tensor("weight", weight)
    if values.shape != (rows,):
        raise ValueError(f"weight has shape {tuple(values.shape)} but y has {rows} rows: give one weight a row")
    values = _finite("weight", values)
    if bool((values < 0).any()):
        row = int((values < 0).nonzero()[0])
        raise ValueError(f"weight, row {row}: {values[row]:g} is negative; use 0 to leave a row out")
    if not bool(values.any()):
        raise ValueError(
            "every weight is zero: nothing is left to learn from; weigh some rows, or leave the weights out"
        )
    return values
