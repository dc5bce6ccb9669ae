import sys
import tomllib
from pathlib import Path

import pytest

from transun.support.extras import EXTRAS, need, require

ROOT = Path(__file__).parent.parent.parent


def test_a_library_that_is_there_is_imported():
    assert need("json") is sys.modules["json"]
    assert need("os.path") is sys.modules["os.path"]


@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("onnxruntime", r"pip install 'transun\[onnx\]'"),
        ("sklearn.base", "pip install scikit-learn"),
        ("a_library_nobody_has", "pip install a_library_nobody_has"),
    ],
)
def test_a_missing_library_says_how_to_install_it(module, command, monkeypatch):
    library = module.split(".")[0]
    for loaded in [name for name in sys.modules if name.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, library, None)  # an import of it then fails as if it were not installed
    with pytest.raises(ModuleNotFoundError, match=f"this needs {library}: {command}"):
        need(module)


def test_what_a_library_itself_lacks_is_not_blamed_on_the_library(tmp_path, monkeypatch):
    (tmp_path / "half_installed.py").write_text("import a_library_nobody_has\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="No module named 'a_library_nobody_has'"):
        need("half_installed")


def test_require_names_the_first_missing_library():
    require("json", "ast")
    with pytest.raises(ModuleNotFoundError, match="this needs first_missing"):
        require("json", "first_missing", "second_missing")


def test_every_extra_exists():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(EXTRAS.values()) <= set(project["optional-dependencies"])
