import json
import os
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from transun_paper.cli import app
from transun_paper.datasets.public import load_public_dataset
from transun_paper.lab.worker import read_work


def test_an_interrupted_reproduction_goes_on(tmp_path):
    """Killed after its first cells, the second run repeats none of them."""
    command = [sys.executable, "-m", "transun_paper", "reproduce", "synthetic", "--quick", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ)
    runs = tmp_path / "runs"
    deadline = time.monotonic() + 120
    while len(list(runs.glob("*.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    process.wait()
    kept = {path.name: path.stat().st_mtime_ns for path in runs.glob("*.json")}
    assert len(kept) >= 3
    result = CliRunner().invoke(app, ["reproduce", "synthetic", "--quick", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert {name: (runs / name).stat().st_mtime_ns for name in kept} == kept
    report = json.loads((tmp_path / "synthetic.json").read_text())
    assert len(report["cells"]) == 56
    claims = {claim["text"]: claim["holds"] for claim in report["claims"]}
    assert all(holds for text, holds in claims.items() if text.startswith("T-MSE") or "0.02 level" in text)
    page = (tmp_path / "synthetic.md").read_text()
    assert page.count("\n| TranSUN | ln(y+1) |") == 6  # a row in each table


def test_pages_are_written_again_from_their_reports(tmp_path):
    runner = CliRunner()
    assert runner.invoke(app, ["reproduce", "fig_densities", "--quick", "--out", str(tmp_path)]).exit_code == 0
    written = {path.name: path.read_bytes() for path in tmp_path.glob("fig_densities.*")}
    assert set(written) == {"fig_densities.json", "fig_densities.md", "fig_densities.svg"}
    for name in ("fig_densities.md", "fig_densities.svg"):
        (tmp_path / name).unlink()
    result = runner.invoke(app, ["pages", "--out", str(tmp_path)])
    assert result.output.strip() == f"1 pages written to {tmp_path}/"
    assert {path.name: path.read_bytes() for path in tmp_path.glob("fig_densities.*")} == written


def test_a_plan_is_what_a_worker_reads(tmp_path):
    try:
        load_public_dataset("lastfm")
    except FileNotFoundError as error:
        pytest.skip(str(error))
    arguments = ["leaderboard", "--only", "MSE", "--only", "LogSUN", "--data", "lastfm", "--quick", "--plan"]
    for _ in range(2):  # planned again, the same rows have the same key
        result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path)])
        assert "2 studies and computations" in result.output
    runs = tmp_path / "runs"
    assert f"python -m transun_paper.lab.worker {runs}/work.jsonl --cache {runs}/data --store {runs}" in result.output
    studies, computations = read_work((runs / "work.jsonl").read_text().splitlines())
    assert computations == []
    assert {run.dataset for study in studies for run in study.candidates} == {
        path.stem for path in (runs / "data").iterdir()
    }


@pytest.mark.parametrize("library", ["sklearn", "altair", "vl_convert"])
@pytest.mark.parametrize("call", [["reproduce"], ["leaderboard"], ["board"], ["pages"]])
def test_a_missing_library_is_named_before_any_work(tmp_path, monkeypatch, call, library):
    monkeypatch.setitem(sys.modules, library, None)
    result = CliRunner().invoke(app, [*call, "--out", str(tmp_path / "new")])
    assert str(result.exception).startswith(f"transun-paper needs {library}: `pip install ./paper`")
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_written_is_reported_before_any_work(tmp_path, monkeypatch):
    from transun_paper.pages.reproductions import Workspace

    (tmp_path / "file").touch()
    monkeypatch.setattr(Workspace, "carry_out", None)
    result = CliRunner().invoke(app, ["reproduce", "synthetic", "--quick", "--out", str(tmp_path / "file" / "new")])
    assert "name another with --out" in str(result.exception)


def test_a_data_set_that_is_not_there_says_what_its_file_holds(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"make it: one observation per row, with the target \w+ and the columns \w+"
    ):
        load_public_dataset("lastfm", tmp_path)
