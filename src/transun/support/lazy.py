"""Names of a package that are imported on first use, so that importing the package imports nothing heavy."""

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(
    package: str, names: Sequence[str], modules: Sequence[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """What a package needs to find its names lazily: `__getattr__` and `__dir__`.

    The package's own modules are found as attributes as well.

    Args:
        package: the package's `__name__`.
        names: its `__all__`.
        modules: where the names are, by their `__all__`; searched in this order until a name is found.

    >>> find, _ = lazy_names("transun", ["Adam"], ["transun.losses", "transun.training"])
    >>> find("Adam").__name__
    'Adam'
    >>> find("Adams")
    Traceback (most recent call last):
    AttributeError: module 'transun' has no attribute 'Adams'

    """

    def find(name: str) -> Any:
        if name in names:
            for module in map(import_module, modules):
                if name in module.__all__:
                    return getattr(module, name)
        if not name.startswith("_") and find_spec(f"{package}.{name}") is not None:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find, lambda: sorted(names)
