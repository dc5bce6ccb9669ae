import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from transun_paper.board.tables import BOARD_TABLES, NUMBERS, FileTable
from transun_paper.cli import app
from transun_paper.pages.board import ablations_page, left_out_page, tables_page, write_board_pages

REPORTS = Path(__file__).parents[2] / "reports"
MEAN = {"value": 0.9, "error": 0.01, "low": 0.85, "high": 0.95, "tables": 2}


def entry(table, method, nrmse, log=0.0):
    return {
        "table": table,
        "method": method,
        "seeds": 2,
        "metrics": {"NRMSE": nrmse, "PGR": 1.02, "XAUC": 0.7},
        "errors": {"NRMSE": 0.1, "PGR": 0.01, "XAUC": 0.002},
        "total": 2.0,
        "to_reference": {"value": log, "error": 0.02, "p": 0.5},
        "to_best": {"value": log, "error": 0.02, "p": 0.5},
        "seconds": 3.25,
    }


def average(method, value, tables):
    mean = MEAN | {"value": value, "tables": tables}
    return {
        "group": "numbers",
        "method": method,
        "tables": tables,
        "seeds": 2,
        "to_reference": mean,
        "to_best": mean,
        "first": 1,
        "wrong_totals": 0,
        "xauc": 0.7,
        "seconds": 3.25,
        "slowest": 4.0,
    }


def described(table):
    rows = {"train": 700, "valid": 100, "test": 200}
    return {"table": table, "group": "numbers", "target": "y", "exposure": None, "rows": rows}


REPORT = {
    "command": "transun-paper board",
    "version": "1",
    "torch": "2",
    "rows": None,
    "machines": {"A, 2 cores": ["default", "lightgbm_poisson"]},
    "reference": "lightgbm_poisson",
    "default": "default",
    "methods": [{"method": "default", "settings": "Train(name='default')"}],
    "tables": [described("here"), described("there")],
    "entries": [entry("here", "default", 1.25), entry("here", "rival", 1.0), entry("there", "default", 2.0)],
    "averages": [average("rival", 0.5, 1), average("slow", 0.95, 2), average("default", 0.9, 2)],
    "ablations": [
        {
            "change": "trees_alone",
            "settings": "Train(only='trees')",
            "means": {"numbers": MEAN | {"value": 1.02}},
            "tables": {"here": {"value": 0.0, "error": 0.03, "p": 0.2}},
            "xauc": -0.004,
            "xauc_error": 0.001,
            "wrong_totals": 1,
            "seconds": 1.0,
        }
    ],
    "claims": [{"text": "it is ahead", "holds": False, "evidence": "on 1 of 2, not on here"}],
    "losses": [{"table": "here", "what": "NRMSE", "to": "rival", "evidence": "ratio 1.25"}],
    "failures": [{"table": "there", "method": "rival", "failed": "ValueError: no"}],
    "skipped": {"catboost_poisson": "this needs catboost"},
}


def test_machines_are_named_where_they_differ():
    assert "different machines" not in tables_page(REPORT)
    page = tables_page(REPORT | {"machines": {"A, 2 cores": ["lightgbm_poisson"], "B, 16 cores": ["default"]}})
    assert "on A, 2 cores: lightgbm_poisson; on B, 16 cores: default." in page


class TestTables:
    page = tables_page(REPORT)

    def test_what_is_missed_is_said(self):
        assert "| it is ahead | **no** | on 1 of 2, not on here |" in self.page
        assert "| here | NRMSE | rival | ratio 1.25 |" in self.page

    def test_methods_are_ordered_by_error_and_those_of_few_tables_come_last(self):
        lines = [line.split(" | ")[0] for line in self.page.splitlines() if "0.8500 to 0.9500" in line]
        assert lines == ["| default", "| slow", "| rival"]

    def test_the_least_error_of_a_table_is_bold_and_what_was_not_run_is_a_dash(self):
        assert "| rival | **1.0000** | – |" in self.page
        assert "| default | 1.2500 | **2.0000** |" in self.page

    def test_a_table_by_itself(self):
        assert "Target `y`; rows: 700 to train, 100 to valid, 200 to test." in self.page
        line = (
            "| default | 1.2500 ± 0.1000 | 1.0000 ± 0.0200 | 1.0000 ± 0.0200 | 1.020 ± 0.010 | +2.0 | 0.7000 ± 0.0020 "
        )
        assert line in self.page

    def test_failures_and_reasons_are_listed(self):
        assert "| rival | there | ValueError: no |" in self.page
        assert "| catboost_poisson | this needs catboost |" in self.page

    def test_nothing_lost_is_said_too(self):
        assert "Nowhere among the results so far." in tables_page(REPORT | {"losses": []})


def test_ablations_and_what_was_tried():
    tried = [{"config": "32 members", "ratio": 0.999, "low": 0.99, "high": 1.01, "note": "twice the time"}]
    page = ablations_page(REPORT, tried)
    assert (
        "| trees_alone | 1.0200 ± 0.0100 | 0.8500 to 0.9500 | – | -0.0040 ± 0.0010 | 1 | 1.0 | `Train(only='trees')` |"
        in page
    )
    assert "| trees_alone | 1.0000 ± 0.0300 | – |" in page
    assert "| 32 members | 0.9990 | 0.9900 to 1.0100 | twice the time |" in page
    assert ablations_page(REPORT, []).endswith("## Tried and dropped\n\nNothing is listed.\n")


def candidates():
    errors = {("a", "x"): 1.0, ("a", "y"): 1.0, ("b", "x"): 2.0, ("b", "y"): 0.5}
    return [
        {"config": c, "table": t, "seed": 0, "valid_nrmse": e, "test_nrmse": e, "pgr": 1.0, "seconds": 1.0}
        for (c, t), e in errors.items()
    ]


def test_one_table_left_out():
    page = left_out_page({"rows": candidates()})
    assert "| x | b | 2.0000 | 2.0000 | a | 2.0000 | 1.000 | 1.0 |" in page
    assert "| y | a | 1.0000 | 1.0000 | b | 2.0000 | 1.000 | 1.0 |" in page
    assert "errs 1.4142 times" in page  # √(2 · 1), to the reference


def test_pages_are_written_for_the_reports_that_are_there(tmp_path):
    assert write_board_pages(tmp_path) == []
    board = tmp_path / "board"
    board.mkdir()
    (board / "tables.json").write_text(json.dumps(REPORT))
    (board / "tables-2000.json").write_text(json.dumps(REPORT | {"rows": 2000}))
    (board / "left_out.json").write_text(json.dumps({"rows": candidates()}))
    (board / "tried.json").write_text("[]")
    names = ["tables-2000.md", "ablations-2000.md", "tables.md", "ablations.md", "left_out.md"]
    assert [path.name for path in write_board_pages(tmp_path)] == names
    assert ", about 2,000 rows of each" in (board / "tables-2000.md").read_text()
    result = CliRunner().invoke(app, ["pages", "--out", str(tmp_path)])
    assert result.output.strip() == f"5 pages written to {tmp_path}/"


def test_the_committed_pages_are_those_of_the_reports_beside_them(tmp_path):
    if not (REPORTS / "board").is_dir():
        pytest.skip(f"{REPORTS} has no reports of the board")
    shutil.copytree(REPORTS / "board", tmp_path / "board")
    for path in write_board_pages(tmp_path):
        assert path.read_text() == (REPORTS / "board" / path.name).read_text()


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSUN_DATA", str(tmp_path / "data"))
    table = FileTable("made_up", "y", NUMBERS)
    monkeypatch.setitem(BOARD_TABLES, table.name, table)
    table.file.parent.mkdir(parents=True)
    draw = np.random.default_rng(0)
    x, part = draw.uniform(0.0, 2.0, 600), draw.choice(["train", "valid", "test"], 600)
    pq.write_table(pa.table({"x": x, "part": part, "y": np.exp(x) * draw.gamma(5.0, 0.2, 600)}), table.file)


@pytest.mark.usefixtures("made_up")
def test_the_command_continues_and_shows_all_results_so_far(tmp_path):
    def run(*options):
        arguments = ["board", "--tables", "made_up", "--jobs", "1", "--no-progress", "--out", str(tmp_path)]
        result = CliRunner().invoke(app, [*arguments, *options])
        assert result.exit_code == 0, result.output
        return json.loads((tmp_path / "board" / "tables.json").read_text())

    run("--methods", "constant_rate")
    (kept,) = (tmp_path / "runs").glob("*.json")
    written = kept.stat().st_mtime_ns
    report = run("--methods", "lightgbm_poisson", "--methods", "constant*")
    assert kept.stat().st_mtime_ns == written
    assert {entry["method"] for entry in report["entries"]} == {"constant_rate", "lightgbm_poisson"}
    means = {entry["method"]: entry["to_reference"]["value"] for entry in report["averages"]}
    assert means["lightgbm_poisson"] == 1.0 < means["constant_rate"]
    assert "default" not in means
    assert report["claims"] == []
    run("--methods", "constant_rate", "--again")
    assert kept.stat().st_mtime_ns > written
    assert "# 2 methods on 1 tables" in (tmp_path / "board" / "tables.md").read_text()


def test_the_list_says_what_is_skipped(tmp_path, monkeypatch):
    monkeypatch.delenv("TRANSUN_AUTOGLUON_PYTHON", raising=False)
    result = CliRunner().invoke(app, ["board", "--list", "--methods", "auto*", "--tables", "lastfm"])
    assert result.exit_code == 0
    assert "autogluon_medium" in result.output
    assert "lastfm" in result.output
