from pathlib import Path

import pytest

from transun_paper.datasets.public import load
from transun_paper.lab.plan import main
from transun_paper.lab.protocol import read_studies
from transun_paper.lab.run import Run


def test_a_plan_is_data_and_studies(tmp_path, capsys):
    try:
        load("lastfm")
    except FileNotFoundError as error:
        pytest.skip(str(error))
    file = tmp_path / "studies.jsonl"
    arguments = ["--quick", "--data", "lastfm", "--only", "MSE", "--only", "LogSUN"]
    assert main([*arguments, "--cache", str(tmp_path / "cache"), "--out", str(file)]) == 0
    assert "2 studies" in capsys.readouterr().out
    studies = read_studies(file.read_text().splitlines())
    runs = [run for study in studies for run in study.candidates]
    assert all(isinstance(run, Run) for run in runs)
    assert [Path(path).stem for path in (tmp_path / "cache").iterdir()] == [runs[0].dataset]
    # Planned again, the same rows have the same key.
    main([*arguments, "--cache", str(tmp_path / "cache"), "--out", str(file)])
    assert read_studies(file.read_text().splitlines()) == studies
