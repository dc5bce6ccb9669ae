"""The names at the top of the package, and the page that explains each of them."""

import ast
import subprocess
import sys
from importlib import import_module
from types import FunctionType

import pytest
from conftest import ROOMS

import transun

EVERY_ROOM = [*ROOMS, "diagnosis", "estimators", "experiments"]


def test_every_public_name_is_found_and_documented():
    for name in transun.__all__:
        value = getattr(transun, name)
        assert callable(value) or value.__doc__ or isinstance(value, transun.Metric), name
        assert dir(transun).count(name) == 1


def test_there_are_few_enough_to_read():
    assert len(transun.__all__) == len(set(transun.__all__))
    assert 80 <= len(transun.__all__) <= 100


def test_no_two_rooms_export_one_name():
    names = [name for room in EVERY_ROOM for name in import_module(f"transun.{room}").__all__]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("room", EVERY_ROOM)
def test_every_class_and_function_of_a_room_is_documented(room):
    module = import_module(f"transun.{room}")
    values = {name: getattr(module, name) for name in module.__all__}
    assert not [name for name, value in values.items() if isinstance(value, (type, FunctionType)) and not value.__doc__]


def test_star_import_brings_them_all():
    names = {}
    exec("from transun import *", names)
    assert set(transun.__all__) <= set(names)


def test_rooms_are_attributes():
    assert transun.schemes.PowerVariance is transun.PowerVariance
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = transun.nothing


def test_the_package_itself_imports_nothing_heavy():
    script = (
        "import sys, transun, transun.models; print([m for m in ('torch', 'numpy', 'sklearn') if m in sys.modules])"
    )
    assert ast.literal_eval(subprocess.check_output([sys.executable, "-c", script], text=True)) == []


def test_estimators_without_scikit_learn_name_the_package():
    script = "import sys; sys.modules['sklearn'] = None; import transun; transun.GTSRegressor"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "pip install scikit-learn" in result.stderr
