import subprocess
import sys

import pytest

from transun.support.lazy import lazy_names


def test_a_name_is_found_in_the_first_module_that_exports_it():
    find, list_names = lazy_names("transun", ["squared", "Log1p"], ["transun.transforms", "transun.losses"])
    assert list_names() == ["Log1p", "squared"]
    assert find("squared").__module__ == "transun.losses"


def test_modules_of_the_package_are_found():
    find, _ = lazy_names("transun", [], [])
    assert find("losses").__name__ == "transun.losses"


@pytest.mark.parametrize("name", ["squared", "_private"])
def test_a_name_that_is_not_listed_is_an_attribute_error(name):
    find, _ = lazy_names("transun", ["Log1p"], ["transun.losses"])
    with pytest.raises(AttributeError, match=f"module 'transun' has no attribute '{name}'"):
        find(name)


def test_a_module_is_imported_on_first_use():
    program = (
        "import sys\n"
        "from transun.support.lazy import lazy_names\n"
        "find, _ = lazy_names('here', ['need'], ['transun.support.extras'])\n"
        "assert 'transun.support.extras' not in sys.modules\n"
        "find('need')\n"
        "assert 'transun.support.extras' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
