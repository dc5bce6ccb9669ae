"""Tables from wherever they are - frames, arrays, files - as one Arrow table, and their columns as ids, numbers, times.

A function that a user calls with "a table" passes it through `read_table`, once; inner functions take a
`pyarrow.Table`. Other widths of a number or an id are accepted; a value of another meaning is refused with its column,
its row and what to do.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from transun.data.csv_files import first_line
from transun.data.encodings import concatenate, plain, values_of
from transun.data.formats import TableSource, find_files
from transun.data.frames import arrow_table
from transun.data.schema import holds_lists, holds_numbers, refuse_duplicates, require_columns
from transun.data.text_values import WRITE_NUMBERS, looks_numeric
from transun.support.arguments import listed
from transun.support.arrays import refuse_reordered
from transun.support.extras import need
from transun.support.paths import as_path, is_path

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "ColumnOverview",
    "Overview",
    "as_ids",
    "as_numbers",
    "as_times",
    "column_array",
    "drop_missing",
    "overview",
    "read_table",
    "targets",
]

# From here on, a float cannot tell neighbouring integers apart.
_EXACT = 2.0**53


def read_table(source: Any, columns: Iterable[str] | None = None, *, verbatim: Collection[str] = ()) -> "pa.Table":
    """A pyarrow table from a frame, a dict of columns, or a path; memory is shared where the source allows it.

    NaN counts as missing in pandas frames and dicts, because these have no other sign for it.

    Args:
        source: a frame of pandas, polars, Arrow, DuckDB, Modin or another library that narwhals knows, where a query
            is computed for the columns wanted; a dict of equally long arrays or lists, where a 2-D array is a column of
            lists; the path of a CSV or Parquet file, or of a folder of either, whose files are read in the
            order of their names, on this machine or in an object store (s3://bucket/orders). Types of a CSV column are
            guessed from all its values, and empty text is missing.
        columns: the columns wanted, in this order; None keeps all. Parquet files are read for these columns only.
        verbatim: columns of which a CSV file is read as text, as it is written, and no type is guessed.

    >>> read_table({"item": [3, 1], "price": [1.5, float("nan")]})["price"].null_count
    1

    """
    wanted = None if columns is None else tuple(listed("columns", columns))
    if is_path(source):
        table = _from_path(as_path(source), wanted, verbatim)
    elif isinstance(source, TableSource):
        table = concatenate([piece for piece, _ in source.stream(wanted).pieces()])
    elif isinstance(source, Mapping):
        refuse_reordered(**{str(name): values for name, values in source.items()})
        # Arrays of unequal length are an error of pyarrow, and a clear one.
        table = need("pyarrow").table({str(name): _from_values(str(name), values) for name, values in source.items()})
    else:
        table = arrow_table(source, wanted)
    refuse_duplicates(table.column_names)
    table = _decoded(table)
    return table if wanted is None else table.select(require_columns(table.column_names, wanted))


def _from_path(path: Path, wanted: tuple[str, ...] | None, verbatim: Collection[str]) -> "pa.Table":
    format, files = find_files(path)
    table = format.verbatim(verbatim).read_all(files, wanted)
    if len(table) == 0:
        raise ValueError(f"{path} has no rows")
    return table


def _from_values(name: str, values: Any) -> "pa.Array":
    pa = need("pyarrow")
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__") or getattr(values, "ndim", 1) == 0:
        raise ValueError(f"column {name!r} is {values!r}, not one value for each row: give a list or an array")
    if getattr(values, "ndim", 1) == 2:
        matrix = np.asarray(values)
        return pa.FixedSizeListArray.from_arrays(pa.array(matrix.reshape(-1)), matrix.shape[1])
    try:
        # Tensors have an array interface that pyarrow does not look for.
        plain = hasattr(values, "__array__") and not isinstance(values, np.ma.MaskedArray)
        return pa.array(np.asarray(values) if plain else values, from_pandas=True)
    except OverflowError as error:
        raise ValueError(f"column {name!r} holds integers above 2⁶³: give them as text") from error
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"column {name!r} mixes kinds of values: {first_line(error)}") from error


def _decoded(table: "pa.Table") -> "pa.Table":
    """The table in types that Arrow computes with."""
    for index, field in enumerate(table.schema):
        column = plain(table[index])
        if column.type != field.type:
            table = table.set_column(index, field.name, column)
    return table


def column_array(table: "pa.Table", name: str) -> "pa.Array":
    """A column as one array: dictionaries decoded, text as large_string, NaN and empty text as missing.

    CSV files and exported graphs have no other way to write a missing id than empty text, so that the same rows would
    get other predictions there if it were an id in a frame.

    >>> import pyarrow
    >>> column_array(pyarrow.table({"price": [1.5, float("nan")]}), "price").to_pylist()
    [1.5, None]
    >>> column_array(pyarrow.table({"shop": ["a", ""]}), "shop").to_pylist()
    ['a', None]

    """
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    # The names of all columns are asked for only where one is missing: a wide table has thousands of them.
    # Whoever names a column by a number, or by nothing, shall read which there are.
    index = table.schema.get_field_index(name) if isinstance(name, str) else -1
    column = values_of(table.column(index if index >= 0 else require_columns(table.column_names, [name])[0]))
    if pa.types.is_floating(column.type):
        column = compute.if_else(compute.is_nan(column), None, column)
    if column.type == pa.large_string() and compute.any(empty := compute.equal(column, "")).as_py():
        column = compute.if_else(empty, None, column)
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    # Before version 17, pyarrow returned a chunked array from combine_chunks.
    return array.chunk(0) if isinstance(array, pa.ChunkedArray) else array


def as_ids(where: str, array: "pa.Array") -> "pa.Array":
    """Ids as int64 or large_string: any integer width, booleans, text, and floats that hold whole numbers.

    pandas turns a column of integers into such floats where one of them is missing.

    >>> import pyarrow
    >>> as_ids("column 'item'", pyarrow.array([7.0, None])).to_pylist()
    [7, None]
    >>> as_ids("column 'item'", pyarrow.array([7.0, 0.5]))
    Traceback (most recent call last):
    ValueError: column 'item', row 1: 0.5 is a number, not an id; correct it, or declare the column as Number()
    """
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    type_ = array.type
    if pa.types.is_floating(type_):
        numbers = array.to_numpy(zero_copy_only=False)
        wrong = np.flatnonzero(~((np.trunc(numbers) == numbers) & (np.abs(numbers) <= _EXACT)) & ~np.isnan(numbers))
        if len(wrong):
            raise ValueError(
                f"{where}, row {wrong[0]}: {numbers[wrong[0]]:g} is a number, not an id; correct it, or declare the "
                "column as Number()"
            )
        return compute.cast(array, pa.int64())
    if type_ == pa.large_string() or type_ == pa.int64():
        return array
    if pa.types.is_integer(type_) or pa.types.is_boolean(type_) or pa.types.is_null(type_):
        try:
            return compute.cast(array, pa.int64())
        except pa.ArrowInvalid as error:
            raise ValueError(f"{where} holds ids above 2⁶³: cast them to text") from error
    hint = "declare the column as Datetime()" if pa.types.is_temporal(type_) else "cast it to integers or text"
    if holds_lists(type_):
        hint = "declare the column as Bag()"
    raise ValueError(f"{where} holds {type_}, not one id a row: {hint}")


def as_numbers(where: str, array: "pa.Array", otherwise: str | None = None) -> np.ndarray:
    """Numbers as float64 with NaN for missing; text is converted if every value of it is written as a number.

    Args:
        where: what an error calls the column.
        array: the column.
        otherwise: what to do about a column that holds something else; None if it is a feature, whose kind can be
            declared.

    >>> import pyarrow
    >>> as_numbers("column 'price'", pyarrow.array(["1.5", None, "cheap"], pyarrow.large_string()))
    Traceback (most recent call last):
    ValueError: column 'price', row 2: 'cheap' is text, not a number; correct it, or declare the column as Id()

    """
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    type_ = array.type
    if type_ == pa.large_string():
        numeric = compute.fill_null(looks_numeric(array), True)
        if not compute.all(numeric).as_py():
            row = compute.index(numeric, False).as_py()
            text = array[row].as_py()
            remedy = WRITE_NUMBERS if any(map(str.isdigit, text)) else "correct it"
            raise ValueError(
                f"{where}, row {row}: {text!r} is text, not a number; {remedy}, or "
                f"{otherwise or 'declare the column as Id()'}"
            )
        array = compute.utf8_trim_whitespace(array)
    elif not (holds_numbers(type_) or pa.types.is_null(type_)):
        hint = "declare the column as Datetime()" if pa.types.is_temporal(type_) else "cast it to numbers"
        raise ValueError(f"{where} holds {type_}, not one number a row: {otherwise or hint}")
    numbers: np.ndarray = compute.cast(array, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def as_times(where: str, array: "pa.Array") -> "pa.Array":
    """Times as a timestamp in microseconds, in their own time zone; dates become midnights, text is read as ISO 8601.

    >>> import pyarrow
    >>> as_times("column 'ts'", pyarrow.array(["2022-04-25 13:05:00"], pyarrow.large_string()))[0].as_py().hour
    13
    """
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    type_ = array.type
    if pa.types.is_timestamp(type_):
        return compute.cast(array, pa.timestamp("us", type_.tz), safe=False)
    if pa.types.is_date(type_) or pa.types.is_null(type_):
        return compute.cast(array, pa.timestamp("us"))
    if type_ == pa.large_string():
        naive, zoned = (pa.timestamp("us", zone) for zone in (None, "UTC"))  # without an offset from UTC, or with one
        rows = {type_: _first_unlike(array, type_) for type_ in (naive, zoned)}
        for time_type, row in rows.items():
            if row is None:
                return compute.cast(array, time_type)
        earlier, later = sorted(row for row in rows.values() if row is not None)
        texts = [array[row].as_py() for row in (earlier, later)]
        if earlier < later and any(_first_unlike(array.slice(later, 1), time_type) is None for time_type in rows):
            raise ValueError(
                f"{where} mixes times with and without an offset from UTC, as {texts[0]!r} in row {earlier} and "
                f"{texts[1]!r} in row {later}: write all of them alike"
            )
        raise ValueError(f"{where}, row {later}: {texts[1]!r} is no time as in 2022-04-25 13:05:00; write it so")
    raise ValueError(f"{where} holds {type_}, not times: write them as in 2022-04-25 13:05:00")


def _first_unlike(array: "pa.Array", type_: "pa.DataType") -> int | None:
    """The first row of a column of texts that cannot be read as a type; None where all can."""
    pa, compute = need("pyarrow"), need("pyarrow.compute")

    def readable(first: int, last: int) -> bool:
        try:
            compute.cast(array.slice(first, last - first), type_)
        except pa.ArrowInvalid:
            return False
        return True

    if readable(0, len(array)):
        return None
    # Rows before `low` can be read, and one of those from `low` to before `high` cannot.
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if readable(low, middle) else (low, middle)
    return low


def targets(table: "pa.Table", name: str) -> np.ndarray:
    """The target column (n,) as float64, every value finite.

    >>> import pyarrow
    >>> targets(pyarrow.table({"gmv": [1.0, None]}), "gmv")
    Traceback (most recent call last):
    ValueError: target 'gmv', row 1 is missing, as are 1 of 2 rows: drop_missing(table, 'gmv') drops them
    """
    y = as_numbers(f"target {name!r}", column_array(table, name), "name another target")
    if len(y) == 0:
        raise ValueError(f"the table has no rows: there is no target {name!r} to learn from")
    wrong = np.flatnonzero(~np.isfinite(y))
    if len(wrong):
        state = "missing" if np.isnan(y[wrong[0]]) else "infinite"
        raise ValueError(
            f"target {name!r}, row {wrong[0]} is {state}, as are {len(wrong)} of {len(y)} rows: "
            f"drop_missing(table, {name!r}) drops them"
        )
    return y


def drop_missing(source: Any, column: str) -> tuple["pa.Table", int]:
    """The rows whose value in a column is a finite number, and how many were dropped.

    A model learns nothing from a row without a target. Find out why it has none: if the reason depends on the target,
    the mean of the remaining rows is not the mean of all.

    >>> table, dropped = drop_missing({"gmv": [1.0, float("nan"), 3.0], "item": [1, 2, 3]}, "gmv")
    >>> table["item"].to_pylist(), dropped
    ([1, 3], 1)
    """
    table = read_table(source)
    finite = np.isfinite(as_numbers(f"column {column!r}", column_array(table, column), "name another column"))
    return table.filter(need("pyarrow").array(finite)), int((~finite).sum())


@dataclass(frozen=True)
class ColumnOverview:
    """A column in numbers.

    Args:
        name: of the column.
        type: its Arrow type.
        missing: the share of rows without a value.
        smallest, largest: number, None where a column holds no numbers. Infinite values are numbers too, as they are to
            a training.
        infinite: how many values are infinite, which JSON cannot say otherwise.

    """

    name: str
    type: str
    missing: float
    smallest: float | None
    largest: float | None
    infinite: int


@dataclass(frozen=True)
class Overview:
    """The number of rows, and every column in numbers."""

    rows: int
    columns: list[ColumnOverview]


def overview(source: Any) -> Overview:
    """A summary of every column of a table, which is read whole.

    >>> overview({"gmv": [1.0, None, 3.0, 5.0]}).columns
    [ColumnOverview(name='gmv', type='double', missing=0.25, smallest=1.0, largest=5.0, infinite=0)]
    """
    table = read_table(source)
    return Overview(len(table), [_column_overview(table, name) for name in table.column_names])


def _column_overview(table: "pa.Table", name: str) -> ColumnOverview:
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    array = column_array(table, name)
    smallest = largest = None
    infinite = 0
    if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
        smallest, largest = compute.min_max(array).as_py().values()
        infinite = compute.sum(compute.is_inf(array)).as_py() or 0
    type_ = str(array.type).removeprefix("large_")
    missing = array.null_count / max(len(array), 1)
    return ColumnOverview(name, type_, missing, smallest, largest, infinite)
