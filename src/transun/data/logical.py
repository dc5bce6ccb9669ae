"""Logical types: what a column held in training, whatever its width and file format, so that new rows are read alike.

A CSV file does not say what its columns hold, and a guess depends on the rows of the file: ids such as "001" look like
numbers where no "A20" is among them. A model therefore remembers the type of every column and reads new rows by it.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any

from transun.data.saving import Serialisable
from transun.data.schema import holds_lists
from transun.data.table import as_times
from transun.data.text_values import as_booleans, as_fractions, as_integers, no_null_texts
from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "AnyType",
    "BooleanType",
    "FractionType",
    "IntegerType",
    "ListType",
    "LogicalType",
    "TextType",
    "TimeType",
    "logical_type",
]


# A text that is a whole number of at most 64 bits; longer ones are refused before they are converted.
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")


class LogicalType(Serialisable, ABC):
    """What the values of a column are; `convert` turns an array of another type into it where that loses nothing.

    An array that does not fit is returned as it is: whether it is an error or an id that training has not seen is up to
    the kind of the column.
    """

    @abstractmethod
    def convert(self, where: str, array: "pa.Array") -> "pa.Array":
        """The array in this type; `where` names the column in errors."""

    @property
    @abstractmethod
    def json_form(self) -> str:
        """How a value is written in JSON, for people."""

    @abstractmethod
    def from_json(self, value: Any) -> Any:
        """A value as JSON has it, not null, as `to_arrow` takes it; a `ValueError` says what is wrong with it."""

    @abstractmethod
    def to_arrow(self, values: Sequence[Any]) -> "pa.Array":
        """The column of values that `from_json` returned, and None where one is missing."""

    zone: str | None = None
    """The time zone of times; None for types that are no times."""

    @property
    def is_text(self) -> bool:
        """Whether ids of this type are text; those of all other types are whole numbers."""
        return False


@dataclass(frozen=True)
class TextType(LogicalType):
    """Text. Booleans become "true" and "false"; numbers stay, because ids 12 and "12" are the same.

    >>> import pyarrow
    >>> TextType().convert("column 'member'", pyarrow.array([True, None])).to_pylist()
    ['true', None]
    """

    def convert(self, where: str, array: "pa.Array") -> "pa.Array":
        pa, compute = need("pyarrow"), need("pyarrow.compute")
        return compute.cast(array, pa.large_string()) if pa.types.is_boolean(array.type) else array

    @property
    def json_form(self) -> str:
        return "text"

    def from_json(self, value: Any) -> str:
        match value:
            case str():
                try:
                    value.encode()
                except UnicodeEncodeError:
                    raise ValueError(f"{shortened(value)} has half a character, which no text can hold") from None
                return value
            case bool():
                return str(value).lower()
            case int():
                return str(value)
            case _:
                raise ValueError(f"{shortened(value)} is not text")

    def to_arrow(self, values: Sequence[Any]) -> "pa.Array":
        pa = need("pyarrow")
        return pa.array(values, pa.large_string())

    @property
    def is_text(self) -> bool:
        return True


@dataclass(frozen=True)
class IntegerType(LogicalType):
    """Whole numbers. Text is read as int64, or as float64 where that is how pandas has written integers.

    >>> import pyarrow
    >>> text = pyarrow.array(["7", " 12", "NA"], pyarrow.large_string())
    >>> IntegerType().convert("column 'item'", text).to_pylist()
    [7, 12, None]
    """

    def convert(self, where: str, array: "pa.Array") -> "pa.Array":
        if not _is_text(array):
            return array
        text = no_null_texts(array)
        integers = as_integers(text)
        return FractionType().convert(where, text) if integers is None else integers

    @property
    def json_form(self) -> str:
        return "a whole number, as 12 or, where it has many digits, as text"

    def from_json(self, value: Any) -> int | float:
        # Numbers with a fraction are left to the kind of the column: a price may have been whole in training by chance.
        if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
            value = int(value)
        number = FractionType().from_json(value)
        whole = int(value) if isinstance(value, int) or number.is_integer() else number
        if isinstance(whole, int) and not -(2**63) <= whole < 2**63:
            raise ValueError(f"{shortened(value)} is a whole number of more than 64 bits")
        return whole

    def to_arrow(self, values: Sequence[Any]) -> "pa.Array":
        pa = need("pyarrow")
        fractions = any(isinstance(value, float) for value in values)
        return FractionType().to_arrow(values) if fractions else pa.array(values, pa.int64())


@dataclass(frozen=True)
class FractionType(LogicalType):
    """Numbers with or without a fraction. Text is read as float64, with a decimal comma if there is no other reading.

    >>> import pyarrow
    >>> FractionType().convert("column 'price'", pyarrow.array(["1.10", ""], pyarrow.large_string())).to_pylist()
    [1.1, None]
    """

    def convert(self, where: str, array: "pa.Array") -> "pa.Array":
        if not _is_text(array):
            return array
        text = no_null_texts(array)
        fractions = as_fractions(text)
        return text if fractions is None else fractions

    @property
    def json_form(self) -> str:
        return "a number"

    def from_json(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"{shortened(value)} is not a number")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise ValueError(f"{shortened(value)} is not a finite number")
        return number

    def to_arrow(self, values: Sequence[Any]) -> "pa.Array":
        pa = need("pyarrow")
        return pa.array([None if value is None else float(value) for value in values], pa.float64())


@dataclass(frozen=True)
class BooleanType(LogicalType):
    """True or false. Text counts as true if it is "true" or "1" in any case, as false if it is "false" or "0".

    Other text stays text, an id that training has not seen; the others are then "1" and "0", the ids of true and false.

    >>> import pyarrow
    >>> BooleanType().convert("", pyarrow.array(["True", "false", ""], pyarrow.large_string())).to_pylist()
    [True, False, None]
    >>> BooleanType().convert("", pyarrow.array(["True", "perhaps"], pyarrow.large_string())).to_pylist()
    ['1', 'perhaps']
    """

    def convert(self, where: str, array: "pa.Array") -> "pa.Array":
        if not _is_text(array):
            return array
        pa, compute = need("pyarrow"), need("pyarrow.compute")
        text = no_null_texts(array)
        booleans = as_booleans(text)
        if booleans.null_count == text.null_count:
            return booleans
        codes = compute.cast(compute.cast(booleans, pa.int8()), pa.large_string())
        return compute.coalesce(codes, text)

    @property
    def json_form(self) -> str:
        return "true or false"

    def from_json(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise ValueError(f"{shortened(value)} is neither true nor false")
        return value

    def to_arrow(self, values: Sequence[Any]) -> "pa.Array":
        pa = need("pyarrow")
        return pa.array(values, pa.bool_())


@dataclass(frozen=True)
class TimeType(LogicalType):
    """Times and dates, in a time zone or, where `zone` is None, in the local time of whoever wrote them.

    Hour, weekday and month are those of the zone, so instants are converted to it, and local times are taken for times
    of it. The converse cannot be known: a model trained on local times refuses instants.

    Args:
        zone: as in "Asia/Tokyo", "UTC" or "+09:00".

    >>> import pyarrow
    >>> noon = pyarrow.array(["2022-04-25T12:00:00Z"], pyarrow.large_string())
    >>> TimeType("Asia/Tokyo").convert("column 'ts'", noon)[0].as_py().hour
    21
    >>> TimeType().convert("column 'ts'", noon)
    Traceback (most recent call last):
    ValueError: column 'ts' has the time zone UTC and had none in training: write local times, as those of training

    """

    zone: str | None = None

    def convert(self, where: str, array: "pa.Array") -> "pa.Array":
        pa, compute = need("pyarrow"), need("pyarrow.compute")
        times = as_times(where, no_null_texts(array) if _is_text(array) else array)
        if times.type.tz == self.zone or times.null_count == len(times):
            return compute.cast(times, pa.timestamp("us", self.zone))
        if self.zone is None:
            raise ValueError(
                f"{where} has the time zone {times.type.tz} and had none in training: "
                "write local times, as those of training"
            )
        if times.type.tz is None:
            # Twice a year an hour occurs twice or never; the model cannot know more than the clock on the wall.
            return compute.assume_timezone(times, self.zone, ambiguous="earliest", nonexistent="earliest")
        return compute.cast(times, pa.timestamp("us", self.zone))

    @property
    def json_form(self) -> str:
        if self.zone is None:
            return "a local time as text, 2022-04-25T13:05:00 or 2022-04-25"
        return "a time with its offset from UTC as text, 2022-04-25T13:05:00Z or 2022-04-25T13:05:00+09:00"

    def from_json(self, value: Any) -> datetime:
        what = self.json_form.partition(" as text")[0]
        try:
            time = datetime.fromisoformat(value)
        except (TypeError, ValueError):
            raise ValueError(f"{shortened(value)} is not {what}") from None
        if (time.tzinfo is None) != (self.zone is None):
            raise ValueError(f"{shortened(value)} is not {what}")
        return time

    def to_arrow(self, values: Sequence[Any]) -> "pa.Array":
        pa = need("pyarrow")
        return pa.array(values, pa.timestamp("us", self.zone))


@dataclass(frozen=True)
class ListType(LogicalType):
    """A list in each row.

    Args:
        of: the type of its values.

    """

    of: LogicalType

    def convert(self, where: str, array: "pa.Array") -> "pa.Array":
        return array

    @property
    def json_form(self) -> str:
        return f"a list, each value {self.of.json_form}"

    def from_json(self, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise ValueError(f"{shortened(value)} is not a list")
        return [None if each is None else self.of.from_json(each) for each in value]

    def to_arrow(self, values: Sequence[Any]) -> "pa.Array":
        pa, compute = need("pyarrow"), need("pyarrow.compute")
        lengths = [0 if value is None else len(value) for value in values]
        ends = pa.array([0, *accumulate(lengths)], pa.int64())
        flat = self.of.to_arrow([each for value in values if value is not None for each in value])
        missing = pa.array([value is None for value in values], pa.bool_())
        lists = pa.LargeListArray.from_arrays(ends, flat)
        return compute.if_else(missing, pa.scalar(None, lists.type), lists)

    @property
    def is_text(self) -> bool:
        return self.of.is_text


@dataclass(frozen=True)
class AnyType(LogicalType):
    """Not known: the column was missing in every row, or is of a type that only a kind of your own can read."""

    def convert(self, where: str, array: "pa.Array") -> "pa.Array":
        return array

    @property
    def json_form(self) -> str:
        return "null, as in every row of the training"

    def from_json(self, value: Any) -> Any:
        raise ValueError(f"{shortened(value)} is not null, and in training every row was")

    def to_arrow(self, values: Sequence[Any]) -> "pa.Array":
        return need("pyarrow").nulls(len(values))


# Tests `pyarrow.types.is_…` and what they mean.
_MEANING: dict[str, LogicalType] = {
    "integer": IntegerType(),
    "boolean": BooleanType(),
    "floating": FractionType(),
    "decimal": FractionType(),
    "string": TextType(),
    "large_string": TextType(),
    "date": TimeType(),
}


def logical_type(type_: Any) -> LogicalType:
    """The logical type of an Arrow type.

    >>> import pyarrow
    >>> logical_type(pyarrow.int8()), logical_type(pyarrow.timestamp("s", "UTC")), logical_type(pyarrow.null())
    (IntegerType(), TimeType(zone='UTC'), AnyType())
    >>> logical_type(pyarrow.list_(pyarrow.string()))
    ListType(of=TextType())
    """
    types = need("pyarrow").types
    if holds_lists(type_):
        return ListType(logical_type(type_.value_type))
    if types.is_timestamp(type_):
        return TimeType(type_.tz)
    return next((logical for test, logical in _MEANING.items() if getattr(types, f"is_{test}")(type_)), AnyType())


def _is_text(array: "pa.Array") -> bool:
    return bool(array.type == need("pyarrow").large_string())
