"""Optional libraries, imported where they are used."""

from importlib import import_module
from types import ModuleType

__all__ = ["need"]


def need(module: str, extra: str) -> ModuleType:
    """Import a module of an optional library, or say which extra of transun brings it.

    >>> need("a_library_nobody_has", extra="lab")
    Traceback (most recent call last):
    ModuleNotFoundError: this needs a_library_nobody_has: pip install 'transun[lab]'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0] != module.split(".")[0]:
            raise  # the library is there, something inside it is missing
        raise ModuleNotFoundError(f"this needs {module.split('.')[0]}: pip install 'transun[{extra}]'") from None
