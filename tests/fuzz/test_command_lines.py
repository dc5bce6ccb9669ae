"""Command lines: they end with exit code 0, 1 or 2, and whoever reads the output finds a sentence and no traceback."""

import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout

import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.harness import cases, flat_table, trained, watched
from transun.cli import main

# No slash: every path that a command line can name is inside the folder of the test.
words = st.text(st.characters(codec="utf-8", exclude_characters="/\x00"), max_size=8)
columns = st.sampled_from(["amount", "price", "shop", "code", "when", "predicted", "nothing"])
paths = st.sampled_from(
    ["rows.csv", "rows.parquet", "model", "empty.csv", "bad.parquet", "nowhere", "new", "out.csv", "."]
)
heads = st.sampled_from(["LogSUN()", "Scaled(MSE())", "Poisson()", "GTS(TPM())", "Log1p()", "MSE", "open('x')", ""])
numbers = st.one_of(st.integers(-2, 5).map(str), st.sampled_from(["0.5", "nan", "inf", "1e9", "-0", "1e-400", "x"]))
conditions = st.sampled_from(["pgr > 0", "abs(tre) <= 0.02", "tre", "1 > 0", "pgr > 0; x", "__import__('os')", ""])
VALUES = {
    "--target": columns,
    "--pred": columns,
    "--by": columns,
    "--weight": columns,
    "--exclude": columns,
    "--keep": columns,
    "--head": heads,
    "--out": paths,
    "--data": paths,
    "--quantile": numbers,
    "--rate": numbers,
    "--seed": numbers,
    "--batch-size": numbers,
    "--test-share": numbers,
    "--valid-share": numbers,
    "--patience": numbers,
    "--require": conditions,
    "--method": st.sampled_from(["Smearing()", "TotalRatio()", "x", "open('x')"]),
    "--monitor": st.sampled_from(["RMSE", "XAUC", "nothing"]),
    "--json": None,
    "--resume": None,
    "--certify": None,
    "--certificate": None,
    "--fail-if-biased": None,
    "--no-progress": None,
    "--help": None,
    "--nothing": None,
}
# A command line that works, into which a case puts something else.
GOOD = [
    ["predict", "model", "rows.csv", "--out", "predicted.csv"],
    ["evaluate", "model", "rows.parquet"],
    ["diagnose", "rows.csv", "--target", "amount", "--pred", "predicted"],
    ["debias", "rows.csv", "--target", "amount", "--pred", "predicted", "--out", "fixed.csv"],
    ["compare", "model", "model", "--data", "rows.csv", "--out", "compared"],
    ["info", "model"],
    ["info", "rows.csv"],
    ["fit", "rows.csv", "--target", "amount", "--epochs", "1", "--out", "fitted"],
]


@st.composite
def command_lines(draw):
    line = list(draw(st.sampled_from(GOOD)))
    for _ in range(draw(st.integers(1, 3))):
        option = draw(st.sampled_from(sorted(VALUES)))
        values = VALUES[option]
        match draw(st.integers(0, 4)):
            case 0 | 1:
                line += [option] if values is None else [option, draw(values)]
            case 2 if len(line) > 1:
                del line[draw(st.integers(1, len(line) - 1))]
            case 3 if len(line) > 1:
                line[draw(st.integers(1, len(line) - 1))] = draw(st.one_of(words, paths, columns, numbers))
            case _:
                line.insert(draw(st.integers(1, len(line))), draw(st.one_of(words, paths, columns)))
    return line


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    data = flat_table()
    data = data.append_column("predicted", data["price"].combine_chunks().fill_null(5.0))
    pyarrow.csv.write_csv(data, folder / "rows.csv")
    pyarrow.parquet.write_table(data, folder / "rows.parquet")
    trained().save(folder / "model")
    (folder / "empty.csv").touch()
    (folder / "bad.parquet").write_bytes(b"PAR1 and nothing else")
    before = os.getcwd()
    os.chdir(folder)
    yield folder
    os.chdir(before)


def run(line):
    """Exit code and output of the command line, in this process, with an empty standard input."""
    out, previous = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), (sys.argv, sys.stdin)
    sys.argv, sys.stdin = ["transun", *line], io.TextIOWrapper(io.BytesIO())
    try:
        with redirect_stdout(out), redirect_stderr(out), watched():
            try:
                main()
            except SystemExit as stop:
                code = stop.code
    finally:
        sys.argv, sys.stdin = previous
    out.flush()
    return code or 0, out.buffer.getvalue().decode()


@cases(0.04)
@given(line=command_lines())
@pytest.mark.filterwarnings("ignore")
def test_command_line_ends_in_a_result_or_a_sentence(folder, line):
    code, output = run(line)
    assert code in (0, 1, 2), (line, output)
    assert output.strip()
    assert "Traceback" not in output
    assert (folder / "rows.csv").stat().st_size > 1000, "the input was overwritten"
    assert not (folder / "x").exists()
