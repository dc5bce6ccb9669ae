"""Which rows a model is proved on: single rows, the last ones, or whole groups.

A certificate is worth as much as its rows are like those that the model will meet. Rows held out at random stand for
rows of the same days and of the same users; the last rows stand for tomorrow, and whole groups for new users.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transun.data.row_rules import FromMoment, HashedGroups, HashedRows, RowRule
from transun.data.split import EmptyPartError, by_hash, by_row, by_time, moment_of, moments
from transun.data.table import as_times, column_array
from transun.support.arguments import require_kind
from transun.support.counting import counted
from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "HoldOut",
    "HoldOutGroups",
    "HoldOutRows",
    "HoldOutTime",
    "Split",
    "calibration_seed",
    "parse_hold_out",
    "recommend_hold_out",
    "require_hold_out",
]

# Ids with more values than this are probably those of users, shops or items, of which new ones appear.
_MANY = 100
# Texts that are looked at to see whether a column holds times.
_SAMPLE = 1000
# A number that is called so, or whose name ends so, counts time.
_TIME_NAMES = ("year", "week", "day", "date", "time", "timestamp")

# Added to the seed for validation groups and calibration rows. With that of the first split none would be left over:
# all training rows have small hashes.
_VALIDATION, _CALIBRATION = 1_000_003, 2_000_003


class HoldOut(ABC):
    """A rule that parts the rows of a table into training rows and rows held out."""

    @abstractmethod
    def split(self, table: "pa.Table", share: float, seed: int) -> tuple["pa.Table", "pa.Table"]:
        """Training rows and about `share` of the rows, which are held out; a `ValueError` where one part is empty."""

    @abstractmethod
    def description(self, held_out: "pa.Table", seed: int) -> str:
        """How these rows were chosen, for the reader of a certificate."""

    @abstractmethod
    def rules(
        self, sample: "pa.Table", share: float, calibration_share: float, valid_share: float, seed: int
    ) -> tuple[RowRule, RowRule, RowRule]:
        """Which rows of a table larger than memory are held out, are calibration rows, and are validation rows.

        Args:
            sample: rows of the table, from which the rule may learn what it needs to know of all.
            share: about how many of all rows are held out.
            calibration_share: about how many of the others are calibration rows.
            valid_share: about how many of those that are neither are validation rows.
            seed: of the hashes.

        """

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that decide."""
        return ()

    def refuse_target(self, target: str) -> None:
        """Raise a `ValueError` where the target decides, so that rows held out have other amounts than training rows.

        >>> HoldOutTime("gmv").refuse_target("gmv")
        Traceback (most recent call last):
        ValueError: rows held out by the target 'gmv' have other amounts than training rows: name a column known before
        """
        if target in self.columns:
            raise ValueError(
                f"rows held out by the target {target!r} have other amounts than training rows: name a column known "
                "before"
            )

    @property
    def useless(self) -> tuple[str, ...]:
        """The columns that can be no features, because rows held out have none of the values of training rows."""
        return ()

    @property
    def cluster(self) -> str | None:
        """The column whose values are independent of each other, rather than rows; None where every row is."""
        return None

    def validation_split(self, table: "pa.Table", share: float, seed: int) -> tuple["pa.Table", "pa.Table | None"]:
        """The training rows and validation rows among them by the same rule; None where it cannot part them.

        Early stopping should wait for what the certificate will ask.
        """
        if share == 0.0:
            return table, None
        try:
            return self.split(table, share, seed)
        except EmptyPartError:
            return table, None


def require_hold_out(by: Any) -> None:
    """Raise a `TypeError` if the argument `by` of a split is something else, such as its text on a command line."""
    remedy = "write HoldOutRows(), HoldOutTime('column') or HoldOutGroups('column') of transun.data"
    require_kind("by", by, HoldOut, remedy)


@dataclass(frozen=True)
class HoldOutRows(HoldOut):
    """Holds out single rows by a hash of their number: for rows that come from where the training rows came from.

    >>> str(HoldOutRows())
    'rows'
    """

    def split(self, table: "pa.Table", share: float, seed: int) -> tuple["pa.Table", "pa.Table"]:
        return by_row(table, 1.0 - share, seed)

    def rules(
        self, sample: "pa.Table", share: float, calibration_share: float, valid_share: float, seed: int
    ) -> tuple[RowRule, RowRule, RowRule]:
        calibration = HashedRows(calibration_share, calibration_seed(seed))
        return HashedRows(share, seed), calibration, HashedRows(valid_share, seed, "split.valid")

    def description(self, held_out: "pa.Table", seed: int) -> str:
        return f"single rows, by a hash of the row number, seed {seed}"

    def validation_split(self, table: "pa.Table", share: float, seed: int) -> tuple["pa.Table", "pa.Table | None"]:
        """All rows: the training itself chooses validation rows by a hash of the row number."""
        return table, None

    def __str__(self) -> str:
        return "rows"


@dataclass(frozen=True)
class HoldOutTime(HoldOut):
    """Holds out the last rows by a column of times, or of numbers that ascend with time: for predicting what follows.

    Rows of one moment stay together, so the share is met only as nearly as the moments allow.

    >>> train, test = HoldOutTime("day").split(read_table({"day": [3, 1, 2, 4], "y": [1, 2, 3, 4]}), 0.25, seed=0)
    >>> train["day"].to_pylist(), test["day"].to_pylist()
    ([3, 1, 2], [4])
    """

    column: str

    def split(self, table: "pa.Table", share: float, seed: int) -> tuple["pa.Table", "pa.Table"]:
        return by_time(table, self.column, share=1.0 - share)

    def rules(
        self, sample: "pa.Table", share: float, calibration_share: float, valid_share: float, seed: int
    ) -> tuple[RowRule, RowRule, RowRule]:
        """From a moment on that the sample tells: as many rows as in the sample, but for its sampling error."""
        test, calibration, valid = (
            FromMoment(self.column, moment) for moment in self._moments(sample, (share, calibration_share, valid_share))
        )
        return test, calibration, valid

    def _moments(self, sample: "pa.Table", shares: Sequence[float]) -> Iterator[float]:
        """The moments from which on the shares begin, each the last part of the rows that those before it leave."""
        for share in shares:
            moment = moment_of(sample, self.column, 1.0 - share) if share and len(sample) else math.inf
            yield moment
            sample = sample.filter(need("pyarrow").array(moments(sample, self.column) < moment))

    def description(self, held_out: "pa.Table", seed: int) -> str:
        first = need("pyarrow.compute").min(column_array(held_out, self.column)).as_py()
        return f"the last rows by {self.column!r}, from {first} on"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def __str__(self) -> str:
        return f"time:{self.column}"


@dataclass(frozen=True)
class HoldOutGroups(HoldOut):
    """Holds out all rows of some groups, such as users or shops, by a hash of the group: for new users or shops.

    >>> table = read_table({"user": [1, 1, 2, 2, 3, 3], "y": [1, 2, 3, 4, 5, 6]})
    >>> train, test = HoldOutGroups("user").split(table, 0.5, seed=0)
    >>> set(train["user"].to_pylist()) & set(test["user"].to_pylist())
    set()
    """

    column: str

    def split(self, table: "pa.Table", share: float, seed: int) -> tuple["pa.Table", "pa.Table"]:
        return by_hash(table, self.column, 1.0 - share, seed)

    def rules(
        self, sample: "pa.Table", share: float, calibration_share: float, valid_share: float, seed: int
    ) -> tuple[RowRule, RowRule, RowRule]:
        seeds = (share, seed), (calibration_share, calibration_seed(seed)), (valid_share, seed + _VALIDATION)
        test, calibration, valid = (HashedGroups(self.column, part, of_part) for part, of_part in seeds)
        return test, calibration, valid

    def description(self, held_out: "pa.Table", seed: int) -> str:
        groups = len(column_array(held_out, self.column).unique())
        return f"all rows of {counted(groups, 'value')} of {self.column!r}, by a hash of the value, seed {seed}"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def useless(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def cluster(self) -> str | None:
        return self.column

    def validation_split(self, table: "pa.Table", share: float, seed: int) -> tuple["pa.Table", "pa.Table | None"]:
        return super().validation_split(table, share, seed + _VALIDATION)

    def __str__(self) -> str:
        return f"group:{self.column}"


@dataclass(frozen=True)
class Split:
    """How rows are divided into training, validation and calibration rows, and test rows for the certificate alone.

    Args:
        rule: how they are chosen.
        test_share: the share of test rows among all rows.
        valid_share: the share of validation rows among those that are neither test nor calibration rows.
        seed: of the hashes by which rows or groups are chosen.
        calibration_share: the share of calibration rows among those that are no test rows.

    """

    rule: HoldOut = HoldOutRows()
    test_share: float = 0.0
    valid_share: float = 0.1
    seed: int = 0
    calibration_share: float = 0.0


def calibration_seed(seed: int) -> int:
    """The seed that chooses calibration rows: the hashes of other splits are all on one side."""
    return seed + _CALIBRATION


def parse_hold_out(text: str) -> HoldOut:
    """The rule that a text names: "rows", "time:COLUMN" or "group:COLUMN".

    >>> parse_hold_out("time:day")
    HoldOutTime(column='day')
    >>> parse_hold_out("day")
    Traceback (most recent call last):
    ValueError: rows are held out by rows, time:COLUMN or group:COLUMN, got 'day'
    """
    rule, _, column = text.partition(":")
    if text == "rows":
        return HoldOutRows()
    if column and rule == "time":
        return HoldOutTime(column)
    if column and rule == "group":
        return HoldOutGroups(column)
    raise ValueError(f"rows are held out by rows, time:COLUMN or group:COLUMN, got {text!r}")


def recommend_hold_out(table: "pa.Table", ids: Mapping[str, int | str]) -> dict[HoldOut, str]:
    """Rules that may be nearer than single rows to how a model will be used, each with the reason; empty if none is.

    Args:
        table: the rows.
        ids: the columns of ids and how many different ones there are, as in `Features.ids`.

    >>> table = read_table({"day": ["2024-01-01", "2024-01-02"], "y": [1.0, 2.0]})
    >>> {str(rule): why for rule, why in recommend_hold_out(table, {}).items()}
    {'time:day': "'day' is a time: if the model will predict later rows"}

    """
    advice: dict[HoldOut, str] = {}
    times = [name for name in table.column_names if _counts_time(table, name)]
    if times:
        advice[HoldOutTime(times[0])] = f"{times[0]!r} is a time: if the model will predict later rows"
    sizes = {name: size for name, size in ids.items() if isinstance(size, int) and name in table.column_names}
    many = [name for name, size in sizes.items() if size > _MANY and name not in times]
    if many:
        name = max(many, key=lambda name: sizes[name])
        advice[HoldOutGroups(name)] = f"{name!r} has {sizes[name]:,} ids that repeat: if the model will meet new ones"
    return advice


def _counts_time(table: "pa.Table", name: str) -> bool:
    types = need("pyarrow").types
    array = column_array(table.slice(0, _SAMPLE), name)
    if array.null_count == len(array):
        return False
    if types.is_timestamp(array.type) or types.is_date(array.type):
        return True
    if types.is_integer(array.type):
        return name.lower().replace("-", "_").split("_")[-1] in _TIME_NAMES
    if array.type != need("pyarrow").large_string():
        return False
    try:
        as_times("", array)
    except ValueError:
        return False
    return True
