"""Training and test rows of a table: by a hash of what identifies them, by row number, or by time."""

from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from transun.data import hashing
from transun.data.hashing import hash_text, per_distinct
from transun.data.table import as_ids, as_times, column_array, read_table
from transun.support.counting import counted
from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["EmptyPartError", "by_hash", "by_row", "by_time", "cutoff_of", "hash_rows", "moment_of", "moments"]


class EmptyPartError(ValueError):
    """A split left one part without rows."""


def by_hash(source: Any, columns: str | tuple[str, ...], share: float, seed: int = 0) -> tuple["pa.Table", "pa.Table"]:
    """Two parts, the first of about `share` of the rows: a row is in it when hash(seed, key) < share.

    The key is the values of a row in `columns`, and nothing else decides: not its position, its neighbours, the number
    of rows, nor the width of integers. So a row stays on its side when rows are added, tomorrow and on another machine.
    Rows with equal keys stay together. The price is that the first part has `share` of the keys only on average.

    With a column of groups as the key, such as users, shops or devices, the parts have no group in common: a test on
    new groups. If rows of one user were on both sides, what the model memorised about the user would look like
    knowledge. Rows without a group are one group.

    Args:
        source: what `read_table` takes.
        columns: what identifies a row, such as "order_id", or several columns; their order does not matter. Columns
            whose values are corrected later would move the row.
        share: of the keys that fall in the first part. A larger share keeps every row of a smaller one.
        seed: another seed is another, independent split.

    >>> table = {"order": list(range(1000)), "gmv": [1.0] * 1000}
    >>> train, test = by_hash(table, "order", share=0.8)
    >>> len(train) + len(test), 760 < len(train) < 840
    (1000, True)
    >>> train, test = by_hash({"user": [1, 1, 2, 2, 3, 3], "gmv": [1.0] * 6}, "user", share=0.5)
    >>> set(train["user"].to_pylist()) & set(test["user"].to_pylist())
    set()

    """
    table = read_table(source)
    return _parts(table, hash_rows(table, columns, seed) < _checked_share(share), f"hash of {columns!r}, share {share}")


def by_row(source: Any, share: float, seed: int = 0) -> tuple["pa.Table", "pa.Table"]:
    """Two parts, the first of about `share` of the rows: row i is in it when hash(seed, i) < share.

    For tables without a key. A row stays on its side when rows are appended, but not when they are reordered.

    >>> train, test = by_row({"gmv": [1.0] * 1000}, share=0.8)
    >>> len(train) + len(test), 760 < len(train) < 840
    (1000, True)
    """
    table = read_table(source)
    first = hashing.uniform(torch.arange(len(table)), seed, "split") < _checked_share(share)
    return _parts(table, first.numpy(), f"row, share {share}")


def by_time(
    source: Any, column: str, *, cutoff: Any = None, share: float | None = None
) -> tuple["pa.Table", "pa.Table"]:
    """The rows before a cutoff and those from it on: t < cutoff and t ≥ cutoff.

    Use this split for a model that will predict the future. Rows of one moment stay together.

    Args:
        source: what `read_table` takes.
        column: times, or numbers that ascend with time; no value may be missing.
        cutoff: a time (a datetime, a date, or ISO text) or a number, as the column is: rows stay on their side when
            others are added.
        share: instead of a cutoff, the share of rows before it. The cutoff is then a quantile of these rows, which
            moves when rows are added: get it from `cutoff_of` to split tomorrow's table in the same way.

    >>> earlier, later = by_time({"day": [3, 1, 2], "gmv": [1.0, 2.0, 3.0]}, "day", cutoff=3)
    >>> earlier["day"].to_pylist(), later["day"].to_pylist()
    ([1, 2], [3])

    """
    if (cutoff is None) == (share is None):
        raise ValueError("by_time needs either a cutoff or a share")
    table = read_table(source)
    times = moments(table, column)
    limit = _quantile(times, column, share) if share is not None else _limit(table, column, cutoff)
    return _parts(table, times < limit, f"time {column!r}")


def cutoff_of(source: Any, column: str, share: float) -> datetime | float:
    """The cutoff that has about `share` of the rows before it, for `by_time`.

    >>> cutoff_of({"day": [1, 2, 3, 4]}, "day", 0.5)
    3
    """
    table = read_table(source)
    times = moments(table, column)
    limit = _quantile(times, column, share)
    array = column_array(table, column)
    if _is_number(array.type):
        return float(limit) if isinstance(limit, np.floating) else int(limit)
    moment: datetime = as_times("", array)[int(np.flatnonzero(times == limit)[0])].as_py()
    return moment


def moment_of(table: "pa.Table", column: str, share: float) -> float:
    """The number, in the units of `moments`, that about `share` of the rows are below.

    >>> moment_of(read_table({"day": [1, 2, 3, 4]}), "day", 0.5)
    3.0
    """
    return float(_quantile(moments(table, column), column, share))


def hash_rows(table: "pa.Table", columns: str | tuple[str, ...], seed: int) -> np.ndarray:
    """A number in (0, 1) for each row (n,), a hash of its values in `columns`; rows with `hash_rows < share` go first.

    For data that is read in pieces: a piece is split exactly as the whole table would be.
    """
    names = sorted({columns} if isinstance(columns, str) else set(columns))
    if not names:
        raise ValueError("a split by hash needs a column that identifies a row")
    state = torch.zeros(len(table), dtype=torch.int64)
    for name in names:
        key = _key(table, name)
        # A missing value has a hash of its own.
        hashes = per_distinct(hash_text, key) + key.is_null().to_numpy(zero_copy_only=False)
        state = hashing.bits(state ^ torch.from_numpy(hashes), 0, "split.key")
    return np.asarray(hashing.uniform(state, seed, "split"))


def _key(table: "pa.Table", name: str) -> "pa.Array":
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    array = column_array(table, name)
    if pa.types.is_temporal(array.type):
        # In microseconds, whatever the unit of the column.
        return compute.cast(as_times(f"column {name!r}", array), pa.int64())
    if pa.types.is_floating(array.type):
        # A whole number counts as an integer, which it was before pandas met a missing one; others count by their
        # bits. Each value is treated by itself, because otherwise a new row could move the old ones.
        numbers = compute.fill_null(compute.cast(array, pa.float64()), 0.0).to_numpy()
        whole = (np.trunc(numbers) == numbers) & (np.abs(numbers) < 2.0**53)
        key = np.where(whole, np.where(whole, numbers, 0).astype(np.int64), numbers.view(np.int64))
        return pa.array(key, mask=array.is_null().to_numpy(zero_copy_only=False))
    return as_ids(f"column {name!r}", array)


def moments(table: "pa.Table", column: str) -> np.ndarray:
    """A column of times as microseconds since 1970, or of numbers as they are; no value may be missing."""
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    array = column_array(table, column)
    if array.null_count:
        row = compute.index(array.is_null(), True).as_py()
        raise ValueError(f"column {column!r}, row {row} has no time: drop such rows, or split by rows or groups")
    if _is_number(array.type):
        return np.asarray(array.to_numpy())
    return np.asarray(compute.cast(as_times(f"column {column!r}", array), pa.int64()).to_numpy())


def _is_number(type_: Any) -> bool:
    types = need("pyarrow").types
    return bool(types.is_integer(type_) or types.is_floating(type_))


def _limit(table: "pa.Table", column: str, cutoff: Any) -> float:
    pa = need("pyarrow")
    type_ = column_array(table.slice(0, 0), column).type
    numeric = _is_number(type_)
    if numeric != isinstance(cutoff, (int, float)):
        raise ValueError(f"column {column!r} holds {type_}, which a cutoff {cutoff!r} cannot be compared with")
    if numeric:
        return float(cutoff) if isinstance(cutoff, float) else cutoff
    moment = cutoff if isinstance(cutoff, (datetime, date)) else datetime.fromisoformat(cutoff)
    zone = getattr(type_, "tz", None)
    if zone is not None and getattr(moment, "tzinfo", None) is None:
        raise ValueError(f"column {column!r} is in time zone {zone}: the cutoff needs one too")
    if zone is None and getattr(moment, "tzinfo", None) is not None:
        raise ValueError(f"column {column!r} has no time zone, but the cutoff {cutoff} has: give it without")
    return int(pa.scalar(moment).cast(pa.timestamp("us", zone)).cast(pa.int64()).as_py())


def _quantile(times: np.ndarray, column: str, share: float) -> Any:
    if len(times) == 0:
        raise ValueError(f"the table has no rows to split by {column!r}")
    rank = min(round(_checked_share(share) * len(times)), len(times) - 1)
    limit = np.partition(times, rank)[rank]
    # Rows of one moment stay together: the cutoff is this moment or the next, whichever leaves nearly the share before
    # it, but not the first of all moments, which leaves nothing.
    later = times[times > limit]
    if not len(later):
        return limit
    before, after = (float((times < moment).mean()) for moment in (limit, later.min()))
    return limit if before > 0.0 and share - before <= after - share else later.min()


def _checked_share(share: float) -> float:
    if not 0 < share < 1:
        raise ValueError(f"share {share} must lie strictly between 0 and 1")
    return share


def _parts(table: "pa.Table", first: np.ndarray, how: str) -> tuple["pa.Table", "pa.Table"]:
    pa = need("pyarrow")
    if first.all() or not first.any():
        raise EmptyPartError(f"splitting {counted(len(table), 'row')} by {how} leaves one part empty")
    return table.filter(pa.array(first)), table.filter(pa.array(~first))
