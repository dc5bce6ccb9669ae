"""Rows of a table in JSON, checked cell by cell, so that an error names the column and the row."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transun.data.logical import LogicalType
from transun.support.counting import counted
from transun.support.extras import need
from transun.support.suggest import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["JsonReader", "TooManyRowsError", "parse_json"]


class TooManyRowsError(ValueError):
    """A request has more rows than are allowed."""


def parse_json(body: bytes) -> Any:
    """The value of a JSON text; a `ValueError` of one sentence for a text that is not JSON, such as NaN.

    A name that an object has twice is refused as well: nobody knows which of its values is meant.

    >>> parse_json(b"[1, 2")
    Traceback (most recent call last):
    ValueError: the body is not JSON: Expecting ',' delimiter: line 1 column 6 (char 5)
    >>> parse_json(b'{"price": NaN}')
    Traceback (most recent call last):
    ValueError: the body is not JSON: NaN is no number of JSON, write null where a value is missing
    >>> parse_json(b'{"price": 1, "price": 2}')
    Traceback (most recent call last):
    ValueError: the body is not JSON: an object has the name 'price' twice, give it once
    """
    try:
        return json.loads(body, parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeated)
    except RecursionError:
        raise ValueError("the body is not JSON of a table: it is nested too deeply") from None
    except ValueError as error:  # also text that is not UTF-8, and numbers of thousands of digits
        raise ValueError(f"the body is not JSON: {error}") from None


@dataclass(frozen=True)
class JsonReader:
    """Reads rows from JSON: one object, a list of objects, or `{"columns": {name: list of values}}`.

    Every column must be there, with null where a value is missing: a misspelt name is an error, and not a column that
    is missing in all rows. Other columns are ignored.

    Args:
        types: column -> its logical type.
        most_rows: the most rows that are read.

    >>> from transun.data.logical import FractionType, TextType
    >>> reader = JsonReader({"country": TextType(), "price": FractionType()}, most_rows=2)
    >>> reader.read([{"country": "DE", "price": 5}, {"country": None, "price": 1.5}])
    {'country': ['DE', None], 'price': [5.0, 1.5]}
    >>> reader.read({"columns": {"country": ["DE"], "price": ["cheap"]}})
    Traceback (most recent call last):
    ValueError: column 'price', row 0: 'cheap' is not a number; write a number
    >>> reader.read({"country": "DE", "prise": 1.5})
    Traceback (most recent call last):
    ValueError: row 0 has no column 'price': did you mean 'prise'? Write null where a value is missing

    """

    types: Mapping[str, LogicalType]
    most_rows: int

    def read(self, content: Any) -> dict[str, list[Any]]:
        """The columns of the rows, each value checked; `to_arrow` makes a table of them."""
        match content:
            case {"columns": dict() as columns} if len(content) == 1:
                raw = self._from_columns(columns)
            case dict():
                raw = self._from_rows([content])
            case list():
                raw = self._from_rows(content)
            case _:
                raise ValueError("the body is no row: give an object, a list of objects, or an object of columns")
        return {name: self._checked(name, values) for name, values in raw.items()}

    def to_arrow(self, columns: Mapping[str, list[Any]]) -> "pa.Table":
        """A table of columns that `read` returned."""
        return need("pyarrow").table({name: self.types[name].to_arrow(values) for name, values in columns.items()})

    def _from_rows(self, rows: list[Any]) -> dict[str, list[Any]]:
        self._limit(len(rows))
        for number, row in enumerate(rows):
            if not isinstance(row, dict):
                raise ValueError(f"row {number} is not an object of columns, as {{'price': 9.99}} is")
            for name in self.types:
                if name not in row:
                    raise ValueError(f"row {number} has no column {name!r}: {self._hint(name, row)}")
        return {name: [row[name] for row in rows] for name in self.types}

    def _from_columns(self, columns: Mapping[str, Any]) -> dict[str, list[Any]]:
        for name in self.types:
            if name not in columns:
                raise ValueError(f"there is no column {name!r}: {self._hint(name, columns)}")
            if not isinstance(columns[name], list):
                raise ValueError(f"column {name!r} is not a list of the values of all rows")
        first = next(iter(self.types))
        self._limit(len(columns[first]))
        for name in self.types:
            if len(columns[name]) != len(columns[first]):
                raise ValueError(
                    f"column {name!r} has {counted(len(columns[name]), 'row')} and column {first!r} has "
                    f"{len(columns[first]):,}: give both the same"
                )
        return {name: columns[name] for name in self.types}

    def _limit(self, rows: int) -> None:
        if not rows:
            raise ValueError("there are no rows: give at least one")
        if rows > self.most_rows:
            raise TooManyRowsError(f"{rows:,} rows are more than the {self.most_rows:,} allowed: send several requests")

    def _checked(self, name: str, values: list[Any]) -> list[Any]:
        type_ = self.types[name]
        checked = []
        for row, value in enumerate(values):
            try:
                checked.append(None if value is None else type_.from_json(value))
            except ValueError as error:
                raise ValueError(f"column {name!r}, row {row}: {error}; write {type_.json_form}") from None
        return checked

    def _hint(self, name: str, columns: Mapping[str, Any]) -> str:
        suggestion = did_you_mean(name, columns)
        return f"{suggestion} Write null where a value is missing" if suggestion else "write null where it is missing"


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON, write null where a value is missing")


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        ((repeated, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"an object has the name {repeated!r} twice, give it once")
    return content
