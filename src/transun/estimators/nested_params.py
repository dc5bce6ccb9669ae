"""Parameters inside parameters: `head__scheme__power` reaches into heads and dataclasses, which are no estimators.

scikit-learn searches over nested names, but asks every nested object for `get_params` and changes it in place. A head
or an optimiser is a value: its constructor arguments are stored under their own names, so it can be read by its
signature and is changed by building another one. So no two estimators ever see each other's changes.
"""

import inspect
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, Self

from sklearn.base import BaseEstimator
from torch import nn

from transun.support import text_form

__all__ = ["ValueParameters", "rebuild", "value_arguments"]

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class ValueParameters(BaseEstimator):  # type: ignore[misc]
    """An estimator whose parameters may be values, with `get_params` and `set_params` that reach into them."""

    def _value_of(self, name: str) -> Any:
        """The value that a parameter means; a subclass says so of a None that means a default value."""
        return getattr(self, name)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name.

        Args:
            deep: with the arguments of values, as `head__shared`, at any depth.

        """
        params: dict[str, Any] = super().get_params(deep=deep)
        for name in self._get_param_names() if deep else ():
            params |= _within(name, self._value_of(name))
        return params

    def set_params(self, **params: Any) -> Self:
        """Change parameters; those of a value, as `head__shared`, build another value in its place."""
        direct = {key: value for key, value in params.items() if "__" not in key}
        groups = _grouped({key: value for key, value in params.items() if "__" in key})
        unknown = [name for name in (*direct, *groups) if name not in self._get_param_names()]
        # The base class raises the error for a name it does not know.
        super().set_params(**({unknown[0]: None} if unknown else direct))
        for name, changes in groups.items():
            before = self._value_of(name)
            after = rebuild(before, changes)
            # A parameter whose value does not change stays as it was, None included.
            if after is not before:
                setattr(self, name, after)
        return self


def value_arguments(value: Any) -> dict[str, Any]:
    """The constructor arguments of a head, an optimiser or another such value; none for anything else.

    >>> value_arguments(Adam(0.01))
    {'rate': 0.01, 'weight_decay': 0.0}
    >>> value_arguments("Adam")
    {}
    """
    if isinstance(value, type) or not (is_dataclass(value) or isinstance(value, nn.Module)):
        return {}
    parameters = inspect.signature(type(value)).parameters
    if not all(part.kind in _NAMED and hasattr(value, name) for name, part in parameters.items()):
        return {}
    return text_form.arguments(value)


def rebuild(value: Any, changes: Mapping[str, Any]) -> Any:
    """The same value built again with some arguments changed; the value itself where nothing changes.

    Args:
        value: a head, an optimiser or another value with stored arguments. It stays as it is.
        changes: new arguments by name; `scheme__power` is the argument `power` of the argument `scheme`.

    >>> rebuild(GTS(PointHead(), PowerVariance(1.0)), {"scheme__power": 2.0, "shared": 1}).scheme
    PowerVariance(scale=None, power=2.0, eps=1.0)
    >>> rebuild(MSE(), {"shared": 1})
    Traceback (most recent call last):
    ValueError: Invalid parameter 'shared' for PointHead. Valid parameters are: ['criterion', 'transform'].

    """
    before = value_arguments(value)
    direct = {key: new for key, new in changes.items() if "__" not in key}
    groups = _grouped({key: new for key, new in changes.items() if "__" in key})
    for name in (*direct, *groups):
        if name not in before:
            what = type(value).__name__ if before else repr(value)
            raise ValueError(f"Invalid parameter {name!r} for {what}. Valid parameters are: {sorted(before)!r}.")
    after = before | direct
    after |= {name: rebuild(after[name], nested) for name, nested in groups.items()}
    unchanged = all(after[name] is before[name] for name in before)
    return value if unchanged else type(value)(**after)


def _within(name: str, value: Any) -> dict[str, Any]:
    nested = {f"{name}__{inner}": argument for inner, argument in value_arguments(value).items()}
    return nested | {
        key: deeper for outer, argument in nested.items() for key, deeper in _within(outer, argument).items()
    }


def _grouped(params: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    groups: dict[str, dict[str, Any]] = {}
    for key, value in params.items():
        name, _, rest = key.partition("__")
        groups.setdefault(name, {})[rest] = value
    return groups
