"""Types of numpy arrays, and arrays of numbers from whatever holds them."""

import reprlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Flags", "Floats", "Integers", "distinct", "refuse_reordered", "to_floats"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

# What numpy would turn into numbers without a word: nanoseconds, or half of the value.
_NOT_AMOUNTS = {
    "M": "dates: give amounts",
    "m": "durations: give them as numbers of a unit, such as y.dt.total_seconds()",
    "c": "complex numbers: Complex data not supported, give real numbers",
}


def to_floats(values: Any, name: str) -> Floats:
    """The values of a list, array, tensor or series as float64, NaN where one is missing or masked.

    Numpy would take dates for nanoseconds and ignore the mask of a masked array; both end in wrong totals.

    Args:
        values: numbers, in any form; text that is written as a number is one.
        name: what an error calls them.

    >>> to_floats(np.ma.masked_array([1.0, 2.0], mask=[False, True]), "y")
    array([ 1., nan])
    >>> to_floats(["1.5", "cheap"], "y")
    Traceback (most recent call last):
    ValueError: y is 'cheap' in row 1, which is no number

    """
    if hasattr(values, "detach"):  # a tensor, perhaps of a type that numpy does not have
        values = values.detach().cpu()
        values = values.double() if values.is_floating_point() else values
    masked = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    array = np.asarray(values)
    if array.dtype.kind in _NOT_AMOUNTS:
        raise ValueError(f"{name} holds {_NOT_AMOUNTS[array.dtype.kind]}")
    try:
        numbers = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        flat = [_to_float(value, name, row) for row, value in enumerate(array.reshape(-1).tolist())]
        numbers = np.array(flat, dtype=np.float64).reshape(array.shape)
    return numbers if masked is None else np.where(masked, np.nan, numbers)


def distinct(values: NDArray[Any]) -> tuple[list[Any], Integers]:
    """The distinct values of a column (n,), and the index (n,) of the value of each row; a missing one is None.

    Numbers and text may be mixed, which `numpy.unique` cannot sort, and every missing value is the same one, whereas
    NaN is not even found in a dict that holds it.

    >>> names, codes = distinct(np.array(["b", None, 3, np.nan, "b"], dtype=object))
    >>> names, codes.tolist()
    (['b', None, 3], [0, 1, 2, 1, 0])

    """
    if values.dtype.kind != "O":
        names, codes = np.unique(values, return_inverse=True)
        return [None if _is_missing(name) else name for name in names.tolist()], codes
    index: dict[Any, int] = {}
    rows = (None if _is_missing(value) else value for value in values.tolist())
    coded = [index.setdefault(value, len(index)) for value in rows]
    return list(index), np.array(coded, dtype=np.int64)


def refuse_reordered(**arguments: Any) -> None:
    """Refuse pandas objects whose rows have the same labels in another order.

    Rows are paired by position, as everywhere outside pandas, so that such rows would get each other's values. Labels
    that differ altogether say nothing, as after `reset_index` of one of the two.

    Args:
        **arguments: what a caller gave, by name; those without an index are passed over.

    """
    named = {name: each.index for name, each in arguments.items() if hasattr(getattr(each, "index", None), "is_unique")}
    if not named:
        return
    (first, index), *others = named.items()
    for name, other in others:
        if len(index) != len(other) or index.equals(other) or not (index.is_unique and other.is_unique):
            continue
        if index.isin(other).all():
            raise ValueError(
                f"{first} and {name} have the same row labels in another order, and rows are paired by position: sort "
                f"one like the other, such as {name}.loc[{first}.index], or drop the labels by reset_index(drop=True)"
            )


def _to_float(value: Any, name: str, row: int) -> float:
    try:
        return np.nan if _is_missing(value) else float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {reprlib.repr(value)} in row {row}, which is no number") from None


def _is_missing(value: Any) -> bool:
    # pandas has a missing value of its own, which is neither None nor a number; NaN differs from itself.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)
