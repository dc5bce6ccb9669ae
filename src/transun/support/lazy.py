"""Names of a package that are imported on first use, so that importing the package stays fast."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of a package whose names are imported on first use.

    Args:
        package: the package's `__name__`.
        modules: the names that each module defines, by the full name of the module.

    >>> find, _, names = lazy_names("a", {"math": ("pi", "e")})
    >>> names, round(find("pi"), 2)
    (['e', 'pi'], 3.14)
    >>> find("tau")
    Traceback (most recent call last):
    AttributeError: module 'a' has no attribute 'tau'

    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def find(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(module_of[name]), name)

    return find, lambda: sorted(module_of), sorted(module_of)
