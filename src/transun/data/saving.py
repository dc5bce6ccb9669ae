"""Fitted kinds as plain JSON objects and back: data only, built with the types that fields declare, never executed.

The package has one rule for writing objects down: the name of a registered class and its constructor arguments. Text of
`transun.support.text_form` follows it for what a person declares; JSON objects follow it for what `fit` learned, such
as a vocabulary of a million ids, for which a line of text would be too long.
"""

import inspect
import math
import types
from dataclasses import fields
from typing import Any, Union, get_args, get_origin, get_type_hints

from transun.support.text_form import arguments

__all__ = ["Serialisable", "fits_type", "from_object", "to_object"]

_CLASSES: dict[str, type["Serialisable"]] = {}
# Exceptions that a constructor raises when it is called with values of a forged file.
_REFUSALS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class Serialisable:
    """A frozen dataclass that can be saved. Defining a subclass registers it under its name, by which it is loaded.

    Its fields hold numbers, text, None, tuples of these, or other serialisable objects, and their annotations are
    checked when a file is loaded.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        registered = _CLASSES.setdefault(cls.__name__, cls)
        # A class that is defined a second time, as in a notebook, replaces the first.
        if (registered.__module__, registered.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(
                f"there is a class {cls.__name__!r} already, in {registered.__module__}: saved files refer to classes "
                "by name, so give yours another one"
            )
        _CLASSES[cls.__name__] = cls

    def saved_arguments(self) -> dict[str, Any]:
        """The constructor arguments that build this object again."""
        return arguments(self)


def to_object(value: Any) -> Any:
    """A value as JSON can hold it; a serialisable object becomes an object of its class's name and its arguments.

    >>> to_object(HashedId(10))
    {'kind': 'HashedId', 'rows': 10, 'shares_table_with': None}
    """
    if isinstance(value, Serialisable):
        saved = {name: to_object(argument) for name, argument in value.saved_arguments().items()}
        return {"kind": type(value).__name__} | saved
    if isinstance(value, (list, tuple)):
        return [to_object(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(
        f"{type(value).__name__} cannot be saved: a kind of column holds numbers, text, None, tuples and other kinds"
    )


def from_object(value: Any) -> Any:
    """The inverse of `to_object`; whatever cannot be built is a `ValueError`.

    >>> from_object({"kind": "HashedId", "rows": 10})
    HashedId(rows=10, shares_table_with=None)
    >>> from_object({"kind": "HashedId", "rows": "10"})
    Traceback (most recent call last):
    ValueError: HashedId has no field 'rows' with a value such as '10'
    """
    try:
        return _build(value)
    except _REFUSALS as error:
        raise ValueError(str(error)[:200] or type(error).__name__) from None


def _build(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_build(item) if isinstance(item, (dict, list)) else item for item in value)
    if not isinstance(value, dict):
        return value
    known = {name: cls for name, cls in sorted(_CLASSES.items()) if not inspect.isabstract(cls)}
    name = value.get("kind")
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"unknown kind {name!r}; known are {', '.join(known)}")
    declared: Any = known[name]
    hints = get_type_hints(declared)
    types_of = {part.name: hints[part.name] for part in fields(declared) if part.init}
    built = {argument: _build(content) for argument, content in value.items() if argument != "kind"}
    for argument, content in built.items():
        if argument not in types_of or not fits_type(content, types_of[argument]):
            raise ValueError(f"{name} has no field {argument!r} with a value such as {str(content)[:40]!r}")
    return declared(**built)


def fits_type(value: Any, hint: Any) -> bool:
    """Whether a value has the type that a field declares.

    JSON has one type of number, so an integer is a float too; NaN and infinity are no numbers of JSON.

    >>> fits_type(3, float), fits_type(True, int), fits_type((1, "a"), tuple[int, ...]), fits_type(None, int | None)
    (True, False, False, True)
    """
    if hint is Any:
        return True
    if get_origin(hint) in (Union, types.UnionType):
        return any(fits_type(value, option) for option in get_args(hint))
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(fits_type(item, get_args(hint)[0]) for item in value)
    if hint in (int, float) and isinstance(value, bool):
        return False
    if hint is float:
        return isinstance(value, (int, float)) and abs(value) < math.inf  # which NaN is not
    return isinstance(value, hint)
