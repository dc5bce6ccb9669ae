"""Times as calendar parts (hour, weekday, month), as age, and as days that many rows share."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from torch import Tensor

from transun.data.kinds.graph import MISSING, ColumnGraph, count, double, time_input
from transun.data.kinds.kind import Inputs, Kind, require_fitted, require_values
from transun.data.kinds.number import Standardised
from transun.data.kinds.periods import MEANING, ascending, period_codes, period_codes_in_graph, recurring_periods
from transun.data.logical import LogicalType, TimeType
from transun.data.table import as_times, column_array
from transun.data.vocabulary import IdCounts
from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

_DAY = 86_400_000_000  # microseconds
_HOUR = 3_600_000_000
# 400 years of the calendar, after which it repeats: days. Times of a graph are moved by so many such eras that none is
# negative, because runtimes disagree about the division of negative numbers.
_ERA, _ERAS = 146_097, 300
# From 1 March 0000, with which an era begins, to 1970.
_TO_1970 = 719_468
# Years between which a graph knows the changes of a zone's clocks.
_FIRST_YEAR, _LAST_YEAR = 1900, 2200


class _Part(ABC):
    """One of the things that a time becomes."""

    @abstractmethod
    def encode(self, name: str, times: "pa.Array", kind: "Datetime") -> dict[str, Tensor]:
        """The tensors of this part of a fitted kind."""

    @abstractmethod
    def encode_in_graph(self, name: str, clock: "_Clock", kind: "Datetime") -> dict[str, Tensor]:
        """The same in operations of torch."""

    @abstractmethod
    def inputs(self, name: str, kind: "Datetime") -> Inputs:
        """Their names and sizes."""

    @abstractmethod
    def meanings(self, name: str, kind: "Datetime") -> dict[str, str]:
        """What their values mean."""


@dataclass(frozen=True)
class _Calendar(_Part):
    function: str  # of pyarrow.compute
    in_graph: "Callable[[_Clock], Tensor]"  # the same in operations of torch
    first: int  # the smallest value of the function
    size: int

    def encode(self, name: str, times: "pa.Array", kind: "Datetime") -> dict[str, Tensor]:
        compute = need("pyarrow.compute")
        value = compute.fill_null(getattr(compute, self.function)(times), self.first - 1)
        return {name: torch.from_numpy(value.to_numpy().astype(np.int64) - (self.first - 1))}

    def encode_in_graph(self, name: str, clock: "_Clock", kind: "Datetime") -> dict[str, Tensor]:
        return {name: torch.where(clock.missing, 0, self.in_graph(clock) + (1 - self.first))}

    def inputs(self, name: str, kind: "Datetime") -> Inputs:
        return Inputs(ids={name: self.size + 1})

    def meanings(self, name: str, kind: "Datetime") -> dict[str, str]:
        return {name: f"codes 0..{self.size}: 0 for a missing time, else {self.function} + {1 - self.first}"}


@dataclass(frozen=True)
class _Age(_Part):
    def encode(self, name: str, times: "pa.Array", kind: "Datetime") -> dict[str, Tensor]:
        return kind.age.apply(name, _days(times))

    def encode_in_graph(self, name: str, clock: "_Clock", kind: "Datetime") -> dict[str, Tensor]:
        return kind.age.apply_in_graph(name, -clock.time.double() / double(_DAY), clock.missing)

    def inputs(self, name: str, kind: "Datetime") -> Inputs:
        return kind.age.inputs(name)

    def meanings(self, name: str, kind: "Datetime") -> dict[str, str]:
        return kind.age.meanings(name)


@dataclass(frozen=True)
class _Day(_Part):
    """The day on the calendar, if training knows it; no tensor where training knows no day."""

    def encode(self, name: str, times: "pa.Array", kind: "Datetime") -> dict[str, Tensor]:
        days = require_fitted(name, kind.days)
        return {name: period_codes(_calendar_days(times), days)} if days else {}

    def encode_in_graph(self, name: str, clock: "_Clock", kind: "Datetime") -> dict[str, Tensor]:
        days = require_fitted(name, kind.days)
        if not days:
            return {}
        known = torch.tensor([int(day) + _ERAS * _ERA for day in days])
        return {name: torch.where(clock.missing, 0, period_codes_in_graph(clock.era // _DAY, known))}

    def inputs(self, name: str, kind: "Datetime") -> Inputs:
        days = require_fitted(name, kind.days)
        return Inputs(periods={name: len(days) + 1} if days else {})

    def meanings(self, name: str, kind: "Datetime") -> dict[str, str]:
        return {name: MEANING} if require_fitted(name, kind.days) else {}


@dataclass(frozen=True)
class _Clock:
    """Times in a graph: microseconds since 1970, whether they are missing, and what the clock of the zone shows.

    `era` is a time since a moment long before all others, so that it is positive.
    """

    time: Tensor
    missing: Tensor
    era: Tensor


def _month(clock: _Clock) -> Tensor:
    # Years begin in March here, so that a leap day is the last of a year; months then begin at ⌊(153·m + 2) / 5⌋.
    day = (clock.era // _DAY + _TO_1970) % _ERA
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day_of_year = day - (365 * year + year // 4 - year // 100)
    from_march = (5 * day_of_year + 2) // 153
    return (from_march + 2) % 12 + 1


_PARTS: dict[str, _Part] = {
    "hour": _Calendar("hour", lambda clock: clock.era // _HOUR % 24, 0, 24),
    # The first of March 0000, at which an era begins, was a Wednesday, as was the first day of every era.
    "weekday": _Calendar("day_of_week", lambda clock: (clock.era // _DAY + _TO_1970 + 2) % 7, 0, 7),
    "month": _Calendar("month", _month, 1, 12),
    "age": _Age(),
    "day": _Day(),
}


@dataclass(frozen=True)
class Datetime(Kind):
    """Times as tensors `name.hour`, `name.weekday`, `name.month` of ids, 0 if missing, and `name.age`, standardised.

    An hour h has index 1 + h, a weekday 1 (Monday) to 7, a month 1 to 12, in the time zone of the training rows. Age is
    counted in days up to now; because it is standardised, the moment that counts as now cancels. Age lets a network
    follow a trend and extrapolate it; leave it out if the trend will not continue.

    Where at least ten training rows have the same day, such as those of many shops, `name.day` is its code, from 1, and
    0 for any other day. A holiday or a campaign, which age, weekday and month cannot tell, then has an effect of its
    own. Rows to come are of days that training does not know; `EmbeddingMLP` is trained for them too.

    Args:
        parts: which of "hour", "weekday", "month", "age", "day" to make.
        age: mean and deviation of the age, learned by `fit`.
        days: days since 1970 that enough training rows have, learned by `fit`.

    >>> import pyarrow
    >>> table = pyarrow.table({"ts": ["2022-04-25 13:05:00", "2022-04-27 00:00:00"]})
    >>> tensors = Datetime(("hour", "weekday")).fit("ts", table).encode("ts", table)
    >>> tensors["ts.hour"].tolist(), tensors["ts.weekday"].tolist()  # a Monday and a Wednesday
    ([14, 1], [1, 3])

    """

    parts: tuple[str, ...] = tuple(_PARTS)
    age: Standardised = field(default=Standardised(), repr=False)
    days: tuple[float, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        wrong = [part for part in self.parts if part not in _PARTS]
        if wrong or not self.parts or len(set(self.parts)) < len(self.parts):
            raise ValueError(f"Datetime makes parts {', '.join(_PARTS)}, each at most once; got {self.parts}")
        if self.days is not None:
            object.__setattr__(self, "days", ascending("days of Datetime", self.days))

    def fit(self, name: str, table: "pa.Table", counts: IdCounts | None = None) -> Self:
        times = self._times(name, table)
        require_values(name, times.null_count / len(times))
        days = recurring_periods(_calendar_days(times)) if "day" in self.parts else ()
        return replace(self, age=self.age.learn(name, _days(times)), days=days)

    def encode(self, name: str, table: "pa.Table") -> dict[str, Tensor]:
        times = self._times(name, table)
        tensors: dict[str, Tensor] = {}
        for part in self.parts:
            tensors |= _PARTS[part].encode(f"{name}.{part}", times, self)
        return tensors

    def graph(self, name: str, types: Mapping[str, LogicalType], sizes: Mapping[str, int]) -> ColumnGraph:
        return _DatetimeGraph(name, self, types[name].zone)

    def inputs(self, name: str) -> Inputs:
        parts = [_PARTS[part].inputs(f"{name}.{part}", self) for part in self.parts]
        ids = {key: size for inputs in parts for key, size in inputs.ids.items()}
        periods = {key: size for inputs in parts for key, size in inputs.periods.items()}
        return Inputs(ids=ids, numeric=tuple(key for inputs in parts for key in inputs.numeric), periods=periods)

    def logical_types(self, name: str, table: "pa.Table") -> dict[str, LogicalType]:
        return {name: TimeType(self._times(name, table).type.tz)}  # of text, the zone that it is read in

    def meanings(self, name: str) -> dict[str, str]:
        parts = [_PARTS[part].meanings(f"{name}.{part}", self) for part in self.parts]
        return {key: meaning for meanings in parts for key, meaning in meanings.items()}

    def missing(self, name: str, table: "pa.Table") -> float:
        times = self._times(name, table)
        return float(times.null_count / len(times))

    def _times(self, name: str, table: "pa.Table") -> "pa.Array":
        return as_times(f"column {name!r}", column_array(table, name))


def _days(times: "pa.Array") -> np.ndarray:
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    # Days before 1970: any moment can be "now". Microseconds of 285 years are exact in float64.
    microseconds = compute.cast(compute.cast(times, pa.int64()), pa.float64(), safe=False)
    return np.asarray(-microseconds.to_numpy(zero_copy_only=False) / _DAY)


def _calendar_days(times: "pa.Array") -> np.ndarray:
    """The day of each time by the clock of its zone, as days since 1970 (n,), NaN where it is missing."""
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    local = times if times.type.tz is None else compute.local_timestamp(times)
    days = compute.floor_temporal(local, unit="day").cast(pa.date32()).cast(pa.int32()).cast(pa.float64())
    return np.asarray(days.to_numpy(zero_copy_only=False), np.float64)


class _DatetimeGraph(ColumnGraph):
    def __init__(self, name: str, kind: Datetime, zone: str | None) -> None:
        mean, sd = require_fitted(name, kind.age.mean), require_fitted(name, kind.age.sd)
        super().__init__(name, kind, [time_input(name, zone, (-_DAY * (mean + sd), -_DAY * (mean - sd)))])
        self.datetime = kind
        starts, offsets = zone_offsets(zone)
        self.constant_offset = int(offsets[0]) if len(offsets) == 1 else None
        if self.constant_offset is None:
            self.register_buffer("starts", torch.from_numpy(starts))
            self.register_buffer("offsets", torch.from_numpy(offsets))

    def forward(self, columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
        time = columns[self.name]
        missing = time == MISSING
        time = torch.where(missing, 0, time)
        longest = _ERAS * _ERA * _DAY
        clock = _Clock(time, missing, time.clamp(-longest, longest) + longest + self._offset(time))
        tensors: dict[str, Tensor] = {}
        for part in self.datetime.parts:
            tensors |= _PARTS[part].encode_in_graph(f"{self.name}.{part}", clock, self.datetime)
        return tensors

    def _offset(self, time: Tensor) -> Tensor | int:
        """What the clocks of the zone show beyond UTC."""
        if self.constant_offset is not None:
            return self.constant_offset
        return self.get_buffer("offsets")[count(time.unsqueeze(-1) >= self.get_buffer("starts"))]


def zone_offsets(zone: str | None) -> tuple[np.ndarray, np.ndarray]:
    """The moments at which the clocks of a zone change, and their offsets before, between and after these moments.

    All in microseconds; moments since 1970 in UTC, from the year 1900 to 2200.

    >>> starts, offsets = zone_offsets("Asia/Tokyo")
    >>> (offsets[-1:] / 3.6e9).tolist(), len(offsets) - len(starts)
    ([9.0], 1)
    """
    if zone is None:
        return np.zeros(0, np.int64), np.zeros(1, np.int64)
    days = np.arange(np.datetime64(f"{_FIRST_YEAR}", "D"), np.datetime64(f"{_LAST_YEAR}", "D"))
    low = days.astype("datetime64[us]").astype(np.int64)
    offsets = _offsets(low, zone)
    changed = np.flatnonzero(np.diff(offsets))
    # Between two midnights of different offsets, halving finds the moment of the change.
    low, high, before = low[changed], low[changed + 1], offsets[changed]
    while (high - low > 1).any():
        middle = (low + high) // 2
        same = _offsets(middle, zone) == before
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return high, np.append(offsets[:1], offsets[changed + 1])


def _offsets(times: np.ndarray, zone: str) -> np.ndarray:
    """The offset of a zone's clocks from UTC at moments in microseconds since 1970."""
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    local = compute.local_timestamp(pa.array(times).cast(pa.timestamp("us", zone)))
    return np.asarray(local.cast(pa.int64()).to_numpy() - times)
