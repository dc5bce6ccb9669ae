import subprocess
import sys

import pytest

from transun.support.lazy import lazy_names


def test_names_are_sorted_and_found():
    find, list_names, names = lazy_names("here", {"math": ("tau", "pi"), "cmath": ("phase",)})
    assert names == list_names() == ["phase", "pi", "tau"]
    assert find("phase")(-1.0) == pytest.approx(find("pi"))


def test_an_unknown_name_is_an_attribute_error():
    find, _, _ = lazy_names("here", {"math": ("pi",)})
    with pytest.raises(AttributeError, match="module 'here' has no attribute 'e'"):
        find("e")


def test_a_module_is_imported_on_first_use():
    program = (
        "import sys\n"
        "from transun.support.lazy import lazy_names\n"
        "find, _, _ = lazy_names('here', {'colorsys': ('rgb_to_hsv',)})\n"
        "assert 'colorsys' not in sys.modules\n"
        "find('rgb_to_hsv')\n"
        "assert 'colorsys' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
