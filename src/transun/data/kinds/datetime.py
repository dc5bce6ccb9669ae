"""Times as calendar parts (hour, weekday, month) and as age."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from torch import Tensor

from transun.data.kinds.kind import Inputs, Kind, require_values
from transun.data.kinds.number import Standardised
from transun.data.logical import LogicalType, TimeType
from transun.data.table import as_times, column_array
from transun.data.vocabulary import IdCounts
from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

_DAY = 86_400e6  # microseconds


class _Part(ABC):
    """One of the things that a time becomes."""

    @abstractmethod
    def encode(self, name: str, times: "pa.Array", age: Standardised) -> dict[str, Tensor]:
        """The tensors of this part."""

    @abstractmethod
    def inputs(self, name: str, age: Standardised) -> Inputs:
        """Their names and sizes."""

    @abstractmethod
    def meanings(self, name: str, age: Standardised) -> dict[str, str]:
        """What their values mean."""


@dataclass(frozen=True)
class _Calendar(_Part):
    function: str  # of pyarrow.compute
    first: int  # the smallest value of the function
    size: int

    def encode(self, name: str, times: "pa.Array", age: Standardised) -> dict[str, Tensor]:
        compute = need("pyarrow.compute")
        value = compute.fill_null(getattr(compute, self.function)(times), self.first - 1)
        return {name: torch.from_numpy(value.to_numpy().astype(np.int64) - (self.first - 1))}

    def inputs(self, name: str, age: Standardised) -> Inputs:
        return Inputs(ids={name: self.size + 1})

    def meanings(self, name: str, age: Standardised) -> dict[str, str]:
        return {name: f"codes 0..{self.size}: 0 for a missing time, else {self.function} + {1 - self.first}"}


@dataclass(frozen=True)
class _Age(_Part):
    def encode(self, name: str, times: "pa.Array", age: Standardised) -> dict[str, Tensor]:
        return age.apply(name, _days(times))

    def inputs(self, name: str, age: Standardised) -> Inputs:
        return age.inputs(name)

    def meanings(self, name: str, age: Standardised) -> dict[str, str]:
        return age.meanings(name)


_PARTS: dict[str, _Part] = {
    "hour": _Calendar("hour", 0, 24),
    "weekday": _Calendar("day_of_week", 0, 7),
    "month": _Calendar("month", 1, 12),
    "age": _Age(),
}


@dataclass(frozen=True)
class Datetime(Kind):
    """Times as tensors `name.hour`, `name.weekday`, `name.month` of ids, 0 if missing, and `name.age`, standardised.

    An hour h has index 1 + h, a weekday 1 (Monday) to 7, a month 1 to 12, in the time zone of the training rows. Age is
    counted in days up to now; because it is standardised, the moment that counts as now cancels. Age lets a network
    follow a trend and extrapolate it; leave it out if the trend will not continue.

    Args:
        parts: which of "hour", "weekday", "month", "age" to make.
        age: mean and deviation of the age, learned by `fit`.

    >>> import pyarrow
    >>> table = pyarrow.table({"ts": ["2022-04-25 13:05:00", "2022-04-27 00:00:00"]})
    >>> tensors = Datetime(("hour", "weekday")).fit("ts", table).encode("ts", table)
    >>> tensors["ts.hour"].tolist(), tensors["ts.weekday"].tolist()  # a Monday and a Wednesday
    ([14, 1], [1, 3])

    """

    parts: tuple[str, ...] = tuple(_PARTS)
    age: Standardised = field(default=Standardised(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        wrong = [part for part in self.parts if part not in _PARTS]
        if wrong or not self.parts or len(set(self.parts)) < len(self.parts):
            raise ValueError(f"Datetime makes parts {', '.join(_PARTS)}, each at most once; got {self.parts}")

    def fit(self, name: str, table: "pa.Table", counts: IdCounts | None = None) -> Self:
        times = self._times(name, table)
        require_values(name, times.null_count / len(times))
        return replace(self, age=self.age.learn(name, _days(times)))

    def encode(self, name: str, table: "pa.Table") -> dict[str, Tensor]:
        times = self._times(name, table)
        tensors: dict[str, Tensor] = {}
        for part in self.parts:
            tensors |= _PARTS[part].encode(f"{name}.{part}", times, self.age)
        return tensors

    def inputs(self, name: str) -> Inputs:
        parts = [_PARTS[part].inputs(f"{name}.{part}", self.age) for part in self.parts]
        ids = {key: size for inputs in parts for key, size in inputs.ids.items()}
        return Inputs(ids=ids, numeric=tuple(key for inputs in parts for key in inputs.numeric))

    def logical_types(self, name: str, table: "pa.Table") -> dict[str, LogicalType]:
        return {name: TimeType(self._times(name, table).type.tz)}  # of text, the zone that it is read in

    def meanings(self, name: str) -> dict[str, str]:
        parts = [_PARTS[part].meanings(f"{name}.{part}", self.age) for part in self.parts]
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
