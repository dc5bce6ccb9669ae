"""Kinds of columns inferred from a table: rules tried in order, each with a reason that a person can check."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from transun.data.features import Features
from transun.data.frames import PANDAS_INDEX
from transun.data.kinds import Bag, Datetime, Id, Kind, Lists, Number, Numbered, Split
from transun.data.schema import holds_lists, require_columns
from transun.data.table import as_numbers, as_times, column_array, read_table, targets
from transun.data.text_values import looks_numeric
from transun.support.arguments import listed
from transun.support.arrays import Floats
from transun.support.counting import counted
from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["guess", "infer"]

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

# Types that no kind reads (tests `pyarrow.types.is_…`), and what to do about it.
_UNREADABLE = {
    "struct": "write its fields as columns of their own",
    "map": "write its entries as columns of their own",
    "duration": "write it as a number, such as seconds",
    "time": "write it as a number, such as hours, or together with its date",
    "binary": "write it as text",
    "large_binary": "write it as text",
    "fixed_size_binary": "write it as text",
}
# Words in the name of a column that goes on: next week's number is larger than all before.
_RUNNING = {"year", "yr", "week", "wk", "period", "season", "cohort", "date"}
# Words of parts of a year, which begin again; above 31 they are counted on.
_RECURRING = {"day", "month", "quarter"}
# Text that may be a number with thousands separated: a decimal comma is recognised when a file is read.
_THOUSANDS = r"^\s*[+-]?\d{1,3}(,\d{3})+(\.\d+)?\s*$"
# Text that begins as a date does, in whatever order of day, month and year.
_DATE = r"^\s*(\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[./-]\d{1,2}[./-]\d{1,2})\b"
# Rows that a column is compared with the target in, and the correlation from which on it gives the target away.
_COMPARED, _GIVEN_AWAY = 20_000, 0.99

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
    the outcome, such as a click beside a watch time; otherwise the model will rely on what it will not have. Numbers
    that follow the target almost exactly are named among the reasons.

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
    return guess(table, target, weight=weight, columns=columns, exclude=exclude).fit(table)


def guess(
    table: "pa.Table",
    target: str,
    *,
    weight: str | None = None,
    columns: Mapping[str, Kind] | None = None,
    exclude: Iterable[str] = (),
) -> Features:
    """The features that `infer` fits, not fitted yet; arguments as there."""
    y = targets(table, target)
    declared = dict(columns or {})
    taken = {target, *require_columns(table.column_names, listed("exclude", exclude)), *([weight] if weight else [])}
    taken |= {source for name, kind in declared.items() for source in kind.sources(name)}
    candidates = [name for name in table.column_names if name not in taken]
    guesses = _numbered(table, candidates)
    in_groups = {source for name, (kind, _) in guesses.items() if kind for source in kind.sources(name)}
    for name in candidates:
        if name not in in_groups:
            guesses[name] = _guess(_ColumnFacts(name, column_array(table, name)))
    kinds = {name: kind for name, (kind, _) in guesses.items() if kind is not None} | declared
    why = {name: f"{why}{_given_away(table, name, y) if name in kinds else ''}" for name, (_, why) in guesses.items()}
    if not kinds:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in why.items()) or "there is no other"
        raise ValueError(f"no column of the table is of use for {target!r} ({reasons}): add some that are known before")
    return Features(kinds, why)


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
        """Whether every row that has a value has another one."""
        return bool(len(self.values) == len(self.array) - self.array.null_count > _MANY)

    def is_type(self, *tests: str) -> bool:
        """Whether one of the tests `pyarrow.types.is_…` holds."""
        types = need("pyarrow").types
        return any(getattr(types, f"is_{test}")(self.array.type) for test in tests)


def _guess(facts: _ColumnFacts) -> Guess:
    for rule in _RULES:
        guess = rule(facts)
        if guess is not None:
            return guess
    return None, f"{facts.array.type} is no kind of column known here: write it as numbers or text"


def _row_index(facts: _ColumnFacts) -> Guess | None:
    # pandas writes the row index of a frame as a column without a name, or with one of these.
    if _INDEX_NAME.fullmatch(facts.name):
        return None, "the row index of a pandas frame: it says where a row was, not what it is"
    return None


def _nothing(facts: _ColumnFacts) -> Guess | None:
    if facts.array.null_count == len(facts.array):
        return None, "missing in every row"
    return None


def _unreadable(facts: _ColumnFacts) -> Guess | None:
    # Before any rule that looks at values: Arrow cannot tell whether two structs are the same.
    for test, remedy in _UNREADABLE.items():
        if facts.is_type(test):
            return None, f"{facts.array.type} is no kind of column known here: {remedy}"
    if (
        facts.is_type("decimal")
        and facts.array.type.scale == 0
        and np.abs(as_numbers("", facts.values)).max() >= 2.0**53
    ):
        return None, "integers of more than 15 digits: write them as text"
    return None


def _list(facts: _ColumnFacts) -> Guess | None:
    if not holds_lists(facts.array.type):
        return None
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    flat = column_array(pa.table({facts.name: compute.list_flatten(facts.array)}), facts.name)
    values = _ColumnFacts(facts.name, flat)
    if flat.null_count == len(flat):
        return None, "lists without a value"
    if not values.is_type("integer", "boolean", "large_string", "floating"):
        return None, f"lists of {flat.type} are no kind of column known here: write them as lists of numbers or text"
    if values.is_type("floating") and not _all_whole(values):
        return None, "lists of fractions, which are no ids: write each element as a column of its own"
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
        return Datetime(("weekday", "month", "age", "day")), f"{reason}, days without an hour"
    return Datetime(), reason


def _text(facts: _ColumnFacts) -> Guess | None:
    if not facts.is_type("large_string"):
        return None
    compute = need("pyarrow.compute")
    numeric = looks_numeric(facts.values)
    with_thousands = compute.match_substring_regex(facts.values, _THOUSANDS)
    if compute.any(with_thousands).as_py() and compute.all(compute.or_(with_thousands, numeric)).as_py():
        return None, "numbers with commas, which may separate thousands or decimals: write 1234.5"
    remark = _text_among_numbers(facts, numeric) or _dates_in_other_forms(facts)
    if facts.unique:
        return None, f"another text in every row: nothing to learn for new ones{remark}"
    for separator in _SEPARATORS:
        holding = compute.sum(compute.match_substring(facts.values, separator)).as_py()
        parts = compute.list_flatten(compute.split_pattern(facts.values, separator)).unique()
        # Ranges such as "(10,50]" have a comma too, but more different ends than there are ranges.
        if holding >= 0.1 * len(facts.values) and len(parts) < len(facts.values):
            of = Id(min_count=_min_count(len(parts)))
            return Bag(Split(separator), of=of), f"text of {counted(len(parts), 'value')} between {separator!r}"
    return Id(min_count=_min_count(len(facts.values))), f"text of {counted(len(facts.values), 'value')}{remark}"


def _text_among_numbers(facts: _ColumnFacts, numeric: "pa.Array") -> str:
    """A remark on texts in what is otherwise a column of numbers: most likely they are mistakes."""
    compute = need("pyarrow.compute")
    others = len(numeric) - compute.sum(numeric).as_py()
    if not 0 < others <= 0.1 * len(numeric):
        return ""
    text = facts.values[compute.index(numeric, False).as_py()]
    row = compute.index(facts.array, text).as_py()
    return f", numbers but for {others} such as {text.as_py()!r} in row {row}: correct it if they shall be numbers"


def _dates_in_other_forms(facts: _ColumnFacts) -> str:
    """A remark on dates that are not written as 2025-01-31: which of 1/2 and 2/1 is February, nobody can tell."""
    compute = need("pyarrow.compute")
    if compute.sum(compute.match_substring_regex(facts.values, _DATE)).as_py() < 0.9 * len(facts.values):
        return ""
    try:
        as_times(f"column {facts.name!r}", facts.array)
    except ValueError as error:
        return f", mostly dates, which cannot be read as such: {error}"
    return ""


def _all_whole(facts: _ColumnFacts) -> bool:
    values = as_numbers("", facts.values)
    return bool((np.trunc(values) == values).all() and not np.isinf(values).any())


def _whole(facts: _ColumnFacts) -> Guess | None:
    if not facts.is_type("integer", "boolean", "floating") or not _all_whole(facts):
        return None
    values = as_numbers("", facts.values)
    named = _ID_NAME.fullmatch(facts.name) is not None
    if named and facts.unique:
        return None, "another id in every row: nothing to learn for new ones"
    if not named and len(values) > 2 and (ordered := _order(facts.name, np.sort(values))):
        kind, reason = ordered
        return kind, f"whole numbers from {values.min():.0f} to {values.max():.0f}, {reason}"
    if named or len(values) <= _FEW:
        reason = "named as an id" if named else f"only {len(values)} different"
        return Id(min_count=_min_count(len(values))), f"whole numbers, {reason}"
    return Number(), counted(len(values), "different whole number")


def _order(name: str, values: Floats) -> tuple[Number, str] | None:
    """How to read whole numbers, in ascending order, that are no codes, and why; None if nothing speaks for it.

    A new year is then a number beyond the others, and not an id that training has never seen. Little is lost where the
    guess is wrong: `Number` expands the rank of a number so that each of a few values can have its own effect.
    """
    words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
    if (words & _RUNNING and values[-1] > 7) or (words & _RECURRING and values[-1] > 31):
        return Number(periods=True), "named as a time that goes on"
    if values[0] >= 1900 and values[-1] <= 2100:
        return Number(periods=True), "which look like years"
    # Codes are mostly counted from 0 or 1, and there is no next one.
    if values[0] > 1 and values[-1] - values[0] < 1.5 * len(values):
        return Number(), "in a row, which may go on"
    if len(values) > 4 and len(set(np.diff(values))) == 1 and values[1] - values[0] > 1:
        return Number(), "at equal distances"
    return None


def _given_away(table: "pa.Table", name: str, y: Floats) -> str:
    """A remark on a column of numbers that follows the target almost exactly; empty for any other."""
    if table.schema.get_field_index(name) < 0:  # a bag of several columns
        return ""
    facts = _ColumnFacts(name, column_array(table, name))
    if not facts.is_type("integer", "floating", "decimal"):
        return ""
    step = -(-len(y) // _COMPARED)
    x = as_numbers("", facts.array)[::step]
    both = np.stack([x, y[::step]])[:, np.isfinite(x)]
    # Few rows, or few values, follow each other by chance.
    if both.shape[1] < _MANY or min(len(np.unique(part)) for part in both) <= _FEW:
        return ""
    # Without the largest hundredth of the targets, one of which can make up a correlation.
    typical = both[:, np.abs(both[1]) <= np.quantile(np.abs(both[1]), 0.99)]
    ranks = np.stack([_ranks(part) for part in both])
    correlation = max(abs(_correlation(ranks)), abs(_correlation(typical)))
    if not correlation >= _GIVEN_AWAY:
        return ""
    return f"; FOLLOWS THE TARGET (correlation {correlation:.3f}): exclude it if it is known only after the target"


def _ranks(values: Floats) -> Floats:
    """The mean rank of equal values, as in Spearman's correlation."""
    _, at, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[at], np.float64)


def _correlation(both: Floats) -> float:
    """Pearson's correlation of two rows of numbers; 0 where one of them is constant."""
    # By their largest size first, so that squares of 1e300 stay finite.
    scaled = both / np.maximum(np.abs(both).max(1, keepdims=True), 1e-300)
    centred = scaled - scaled.mean(1, keepdims=True)
    size = np.sqrt((centred**2).sum(1)).prod()
    return float((centred[0] * centred[1]).sum() / size) if size > 0.0 else 0.0


def _number(facts: _ColumnFacts) -> Guess | None:
    return (Number(), "numbers") if facts.is_type("floating", "decimal") else None


_RULES: tuple[Callable[[_ColumnFacts], Guess | None], ...] = (
    _row_index,
    _nothing,
    _unreadable,
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
