"""Fitted kinds as JSON and back: data only, read with the types that the fields declare, never executed."""

import json
import types
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Union, get_args, get_origin, get_type_hints

from transun.data import kinds
from transun.data.vocabulary import Vocabulary

_FORMAT, _VERSION = "transun.features", 1
_CLASSES: dict[str, Any] = {
    made.__name__: made
    for made in (
        kinds.Bag,
        kinds.Buckets,
        kinds.Datetime,
        kinds.HashedId,
        kinds.Id,
        kinds.Lists,
        kinds.Numbered,
        kinds.Split,
        kinds.Standardised,
        Vocabulary,
    )
}


def dumps(columns: Mapping[str, kinds.Kind], why: Mapping[str, str], missing: Mapping[str, float]) -> str:
    """The JSON of named kinds: each an object of its class's name and its fields.

    >>> json.loads(dumps({"item": kinds.HashedId(10)}, {}, {}))["columns"]
    {'item': {'kind': 'HashedId', 'rows': 10, 'like': None}}
    """
    return json.dumps(
        {
            "format": _FORMAT,
            "version": _VERSION,
            "columns": {name: _plain(kind) for name, kind in columns.items()},
            "why": dict(why),
            "missing": dict(missing),
        },
        ensure_ascii=False,
        allow_nan=False,
    )


def loads(text: str) -> tuple[dict[str, kinds.Kind], dict[str, str], dict[str, float]]:
    """What `dumps` wrote, checked field by field.

    >>> loads('{"columns": {}}')
    Traceback (most recent call last):
    ValueError: this is not a features file of transun: its format is not 'transun.features'
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this is not a features file of transun: {str(error)[:100]}") from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ValueError(f"this is not a features file of transun: its format is not {_FORMAT!r}")
    if content.get("version") != _VERSION:
        raise ValueError(f"features of version {content.get('version')}; this transun reads version {_VERSION}")
    columns, why, missing = (content.get(part) for part in ("columns", "why", "missing"))
    if not (isinstance(columns, dict) and isinstance(why, dict) and isinstance(missing, dict)):
        raise ValueError("the features file is damaged: columns, why and missing must be objects")
    if not all(isinstance(reason, str) for reason in why.values()):
        raise ValueError("the features file is damaged: a reason in 'why' is not text")
    if not all(_fits(share, float) for share in missing.values()):
        raise ValueError("the features file is damaged: a share in 'missing' is not a number")
    return {name: _column(name, value) for name, value in columns.items()}, why, missing


def _column(name: str, value: Any) -> kinds.Kind:
    try:
        kind = _build(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"the features file is damaged at column {name!r}: {str(error)[:200]}") from None
    if not isinstance(kind, kinds.Kind):
        raise ValueError(f"the features file is damaged at column {name!r}: it is no kind of column")
    return kind


def _plain(value: Any) -> Any:
    if type(value).__name__ in _CLASSES:
        return {"kind": type(value).__name__} | {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
    if hasattr(value, "to_pylist"):  # the ids of a vocabulary
        return value.to_pylist()
    if value is not None and not isinstance(value, (bool, int, float, str, tuple)):
        raise TypeError(f"{type(value).__name__} cannot be saved: only transun's own kinds of columns can")
    return value


def _build(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if not isinstance(value, dict):
        return value
    made = _CLASSES.get(str(value.get("kind")))
    if made is None:
        raise ValueError(f"unknown kind {value.get('kind')!r}; known are {', '.join(_CLASSES)}")
    hints = get_type_hints(made)
    arguments = {name: _build(argument) for name, argument in value.items() if name != "kind"}
    for name, argument in arguments.items():
        if name not in hints or not _fits(argument, hints[name]):
            raise ValueError(f"{made.__name__} has no field {name!r} with a value such as {str(argument)[:40]!r}")
    return made(**arguments)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value has the type that a field declares; JSON has one type of number, so an integer is a float too."""
    if hint is Any:
        return True
    if get_origin(hint) in (Union, types.UnionType):
        return any(_fits(value, option) for option in get_args(hint))
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(_fits(item, get_args(hint)[0]) for item in value)
    if hint in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, (int, float) if hint is float else hint)
