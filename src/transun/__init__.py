"""Unbiased regression for skewed targets: TranSUN and GTS heads for any network.

Names are found on first use (see `transun.api`), so that importing the package does not import torch.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transun.api import *

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # A module of ours that is not loaded yet is left to the import system.
    if (name.startswith("_") and name != "__all__") or find_spec(f"transun.{name}") is not None:
        raise AttributeError(f"module 'transun' has no attribute {name!r}")
    api = import_module("transun.api")
    if name == "__all__":  # for `from transun import *`
        return api.__all__
    if name not in api.__all__:
        raise AttributeError(f"module 'transun' has no attribute {name!r}")
    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *import_module("transun.api").__all__])
