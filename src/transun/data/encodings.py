"""Columns that hold the same values in different Arrow types: made alike, so that tables can be put together."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from transun.data.schema import holds_lists
from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["concatenate", "in_types", "plain", "values_of"]


def plain(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """The column in a type that Arrow computes with: without views of text, run-end encoding and types of others.

    >>> import pyarrow
    >>> plain(pyarrow.chunked_array([pyarrow.array(["a"], pyarrow.string_view())])).type
    DataType(large_string)
    """
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    if isinstance(column.type, pa.BaseExtensionType):  # such as the periods and intervals of pandas
        column = pa.chunked_array([part.storage for part in column.chunks], column.type.storage_type)
    if pa.types.is_run_end_encoded(column.type):
        column = compute.run_end_decode(column)
    type_ = _without_views(column.type)
    return column if type_ == column.type else compute.cast(column, type_)


def _without_views(type_: "pa.DataType") -> "pa.DataType":
    """The type with plain text where polars has views of text, from which Arrow cannot pick rows.

    Those in a dictionary stay, since rows are picked by its indices.
    """
    pa = need("pyarrow")
    views = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    if type_ in views:
        return views[type_]
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_without_views(field.type)) for field in type_])
    if not holds_lists(type_):
        return type_
    values = type_.value_field.with_type(_without_views(type_.value_type))
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(values, type_.list_size)
    return pa.large_list(values) if pa.types.is_large_list(type_) else pa.list_(values)


def values_of(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """The column with dictionaries decoded, and text as large_string.

    >>> import pyarrow
    >>> values_of(pyarrow.chunked_array([pyarrow.array(["b", "a", "b"]).dictionary_encode()])).to_pylist()
    ['b', 'a', 'b']
    """
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    stored = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    type_ = pa.large_string() if stored in (pa.string(), pa.string_view()) else stored
    if pa.types.is_dictionary(column.type):
        # Arrow has no cast for the dictionaries of string views that polars makes.
        parts = [compute.cast(part.dictionary, type_).take(part.indices) for part in column.chunks]
        return pa.chunked_array(parts, type_)
    return column if type_ == stored else compute.cast(column, type_)


def concatenate(tables: "Sequence[pa.Table]") -> "pa.Table":
    """The rows of several tables with the same columns, one table after the other.

    Where a column has different types, as in files written on different days, the result has one that holds them all:
    numbers of another width, text in a dictionary or not, nothing at all.

    >>> import pyarrow
    >>> small, texts = pyarrow.array([1], pyarrow.int8()), pyarrow.array(["b"]).dictionary_encode()
    >>> concatenate([pyarrow.table({"x": small, "y": ["a"]}), pyarrow.table({"x": [1.5], "y": texts})]).to_pydict()
    {'x': [1.0, 1.5], 'y': ['a', 'b']}
    """
    pa = need("pyarrow")
    for name in tables[0].column_names:
        types = {table.schema.field(name).type for table in tables}
        if len(types) > 1:
            as_numbers = len({pa.types.is_decimal(type_) for type_ in types if not pa.types.is_null(type_)}) > 1
            tables = [_with_values(table, name, as_numbers=as_numbers) for table in tables]
    return pa.concat_tables(tables, promote_options="permissive")


def in_types(table: "pa.Table", schema: "pa.Schema") -> "pa.Table":
    """The table with its columns in the types of a schema that `concatenate` has found for it and others.

    >>> import pyarrow
    >>> in_types(pyarrow.table({"x": [1]}), pyarrow.schema({"x": pyarrow.float64()}))["x"].to_pylist()
    [1.0]
    """
    compute = need("pyarrow.compute")
    for index, field in enumerate(schema):
        if table.schema.field(index).type != field.type:
            values = compute.cast(values_of(plain(table[index])), field.type, safe=False)
            table = table.set_column(index, field, values)
    return table


def _with_values(table: "pa.Table", name: str, *, as_numbers: bool) -> "pa.Table":
    """The table with the values of a column; decimals as float64, which no other numbers go together with."""
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    values = values_of(plain(table[name]))
    if as_numbers and not pa.types.is_null(values.type):
        values = compute.cast(values, pa.float64())
    return table.set_column(table.column_names.index(name), name, values)
