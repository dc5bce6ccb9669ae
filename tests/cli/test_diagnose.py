"""`transun diagnose`: what it writes and prints, and what it says to mistakes."""

import io
import json
import os
import shlex
import signal
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from transun.cli import app, main
from transun.cli.diagnose import diagnose as command

pl = pytest.importorskip("polars")
RUN = CliRunner()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with data of all sorts, which is the working folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = 1500
    typical = np.exp(3.0 + 0.8 * rng.normal(size=rows))
    gmv = typical * rng.lognormal(0.0, 0.9, rows)
    frame = pl.DataFrame(
        {
            "gmv": gmv,
            "predicted": typical,
            "fair": typical * gmv.sum() / typical.sum(),
            "country": rng.choice(["IT", "FR", "DE"], rows),
            "order_id": [f"o{index}" for index in range(rows)],
            "weight": rng.integers(1, 4, rows),
            "minus": -np.ones(rows),
            "nothing": np.zeros(rows),
            "same": np.full(rows, 7.0),
            "gone": [None] * rows,
        },
        schema_overrides={"gone": pl.Float64},
    )
    frame.write_csv("orders.csv")
    frame.write_parquet("orders.parquet")
    return tmp_path


def invoke(*arguments, code=0):
    result = RUN.invoke(app, ["diagnose", *map(str, arguments)])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def files(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_the_example_of_the_help_runs(here):
    (line,) = [line for line in (command.__doc__ or "").splitlines() if "Example:" in line]
    _, _, *arguments = shlex.split(line.split("Example:")[1])
    result = invoke(*arguments)
    assert "Totals are" in result.output
    assert files(here / "diagnosis") == ["diagnosis.html", "diagnosis.json", "diagnosis.md"]
    assert "transun diagnose orders.csv" in " ".join(RUN.invoke(app, ["diagnose", "--help"]).output.split())


def test_json_is_all_that_is_printed(here):
    result = invoke("orders.parquet", "--target", "gmv", "--pred", "predicted", "--json", "--out", "out")
    data = json.loads(result.stdout)
    assert data["verdict"]["biased"] is True
    assert data == json.loads((here / "out" / "diagnosis.json").read_text())


def test_exit_codes_for_scripts(here):
    invoke("orders.csv", "--target", "gmv", "--pred", "predicted", "--out", "a")
    invoke("orders.csv", "--target", "gmv", "--pred", "predicted", "--fail-if-biased", "--out", "b", code=1)
    invoke("orders.csv", "--target", "gmv", "--pred", "fair", "--fail-if-biased", "--out", "c")
    assert files(here / "b") == ["diagnosis.html", "diagnosis.json", "diagnosis.md"]


@pytest.mark.parametrize("name", ["orders.csv", "orders.parquet"])
def test_standard_input(here, monkeypatch, name):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((here / name).read_bytes())))
    with pytest.raises(SystemExit) as stop:
        run_main(monkeypatch, "-", "--target", "gmv", "--pred", "predicted", "--weight", "weight", "--out", "out")
    assert stop.value.code in (0, None)
    data = json.loads((here / "out" / "diagnosis.json").read_text())
    assert data["source"]["name"] == "standard input"
    assert data["source"]["used"] == 1500


def run_main(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["transun", "diagnose", *map(str, arguments)])
    main()


def broken(here):
    (here / "cut.parquet").write_bytes((here / "orders.parquet").read_bytes()[:900])
    (here / "foreign.parquet").write_text("not a table")
    (here / "picture.csv").write_bytes(bytes(range(256)) * 40)
    (here / "empty.csv").write_text("")
    (here / "header.csv").write_text("gmv,predicted\n")
    (here / "notes.txt").write_text("hello")
    (here / "late.csv").write_text("gmv,predicted\n" + "1.5,1.0\n" * 200_000 + "many,1.0\n")
    (here / "one.csv").write_text("gmv,predicted\n1,2\n")
    (here / "folder").mkdir()
    (here / "twice.csv").write_text("gmv,gmv,predicted\n1,2,3\n")


MISTAKES = {
    "no such column": ("orders.csv gmw predicted", "did you mean 'gmv'"),
    "no such prediction": ("orders.parquet gmv predcited", "did you mean 'predicted'"),
    "no such segment": ("orders.csv gmv predicted --by contry", "did you mean 'country'"),
    "no such weight": ("orders.csv gmv predicted --weight wieght", "did you mean 'weight'"),
    "text as target": ("orders.csv country predicted", "columns of numbers are"),
    "text as prediction": ("orders.parquet gmv country", "must hold numbers"),
    "same column": ("orders.csv gmv gmv", "name two"),
    "target as weight": ("orders.csv gmv predicted --weight gmv", "a column of its own"),
    "segments by target": ("orders.csv gmv predicted --by gmv", "columns known beforehand"),
    "segments by prediction": ("orders.csv gmv predicted --by predicted", "name another column"),
    "segments by id": ("orders.csv gmv predicted --by order_id", "use a coarser column"),
    "negative weights": ("orders.csv gmv predicted --weight minus", "use 0 to leave a row out"),
    "zero weights": ("orders.csv gmv predicted --weight nothing", "Repair the columns"),
    "constant target": ("orders.csv same predicted", "is it the right column"),
    "zero predictions": ("orders.csv gmv nothing", "is it the right column"),
    "negative predictions": ("orders.csv gmv minus", "transformed back"),
    "negative total": ("orders.csv minus gmv", "in every row"),
    "only missing": ("orders.csv gone predicted", "Repair the columns, or name others"),
    "no such file": ("oders.csv gmv predicted", "did you mean orders.csv"),
    "cut file": ("cut.parquet gmv predicted", "write it again"),
    "foreign file": ("foreign.parquet gmv predicted", "write it again"),
    "binary as CSV": ("picture.csv gmv predicted", "write it with a header line"),
    "empty file": ("empty.csv gmv predicted", "nothing was ever written"),
    "no rows": ("header.csv gmv predicted", "no rows"),
    "one row": ("one.csv gmv predicted", "at least two"),
    "unknown ending": ("notes.txt gmv predicted", "known endings are"),
    "folder without data": ("folder gmv predicted", "name another"),
    "text far down": ("late.csv gmv predicted", "correct or remove that value"),
    "blocked output": ("orders.csv gmv predicted --out notes.txt/inner", "notes.txt"),
    "two columns of a name": ("twice.csv gmv predicted", "rename"),
    "eleven segments": (
        "orders.csv gmv predicted " + " ".join(f"--by c{index}" for index in range(11)),
        "at most 10",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_get_their_remedy(here, monkeypatch, capsys, mistake):
    broken(here)
    line, remedy = MISTAKES[mistake]
    data, target, pred, *rest = line.split()
    with pytest.raises(SystemExit) as stop:
        run_main(monkeypatch, data, "--target", target, "--pred", pred, *rest)
    assert stop.value.code == 2
    told = capsys.readouterr()
    assert remedy in told.err
    assert told.err.startswith("error: ")
    assert "Traceback" not in told.err
    assert told.out == ""
    assert not (here / "diagnosis").exists()


@pytest.mark.parametrize(
    "arguments", [[], ["orders.csv"], ["orders.csv", "--target", "gmv"], ["orders.csv", "--target", "gmv", "--nope"]]
)
def test_an_incomplete_call_shows_the_usage(here, arguments):
    result = RUN.invoke(app, ["diagnose", *arguments])
    assert result.exit_code == 2
    assert "Usage" in result.output


def test_empty_standard_input(here, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(SystemExit) as stop:
        run_main(monkeypatch, "-", "--target", "gmv", "--pred", "predicted")
    assert stop.value.code == 2
    assert "pipe CSV" in capsys.readouterr().err


def test_an_interrupt_leaves_no_half_files(here):
    """The process reads from a pipe that never ends; more than a pipe holds proves that it has begun."""
    call = [sys.executable, "-m", "transun", "diagnose", "-", "--target", "gmv", "--pred", "predicted", "--out", "out"]
    process = subprocess.Popen(call, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ)
    process.stdin.write((here / "orders.csv").read_bytes() * 4)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    process.stdin.close()
    errors = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(60) == 130
    assert "Traceback" not in errors
    assert files(here / "out") == []
