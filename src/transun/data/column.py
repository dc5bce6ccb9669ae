"""What a column of data may be: the conversions and checks behind `Dataset`, with errors that say what to do."""

from typing import Any

import numpy as np
import torch
from torch import Tensor


def tensor(name: str, values: Any) -> Tensor:
    """A tensor of numbers from a tensor, an array or a list; shares memory where it can.

    Text, dates and objects are refused by name: guessing an encoding would tie the ids to one data set.

    >>> tensor("y", [1.0, 2.0]).dtype
    torch.float64
    """
    if isinstance(values, Tensor):
        if values.is_complex():
            raise ValueError(f"{name} holds {values.dtype}: give real numbers or integer ids")
        return values.detach()
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} has rows of unequal length: pad every row to one length with -1") from error
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} holds {array.dtype} values: give real numbers or integer ids "
            "(np.unique(values, return_inverse=True)[1] makes ids of text)"
        )
    # Torch knows neither foreign byte orders nor reversed strides, and warns on read-only memory.
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def finite(name: str, values: Tensor) -> Tensor:
    """The values as float32, every one finite; `values` is (n,) or (n, d).

    A single NaN would turn every weight of the network into NaN in one step, far from its cause.

    >>> finite("price", torch.tensor([1.0, float("nan")]))
    Traceback (most recent call last):
    ValueError: price, row 1: nan is not a finite float32 number; drop the row or fill the value
    """
    numbers = values.to(torch.float32)
    # The sum is finite only if every value is; it needs no mask of n values, and rarely errs (overflow).
    if not bool(numbers.sum().isfinite()) and not bool(numbers.isfinite().all()):
        row, *rest = (~numbers.isfinite()).nonzero()[0].tolist()
        place = f"{name}, row {row}" + "".join(f", column {column}" for column in rest)
        value = values[(row, *rest)].item()
        raise ValueError(f"{place}: {value} is not a finite float32 number; drop the row or fill the value")
    return numbers


def feature(name: str, values: Any, rows: int) -> Tensor:
    """One named column: ids (n,) or (n, L) as int64, or numbers (n,) as float32.

    Ids of a (n, L) column may be -1, which means "no more values"; any other negative id is an error, because an
    embedding would read it as a row counted from the end or fail without saying where.

    >>> feature("history", [[7, -1], [3, 5]], rows=2).dtype
    torch.int64
    """
    where = f"column {name!r}"
    column = tensor(where, values)
    if column.ndim not in (1, 2):
        raise ValueError(f"{where} has shape {tuple(column.shape)}, expected (n,), or (n, L) for multi-valued ids")
    if len(column) != rows:
        raise ValueError(f"{where} has {len(column)} rows but y has {rows}: give one value a row")
    if column.is_floating_point():
        if column.ndim == 2:
            raise ValueError(
                f"{where} is {column.dtype} of shape {tuple(column.shape)}: a 2-D column holds multi-valued ids; "
                "cast it to int64 with -1 for padding, or give each number its own column"
            )
        return finite(where, column)
    ids = column.to(torch.int64)
    least = -1 if ids.ndim == 2 else 0
    if ids.numel() and int(ids.min()) < least:
        row = int((ids < least).nonzero()[0, 0])
        raise ValueError(
            f"{where}, row {row}: negative id {int(ids[row].min())}; ids start at 0"
            + (" and -1 pads" if least else ": give missing values an id of their own")
        )
    return ids
