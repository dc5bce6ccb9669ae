"""Mistakes get one line that names the remedy, exit code 2, and leave nothing behind."""

import json
import re
import subprocess
import sys

import pytest

from transun import hold_out

pl = pytest.importorskip("polars")

PYTHON = re.compile(r"\w+=\.\.\.|=None|=\{|\w+\(table|declare |plugins|pyarrow")
MISTAKES = {
    # fit
    "fit: no such target": ("fit orders.csv --target gmw", "did you mean 'gmv'"),
    "fit: no such weight": ("fit orders.csv --target gmv --weight wieght", "did you mean 'weight'"),
    "fit: no such exclusion": ("fit orders.csv --target gmv --exclude refund", "did you mean 'refunded'"),
    "fit: no such segment": ("fit orders.csv --target gmv --by contry", "did you mean 'country'"),
    "fit: segments by target": ("fit orders.csv --target gmv --by gmv", "columns known before"),
    "fit: text as target": ("fit orders.csv --target country", "is text, not a number"),
    "fit: no weight at all": ("fit weightless.csv --target gmv --weight nought", "leave the weights out"),
    "fit: target as weight": ("fit orders.csv --target gmv --weight gmv", "name two"),
    "fit: target excluded": ("fit orders.csv --target gmv --exclude gmv", "cannot be excluded"),
    "fit: unknown head": ("fit orders.csv --target gmv --head LogSUM()", "did you mean 'LogSUN'"),
    "fit: head in other case": ("fit orders.csv --target gmv --head logsun()", "did you mean 'LogSUN'?"),
    "fit: head without brackets": ("fit orders.csv --target gmv --head LogSUN", "write LogSUN()"),
    "fit: a transform as head": ("fit orders.csv --target gmv --head Log1p()", "e.g. TranSUN(Log1p())"),
    "fit: code as head": ("fit orders.csv --target gmv --head __import__('os')", "there is no '__import__'"),
    "fit: a number as transform": ("fit orders.csv --target gmv --head PointHead(3)", "3 cannot be its transform"),
    "fit: a part without brackets": ("fit orders.csv --target gmv --head GTS(PointHead(Log1p))", "brackets, Log1p()"),
    "fit: text as weight": ("fit orders.csv --target gmv --weight country", "name another column"),
    "fit: too large": ("fit huge.csv --target gmv", "the target 'gmv' of row 0 is 1e+300, too large to be squared"),
    "fit: too small": ("fit tiny.csv --target gmv", "the largest target 'gmv' is 1e-300, too small to be squared"),
    "fit: unclosed head": ("fit orders.csv --target gmv --head LogSUN(", "never closed"),
    "fit: unknown argument": ("fit orders.csv --target gmv --head LogSUN(shred=1)", "shred"),
    "fit: below the domain": ("fit orders.csv --target balance --head LogSUN()", "for signed targets use Asinh()"),
    "fit: trees of signed targets": ("fit orders.csv --target balance --only trees", "below 0, which boosted trees"),
    "fit: no such monitor": ("fit orders.csv --target gmv --monitor RSME", "did you mean"),
    "fit: no such engine": ("fit orders.csv --target gmv --engine Fast()", "not a transun object"),
    "fit: an engine without brackets": ("fit orders.csv --target gmv --engine Eager", "--engine is Eager()"),
    "fit: segments by rows": ("fit orders.csv --target gmv --by order", "use a coarser column"),
    "fit: bad rate": ("fit orders.csv --target gmv --rate 0", "a finite rate > 0"),
    "fit: all held out": ("fit orders.csv --target gmv --test-share 1", "strictly between 0 and 1"),
    "fit: all validation": ("fit orders.csv --target gmv --valid-share 1", "valid_share < 1"),
    "fit: no such rule": ("fit orders.csv --target gmv --holdout day", "rows, time:COLUMN or group:COLUMN"),
    "fit: held out by no column": ("fit orders.csv --target gmv --holdout time:ordr", "did you mean 'order'"),
    "fit: held out by the same": ("fit orders.csv --target gmv --holdout time:same", "cannot be split"),
    "fit: held out by one group": ("fit orders.csv --target gmv --holdout group:same", "cannot be split"),
    "fit: held out by the target": ("fit orders.csv --target gmv --holdout time:gmv", "name a column known before"),
    "fit: groups of the target": ("fit orders.parquet --target gmv --holdout group:gmv --stream", "have other amounts"),
    "fit: held out by texts": ("fit orders.csv --target gmv --holdout time:country", "'DE' is no time"),
    "fit: no such file": ("fit oders.csv --target gmv", "did you mean orders.csv"),
    "fit: too few rows": ("fit one.csv --target gmv", "give more rows"),
    "fit: no targets": ("fit gone.csv --target gmv", "name another column"),
    "fit: negative weights": ("fit orders.csv --target gmv --weight minus", "use 0 to leave a row out"),
    "fit: blocked output": ("fit orders.csv --target gmv --out notes.txt/inner", "name another with --out"),
    "fit: nothing to learn from": ("fit bare.csv --target gmv", "no column of the table is of use"),
    # predict
    "predict: no such model": ("predict modle orders.csv --out p.csv", "did you mean model"),
    "predict: foreign folder": ("predict folder orders.csv --out p.csv", "the folder that `transun fit` wrote"),
    "predict: changed model": ("predict changed orders.csv --out p.csv", "copy it again"),
    "predict: lost column": ("predict model short.csv --out p.csv", "column that the data lacks"),
    "predict: no such column": ("predict model orders.csv --keep ordr --out p.csv", "did you mean 'order'"),
    "predict: unknown ending": ("predict model orders.csv --out p.xlsx", "end it in .parquet or .csv"),
    "predict: onto its data": ("predict model orders.csv --out orders.csv", "would be lost"),
    "predict: onto its data by another name": ("predict model orders.csv --out ./orders.csv", "would be lost"),
    "predict: into the folder of its data": ("predict model days --out days/p.parquet", "be read as data next time"),
    "debias: into the folder of its data": (
        "debias days --target gmv --pred predicted --out ./days/inner/c.parquet",
        "would be read as data next time",
    ),
    "debias: onto its data": ("debias scored.csv --target gmv --pred predicted --out scored.csv", "would be lost"),
    "predict: blocked output": ("predict model orders.csv --out notes.txt/p.csv", "name a place"),
    "predict: no quantiles": ("predict model orders.csv --quantile 0.5 --out p.csv", "such as LogNormal()"),
    "predict: impossible level": ("predict model orders.csv --quantile 1.5 --out p.csv", "strictly between 0 and 1"),
    "predict: a name twice": ("predict model twice.csv --keep prediction --out p.csv", "rename or drop one"),
    "predict: cut file": ("predict model cut.parquet --out p.csv", "write it again"),
    # evaluate
    "evaluate: nothing to judge by": ("evaluate model", "--certificate"),
    "evaluate: data and certificate": ("evaluate model orders.csv --certificate", "leave out DATA"),
    "evaluate: unknown metric": ("evaluate model orders.csv --require trr<1", "did you mean 'tre'"),
    "evaluate: unknown in certificate": ("evaluate model --certificate --require rmse<1", "did you mean 'nrmse'"),
    "evaluate: upper case": ("evaluate model orders.csv --require TRE<1", "did you mean 'tre'"),
    "evaluate: code": ("evaluate model orders.csv --require exec('x')", "write comparisons of metrics"),
    "evaluate: no comparison": ("evaluate model orders.csv --require tre", "write comparisons of metrics"),
    "evaluate: unreadable": ("evaluate model orders.csv --require tre<=", "cannot be read"),
    "evaluate: no target": ("evaluate model untold.csv", "no column 'gmv'"),
    "evaluate: segments by target": ("evaluate model orders.csv --by gmv", "columns known beforehand"),
    "evaluate: segments by rows": ("evaluate model orders.csv --by order", "use a coarser column"),
    "evaluate: clusters by target": ("evaluate model orders.csv --cluster gmv", "names no customers or households"),
    "total: clusters by target": ("total model scored.csv --labelled orders.csv --cluster gmv", "names no customers"),
    "evaluate: certified on training rows": ("evaluate model orders.csv --certify", "on rows that it has not seen"),
    "evaluate: certificate of others": ("evaluate stolen --certificate", "another model than the one in the folder"),
    "evaluate: certificate without the weights": ("evaluate weightless --certificate", "copy the whole folder"),
    "evaluate: changed certificate": ("evaluate bent --certificate", "changed after it was written"),
    "evaluate: exposure of no rows": ("evaluate model --certificate --exposure years", "--certificate looks at"),
    # compare
    "compare: one model": ("compare model orders.csv", "two models or more"),
    "compare: the same twice": ("compare model model orders.csv", "give each folder once"),
    "compare: other targets": ("compare model signed orders.csv", "models of one target"),
    "compare: other exposures": ("compare model rates orders.csv", "exposure None) and rates 'gmv' (weight None, exp"),
    "compare: models without rows": ("compare model other", "name the rows to compare by after the models"),
    "compare: no such model": ("compare model othr orders.csv", "did you mean other"),
    "compare: no rows": ("compare model other header.csv", "header.csv has no rows"),
    "compare: blocked output": ("compare model other orders.csv --out notes.txt/c", "name another with --out"),
    # debias
    "debias: a model without data": ("debias model", "give the rows"),
    "debias: columns for a model": ("debias model orders.csv --pred predicted", "leave it out"),
    "debias: debiased already": ("debias model orders.csv --out d", "has a bias branch already"),
    "debias: into itself": ("debias other orders.csv --out other", "name another folder"),
    "debias: no such rule": ("debias other orders.csv --holdout week", "rows, time:COLUMN or group:COLUMN"),
    "debias: no columns": ("debias scored.csv", "name --target and --pred"),
    "debias: no such column": ("debias scored.csv --target gmv --pred predcted", "did you mean 'predicted'"),
    "debias: same column": ("debias scored.csv --target gmv --pred gmv", "different columns"),
    "debias: few rows": ("debias few.csv --target gmv --pred predicted", "at least 200"),
    "debias: few weights": (
        "debias weightless.csv --target gmv --pred predicted --weight nought",
        "0 rows have a target 'gmv' and a weight 'nought' above 0",
    ),
    "debias: unknown method": ("debias scored.csv --target gmv --pred predicted --method magic", "isotonic"),
    "debias: negative predictions": ("debias scored.csv --target gmv --pred minus", "transformed back"),
    "debias: ending": ("debias scored.csv --target gmv --pred predicted --out c.txt", ".parquet or .csv"),
    "debias: epochs of a table": ("debias scored.csv --target gmv --pred predicted --epochs 3", "is for models"),
    "diagnose: too small": ("diagnose tiny.csv --target gmv --pred predicted", "target 'gmv' is 1e-300, too small"),
    "diagnose: predictions too small": ("diagnose tiny.csv --target balance --pred gmv", "prediction 'gmv' is 1e-300"),
    "debias: blocked output": (
        "debias scored.csv --target gmv --pred predicted --out notes.txt/c.csv",
        "name another with --out",
    ),
    "diagnose: blocked output": (
        "diagnose scored.csv --target gmv --pred predicted --out notes.txt/d",
        "name another with --out",
    ),
    "debias: foreign folder": ("debias folder orders.csv", "the folder that `transun fit` wrote"),
    # export and info
    "export: ending": ("export model --out m.h5", "end it in .onnx, .pt2 (torch) or .aoti.pt2 (compiled)"),
    "export: no model": ("export nothing --out m.pt2", "train one first"),
    "export: blocked output": ("export model --out notes.txt/m.onnx", "name another with --out"),
    "export: blocked folder": ("export model --format huggingface --out notes.txt/m", "name another with --out"),
    "demo: blocked output": ("demo --orders 1000 --out notes.txt/d", "name another with --out"),
    # serve
    "serve: no model": ("serve nothing --port 0", "train one first"),
    "serve: host": ("serve model --host no.such.host.invalid", "cannot listen at no.such.host.invalid, port 8000"),
    "serve: port": ("serve model --port 99999", "cannot listen at 127.0.0.1, port 99999"),
    "serve: rows": ("serve model --max-rows 0", "the limit of rows is 0"),
    "info: a model without its weights": ("info weightless", "copy the whole folder"),
    "info: nothing there": ("info nowhere.csv", "there is no file"),
    "info: foreign folder": ("info folder", "no *.parquet file"),
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory, shop):
    """Files that mistakes are made with."""
    folder = tmp_path_factory.mktemp("broken")
    frame = pl.read_csv(shop / "orders.csv")
    (folder / "folder").mkdir()
    (folder / "notes.txt").write_text("hello")
    (folder / "header.csv").write_text(",".join(frame.columns) + "\n")
    (folder / "cut.parquet").write_bytes((shop / "orders.parquet").read_bytes()[:900])
    (folder / "days").mkdir()
    frame.write_parquet(folder / "days" / "1.parquet")
    frame[:1].write_csv(folder / "one.csv")
    frame[:150].write_csv(folder / "few.csv")
    frame.with_columns(nought=0).write_csv(folder / "weightless.csv")
    frame.with_columns(gmv=pl.lit(None, dtype=pl.Float64)).write_csv(folder / "gone.csv")
    frame.select("gmv", "order").write_csv(folder / "bare.csv")
    for name, amount in (("huge", 1e300), ("tiny", 1e-300)):
        frame.with_columns(gmv=pl.lit(amount)).write_csv(folder / f"{name}.csv")
    frame.drop("country").write_csv(folder / "short.csv")
    frame.drop("gmv").write_csv(folder / "untold.csv")
    frame.with_columns(prediction=1.0).write_csv(folder / "twice.csv")
    for name in ("changed", "stolen", "bent", "signed", "rates"):
        (folder / name).mkdir()
        for path in (shop / "model").iterdir():
            (folder / name / path.name).write_bytes(path.read_bytes())
    (folder / "weightless").mkdir()
    for name in ("transun.json", "certificate.json"):
        (folder / "weightless" / name).write_bytes((shop / "model" / name).read_bytes())
    replace(folder / "changed" / "transun.json", '"seed": 0', '"seed": 1')
    (folder / "stolen" / "certificate.json").write_bytes((shop / "other" / "certificate.json").read_bytes())
    replace(folder / "bent" / "certificate.json", '"seed": 0', '"seed": 5')
    save_changed(folder / "signed", target="balance")
    save_changed(folder / "rates", exposure="weight")
    return folder


def replace(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def save_changed(folder, **columns):
    """The same model, saved by the library with other columns in the place of some of its own."""
    from dataclasses import replace as changed

    from transun.tables.model import load

    changed(load(folder), **columns).save(folder)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_get_their_remedy(here, broken, run, mistake):
    for path in broken.iterdir():
        (here / path.name).symlink_to(path)
    before = {path.name for path in here.iterdir()}
    line, remedy = MISTAKES[mistake]
    found = run(*line.split(), code=2)
    assert remedy in found.err
    assert found.err.startswith("error: ")
    assert "Traceback" not in found.err
    assert not PYTHON.search(found.err)  # the advice is about the command line
    assert found.out == ""
    assert {path.name for path in here.iterdir()} == before


@pytest.mark.parametrize(
    ("stream", "line"), [("stdin", "predict model - --out p.csv"), ("stdout", "predict model orders.csv --out -")]
)
def test_a_stream_that_the_caller_has_closed_is_told(here, stream, line):
    """As by the shell's `<&-` and `>&-`, which leave Python without the stream."""
    closed = f"exec {'<&-' if stream == 'stdin' else '>&-'}; exec {sys.executable} -m transun {line}"
    told = subprocess.run(["sh", "-c", closed], capture_output=True, text=True, check=False)
    assert told.returncode == 2
    assert told.stderr.startswith("error: standard ")
    assert "is closed: " in told.stderr
    assert told.stderr.count("\n") == 1


def test_a_training_that_diverges_is_told(here, run):
    found = run("fit", "orders.csv", "--target", "gmv", "--rate", "1e30", "--epochs", 2, "--out", "new", code=2)
    assert "lower the learning rate" in found.err


def test_a_journal_of_another_run_is_told(here, run, monkeypatch):
    from transun.training.early_stopping import EarlyStopping

    def stop(self, step):
        raise KeyboardInterrupt

    monkeypatch.setattr(EarlyStopping, "check", stop)
    run("fit", "orders.csv", "--target", "gmv", "--out", "new", code=130)
    found = run("fit", "orders.csv", "--target", "gmv", "--out", "new", "--resume", "--epochs", 3, code=2)
    assert "belongs to another run" in found.err


@pytest.mark.parametrize(
    ("column", "value", "option"),
    [
        ("gmv", 1e300, []),
        ("weight", -1.0, ["--weight", "weight"]),
        ("weight", None, ["--weight", "weight"]),
        ("same", 0.0, ["--exposure", "same"]),
        ("same", 1e-300, ["--exposure", "same"]),
    ],
)
def test_a_mistake_in_a_row_held_out_is_told_before_the_training(here, run, monkeypatch, column, value, option):
    """By the number of the row in the file, where the row above has no target and is left out."""
    monkeypatch.setattr("transun.tables.training.train_plan", None)
    frame = pl.read_csv("orders.csv").cast({column: pl.Float64}).with_row_index("row")
    held_out = hold_out(frame[1:], 0.2, seed=0)[1]["row"].to_pylist()[0]
    gone = pl.when(pl.col("row") == 0).then(None).otherwise(pl.col("gmv"))
    wrong = pl.when(pl.col("row") == held_out).then(value).otherwise(pl.col(column))
    frame.with_columns(gmv=gone).with_columns(wrong.alias(column)).drop("row").write_csv("late.csv")
    told = run("fit", "late.csv", "--target", "gmv", *option, "--out", "late", code=2)
    assert f"row {held_out}" in told.err
    assert f"'{column}'" in told.err or "'gmv'" in told.err
    assert not (here / "late").exists()


def test_rows_held_out_without_weight_prove_nothing(here, run, monkeypatch):
    monkeypatch.setattr("transun.tables.training.train_plan", None)
    pl.read_csv("orders.csv").with_columns(day=pl.int_range(pl.len())).with_columns(
        weight=(pl.col("day") < 1000).cast(float)
    ).write_csv("late.csv")
    line = ["fit", "late.csv", "--target", "gmv", "--weight", "weight", "--holdout", "time:day"]
    assert "column 'weight' is 0 in all 300 rows held out" in run(*line, code=2).err


@pytest.mark.parametrize(
    ("call", "library"),
    [
        ("fit orders.csv --target gmv --out new", "scipy"),
        ("fit orders.csv --target gmv --out new", "safetensors"),
        ("debias other orders.csv --out new", "scipy"),
        ("debias other orders.csv --out new", "safetensors"),
        ("debias scored.csv --target gmv --pred predicted --out c.csv", "scipy"),
        ("diagnose scored.csv --target gmv --pred predicted", "scipy"),
        ("demo --orders 2000", "scipy"),
    ],
)
def test_a_missing_library_is_named_before_any_work(here, run, monkeypatch, call, library):
    """Training and predicting are made impossible, so that nothing but the check can answer."""
    monkeypatch.setitem(sys.modules, library, None)
    for work in ("tables.training.train_plan", "report.demo.run_demo", "diagnosis.repair.repair"):
        monkeypatch.setattr(f"transun.{work}", None)
    before = {path.name for path in here.iterdir()}
    found = run(*call.split(), code=2)
    assert found.err == f"error: this needs {library}: pip install {library}\n"
    assert {path.name for path in here.iterdir()} == before


def test_export_names_the_extra_that_is_missing(here, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert "pip install 'transun[onnx]'" in run("export", "model", "--out", "m.onnx", code=2).err
    assert not (here / "m.onnx").exists()


@pytest.mark.parametrize("library", ["starlette", "uvicorn", "prometheus_client"])
def test_serve_names_the_extra_that_is_missing(here, run, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setattr("transun.serving.app.listen", None)  # nothing but the check can answer
    assert run("serve", "model", code=2).err == f"error: this needs {library}: pip install 'transun[serve]'\n"


@pytest.mark.parametrize(
    "call", ["fit", "fit orders.csv", "predict model", "evaluate", "compare", "export model", "nope"]
)
def test_an_incomplete_call_is_told(here, run, call):
    assert "Usage" in run(*call.split(), code=2).err


def test_a_damaged_certificate_never_blocks_the_model(here, broken, run):
    for path in broken.iterdir():
        (here / path.name).symlink_to(path)
    run("predict", "bent", "orders.csv", "--out", "p.csv")
    told = json.loads(run("info", "bent", "--json").out)
    assert told["certificate"] is None
    assert "changed after it was written" in told["problem"]


def test_standard_output_is_in_no_folder(here, run, monkeypatch):
    (here / "days").mkdir()
    pl.read_csv("orders.csv")[:3].write_csv("days/1.csv")
    model = here / "model"
    monkeypatch.chdir(here / "days")
    assert len(run("predict", model, ".", "--out", "-").out.splitlines()) == 4
