"""How a table stores several values of a row: as a list, in numbered columns, or as text with separators."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from transun.data.kinds.graph import MISSING
from transun.data.logical import LogicalType
from transun.data.saving import Serialisable
from transun.data.schema import holds_lists
from transun.data.table import as_ids, column_array
from transun.data.vocabulary import unify
from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa


class Ragged(NamedTuple):
    """The ids of all rows one after the other, and how many each row has (n,)."""

    ids: "pa.Array"
    counts: np.ndarray


class ListInput(NamedTuple):
    """An input of a graph that holds values of a row: its column, and the arguments of `id_input`."""

    name: str
    text: bool
    dropped: tuple[Any, ...]
    """What is written where there is no value."""
    several: bool = False
    separator: str | None = None


class Layout(Serialisable, ABC):
    """Where the values of a multi-valued column are found; padding and missing values are left out."""

    def sources(self, name: str) -> tuple[str, ...]:
        """The columns of the table that are read for the column `name`."""
        return (name,)

    @abstractmethod
    def read(self, name: str, table: "pa.Table") -> Ragged:
        """The ids of every row."""

    @abstractmethod
    def list_inputs(self, name: str, types: Mapping[str, LogicalType]) -> list[ListInput]:
        """The inputs of a graph that hold the values, for columns of these types."""


@dataclass(frozen=True)
class Lists(Layout):
    """One column of lists, such as [7, 3]; a matrix of padded rows is one too.

    Args:
        pad: a value that means "none", beside missing.

    >>> import pyarrow
    >>> Lists().read("bought", pyarrow.table({"bought": [[7, 3], None, [5, -1]]})).counts.tolist()
    [2, 0, 1]

    """

    pad: int | str = -1

    def read(self, name: str, table: "pa.Table") -> Ragged:
        pa, compute = need("pyarrow"), need("pyarrow.compute")
        column = column_array(table, name)
        if not holds_lists(column.type):
            raise ValueError(
                f"column {name!r} holds {column.type}, not lists: Bag(Split('|')) reads separated text, "
                f"Bag(Numbered(10)) columns {name}_0 to {name}_9"
            )
        counts = compute.fill_null(compute.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        ids = as_ids(f"column {name!r}", column_array(pa.table({name: compute.list_flatten(column)}), name))
        return _without(ids, counts.astype(np.int64), self.pad)

    def list_inputs(self, name: str, types: Mapping[str, LogicalType]) -> list[ListInput]:
        text = types[name].is_text
        return [ListInput(name, text, _dropped(self.pad, text=text), several=True)]


@dataclass(frozen=True)
class Split(Layout):
    """One column of text with a separator, such as "Action|Drama"; blanks around a value are dropped.

    >>> import pyarrow
    >>> Split("|").read("genres", pyarrow.table({"genres": ["Action|Drama", None, "Crime"]})).ids.to_pylist()
    ['Action', 'Drama', 'Crime']
    """

    separator: str = "|"

    def __post_init__(self) -> None:
        if not self.separator:
            raise ValueError("Split needs a separator, such as '|'")

    def read(self, name: str, table: "pa.Table") -> Ragged:
        pa, compute = need("pyarrow"), need("pyarrow.compute")
        # A column of single values may have been read as numbers.
        text = compute.cast(as_ids(f"column {name!r}", column_array(table, name)), pa.large_string())
        parts = compute.split_pattern(text, self.separator)
        counts = compute.fill_null(compute.list_value_length(parts), 0).to_numpy(zero_copy_only=False)
        ids = compute.utf8_trim_whitespace(compute.list_flatten(parts))
        return _without(ids, counts.astype(np.int64), "")

    def list_inputs(self, name: str, types: Mapping[str, LogicalType]) -> list[ListInput]:
        return [ListInput(name, True, ("",), separator=self.separator)]


@dataclass(frozen=True)
class Numbered(Layout):
    """Columns name_0, name_1, … of one value each.

    Args:
        count: how many columns.
        start: the first number.
        join: the text between name and number.
        pad: a value that means "none", beside missing.

    >>> import pyarrow
    >>> table = pyarrow.table({"item_0": [7, 5], "item_1": [-1, 3]})
    >>> ids, counts = Numbered(2).read("item", table)
    >>> ids.to_pylist(), counts.tolist()
    ([7, 5, 3], [1, 2])

    """

    count: int
    start: int = 0
    join: str = "_"
    pad: int | str = -1

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"Numbered needs count >= 1, got {self.count}")

    def sources(self, name: str) -> tuple[str, ...]:
        return tuple(f"{name}{self.join}{number}" for number in range(self.start, self.start + self.count))

    def read(self, name: str, table: "pa.Table") -> Ragged:
        pa = need("pyarrow")
        columns = unify([as_ids(f"column {source!r}", column_array(table, source)) for source in self.sources(name)])
        rows = len(table)
        if columns[0].type == pa.int64() and not any(column.null_count for column in columns):
            ids = pa.array(np.stack([column.to_numpy() for column in columns], 1).reshape(-1))
        else:
            order = np.arange(rows * self.count).reshape(self.count, rows).T.reshape(-1)
            ids = pa.concat_arrays(columns).take(pa.array(order))
        return _without(ids, np.full(rows, self.count), self.pad)

    def list_inputs(self, name: str, types: Mapping[str, LogicalType]) -> list[ListInput]:
        return [
            ListInput(source, types[source].is_text, _dropped(self.pad, text=types[source].is_text))
            for source in self.sources(name)
        ]


def _dropped(pad: int | str, *, text: bool) -> tuple[Any, ...]:
    """What is written where there is no value: the padding, and a missing id."""
    if text:
        return ("", str(pad))
    return (MISSING,) if isinstance(pad, str) else (MISSING, pad)


def _without(ids: "pa.Array", counts: np.ndarray, pad: int | str) -> Ragged:
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    value = pa.scalar(str(pad), pa.large_string()) if ids.type == pa.large_string() else pa.scalar(pad)
    if ids.type == pa.int64() and isinstance(pad, str):
        keep = ids.is_valid()  # no integer is text
    else:
        keep = compute.fill_null(compute.not_equal(ids, value), False)
    kept = keep.to_numpy(zero_copy_only=False)
    if kept.all():
        return Ragged(ids, counts)
    # Kept values of a row: a difference of running totals; `reduceat` would need an exception for empty rows.
    total = np.concatenate([[0], np.cumsum(kept)])
    ends = np.cumsum(counts)
    return Ragged(ids.filter(keep), total[ends] - total[ends - counts])
