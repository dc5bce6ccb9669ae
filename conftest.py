"""Doctests may use torch and every public name of every room without importing it."""

import os
import random
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from hypothesis import settings

import transun
from ranks import RankPool

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

# A module whose class is one of torchmetrics, which doctests would import.
collect_ignore = [] if find_spec("torchmetrics") else ["src/transun/integrations/torchmetrics.py"]

# The same examples in every run, however slow the machine: a failure is then news about the code.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")

# Tests run side by side, one process a core: a second thread in each would only get in the way. `make matrix` sets the
# variable to see that results do not depend on it.
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
# LightGBM takes as many threads as joblib counts processors, whatever OMP_NUM_THREADS says.
os.environ.setdefault("LOKY_MAX_CPU_COUNT", os.environ.get("OMP_NUM_THREADS", "1"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests in a random order, with the variable TRANSUN_TEST_ORDER as its seed; as collected without it."""
    if seed := os.environ.get("TRANSUN_TEST_ORDER"):
        random.Random(seed).shuffle(items)


@pytest.fixture(autouse=True)
def _numpy_seed() -> None:
    """What is shuffled without a seed, as examples in the pages are, is the same in every run and in any order."""
    np.random.seed(int(os.environ.get("TRANSUN_TEST_SEED", "0")))


@pytest.fixture(autouse=True)
def _names(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["torch"] = torch
    doctest_namespace["transun"] = transun
    for room in ROOMS:
        module = import_module(f"transun.{room}")
        doctest_namespace |= {name: getattr(module, name) for name in module.__all__}


@pytest.fixture(scope="session")
def pool() -> Iterator[RankPool]:
    """Four processes for tests of ranks, started when the first of them asks for it."""
    processes = RankPool(4)
    yield processes
    processes.close()
