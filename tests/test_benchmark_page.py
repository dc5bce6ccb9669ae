"""docs/speed.md is what the generator makes of the results in the repository."""

import importlib
import json
import operator
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RESULTS = sorted((ROOT / "benchmarks" / "results").glob("*.json"))


@pytest.fixture
def page(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    yield importlib.import_module("page")
    for name in ("page", "aims", "capacity", "page_tables"):  # too plain names to leave behind
        sys.modules.pop(name, None)


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
    assert [importlib.import_module("page_tables").cell(value) for value in values] == [
        "",
        "yes",
        "10,000,000",
        "1.235",
        "123,457",
        "1.234e-05",
        "a\\|b",
    ]


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


@pytest.mark.parametrize(
    ("found", "cells"),
    [
        ([1.0], ["at most 2 s", "1 s", "yes"]),
        ([3.0, 1.5, None, 2.0], ["at most 2 s", "1.5 to 3 s", "**in 2 of 3**"]),
        ([2.5, 4.0], ["at most 2 s", "2.5 to 4 s", "**no**"]),
        ([None], ["at most 2 s", "not measured", "**no**"]),
    ],
)
def test_an_aim_is_met_where_every_number_keeps_it(page, found, cells):
    aim = sys.modules["aims"].Aim("it", "x", lambda row: row["a"], 2, " s")
    assert aim.cells([{"a": value} for value in found]) == ["it", *cells]


def test_an_aim_may_be_a_least_number(page):
    aim = sys.modules["aims"].Aim("it", "x", lambda row: row["a"], 2, " times", operator.ge)
    assert aim.cells([{"a": 2.0}, {"a": 3.0}]) == ["it", "at least 2 times", "2 to 3 times", "yes"]
    assert aim.cells([{"a": 1.0}])[-1] == "**no**"


def test_every_aim_finds_its_numbers(page):
    """A benchmark that renames a column or a row must not lose its aim."""
    for aim in sys.modules["aims"].AIMS:
        found = json.loads((ROOT / "benchmarks" / "results" / f"{aim.of}.json").read_text(encoding="utf-8"))
        assert aim.cells([dict(zip(found["columns"], row, strict=True)) for row in found["rows"]])[2] != "not measured"


def test_another_shape_is_an_error(page, tmp_path):
    (tmp_path / "odd.json").write_text('{"results": []}')
    with pytest.raises(ValueError, match=r"results/odd.json has the keys \['results'\]"):
        page.page(tmp_path)
