"""A checksum of the values in some columns, which tells one set of rows from another."""

import hashlib
from collections.abc import Iterable
from typing import Any

from transun.data.columns import open_columns
from transun.data.table import column_array
from transun.support.arguments import listed
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
    names = sorted(set(listed("columns", columns)))
    parts = {name: [hashlib.sha256() for _ in range(3)] for name in names}
    rows = 0
    for chunk in open_columns(source, [], names).chunks():
        rows += len(chunk)
        for name in names:
            array = column_array(chunk.table, name)
            missing = array.is_null().to_numpy(zero_copy_only=False).tobytes()
            for checksum, content in zip(parts[name], (missing, *_bytes(array)), strict=True):
                checksum.update(content)
    whole = hashlib.sha256(f"{rows}".encode())
    for name in names:
        whole.update(f"\0{name}\0".encode() + b"".join(checksum.digest() for checksum in parts[name]))
    return whole.hexdigest()


def _bytes(array: Any) -> tuple[bytes, bytes]:
    """The lengths of texts, and the values one after the other; nothing here depends on where the rows are cut."""
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    type_ = array.type
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_):
        # As float64, because pandas and CSV readers return integers as floats where one is missing.
        return b"", compute.fill_null(compute.cast(array, pa.float64(), safe=False), 0.0).to_numpy().tobytes()
    if pa.types.is_date(type_):  # a CSV file does not tell a date from its midnight
        array = compute.cast(array, pa.timestamp("us"))
    texts = array if type_ == pa.large_string() else pa.array(map(str, array.to_pylist()), pa.large_string())
    lengths = compute.binary_length(compute.fill_null(texts, "")).to_numpy(zero_copy_only=False)
    return lengths.astype("<i8").tobytes(), "".join(compute.fill_null(texts, "").to_pylist()).encode()
