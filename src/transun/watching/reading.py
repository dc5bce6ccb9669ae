"""Predictions and actual amounts from tables: joined by id, summed by period."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from transun.data.magnitude import refuse_vanishing, require_squarable
from transun.data.schema import given_names, require_columns
from transun.data.table import as_ids, as_numbers, as_times, column_array
from transun.support.arguments import listed
from transun.support.arrays import Floats, Integers
from transun.support.extras import need
from transun.watching.watch import PredictedRows

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Calendar", "Every", "WatchColumns", "join_arrivals"]


Every = Literal["day", "week", "month"]
"""The length of a period."""

_A_YEAR = {"day": 365, "week": 52, "month": 12}
# Weeks begin on Mondays, and the first of January 1970, from which numpy counts, was a Thursday.
_MONDAY = 3
# Segments of a column that are watched, the largest ones; the others are one segment.
_MOST_SEGMENTS = 10


@dataclass(frozen=True)
class WatchColumns:
    """The names of the columns.

    Args:
        time: when a row was predicted.
        id: what a prediction and its amounts have in common.
        pred: the prediction.
        target: the actual amount.
        arrived: when an amount became known; None if amounts are known in the period of their prediction.
        by: columns of segments.

    """

    time: str
    id: str
    pred: str
    target: str
    arrived: str | None = None
    by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        listed("by", self.by)


@dataclass(frozen=True)
class Calendar:
    """Periods of a length, counted from the one of a first day.

    >>> calendar = Calendar("week", np.datetime64("2026-01-05"))
    >>> calendar.period(np.array(["2026-01-11", "2026-01-12"], "datetime64[D]")).tolist()
    [0, 1]
    >>> calendar.name(1), calendar.a_year
    ('2026-01-12', 52)
    """

    every: Every
    first: np.datetime64

    @property
    def a_year(self) -> int:
        """The number of periods of a year."""
        return _A_YEAR[self.every]

    def period(self, days: NDArray[np.datetime64]) -> Integers:
        """The period of each day."""
        return self._number(days) - int(self._number(np.array([self.first], "datetime64[D]"))[0])

    def name(self, period: int) -> str:
        """The first day of a period, or its month."""
        begin = int(self._number(np.array([self.first], "datetime64[D]"))[0]) + period
        match self.every:
            case "month":
                return str(np.datetime64(begin, "M"))
            case "week":
                return str(np.datetime64(7 * begin - _MONDAY, "D"))
            case "day":
                return str(np.datetime64(begin, "D"))

    def _number(self, days: NDArray[np.datetime64]) -> Integers:
        match self.every:
            case "month":
                return days.astype("datetime64[M]").astype(np.int64)
            case "week":
                return (days.astype("datetime64[D]").astype(np.int64) + _MONDAY) // 7
            case "day":
                return days.astype("datetime64[D]").astype(np.int64)


def join_arrivals(
    predicted: "pa.Table", actual: "pa.Table", columns: WatchColumns, every: Every
) -> tuple[PredictedRows, Calendar, tuple[str, ...]]:
    """The predictions with the amounts that arrived for them, the calendar, and what was left out, in sentences.

    An id is predicted once; it may have several amounts, which add up, or none yet.

    Args:
        predicted: one prediction per row.
        actual: one amount per row.
        columns: the names of the columns.
        every: the length of a period.

    """
    require_columns(predicted.column_names, [columns.time, columns.id, columns.pred, *columns.by])
    require_columns(actual.column_names, given_names(columns.id, columns.target, columns.arrived))
    skipped: list[str] = []
    days, pred = _days(predicted, columns.time), _numbers(predicted, columns.pred)
    calendar = Calendar(every, days.min())
    period = calendar.period(days)
    _refuse_long_gap(columns.time, period, calendar)
    row = _rows_of_ids(predicted, actual, columns.id)
    amount = _numbers(actual, columns.target)
    negative = np.flatnonzero(amount < 0.0)
    if len(negative):
        raise ValueError(
            f"column {columns.target!r}, row {negative[0]} is {amount[negative[0]]:g}, and watching is for amounts "
            "that are not negative: correct it, or leave such rows out"
        )
    matched = row >= 0
    if not matched.any():
        raise ValueError(f"no actual amount has an id {columns.id!r} that was predicted: are these the right files?")
    if not matched.all():
        skipped.append(f"{(~matched).sum():,} of {len(row):,} actual amounts belong to no prediction and are left out")
    row, amount = row[matched], amount[matched]
    if columns.arrived is None:
        delay = np.zeros(len(row), np.int64)
        last = int(period.max())
    else:
        arrived = calendar.period(_days(actual, columns.arrived)[matched])
        delay = arrived - period[row]
        last = int(max(arrived.max(), period.max()))
        early = delay < 0
        if early.all():
            raise ValueError(
                f"every amount came before its prediction, by the columns {columns.time!r} and {columns.arrived!r}: "
                "are these the right ones?"
            )
        if early.any():
            skipped.append(
                f"{early.sum():,} amounts were known in a period before that of their prediction and are left out, "
                "because there was nothing left to predict"
            )
            row, amount, delay = row[~early], amount[~early], delay[~early]
    segments = {name: _segments(predicted, name) for name in columns.by}
    return PredictedRows(period, pred, row, delay, amount, last, segments), calendar, tuple(skipped)


def _rows_of_ids(predicted: "pa.Table", actual: "pa.Table", name: str) -> Integers:
    """For each actual amount, the row of its prediction; -1 where it has none."""
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    of_predicted, of_actual = (as_ids(f"column {name!r}", column_array(table, name)) for table in (predicted, actual))
    if of_predicted.type != of_actual.type:
        of_predicted, of_actual = (ids.cast(pa.large_string()) for ids in (of_predicted, of_actual))
    if of_predicted.null_count:
        row = int(np.argmax(of_predicted.is_null().to_numpy(zero_copy_only=False)))
        raise ValueError(f"column {name!r}, row {row} of the predictions has no id: drop such rows, or fill them in")
    if len(of_predicted.unique()) < len(of_predicted):
        raise ValueError(f"column {name!r} has ids that were predicted more than once: keep one prediction of each")
    index = compute.index_in(of_actual, value_set=of_predicted)
    return np.asarray(compute.fill_null(index, -1).to_numpy(zero_copy_only=False), np.int64)


def _refuse_long_gap(name: str, period: Integers, calendar: Calendar) -> None:
    """Refuse predictions with a gap that is longer than all others together: the time after or before it is a mistake.

    One date of 2099 among those of this year would begin the watch in 2098, where it finds nothing.
    """
    periods = np.unique(period)
    gaps = np.diff(periods)
    if len(gaps) > 1 and gaps.max() > np.median(gaps) * len(periods):
        before, after = (periods[gaps.argmax() + step] for step in (0, 1))
        row = int(np.flatnonzero(period == (before if before == periods[0] else after))[0])
        raise ValueError(
            f"column {name!r} has no time between {calendar.name(int(before))} and {calendar.name(int(after))}, longer "
            f"than all the others together: correct it, as in row {row}, or leave the rows of one side out"
        )


def _days(table: "pa.Table", name: str) -> NDArray[np.datetime64]:
    times = as_times(f"column {name!r}", column_array(table, name))
    if times.null_count:
        row = int(np.argmax(times.is_null().to_numpy(zero_copy_only=False)))
        raise ValueError(f"column {name!r}, row {row} has no time: drop such rows, or fill them in")
    return np.asarray(times.to_numpy(zero_copy_only=False)).astype("datetime64[D]")


def _numbers(table: "pa.Table", name: str) -> Floats:
    values: NDArray[Any] = as_numbers(f"column {name!r}", column_array(table, name), "name another column")
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise ValueError(f"column {name!r}, row {wrong[0]} holds no finite number: drop such rows, or correct them")
    require_squarable(np.arange(len(values)), **{f"value of {name!r}": values})
    refuse_vanishing(**{f"value of {name!r}": values})
    return np.asarray(values, np.float64)


def _segments(table: "pa.Table", name: str) -> tuple[Integers, Sequence[str]]:
    """The segment of each row, one of the commonest values or all others, missing ones among them; and the titles."""
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    texts = column_array(table, name).cast(pa.large_string())
    counts = {entry["values"]: entry["counts"] for entry in texts.drop_null().value_counts().to_pylist()}
    if len(counts) > max(_MOST_SEGMENTS, len(texts) / 2):
        raise ValueError(
            f"column {name!r} has {len(counts):,} different values in {len(texts):,} rows: these name rows, not "
            "segments; use a coarser column"
        )
    common = sorted(counts, key=lambda value: (-counts[value], value))[:_MOST_SEGMENTS]
    codes = compute.fill_null(compute.index_in(texts, value_set=pa.array(common, pa.large_string())), len(common))
    codes = np.asarray(codes.to_numpy(zero_copy_only=False), np.int64)
    titles = [*common, *(["all others"] if (codes == len(common)).any() else [])]
    return codes, titles
