import sys

import pytest

from transun_paper.board.external import SCRIPTS, External
from transun_paper.board.methods import METHODS

# A library of another environment that predicts the mean and tells what it was given.
MEAN = """
import json, pathlib, sys
import pyarrow.parquet as pq
folder = pathlib.Path(sys.argv[1])
request = json.loads((folder / "request.json").read_text())
train, valid, test = (pq.read_table(folder / f"{part}.parquet") for part in ("train", "valid", "test"))
y = train[request["target"]].to_pylist()
mean = sum(y) / len(y)
details = {"request": request, "columns": test.column_names}
result = {"valid": [mean] * len(valid), "test": [mean] * len(test), "seconds": 1.5, "details": details}
(folder / "result.json").write_text(json.dumps(result))
"""


@pytest.fixture
def method(tmp_path, monkeypatch):
    monkeypatch.setenv("OTHER_PYTHON", sys.executable)
    (tmp_path / "mean.py").write_text(MEAN)
    return External("mean", str(tmp_path / "mean.py"), "OTHER_PYTHON", in_the_time_of="default")


def test_a_script_gets_the_parts_and_never_the_test_targets(method, split):
    result = method.fit_predict(split, 7, {"seconds": 12})
    assert result.test == pytest.approx(split.y_train.mean())
    assert (len(result.valid), len(result.test)) == (300, 300)
    assert result.seconds == 1.5
    assert result.details["request"] == {"target": "y", "seed": 7, "seconds": 12}
    assert "y" not in result.details["columns"]


def test_the_time_is_that_of_another_method_in_whole_seconds(method):
    assert method.needs(3) == ("default", 3)
    assert method.taken_from({"seconds": 11.2}) == {"seconds": 12}


def test_a_script_that_stops_is_quoted(method, split, tmp_path):
    (tmp_path / "mean.py").write_text("raise SystemExit('no such model')")
    with pytest.raises(RuntimeError, match=r"mean\.py stopped with exit code 1: no such model"):
        method.fit_predict(split, 0)


def test_an_environment_that_is_missing_is_named(method, monkeypatch):
    assert method.missing() is None
    monkeypatch.setenv("OTHER_PYTHON", "/nowhere/python")
    assert method.missing() == "OTHER_PYTHON names no file: /nowhere/python"
    monkeypatch.delenv("OTHER_PYTHON")
    assert method.missing() == "set OTHER_PYTHON to the Python of an environment that has the library"


def test_every_script_of_the_board_is_there():
    scripts = [method.script for method in METHODS.values() if isinstance(method, External)]
    assert all((SCRIPTS / script).is_file() for script in scripts)
    assert len(scripts) == 2
