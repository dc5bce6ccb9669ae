"""Names of a package that are imported on first use, so that importing the package imports nothing heavy."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """What a package needs to find its names lazily: `__getattr__`, `__dir__` and `__all__`.

    Args:
        package: the package's `__name__`.
        modules: for each module, by its full name, the names that it brings.

    >>> find, _, names = lazy_names("a", {"math": ("pi", "e")})
    >>> names, round(find("pi"), 2)
    (['e', 'pi'], 3.14)
    >>> find("tau")
    Traceback (most recent call last):
    AttributeError: module 'a' has no attribute 'tau'

    """
    home = {name: module for module, names in modules.items() for name in names}

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home[name]), name)

    return find, lambda: sorted(home), sorted(home)
