"""One column of a table as ids, numbers or times: other widths are taken, other meanings refused by column and row."""

from typing import TYPE_CHECKING, Any

import numpy as np

from transun.data.table import read_table, require
from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
# Beyond this a float no longer tells neighbouring integers apart.
_EXACT = 2.0**53


def read(table: "pa.Table", name: str) -> "pa.Array":
    """A column in one piece, dictionaries decoded, views and short strings as large_string; no NaN beside null."""
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    column = table[require(table.column_names, [name])[0]]
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    wide = pa.large_string() if kind in (pa.string(), pa.string_view()) else kind
    if pa.types.is_dictionary(column.type):
        # Not by a cast, of which Arrow has none for the dictionaries of views that polars makes.
        parts = [compute.cast(part.dictionary, wide).take(part.indices) for part in column.chunks]
        column = pa.chunked_array(parts, wide)
    elif wide != kind:
        column = compute.cast(column, wide)
    if pa.types.is_floating(column.type):
        column = compute.if_else(compute.is_nan(column), None, column)
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    # Before pyarrow 17 combining gave a chunked array back.
    return array.chunk(0) if isinstance(array, pa.ChunkedArray) else array


def as_ids(where: str, array: "pa.Array") -> "pa.Array":
    """Ids as int64 or large_string: any integer width, booleans, text, and floats that hold whole numbers.

    The last are what pandas makes of integers where one is missing.

    >>> import pyarrow
    >>> as_ids("column 'item'", pyarrow.array([7.0, None])).to_pylist()
    [7, None]
    >>> as_ids("column 'item'", pyarrow.array([7.0, 0.5]))
    Traceback (most recent call last):
    ValueError: column 'item', row 1: 0.5 is a number, not an id; declare the column as Buckets() or Standardised()
    """
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    kind = array.type
    if pa.types.is_floating(kind):
        numbers = array.to_numpy(zero_copy_only=False)
        wrong = np.flatnonzero(~((np.trunc(numbers) == numbers) & (np.abs(numbers) <= _EXACT)) & ~np.isnan(numbers))
        if len(wrong):
            raise ValueError(
                f"{where}, row {wrong[0]}: {numbers[wrong[0]]:g} is a number, not an id; "
                "declare the column as Buckets() or Standardised()"
            )
        return compute.cast(array, pa.int64())
    if kind == pa.large_string() or kind == pa.int64():
        return array
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        try:
            return compute.cast(array, pa.int64())
        except pa.ArrowInvalid as error:
            raise ValueError(f"{where} holds ids above 2⁶³: cast them to text") from error
    hint = "declare the column as Datetime()" if pa.types.is_temporal(kind) else "cast it to integers or text"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        hint = "declare the column as Bag()"
    raise ValueError(f"{where} holds {kind}, not one id a row: {hint}")


def as_numbers(where: str, array: "pa.Array") -> np.ndarray:
    """Numbers as float64 with NaN for missing; text is read as numbers, if all of it is.

    >>> import pyarrow
    >>> as_numbers("column 'price'", pyarrow.array(["1.5", None, "cheap"], pyarrow.large_string()))
    Traceback (most recent call last):
    ValueError: column 'price', row 2: 'cheap' is text, not a number; correct it, or declare the column as Id()
    """
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    kind = array.type
    if kind == pa.large_string():
        fine = compute.fill_null(compute.match_substring_regex(array, _NUMBER), True)
        if not compute.all(fine).as_py():
            row = compute.index(fine, False).as_py()
            raise ValueError(
                f"{where}, row {row}: {array[row].as_py()!r} is text, not a number; "
                "correct it, or declare the column as Id()"
            )
        array = compute.utf8_trim_whitespace(array)
    elif not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    ):
        hint = "declare the column as Datetime()" if pa.types.is_temporal(kind) else "cast it to numbers"
        raise ValueError(f"{where} holds {kind}, not one number a row: {hint}")
    numbers: np.ndarray = compute.cast(array, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def as_times(where: str, array: "pa.Array") -> "pa.Array":
    """Times as a timestamp in microseconds, in their own time zone; dates are midnights, text is read as ISO 8601.

    >>> import pyarrow
    >>> as_times("column 'ts'", pyarrow.array(["2022-04-25 13:05:00"], pyarrow.large_string()))[0].as_py().hour
    13
    """
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    kind = array.type
    if pa.types.is_timestamp(kind):
        return compute.cast(array, pa.timestamp("us", kind.tz), safe=False)
    if pa.types.is_date(kind) or pa.types.is_null(kind):
        return compute.cast(array, pa.timestamp("us"))
    if kind == pa.large_string():
        for zone in (None, "UTC"):  # without an offset from UTC in every text, or with one
            try:
                return compute.cast(array, pa.timestamp("us", zone))
            except pa.ArrowInvalid as error:
                why = str(error).splitlines()[0]
        raise ValueError(f"{where} holds text that is no time as in 2022-04-25 13:05:00 ({why})")
    raise ValueError(
        f"{where} holds {kind}, not times: cast it, e.g. pyarrow.compute.cast(column, pyarrow.timestamp('s')) "
        "for seconds since 1970"
    )


def targets(table: "pa.Table", name: str) -> np.ndarray:
    """The target column (n,) as float64, every value finite.

    >>> import pyarrow
    >>> targets(pyarrow.table({"gmv": [1.0, None]}), "gmv")
    Traceback (most recent call last):
    ValueError: target 'gmv', row 1 is missing, as are 1 of 2 rows: drop_missing(table, 'gmv') drops them
    """
    array = read(table, name)
    y = as_numbers(f"target {name!r}", array)
    if len(y) == 0:
        raise ValueError(f"the table has no rows: there is no target {name!r} to learn from")
    wrong = np.flatnonzero(~np.isfinite(y))
    if len(wrong):
        what = "missing" if np.isnan(y[wrong[0]]) else "infinite"
        raise ValueError(
            f"target {name!r}, row {wrong[0]} is {what}, as are {len(wrong)} of {len(y)} rows: "
            f"drop_missing(table, {name!r}) drops them"
        )
    return y


def drop_missing(source: Any, column: str) -> tuple["pa.Table", int]:
    """The rows whose value in a column is a finite number, and how many were dropped.

    A row without a target teaches nothing; but ask why it has none, for if the reason depends on the target, the mean
    of the rest is not the mean of all.

    >>> table, dropped = drop_missing({"gmv": [1.0, float("nan"), 3.0], "item": [1, 2, 3]}, "gmv")
    >>> table["item"].to_pylist(), dropped
    ([1, 3], 1)
    """
    pa = need("pyarrow")
    table = read_table(source)
    fine = np.isfinite(as_numbers(f"column {column!r}", read(table, column)))
    return table.filter(pa.array(fine)), int((~fine).sum())
