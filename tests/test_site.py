"""What the site adds to its sources can be checked without Sphinx: the examples in the modules of docs hold."""

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize("name", ["docstrings", "gallery_order", "readable"])
def test_examples_of_a_module_hold(name):
    result = doctest.testmod(import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
