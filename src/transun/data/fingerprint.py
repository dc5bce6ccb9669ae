"""What tells one set of rows from another: a checksum of what their columns say."""

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
        columns: those that count.

    >>> import pyarrow
    >>> narrow = {"gmv": pyarrow.array([1, 2], pyarrow.int8()), "item": ["a", None]}
    >>> fingerprint({"item": ["a", None], "gmv": [1.0, 2.0]}, ["gmv", "item"]) == fingerprint(narrow, ["item", "gmv"])
    True

    """
    names = sorted(set(columns))
    table = read_table(source, names)
    digest = hashlib.sha256()
    for name in names:
        array = column_array(table, name)
        digest.update(f"{name}\0{len(array)}\0".encode())
        digest.update(np.packbits(array.is_null().to_numpy(zero_copy_only=False)).tobytes())
        for part in _bytes(array):
            digest.update(part)
    return digest.hexdigest()


def _bytes(array: Any) -> Iterable[bytes]:
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    kind = array.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        # As float64, in which pandas and CSV readers return whole numbers beside a missing one.
        yield compute.fill_null(compute.cast(array, pa.float64(), safe=False), 0.0).to_numpy().tobytes()
    elif kind == pa.large_string():
        filled = pa.concat_arrays([compute.fill_null(array, "")])
        _, offsets, text = filled.buffers()
        yield offsets.to_pybytes()[: 8 * (len(filled) + 1)]
        yield b"" if text is None else text.to_pybytes()
    else:
        yield "\n".join(map(str, array.to_pylist())).encode()
