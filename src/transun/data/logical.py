"""Logical types: what a column held in training, whatever its width and file format, so that new rows are read alike.

A CSV file does not say what its columns hold, and a guess depends on the rows of the file: ids such as "001" look like
numbers where no "A20" is among them. A model therefore remembers the type of every column and reads new rows by it.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
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


class LogicalType(Serialisable, ABC):
    """What the values of a column are; `convert` turns an array of another type into it where that loses nothing.

    An array that does not fit is returned as it is: whether it is an error or an id that training has not seen is up to
    the kind of the column.
    """

    @abstractmethod
    def convert(self, where: str, array: "pa.Array") -> "pa.Array":
        """The array in this type; `where` names the column in errors."""

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
    def is_text(self) -> bool:
        return self.of.is_text


@dataclass(frozen=True)
class AnyType(LogicalType):
    """Not known: the column was missing in every row, or is of a type that only a kind of your own can read."""

    def convert(self, where: str, array: "pa.Array") -> "pa.Array":
        return array


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
