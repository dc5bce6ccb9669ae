"""The parts of a model as text and back, such as `GTS(PointHead(Log1p()))`, with the names that the text may use."""

import inspect
import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from transun import backbones, corrections, heads, losses, schemes, transforms
from transun.support.text_form import dumps, parse

__all__ = ["dumps", "loads", "vocabulary"]


def loads(text: str, plugins: Mapping[str, Callable[..., Any]] | None = None) -> Any:
    """The object that a text describes; nothing in the text is executed.

    Args:
        text: as printed by `dumps`, or typed by a person.
        plugins: further classes and functions that the text may name.

    >>> dumps(loads("TranSUN(Power(0.5))"))
    'GTS(PointHead(Power()))'
    >>> loads("__import__('os').system('true')")
    Traceback (most recent call last):
    ValueError: not a transun object: ...

    """
    return parse(text, vocabulary() | dict(plugins or {}))


@cache
def vocabulary() -> dict[str, Any]:
    """Every name that the text of a model may use: classes, and functions that return an object of a class.

    A type, or a context manager such as `sharding`, is no part of a model.

    >>> "LogSUN" in vocabulary(), "sharding" in vocabulary()
    (True, False)
    """
    rooms = (backbones, corrections, heads, losses, schemes, transforms)
    exported = {name: getattr(room, name) for room in rooms for name in room.__all__}
    parts = {name: value for name, value in exported.items() if _makes_a_part(value)}
    return parts | {strategy.__name__: strategy for strategy in heads.STRATEGIES} | {"inf": math.inf}


def _makes_a_part(value: Any) -> bool:
    return inspect.isclass(value) or inspect.isclass(getattr(value, "__annotations__", {}).get("return"))
