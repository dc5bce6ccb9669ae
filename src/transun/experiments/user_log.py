"""The log of an experiment, summed up by user; a log that cannot be analysed is refused with the reason."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from transun.data.magnitude import refuse_vanishing, require_squarable
from transun.data.table import as_numbers, column_array, read_table
from transun.support.arguments import listed
from transun.support.arrays import Flags, Floats, Integers
from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FEWEST_USERS", "LogColumns", "UserLog", "read_user_log"]

FEWEST_USERS = 10
"""Fewer are no sample: quantiles of their mean mean nothing."""

# A column of more values than this names something else than arms.
_MOST_ARMS = 20


@dataclass(frozen=True)
class LogColumns:
    """The columns of a log, whose rows are orders, impressions, days or users.

    Values and `per` are summed over the rows of a user, because the user was assigned to an arm and rows of one user
    depend on each other. All other columns describe the user and are the same in all rows of one user.

    Attributes:
        user: who was assigned to an arm.
        value: the amount that the test is about, such as order value; 0 where nothing was bought.
        arm: the arm of the user; None for a plan, which needs no arms.
        per: a count, such as impressions, for the ratio Σ value / Σ per.
        before: the value of the user in a period before the test.
        predicted: the value of the user that a model predicted from what was known before the test.
        by: segments of users.
        id: the name of a row, such as an order number, which must occur once.

    """

    user: str
    value: str
    arm: str | None = None
    per: str | None = None
    before: str | None = None
    predicted: str | None = None
    by: tuple[str, ...] = ()
    id: str | None = None

    def __post_init__(self) -> None:
        single = [self.user, self.value, self.arm, self.per, self.before, self.predicted, self.id]
        named = [name for name in [*single, *listed("by", self.by)] if name is not None]
        twice = next((name for name in named if named.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"column {twice!r} is named for two purposes: name a column for each")

    @property
    def covariates(self) -> tuple[str, ...]:
        """The columns that are known before the test and tell users of large values from others."""
        return tuple(name for name in (self.before, self.predicted) if name is not None)


@dataclass(frozen=True)
class UserLog:
    """A log by user, in the order in which users first occur.

    Attributes:
        rows: of the log.
        users: how many there are.
        value: (users,) sum of the values.
        per: (users,) sum of the denominators; None where the log has none.
        covariates: (users,) by name of the column.
        arm: (users,) index into `arms`.
        arms: names of the arms, in alphabetical order; one arm without a name where the log has none.
        segments: a table of `users` rows with the columns of segments; None if there are none.
        notes: sentences on what the reader of a result should know about the log.

    """

    rows: int
    users: int
    value: Floats
    per: Floats | None
    covariates: Mapping[str, Floats]
    arm: Integers
    arms: tuple[str, ...]
    segments: "pa.Table | None"
    notes: tuple[str, ...]

    def only(self, users: Flags) -> "UserLog":
        """The part of some users, without segments."""
        return replace(
            self,
            users=int(users.sum()),
            value=self.value[users],
            per=None if self.per is None else self.per[users],
            covariates={name: values[users] for name, values in self.covariates.items()},
            arm=self.arm[users],
            segments=None,
        )


def read_user_log(source: Any, columns: LogColumns) -> UserLog:
    """Read the columns of a log and sum them up by user, or refuse the log with a reason and a remedy.

    Args:
        source: what `read_table` takes: a file, a folder, a frame or a dict of columns.
        columns: which column is what.

    >>> columns = LogColumns("user", "gmv", arm="arm")
    >>> log = read_user_log({"user": ["a", "b", "a"], "arm": ["new", "old", "new"], "gmv": [1.0, 0.0, 2.0]}, columns)
    >>> log.arms, log.arm.tolist(), log.value.tolist()
    (('new', 'old'), [0, 1], [3.0, 0.0])
    >>> read_user_log({"user": ["a", "b"], "arm": ["new", "new"], "gmv": [1.0, 0.0]}, columns)
    Traceback (most recent call last):
    ValueError: column 'arm' is 'new' in every row: a test compares two arms or more

    """
    names = [columns.user, columns.value, columns.arm, columns.per, columns.id, *columns.covariates, *columns.by]
    labels = [name for name in (columns.user, columns.arm, columns.id) if name is not None]
    table = read_table(source, [name for name in names if name is not None], verbatim=labels)
    user, user_names = _codes(table, columns.user)
    users = len(user_names)
    _refuse_repeated_ids(table, columns.id)
    arm: Integers = np.zeros(users, dtype=np.int64)
    arms: tuple[str, ...] = ("",)
    if columns.arm is not None:
        arm, arms = _arms(table, columns.arm, user, user_names)
    value = _numbers(table, columns.value, "write 0 where a user bought nothing")
    per = None if columns.per is None else _numbers(table, columns.per, "write 0 where nothing was counted")
    if per is not None and (per < 0.0).any():
        row = int(np.flatnonzero(per < 0.0)[0])
        raise ValueError(f"column {columns.per!r} is {per[row]:g} in row {row}: a count cannot be negative; correct it")
    log = UserLog(
        rows=len(table),
        users=users,
        value=_sums(user, value, users),
        per=None if per is None else _sums(user, per, users),
        covariates={name: _of_users(table, name, user, user_names) for name in columns.covariates},
        arm=arm,
        arms=arms,
        segments=_segments(table, columns.by, user, user_names),
        notes=(),
    )
    if log.per is not None and not log.per.any():
        raise ValueError(f"column {columns.per!r} is 0 in every row: name the column of the counts")
    return replace(log, notes=tuple(_notes(table, columns, log, value)))


def _codes(table: "pa.Table", name: str) -> tuple[Integers, "pa.Array"]:
    """The values of a column as indices into its different values, and these, in the order of their first rows."""
    array = column_array(table, name)
    missing = array.is_null().to_numpy(zero_copy_only=False)
    if missing.any():
        raise ValueError(
            f"column {name!r} is missing in row {np.flatnonzero(missing)[0]}, as in {missing.sum():,} of "
            f"{len(array):,} rows: name it in every row, or leave these rows out of all arms"
        )
    encoded = _encoded(name, array)
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary


def _encoded(name: str, array: "pa.Array") -> "pa.DictionaryArray":
    """The different values of a column and the index of each row's, a missing one among them."""
    try:
        return array.dictionary_encode("encode")
    except need("pyarrow").ArrowNotImplementedError as error:
        raise ValueError(f"column {name!r} holds {array.type}, not one name a row: name another column") from error


def _first_rows(code: Integers, values: int) -> Integers:
    """The first row of each of so many values, by the index of the value in every row (n,).

    >>> _first_rows(np.array([0, 1, 0]), 2).tolist()
    [0, 1]
    """
    first = np.empty(values, dtype=np.int64)
    first[code[::-1]] = np.arange(len(code))[::-1]  # backwards, so that the first row of a value is written last
    return first


def _arms(table: "pa.Table", name: str, user: Integers, user_names: "pa.Array") -> tuple[Integers, tuple[str, ...]]:
    code, values = _codes(table, name)
    texts = [str(value) for value in values.to_pylist()]
    if len(texts) < 2:
        raise ValueError(f"column {name!r} is {texts[0]!r} in every row: a test compares two arms or more")
    if len(texts) > _MOST_ARMS:
        raise ValueError(
            f"column {name!r} has {len(texts):,} values: a test has at most {_MOST_ARMS} arms; name the column of arms"
        )
    _refuse_similar(name, texts)
    order = np.argsort(texts, kind="stable")
    rank = np.empty(len(texts), dtype=np.int64)
    rank[order] = np.arange(len(texts))
    code = rank[code]
    arms = tuple(texts[index] for index in order)
    arm = code[_first_rows(user, len(user_names))]
    elsewhere = np.flatnonzero(arm[user] != code)
    if len(elsewhere):
        row, many = elsewhere[0], len(np.unique(user[elsewhere]))
        raise ValueError(
            f"user {_name(user_names, user[row])} is in arm {arms[code[row]]!r} in row {row} and in another before, as "
            f"are {many:,} of {len(user_names):,} users: correct the assignment, or leave these users out of all arms"
        )
    return arm, arms


def _refuse_similar(name: str, arms: list[str]) -> None:
    """Refuse two arms whose names differ in case or blanks only: they are one arm, written in two ways."""
    first: dict[str, str] = {}
    for arm in arms:
        other = first.setdefault(arm.strip().casefold(), arm)
        if other != arm:
            raise ValueError(
                f"arms {other!r} and {arm!r} of column {name!r} differ in case or blanks only: write them alike"
            )


def _numbers(table: "pa.Table", name: str, remedy: str) -> Floats:
    numbers: Floats = as_numbers(f"column {name!r}", column_array(table, name), "name another column")
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if len(wrong):
        missing = bool(np.isnan(numbers[wrong[0]]))
        raise ValueError(
            f"column {name!r} is {'missing' if missing else 'infinite'} in row {wrong[0]}, as in {len(wrong):,} of "
            f"{len(numbers):,} rows: {remedy if missing else 'correct it'}"
        )
    require_squarable(np.arange(len(numbers)), **{f"value of {name!r}": numbers})
    refuse_vanishing(**{f"value of {name!r}": numbers})
    return numbers


def _sums(user: Integers, values: Floats, users: int) -> Floats:
    return np.bincount(user, values, users).astype(np.float64)


def _of_users(table: "pa.Table", name: str, user: Integers, user_names: "pa.Array") -> Floats:
    """A number that describes a user, and so is the same in all rows of one user."""
    numbers = _numbers(table, name, "write 0 for users of whom nothing was known before the test")
    of_users = numbers[_first_rows(user, len(user_names))]
    _refuse_change(name, np.flatnonzero(of_users[user] != numbers), user, user_names)
    return of_users


def _segments(table: "pa.Table", names: tuple[str, ...], user: Integers, user_names: "pa.Array") -> "pa.Table | None":
    """The segments of each user, from the first row of the user."""
    if not names:
        return None
    pa = need("pyarrow")
    row = _first_rows(user, len(user_names))
    for name in names:
        code = _encoded(name, column_array(table, name)).indices.to_numpy(zero_copy_only=False)
        _refuse_change(name, np.flatnonzero(code[row[user]] != code), user, user_names)
    return pa.table({name: column_array(table, name).take(pa.array(row)) for name in names})


def _refuse_change(name: str, rows: Integers, user: Integers, user_names: "pa.Array") -> None:
    if len(rows):
        raise ValueError(
            f"column {name!r} changes for user {_name(user_names, user[rows[0]])} in row {rows[0]}, as for "
            f"{len(np.unique(user[rows])):,} of {len(user_names):,} users: it must describe the user and be known "
            "before the test; write one value for all rows of a user"
        )


def _refuse_repeated_ids(table: "pa.Table", name: str | None) -> None:
    if name is None:
        return
    code, values = _codes(table, name)
    first = _first_rows(code, len(values))
    repeated = np.flatnonzero(first[code] != np.arange(len(code)))
    if len(repeated):
        row = repeated[0]
        raise ValueError(
            f"{name!r} {_name(values, code[row])} of row {row} is that of row {first[code[row]]} too; "
            f"{len(repeated):,} of {len(code):,} rows repeat another: keep the first of each"
        )


def _notes(table: "pa.Table", columns: LogColumns, log: UserLog, value: Floats) -> list[str]:
    notes = []
    if columns.id is None and (repeated := _repeated_rows(table, value)):
        notes.append(
            f"{repeated:,} of {log.rows:,} rows with a value repeat another row in every column that was read. If "
            "they were logged twice, remove them; where rows have a number, name its column, and repeats are refused."
        )
    if not (log.value == 0.0).any():
        notes.append(
            "No user has a total of 0. If the log leaves out users who bought nothing, the arms compare buyers, whom "
            "the arms may have made different: add the other users with a value of 0."
        )
    return notes


def _repeated_rows(table: "pa.Table", value: Floats) -> int:
    """Rows whose value (n,) is other than 0 that are like an earlier row in every column."""
    with_value = table.filter(need("pyarrow").array(value != 0.0))
    different = with_value.group_by(with_value.column_names).aggregate([])
    return len(with_value) - len(different)


def _name(values: "pa.Array", index: int) -> str:
    return repr(values[int(index)].as_py())
