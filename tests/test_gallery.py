"""The examples of the gallery run; `make docs` runs them too, and shows what they print and draw."""

import ast
import runpy
from importlib import import_module
from pathlib import Path

import pytest

GALLERY = Path(__file__).parent.parent / "docs" / "gallery"
# `make docs` runs every example; these take a second and need nothing but what the tests have anyway.
QUICK = ("deployed_pytorch_model", "onnx_export", "with_lightning", "with_optuna")
NAMES = sorted(path.stem for path in GALLERY.glob("*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_a_script_with_a_title(name):
    code = (GALLERY / f"{name}.py").read_text(encoding="utf-8")
    compile(code, name, "exec")
    title, underline = code.splitlines()[1:3]
    assert set(underline) == {"="}
    assert len(underline) >= len(title)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_imports_names_that_exist(name):
    for node in ast.walk(ast.parse((GALLERY / f"{name}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "transun":
            missing = [alias.name for alias in node.names if not hasattr(import_module(node.module), alias.name)]
            assert missing == []


def test_an_example_is_not_called_like_a_library():
    """Its folder is on the path while it runs, so that its name would hide the library."""
    assert not {name for name in NAMES if name in ("lightning", "spark", "onnx", "lightgbm", "torch", "matplotlib")}


# Lightning's advice depends on the number of processors.
@pytest.mark.filterwarnings(
    "ignore:The 'train_dataloader' does not have many workers", "ignore::FutureWarning:lightning"
)
@pytest.mark.parametrize("name", QUICK)
def test_a_quick_example_runs(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(GALLERY / f"{name}.py"))
    assert capsys.readouterr().out
