import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from transun import __version__
from transun.cli import app

RUN = CliRunner()


def python(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def require_interrupted(script):
    """The command, begun after a script that interrupts it, ends in one line."""
    command = 'sys.argv = ["transun", "info"]\nrunpy.run_module("transun", run_name="__main__")\n'
    result = python("-c", f"import runpy, sys\n{script}{command}")
    assert result.returncode == 130
    assert result.stderr == "interrupted: nothing was written but what was finished before\n"


def invoke(*arguments):
    result = RUN.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


def test_demo_shows_the_bias_and_its_removal(tmp_path):
    result = invoke("demo", "--orders", 20_000, "--out", tmp_path)
    assert "LogMSE under-predicts the total by" in result.output
    assert "true E[y|x]" in result.output
    found = json.loads((tmp_path / "demo.json").read_text())
    assert found["LogMSE"]["metrics"]["PGR"] < 0.8
    assert len(found["LogSUN"]["deciles"]) == 10
    biased, debiased = ((tmp_path / file).read_text() for file in ("biased.html", "debiased.html"))
    assert "Totals are" in biased
    assert biased != debiased
    assert "<svg" in (tmp_path / "calibration.svg").read_text()
    assert "calibration.svg" in (tmp_path / "demo.md").read_text()


def test_demo_speaks_json(tmp_path):
    result = invoke("demo", "--orders", 2000, "--json", "--out", tmp_path)
    assert set(json.loads(result.stdout)) == {"LogMSE", "LogSUN"}


@pytest.mark.parametrize("arguments", [["demo", "--orders", 10], ["demo", "--nonsense"], ["nothing"]])
def test_mistakes_exit_with_two(arguments):
    assert RUN.invoke(app, [str(argument) for argument in arguments]).exit_code == 2


@pytest.mark.parametrize("command", [[], ["demo"]])
def test_help_says_what_it_does(command):
    result = RUN.invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert len(result.output) > 200


def test_version():
    assert invoke("--version").output.strip() == f"transun {__version__}"


def test_one_row_is_no_rows(tmp_path):
    (tmp_path / "one.csv").write_text("gmv\n1.5\n")
    (tmp_path / "more.csv").write_text("gmv,item\n1.5,a\n2.5,b\n")
    assert invoke("info", tmp_path / "one.csv").output.endswith("\n1 row, 1 column\n")
    assert invoke("info", tmp_path / "more.csv").output.endswith("\n2 rows, 2 columns\n")


def test_errors_are_one_line_without_a_traceback(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = python("-m", "transun", "demo", "--orders", "1000", "--out", str(blocked / "inner"))
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert "error: " in result.stderr


def test_help_does_not_import_torch():
    script = """
import sys
from transun.cli import app
try:
    app(["--help"])
except SystemExit:
    pass
assert "torch" not in sys.modules
"""
    result = python("-c", script)
    assert result.returncode == 0, result.stderr


def test_core_needs_torch_and_numpy_alone():
    """The machine with the GPU has nothing else: heads, networks, simulated data and fit must run there."""
    script = """
import sys
for name in ("rich", "typer", "scipy", "sklearn", "altair", "pandas", "polars", "pyarrow"):
    sys.modules[name] = None
from transun import Constant, EmbeddingMLP, LogSUN, Model, OrderLog, Recipe, evaluate, fit
log = OrderLog(orders=1000, users=20, items=10, history=3)
data = log.dataset()
model = Model(EmbeddingMLP(log.sizes, {"history": "item"}, ("log_price",)), LogSUN())
fit(model, data, Recipe(epochs=1))
print(evaluate(model, data))
"""
    result = python("-c", script)
    assert result.returncode == 0, result.stderr
    assert "PGR" in result.stdout


@pytest.mark.parametrize("module", ["typer", "transun.cli.fit", "transun.cli.main", "rich"])
def test_imports_are_interrupted_in_one_line(module):
    """Whatever is being imported: the framework, our own commands, or what a command needs to print."""
    script = f"""
class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
"""
    require_interrupted(script)


def test_an_interrupt_while_an_object_is_cleared_away_is_not_lost():
    """Python itself would print it as ignored, and the command would go on to its end."""
    script = """
import time

class Cleared:
    def __del__(self):
        raise KeyboardInterrupt

class Importing:
    def find_spec(self, name, path=None, target=None):
        if name == "rich":
            Cleared()
            for _ in range(1000):  # the rest of a long command
                time.sleep(0.01)

sys.meta_path.insert(0, Importing())
"""
    require_interrupted(script)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
def test_a_full_disk_below_standard_output_is_told():
    with Path("/dev/full").open("w") as full:
        call = [sys.executable, "-m", "transun", "info", "--json"]
        told = subprocess.run(call, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert told.returncode == 2
    assert told.stderr.startswith("error: no room for standard output")
    assert told.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "work"),
    [
        ("diagnose scored.csv --target gmv --pred predicted", "transun.diagnosis.diagnose_table"),
        ("debias scored.csv --target gmv --pred predicted --out c.csv", "transun.diagnosis.repair.repair"),
        ("compare model other orders.csv", "transun.diagnosis.evaluation.evaluate_model"),
        ("export model --out m.pt2", "transun.tables.graph_export.export"),
        ("demo --orders 2000", "transun.report.demo.run_demo"),
        ("info orders.csv", "transun.data.table.overview"),
    ],
)
def test_an_interrupted_command_says_so_in_one_line_and_leaves_nothing(here, run, monkeypatch, line, work):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    # A module that is imported while its function is replaced would keep the other one for all tests to come.
    import_module("transun.integrations.huggingface")
    monkeypatch.setattr(work, stop)
    before = {path.name for path in here.iterdir()}
    told = run(*line.split(), code=130)
    assert told.err == "interrupted: nothing was written but what was finished before\n"
    assert {path.name for path in here.iterdir()} == before
