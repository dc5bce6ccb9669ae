"""Doctests read as after `import torch` and `from transun import *`."""

import pytest
import torch
from hypothesis import settings

import transun
import transun.api

# The same examples in every run, however slow the machine: a failure is then news about the code.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")

# Tests run side by side, one process a core: a second thread in each would only get in the way.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _names(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["torch"] = torch
    doctest_namespace["transun"] = transun
    doctest_namespace |= {name: getattr(transun.api, name) for name in transun.api.__all__}
