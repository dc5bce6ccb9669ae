"""One list of formats: what is added there is read, streamed, predicted and written everywhere."""

import io
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.json
import pytest

from transun.cli import main
from transun.data import read_table
from transun.data.columns import open_columns, spooled
from transun.data.formats import CSV, FORMATS, PARQUET, Format, Writer
from transun.data.writing import writing
from transun.diagnosis.run import diagnose_table


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
        assert ours == reference

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
    assert CSV.files_in(tmp_path) == [tmp_path / "a.csv", tmp_path / "b.csv"]
    assert PARQUET.files_in(tmp_path) == []


def test_a_small_csv_file_is_read_whole_on_request(tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("order,gmv\n9007199254740993,1\n9007199254740992,2\n")
    streamed = open_columns(path, ["gmv"], ["order"])
    whole = open_columns(path, ["gmv"], ["order"], whole_below=1 << 20)
    assert (streamed.infers_types, whole.infers_types) == (True, False)
    assert next(whole.chunks()).table["order"].to_pylist() == [9007199254740993, 9007199254740992]
