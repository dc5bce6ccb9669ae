"""Arguments of the wrong kind are told before any work, in one sentence that names the argument and the remedy.

Types in a signature are hints: Python runs on without them, and a text is as good a list of letters as any other.
"""

from collections.abc import Iterable
from numbers import Integral
from typing import Any, TypeVar

__all__ = ["listed", "require_count", "require_kind"]

T = TypeVar("T")


def listed(argument: str, names: Iterable[T]) -> list[T]:
    """The names that an argument lists; a single text, which would be read letter by letter, is an error.

    Args:
        argument: what the caller calls it.
        names: what was given.

    >>> listed("exclude", ("item", "price"))
    ['item', 'price']
    >>> listed("exclude", "item")
    Traceback (most recent call last):
    TypeError: exclude lists names and is the text 'item': write exclude=['item']

    """
    if isinstance(names, (str, bytes)):
        raise TypeError(f"{argument} lists names and is the text {names!r}: write {argument}=[{names!r}]")
    if not isinstance(names, Iterable):
        raise TypeError(f"{argument} lists names and is {names!r}: write {argument}=['one', 'another']")
    return list(names)


def require_kind(argument: str, value: Any, kind: type, remedy: str) -> None:
    """Raise a `TypeError` if the value of an argument is of another kind.

    Args:
        argument: what the caller calls it.
        value: what was given.
        kind: the class that it must be of.
        remedy: what to give instead.

    >>> require_kind("level", "high", float, "write level=0.9")
    Traceback (most recent call last):
    TypeError: level is a str, where a float is meant: write level=0.9

    """
    if not isinstance(value, kind):
        given = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
        raise TypeError(f"{argument} is {given}, where a {kind.__name__} is meant: {remedy}")


def require_count(owner: str, least: int = 1, **counts: Any) -> None:
    """Raise a `ValueError` if an argument is no whole number from `least` on.

    Args:
        owner: whose arguments they are.
        least: the least that each may be.
        counts: the arguments by name.

    >>> require_count("MDME", groups=4, buckets=2.5)
    Traceback (most recent call last):
    ValueError: MDME needs buckets >= 1, a whole number, got 2.5

    """
    for name, count in counts.items():
        if not isinstance(count, Integral) or count < least:
            raise ValueError(f"{owner} needs {name} >= {least}, a whole number, got {count}")
