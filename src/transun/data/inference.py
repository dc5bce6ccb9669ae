"""Kinds of columns inferred from a table: rules tried in order, each with a reason that a person can check."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transun.data.features import Features
from transun.data.kinds import Bag, Datetime, Id, Kind, Lists, Number, Numbered, Split
from transun.data.schema import require_columns
from transun.data.table import PANDAS_INDEX, as_numbers, as_times, column_array, read_table, targets
from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["infer"]

_ID_NAME = re.compile(r"(?:.*_)?(?:id|uid|code|key|sku|zip|ID)|.*[a-z0-9](?:ID|Id)")
_INDEX_NAME = re.compile(rf"|Unnamed: 0|{PANDAS_INDEX.pattern}")
_NUMBERED = re.compile(r"(.*[^\d_])(_?)(0|[1-9]\d*)")
_SEPARATORS = ("|", ";", ",")
# At most this many different numbers are treated as categories: each then has many rows to learn a vector from.
_FEW = 32
# Above this many ids, those of a single row share the index of unseen ids, which otherwise has no rows to learn from.
_MANY = 100
# Lists are cut to this length, because every row takes memory for the longest.
_LONGEST = 50

Guess = tuple[Kind | None, str]
"""A kind, or None to leave the column out, and the reason."""


def infer(
    source: Any,
    target: str,
    *,
    weight: str | None = None,
    columns: Mapping[str, Kind] | None = None,
    exclude: Iterable[str] = (),
) -> Features:
    """Features inferred from a table and fitted to it; `print(infer(...).summary())` shows the kinds and the reasons.

    The rules cannot know which columns will be available when the prediction is made. Exclude those that are part of
    the outcome, such as a click beside a watch time; otherwise the model will rely on what it will not have.

    Args:
        source: training rows; what `read_table` takes.
        target: the column to predict, which is no feature.
        weight: the column of sample weights, which is no feature.
        columns: kinds that you declare; they replace the inferred ones of the columns they read.
        exclude: columns to leave out.

    >>> table = {"user_id": [1, 2, 1], "genres": ["Crime|Drama", "Crime", "Drama"], "gmv": [5.0, 6.0, 7.0]}
    >>> print(infer(table, "gmv", columns={"genres": Bag(Split("|"))}).summary())
    column   kind                 becomes         missing  why
    user_id  Id()                 user_id: 3 ids  0.0 %    whole numbers, named as an id
    genres   Bag(layout=Split())  genres: 3 ids   0.0 %    declared

    """
    table = read_table(source)
    targets(table, target)
    declared = dict(columns or {})
    taken = {target, *require_columns(table.column_names, exclude), *([weight] if weight else [])}
    taken |= {source for name, kind in declared.items() for source in kind.sources(name)}
    candidates = [name for name in table.column_names if name not in taken]
    guesses = _numbered(table, candidates)
    in_groups = {source for name, (kind, _) in guesses.items() if kind for source in kind.sources(name)}
    for name in candidates:
        if name not in in_groups:
            guesses[name] = _guess(_ColumnFacts(name, column_array(table, name)))
    kinds = {name: kind for name, (kind, _) in guesses.items() if kind is not None} | declared
    if not kinds:
        reasons = "; ".join(f"{name}: {why}" for name, (_, why) in guesses.items()) or "there is no other"
        raise ValueError(f"no column of the table is of use for {target!r} ({reasons}): add some that are known before")
    return Features(kinds, {name: why for name, (_, why) in guesses.items()}).fit(table)


@dataclass(frozen=True)
class _ColumnFacts:
    """What the rules ask about a column."""

    name: str
    array: "pa.Array"

    @cached_property
    def values(self) -> "pa.Array":
        """The distinct values."""
        return self.array.drop_null().unique()

    @property
    def unique(self) -> bool:
        """Whether every row has another value."""
        return len(self.values) == len(self.array) > _MANY

    def is_type(self, *tests: str) -> bool:
        """Whether one of the tests `pyarrow.types.is_…` holds."""
        types = need("pyarrow").types
        return any(getattr(types, f"is_{test}")(self.array.type) for test in tests)


def _guess(facts: _ColumnFacts) -> Guess:
    for rule in _RULES:
        guess = rule(facts)
        if guess is not None:
            return guess
    return None, f"{facts.array.type} is no kind of column known here"


def _row_index(facts: _ColumnFacts) -> Guess | None:
    # pandas writes the row index of a frame as a column without a name, or with one of these.
    if _INDEX_NAME.fullmatch(facts.name):
        return None, "the row index of a pandas frame: it says where a row was, not what it is"
    return None


def _nothing(facts: _ColumnFacts) -> Guess | None:
    if facts.array.null_count == len(facts.array):
        return None, "missing in every row"
    return None


def _list(facts: _ColumnFacts) -> Guess | None:
    if not facts.is_type("list", "large_list", "fixed_size_list"):
        return None
    compute = need("pyarrow.compute")
    longest = compute.max(compute.list_value_length(facts.array)).as_py()
    if longest > _LONGEST:
        return Bag(Lists(), length=_LONGEST), f"lists of up to {longest} values, cut to the first {_LONGEST}"
    return Bag(Lists()), f"lists of up to {longest} values"


def _constant(facts: _ColumnFacts) -> Guess | None:
    if len(facts.values) == 1 and not facts.array.null_count:
        return None, "one value in every row"
    return None


def _time(facts: _ColumnFacts) -> Guess | None:
    if facts.is_type("timestamp", "date"):
        return _datetime(facts.array, str(facts.array.type))
    if not facts.is_type("large_string"):
        return None
    try:
        return _datetime(as_times("", facts.values), "text that reads as times")
    except ValueError:
        return None


def _datetime(times: "pa.Array", reason: str) -> Guess:
    compute = need("pyarrow.compute")
    if compute.all(compute.equal(compute.hour(as_times("", times)), 0)).as_py():
        return Datetime(("weekday", "month", "age")), f"{reason}, days without an hour"
    return Datetime(), reason


def _text(facts: _ColumnFacts) -> Guess | None:
    if not facts.is_type("large_string"):
        return None
    if facts.unique:
        return None, "another text in every row: nothing to learn for new ones"
    compute = need("pyarrow.compute")
    for separator in _SEPARATORS:
        holding = compute.sum(compute.match_substring(facts.values, separator)).as_py()
        parts = compute.list_flatten(compute.split_pattern(facts.values, separator)).unique()
        # Ranges such as "(10,50]" have a comma too, but more different ends than there are ranges.
        if holding >= 0.1 * len(facts.values) and len(parts) < len(facts.values):
            of = Id(min_count=_min_count(len(parts)))
            return Bag(Split(separator), of=of), f"text of {len(parts)} values between {separator!r}"
    return Id(min_count=_min_count(len(facts.values))), f"text of {len(facts.values)} values"


def _whole(facts: _ColumnFacts) -> Guess | None:
    if not facts.is_type("integer", "boolean", "floating"):
        return None
    values = as_numbers("", facts.values)
    if not (np.trunc(values) == values).all() or np.isinf(values).any():
        return None
    named = _ID_NAME.fullmatch(facts.name) is not None
    if named and facts.unique:
        return None, "another id in every row: nothing to learn for new ones"
    if not named and _counts_on(values):
        return Number(), f"whole numbers from {values.min():.0f} to {values.max():.0f} in a row, which may go on"
    if named or len(values) <= _FEW:
        reason = "named as an id" if named else f"only {len(values)} different"
        return Id(min_count=_min_count(len(values))), f"whole numbers, {reason}"
    return Number(), f"{len(values)} different whole numbers"


def _counts_on(values: NDArray[np.float64]) -> bool:
    """Whether whole numbers look like years or weeks: one after the other, and not counted from 0 or 1 as codes are.

    A new year then is a number beyond the others, and not an id that training has never seen.
    """
    return len(values) > 2 and values.min() > 1 and values.max() - values.min() < 1.5 * len(values)


def _number(facts: _ColumnFacts) -> Guess | None:
    return (Number(), "numbers") if facts.is_type("floating", "decimal") else None


_RULES: tuple[Callable[[_ColumnFacts], Guess | None], ...] = (
    _row_index,
    _nothing,
    _list,
    _constant,
    _time,
    _text,
    _whole,
    _number,
)


def _min_count(distinct: int) -> int:
    return 2 if distinct > _MANY else 1


def _numbered(table: "pa.Table", names: list[str]) -> dict[str, Guess]:
    """Bags for groups of columns item_0, item_1, … that hold ids, some of them padding or missing."""
    matches = sorted(
        (match[1], match[2], int(match[3])) for match in map(_NUMBERED.fullmatch, names) if match is not None
    )
    groups: dict[str, Guess] = {}
    for (stem, join), members in groupby(matches, key=lambda match: match[:2]):
        numbers = [number for _, _, number in members]
        if len(numbers) < 2 or numbers[0] > 1 or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            continue
        # If there is a column `item` beside item_0, item_1, …, the bag is called `item_`.
        name, glue = (f"{stem}{join}", "") if stem in table.column_names else (stem, join)
        layout = Numbered(len(numbers), start=numbers[0], join=glue)
        arrays = [_ColumnFacts(source, column_array(table, source)) for source in layout.sources(name)]
        if not all(facts.is_type("integer", "large_string") for facts in arrays):
            continue
        ids, counts = layout.read(name, table)
        if len(ids) and counts.min() < len(numbers):
            distinct = len(ids.unique())
            reason = f"{len(numbers)} numbered columns of ids, some of them {layout.pad} or missing"
            groups[name] = Bag(layout, of=Id(min_count=_min_count(distinct))), reason
    return groups
