"""One list of formats: what is added there is read, streamed, predicted and written everywhere."""

import io
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.json
import pytest

from transun.cli import main
from transun.data import formats, read_table
from transun.data.columns import open_columns, spooled
from transun.data.formats import CSV, FORMATS, Format, Writer, describe_folder, find_files
from transun.data.writing import writing
from transun.diagnosis.run import diagnose_table
from transun.report.diagnosis import diagnosis_json


class _LineWriter:
    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def write_table(self, table: pa.Table) -> None:
        for row in table.to_pylist():
            self.file.write(json.dumps(row).encode() + b"\n")

    def close(self) -> None:
        pass


class JsonLines(Format):
    """One JSON object a line: what a user would have to write to add a format."""

    endings = (".jsonl", ".ndjson")
    first_bytes = b"{"
    written_endings = (".jsonl",)

    def read(self, file: Path, columns: Sequence[str] | None) -> pa.Table:
        return pyarrow.json.read_json(file)

    def writer(self, file: IO[bytes], schema: pa.Schema) -> Writer:
        return _LineWriter(file)


@pytest.fixture
def json_lines() -> Iterator[None]:
    added = JsonLines()
    FORMATS.append(added)
    yield
    FORMATS.remove(added)


ROWS = [{"gmv": float(1 + i % 7), "pred": 4.0, "item": f"i{i % 3}"} for i in range(200)]


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.usefixtures("json_lines")
class TestAddedFormat:
    def test_it_is_read_and_written(self, tmp_path: Path) -> None:
        path = tmp_path / "orders.jsonl"
        with writing(path) as write:
            write(pa.Table.from_pylist(ROWS[:150]))
            write(pa.Table.from_pylist(ROWS[150:]))
        assert path.read_text() == lines(ROWS)
        assert read_table(path).to_pylist() == ROWS
        assert read_table(path, ["item"]).column_names == ["item"]
        with pytest.raises(ValueError, match=r"end it in \.parquet or \.csv or \.jsonl"), writing(tmp_path / "a.xls"):
            pass

    def test_a_folder_and_a_pipe_of_it(self, tmp_path: Path) -> None:
        (tmp_path / "b.ndjson").write_text(lines(ROWS[150:]))
        (tmp_path / "a.jsonl").write_text(lines(ROWS[:150]))
        (tmp_path / "_half.jsonl").write_text("{")
        columns = open_columns(tmp_path, ["gmv"], ["item"])
        chunks = list(columns.chunks())
        assert [(chunk.first, len(chunk)) for chunk in chunks] == [(0, 150), (150, 50)]
        assert chunks[-1].done == columns.size
        assert [row for chunk in chunks for row in chunk.table.to_pylist()] == [
            {"gmv": row["gmv"], "item": row["item"]} for row in ROWS
        ]
        assert read_table(tmp_path).to_pylist() == ROWS
        with spooled(io.BytesIO(lines(ROWS).encode())) as path:
            assert read_table(path).to_pylist() == ROWS

    def test_it_is_diagnosed_as_the_same_rows_in_csv(self, tmp_path: Path) -> None:
        (tmp_path / "orders.jsonl").write_text(lines(ROWS))
        with writing(tmp_path / "orders.csv") as write:
            write(pa.Table.from_pylist(ROWS))
        ours, reference = (
            diagnose_table(tmp_path / name, "gmv", "pred", ["item"], name="orders", progress=False)
            for name in ("orders.jsonl", "orders.csv")
        )
        # As JSON, in which NaN equals NaN.
        assert diagnosis_json(ours) == diagnosis_json(reference)

    def test_commands_fit_and_predict_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "orders.jsonl").write_text(lines(ROWS))

        def run(*arguments: object) -> None:
            monkeypatch.setattr(sys, "argv", ["transun", *map(str, arguments)])
            with pytest.raises(SystemExit) as stop:
                main()
            assert not stop.value.code

        data, model, out = tmp_path / "orders.jsonl", tmp_path / "model", tmp_path / "predictions.jsonl"
        run("fit", data, "--target", "gmv", "--exclude", "pred", "--epochs", 1, "--out", model)
        run("predict", model, data, "--keep", "item", "--out", out)
        predicted = [json.loads(line) for line in out.read_text().splitlines()]
        assert [row["item"] for row in predicted] == [row["item"] for row in ROWS]
        assert all(row["prediction"] > 0 for row in predicted)


def test_an_unknown_format_is_refused_before_it_is_added(tmp_path: Path) -> None:
    (tmp_path / "orders.jsonl").write_text(lines(ROWS))
    with pytest.raises(ValueError, match=r"orders\.jsonl: cannot tell the format by its name"):
        read_table(tmp_path / "orders.jsonl")
    with pytest.raises(ValueError, match=r"holds no \*\.parquet file and no \*\.csv file"):
        open_columns(tmp_path, ["gmv"])


def test_a_folder_of_csv_files_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("gmv\n2.5\n")
    (tmp_path / "a.csv").write_text("gmv\n1\n")
    (tmp_path / ".c.csv").write_text("half")
    assert read_table(tmp_path)["gmv"].to_pylist() == [1.0, 2.5]
    assert find_files(tmp_path) == (CSV, [tmp_path / "a.csv", tmp_path / "b.csv"])


def test_a_walk_through_what_is_no_folder_of_tables_ends(tmp_path: Path, monkeypatch) -> None:
    """A disk without end: the walk stops at the first file beyond those that a folder may hold beside its tables."""
    notes, table = tmp_path / "notes.txt", tmp_path / "gmv.csv"
    for path in (notes, table):
        path.write_text("gmv\n1\n")
    monkeypatch.setattr(Path, "rglob", lambda folder, pattern: chain([table], repeat(notes)))
    with pytest.raises(ValueError, match="more than 100,000 files that are no tables: name the folder of a table"):
        find_files(tmp_path)


def test_a_table_may_have_files_of_other_programs_beside_it(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(formats, "_MOST_OTHERS", 0)
    for number in range(20):
        (tmp_path / f".{number}.crc").touch()
    monkeypatch.setattr(Path, "rglob", lambda folder, pattern: iter(sorted(folder.glob(pattern), reverse=True)))
    for number in range(2):
        (tmp_path / f"{number}.csv").write_text("gmv\n1\n")
    assert describe_folder(tmp_path).startswith("2 files are read, 0.csv to 1.csv; left out: .0.crc")


def test_what_nobody_may_look_at_is_left_out(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "a.csv").write_text("gmv\n1\n")
    (tmp_path / "locked").touch()
    is_dir = Path.is_dir

    def refused(path):
        if path.name == "locked":
            raise PermissionError(path)
        return is_dir(path)

    monkeypatch.setattr(Path, "is_dir", refused)
    assert describe_folder(tmp_path) == "1 file is read, a.csv; left out: locked"


def test_a_small_csv_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("order,gmv\n9007199254740993,1\n9007199254740992,2\n")
    streamed = open_columns(path, ["gmv"], ["order"], whole_below=0)
    whole = open_columns(path, ["gmv"], ["order"])
    assert (streamed.infers_types, whole.infers_types) == (True, False)
    assert next(whole.chunks()).table["order"].to_pylist() == [9007199254740993, 9007199254740992]


def test_a_folder_of_two_formats_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("gmv\n1\n")
    with writing(tmp_path / "b.parquet") as write:
        write(pa.table({"gmv": [2.0]}))
    for read in (read_table, lambda path: open_columns(path, ["gmv"])):
        with pytest.raises(ValueError, match=r"files of several formats, as b\.parquet and a\.csv: name a file"):
            read(tmp_path)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_hidden_files_are_never_read(tmp_path: Path, ending: str) -> None:
    for name in ("a", ".ipynb_checkpoints/a-checkpoint", ".b", "_half", "_temporary/c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with writing(tmp_path / f"{name}.{ending}") as write:
            write(pa.table({"gmv": [1.0, 2.0]}))
    assert len(read_table(tmp_path)) == 2
    assert sum(len(chunk) for chunk in open_columns(tmp_path, ["gmv"], whole_below=0).chunks()) == 2


def parquet_folder(folder: Path, *columns: dict[str, Any]) -> Path:
    for number, values in enumerate(columns):
        with writing(folder / f"{number}.parquet") as write:
            write(pa.table(values))
    return folder


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"x": ["a"]}, r"1\.parquet: column 'x' holds text, but numbers in .*0\.parquet: write both files alike"),
        ({"x": [True]}, r"1\.parquet: column 'x' holds booleans, but numbers in"),
        ({"z": [1]}, r"1\.parquet: there is no column 'x'"),
        ({"x": [1], "z": [1]}, r"0\.parquet: there is no column 'z'"),
    ],
)
def test_files_of_a_folder_must_agree(tmp_path: Path, second: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_table(parquet_folder(tmp_path, {"x": [1]}, second))


def test_files_of_a_folder_may_differ_in_width_and_unit(tmp_path: Path) -> None:
    moments = pa.array([0], pa.int64())
    folder = parquet_folder(
        tmp_path,
        {"x": [1], "ts": moments.cast(pa.timestamp("ms"))},
        {"x": [0.5], "ts": moments.cast(pa.timestamp("us"))},
        {"x": pa.nulls(1), "ts": pa.nulls(1)},
    )
    assert read_table(folder)["x"].to_pylist() == [1.0, 0.5, None]


def test_streamed_files_of_a_folder_come_in_one_type(tmp_path: Path) -> None:
    folder = parquet_folder(
        tmp_path / "files",
        {"note": pa.nulls(1), "count": pa.array([1], pa.int8()), "city": pa.array(["Rom"]).dictionary_encode()},
        {"note": ["new"], "count": [1.5], "city": ["Ulm"]},
    )
    source = open_columns(folder, [], ["note", "count", "city"])
    assert source.schema.types == [pa.large_string(), pa.float64(), pa.large_string()]
    chunks = [chunk.table for chunk in source.chunks()]
    assert [chunk.schema.types for chunk in chunks] == [source.schema.types] * 2
    with writing(tmp_path / "out.csv") as write:
        for chunk in chunks:
            write(chunk)
    assert (tmp_path / "out.csv").read_text().split() == ["note,count,city", ",1,Rom", "new,1.5,Ulm"]


def test_csv_files_of_a_folder_are_guessed_together(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("code,n\n101,1\n7,2\n")
    (tmp_path / "b.csv").write_text("n,code\n2.5,A20\n")
    whole = tmp_path / "whole.csv"
    folder = read_table(tmp_path)
    whole.write_text("code,n\n101,1\n7,2\nA20,2.5\n")
    assert folder.to_pydict() == read_table(whole).to_pydict()
