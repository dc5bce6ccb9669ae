"""A checksum of the values in some columns, which tells one set of rows from another."""

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from transun.data.table import column_array, read_table
from transun.support.extras import need

__all__ = ["fingerprint"]


def fingerprint(source: Any, columns: Iterable[str]) -> str:
    """SHA-256 of some columns of a table: the same for the same values in the same order, from a CSV or from Parquet.

    The width of numbers and the order of the columns do not matter; the order of the rows does.

    Args:
        source: what `read_table` takes.
        columns: the columns to include.

    >>> import pyarrow
    >>> narrow = {"gmv": pyarrow.array([1, 2], pyarrow.int8()), "item": ["a", None]}
    >>> fingerprint({"item": ["a", None], "gmv": [1.0, 2.0]}, ["gmv", "item"]) == fingerprint(narrow, ["item", "gmv"])
    True

    """
    names = sorted(set(columns))
    table = read_table(source, names)
    checksum = hashlib.sha256()
    for name in names:
        array = column_array(table, name)
        checksum.update(f"{name}\0{len(array)}\0".encode())
        checksum.update(np.packbits(array.is_null().to_numpy(zero_copy_only=False)).tobytes())
        for part in _bytes(array):
            checksum.update(part)
    return checksum.hexdigest()


def _bytes(array: Any) -> Iterable[bytes]:
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    type_ = array.type
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_):
        # As float64, because pandas and CSV readers return integers as floats where one is missing.
        yield compute.fill_null(compute.cast(array, pa.float64(), safe=False), 0.0).to_numpy().tobytes()
    elif type_ == pa.large_string():
        filled = pa.concat_arrays([compute.fill_null(array, "")])
        _, offsets, text = filled.buffers()
        yield offsets.to_pybytes()[: 8 * (len(filled) + 1)]
        yield b"" if text is None else text.to_pybytes()
    else:
        if pa.types.is_date(type_):  # a CSV file does not tell a date from its midnight
            array = compute.cast(array, pa.timestamp("us"))
        yield "\n".join(map(str, array.to_pylist())).encode()
