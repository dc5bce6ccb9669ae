"""Objects as text and back: `GTS(PointHead(Log1p(upper=10000.0)), shared=1)`.

Every value that is built from constructor arguments has this one text form: a command line accepts it, a checkpoint
stores it and a report prints it. Text is parsed, never executed: it may call only the names that the caller passes,
with literal arguments. `transun.models.spec` passes the parts of a model.
"""

import ast
import inspect
import math
import types
from collections.abc import Callable, Mapping
from typing import Any, Union, get_args, get_origin

__all__ = ["arguments", "dumps", "parse"]

# The text of a model is a line or a page long; anything longer is an accident or an attack.
_MAX_LENGTH = 100_000
# Whole numbers of more bits are larger than any floating-point number.
_BITS = 1023
_NO_HINT = inspect.Parameter.empty
# What constructors raise for arguments of the wrong type or size, such as Log1p(upper="x").
_WRONG_ARGUMENT = (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError)


def dumps(value: Any) -> str:
    """The text of an object; arguments that equal their default are left out.

    >>> dumps(LogSUN(shared=1))
    'GTS(PointHead(Log1p()), shared=1)'
    """
    if value is None or isinstance(value, (bool, int, str)):
        return repr(value)
    if isinstance(value, float):
        if math.isnan(value):
            raise ValueError("NaN has no text form")
        return repr(value)  # infinity prints as the name `inf`, which `parse` reads
    if isinstance(value, (tuple, list)):
        items = ", ".join(map(dumps, value))
        return f"({items},)" if len(value) == 1 else f"({items})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{dumps(key)}: {dumps(item)}" for key, item in value.items()) + "}"
    if inspect.isfunction(value):
        return value.__name__
    return f"{type(value).__name__}({_arguments(value)})"


def arguments(value: Any) -> dict[str, Any]:
    """The constructor arguments of an object, which stores each of them under its name.

    >>> arguments(Adam(0.01))
    {'rate': 0.01, 'weight_decay': 0.0}
    """
    return {name: getattr(value, name) for name in inspect.signature(type(value)).parameters}


def parse(text: str, names: Mapping[str, Any]) -> Any:
    """The object that a text describes.

    Args:
        text: as printed by `dumps`, or typed by a person.
        names: the classes, functions and constants that the text may name.

    >>> parse("[complex(1, imag=-2.0), None]", {"complex": complex})
    ((1-2j), None)
    >>> parse("__import__('os').system('true')", {})
    Traceback (most recent call last):
    ValueError: not a transun object: ...

    """
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"the text has {len(text)} characters; a description has at most {_MAX_LENGTH}")
    try:
        return _build(ast.parse(text.strip(), mode="eval").body, {"inf": math.inf} | dict(names))
    except SyntaxError as error:
        raise ValueError(f"cannot read {_short(text)!r}: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise ValueError(f"cannot read {_short(text)!r}: it is nested too deeply") from None


def _arguments(value: Any) -> str:
    shown = []
    positional = True
    for name, parameter in inspect.signature(type(value)).parameters.items():
        if not hasattr(value, name):
            raise ValueError(f"{type(value).__name__} has no text form: it does not keep its argument {name!r}")
        argument = getattr(value, name)
        if parameter.default is not inspect.Parameter.empty and _same(argument, parameter.default):
            positional = False  # an argument after one that is left out must be named
            continue
        positional = positional and parameter.kind is not inspect.Parameter.KEYWORD_ONLY
        shown.append(dumps(argument) if positional else f"{name}={dumps(argument)}")
    return ", ".join(shown)


def _same(argument: Any, default: Any) -> bool:
    return type(argument) is type(default) and bool(argument == default)


def _build(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=int() as value) if value.bit_length() > _BITS:
            raise ValueError(f"the whole number {_short(str(value))} is larger than any that can be computed with")
        case ast.Constant(value=None | bool() | int() | float() | str() as value):
            return value
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = _build(operand, names)
            if isinstance(number, (int, float)):
                return -number
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return tuple(_build(item, names) for item in items)
        case ast.Dict(keys=keys, values=values) if None not in keys:
            return {_build(key, names): _build(value, names) for key, value in zip(keys, values, strict=True) if key}
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in names:
            positional = [_build(arg, names) for arg in args]
            named = {keyword.arg: _build(keyword.value, names) for keyword in keywords if keyword.arg}
            if len(named) == len(keywords):
                return _call(name, names[name], positional, named)
    raise ValueError(f"not a transun object: {_short(ast.unparse(node))!r}")


def _call(name: str, build: Callable[..., Any], positional: list[Any], named: dict[str, Any]) -> Any:
    try:
        signature = inspect.signature(build)
        bound = signature.bind(*positional, **named)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None
    hints = _hints(build)
    for argument, value in bound.arguments.items():
        several = signature.parameters[argument].kind is inspect.Parameter.VAR_POSITIONAL
        for each in value if several else (value,):
            if not _fits(each, hints.get(argument, Any)):
                raise ValueError(f"{name}: {_short(_shown(each))} cannot be its {argument}{_remedy(each)}")
    try:
        return build(*positional, **named)
    except _WRONG_ARGUMENT as error:
        raise ValueError(f"{name}: {error}") from None


def _hints(build: Callable[..., Any]) -> dict[str, Any]:
    """The types of the arguments, as far as they are written down and can be resolved."""
    try:
        signature = inspect.signature(build, eval_str=True)
    except (NameError, TypeError, ValueError):
        return {}
    hints = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    return {
        name: hint for name, hint in (hints | {"return": signature.return_annotation}).items() if hint is not _NO_HINT
    }


def _fits(value: Any, hint: Any) -> bool:
    """Whether an argument can be of a type: an object of the class, or a function with the right result.

    Numbers, texts and collections are left to the constructors, which know their ranges. The others they only store, so
    that a transform in the place of a head, or a name without brackets, would be an error in the middle of a training.
    """
    if hint is Any:
        return True
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, part) for part in get_args(hint))
    if origin is Callable:
        result = get_args(hint)[1]
        returned = _hints(value).get("return", result) if inspect.isfunction(value) else result
        makes_another = isinstance(returned, type) and isinstance(result, type) and not issubclass(returned, result)
        return callable(value) and not isinstance(value, type) and not makes_another
    if not isinstance(hint, type) or hint.__module__ == "builtins" or getattr(hint, "_is_protocol", False):
        return not (isinstance(value, type) or inspect.isfunction(value))
    return isinstance(value, hint)


def _shown(value: Any) -> str:
    return value.__name__ if isinstance(value, type) or inspect.isfunction(value) else dumps(value)


def _remedy(value: Any) -> str:
    named = isinstance(value, type) or inspect.isfunction(value)
    return f"; an object is written with brackets, {_shown(value)}()" if named else ""


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
