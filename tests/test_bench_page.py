"""docs/speed.md is what the generator makes of the results in the repository."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RESULTS = sorted((ROOT / "benchmarks" / "results").glob("*.json"))


@pytest.fixture(scope="module")
def page():
    spec = importlib.util.spec_from_file_location("bench_page", ROOT / "benchmarks" / "page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date():
    call = [sys.executable, ROOT / "benchmarks" / "page.py", "--check"]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", [file for file in RESULTS if file.stem != "guard"], ids=lambda file: file.stem)
def test_every_result_is_a_table_that_some_script_makes(file, page):
    found = json.loads(file.read_text(encoding="utf-8"))
    assert set(found) == page.KEYS
    assert all(len(row) == len(found["columns"]) for row in found["rows"])
    script = found["command"].split()[1]
    assert (ROOT / script).exists()


def test_cells(page):
    values = [None, True, 10_000_000, 1.23456, 123456.7, 0.000012345, "a|b"]
    assert [page.cell(value) for value in values] == ["", "yes", "10,000,000", "1.235", "123,457", "1.234e-05", "a\\|b"]


def test_results_that_are_not_there_yet_are_left_out(page, tmp_path):
    table = {"what": "A thing.", "command": "python x.py", "machine": "two cores"}
    table |= {"columns": ["name", "n"], "rows": [["a", 1]], "notes": ["So."]}
    (tmp_path / "one_two.json").write_text(json.dumps(table))
    (tmp_path / "guard.json").write_text("{}")
    text = page.page(tmp_path)
    assert (
        "## one two\n\nA thing.\n\n| name | n |\n| :-- | --: |\n| a | 1 |\n\n- So.\n\n`python x.py` on two cores."
        in text
    )
    assert text.count("## ") == 1
    assert page.page(tmp_path / "none").count("## ") == 0


def test_another_shape_is_an_error(page, tmp_path):
    (tmp_path / "odd.json").write_text('{"results": []}')
    with pytest.raises(ValueError, match=r"results/odd.json has the keys \['results'\]"):
        page.page(tmp_path)
