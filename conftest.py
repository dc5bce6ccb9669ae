"""Doctests may use torch and every public name of every room without importing it."""

from importlib import import_module

import pytest
import torch
from hypothesis import settings

import transun

ROOMS = (
    "backbones",
    "corrections",
    "data",
    "heads",
    "losses",
    "metrics",
    "models",
    "schemes",
    "tables",
    "training",
    "transforms",
)

# The same examples in every run, however slow the machine: a failure is then news about the code.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")

# Tests run side by side, one process a core: a second thread in each would only get in the way.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _names(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["torch"] = torch
    doctest_namespace["transun"] = transun
    for room in ROOMS:
        module = import_module(f"transun.{room}")
        doctest_namespace |= {name: getattr(module, name) for name in module.__all__}
