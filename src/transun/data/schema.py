"""Names and Arrow types of columns: those asked for must exist, no name may occur twice, and what a type can hold."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from transun.support.extras import need
from transun.support.suggest import did_you_mean

__all__ = [
    "NOTHING",
    "DifferingTypesError",
    "MissingColumnError",
    "agreed_content",
    "content_of",
    "given_names",
    "holds_lists",
    "holds_numbers",
    "refuse_duplicates",
    "require_columns",
]

NOTHING = "nothing"
"""The content of a column that is missing in every row of a file: it agrees with any other."""


def given_names(*names: str | None) -> list[str]:
    """The names that are given, each once and in their order; None stands for a column that there is not.

    >>> given_names("item", "gmv", None, "item")
    ['item', 'gmv']
    """
    return list(dict.fromkeys(name for name in names if name is not None))


class MissingColumnError(ValueError):
    """A table lacks a column that was asked for.

    Args:
        name: the column that is missing.
        columns: the columns that the table has; the message shows the most similar ones.
        file: the file that lacks the column, if the table consists of several.

    >>> str(MissingColumnError("prise", ["price", "item"]))
    "there is no column 'prise': did you mean 'price'? The table has price, item"

    """

    def __init__(self, name: str, columns: Iterable[str], file: Path | None = None) -> None:
        self.name, self.columns, self.file = name, tuple(columns), file
        # The arguments themselves, not the message, so that the error survives pickling between processes.
        super().__init__(self.name, self.columns, self.file)

    def __str__(self) -> str:
        more = f" and {len(self.columns) - 20} more" if len(self.columns) > 20 else ""
        table = f"The table has {', '.join(self.columns[:20]) or 'no columns'}{more}"
        # Whoever names a column by a number or a tuple shall read what its name is.
        hint = f"{did_you_mean(str(self.name), self.columns)} {table}".lstrip()
        where = "" if self.file is None else f"{self.file}: "
        return f"{where}there is no column {self.name!r}: {hint}"


class DifferingTypesError(ValueError):
    """Two files of one table hold different things in the same column.

    Args:
        column: its name.
        message: the sentence for a person.

    """

    def __init__(self, column: str, message: str) -> None:
        self.column, self.message = column, message
        super().__init__(column, message)

    def __str__(self) -> str:
        return self.message


def require_columns(columns: Iterable[str], wanted: Iterable[str], file: Path | None = None) -> list[str]:
    """The wanted names if the table has all of them; otherwise `MissingColumnError` for the first one it lacks.

    >>> require_columns(["price", "item"], ["item"])
    ['item']
    >>> require_columns(["price", "item"], ["prise"])
    Traceback (most recent call last):
    transun.data.schema.MissingColumnError: there is no column 'prise': did you mean 'price'? The table has price, item
    """
    columns, wanted = list(columns), list(wanted)
    for name in wanted:
        if name not in columns:
            raise MissingColumnError(name, columns, file)
    return wanted


def refuse_duplicates(columns: Iterable[str], file: Path | None = None) -> None:
    """Raise a `ValueError` if two columns have the same name.

    >>> refuse_duplicates(["item", "item"])
    Traceback (most recent call last):
    ValueError: the table has more than one column 'item': rename or drop one, or which of them is meant depends on ...
    """
    duplicates = [name for name, count in Counter(columns).items() if count > 1]
    if duplicates:
        raise ValueError(
            f"{file or 'the table'} has more than one column {duplicates[0]!r}: rename or drop one, "
            "or which of them is meant depends on their order"
        )


def holds_lists(type_: Any) -> bool:
    """Whether a column of this Arrow type has a list in each row.

    >>> import pyarrow
    >>> holds_lists(pyarrow.list_(pyarrow.int64())), holds_lists(pyarrow.int64())
    (True, False)
    """
    types = need("pyarrow").types
    return bool(types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_))


def holds_numbers(type_: Any) -> bool:
    """Whether a column of this Arrow type has a number in each row; booleans count as 0 and 1.

    >>> import pyarrow
    >>> holds_numbers(pyarrow.int8()), holds_numbers(pyarrow.string())
    (True, False)
    """
    types = need("pyarrow").types
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(test(type_) for test in tests)


def content_of(type_: Any) -> str:
    """What the values of an Arrow type are, whatever their width and encoding.

    >>> import pyarrow
    >>> content_of(pyarrow.int8()), content_of(pyarrow.list_(pyarrow.string())), content_of(pyarrow.timestamp("s"))
    ('numbers', 'lists of text', 'times')
    """
    types = need("pyarrow").types
    if types.is_dictionary(type_) or types.is_run_end_encoded(type_):
        return content_of(type_.value_type)
    if holds_lists(type_):
        return f"lists of {content_of(type_.value_type)}"
    if types.is_boolean(type_):
        return "booleans"
    if holds_numbers(type_):
        return "numbers"
    if types.is_timestamp(type_):
        return "times" if type_.tz is None else f"times in {type_.tz}"
    if types.is_null(type_):
        return NOTHING
    return "text" if str(type_) in ("string", "large_string", "string_view") else str(type_)


def agreed_content(name: str, known: str, type_: Any, file: Path, first: Path) -> str:
    """What a column holds in all files so far; an error where the next file holds something else.

    Args:
        name: of the column.
        known: what it holds in the files before.
        type_: its Arrow type in the next file.
        file: the next file.
        first: the first file.

    """
    content = content_of(type_)
    if NOTHING not in (content, known) and content != known:
        raise DifferingTypesError(
            name, f"{file}: column {name!r} holds {content}, but {known} in {first}: write both files alike"
        )
    return known if content == NOTHING else content
