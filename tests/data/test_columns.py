"""Columns read in pieces: any source, any kind of label, and the mistakes that only a later piece shows."""

import gzip
import io
import re
from datetime import date

import numpy as np
import pytest

from transun.data.columns import is_numeric, open_columns, spooled

pl = pytest.importorskip("polars")


def read(columns, name):
    return np.concatenate([chunk.numbers(name) for chunk in columns.chunks()])


def test_pieces_cover_every_row_once(tmp_path):
    rows = 100_000
    frame = pl.DataFrame({"y": np.arange(rows, dtype=float), "label": [f"v{index % 7}" for index in range(rows)]})
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=30_000)
    frame.write_csv(tmp_path / "a.csv")
    for source in (tmp_path / "a.parquet", tmp_path / "a.csv", frame):
        columns = open_columns(source, ["y"], ["label"], whole_below=0)
        chunks = list(columns.chunks())
        assert len(chunks) > 1
        assert chunks[0].first == 0
        assert [chunk.first for chunk in chunks[1:]] == np.cumsum([len(chunk) for chunk in chunks])[:-1].tolist()
        assert chunks[-1].done == columns.size
        for _ in range(2):  # as often as wanted
            np.testing.assert_array_equal(read(columns, "y"), np.arange(rows))


@pytest.mark.parametrize("name", ["a.csv.gz", "a.tsv", "a.tsv.gz"])
def test_other_kinds_of_csv(tmp_path, name):
    separator = "\t" if ".tsv" in name else ","
    text = f"y{separator}shop\n1{separator}a\n2.5{separator}\n".encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    columns = open_columns(tmp_path / name, ["y"], ["shop"], whole_below=0)
    assert read(columns, "y").tolist() == [1.0, 2.5]
    assert next(columns.chunks()).texts("shop", np.array([0, 1])).to_pylist() == ["a", None]


def test_whole_numbers_may_be_followed_by_others(tmp_path):
    """The first block of a CSV looks like integers; what comes later must not be an error."""
    lines = ["y"] + ["1"] * 600_000 + ["2.5"]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    assert read(open_columns(tmp_path / "a.csv", ["y"], whole_below=0), "y")[-1] == 2.5


def test_labels_of_any_kind_have_a_text():
    frame = pl.DataFrame(
        {
            "day": [date(2024, 1, 2), None],
            "yes": [True, False],
            "size": [1, 2],
            "kind": pl.Series(["a", "b"], dtype=pl.Categorical),
            "list": [[1, 2], []],
        }
    )
    chunk = next(open_columns(frame, [], frame.columns).chunks())
    both = np.array([0, 1])
    assert chunk.texts("day", both).to_pylist()[0].startswith("2024-01-02")
    assert chunk.texts("yes", both).to_pylist() == ["true", "false"]
    assert chunk.texts("size", both).to_pylist() == ["1", "2"]
    assert chunk.codes("kind", ["b"]).tolist() == [1, 0]
    assert chunk.codes("day", ["nothing"]).tolist() == [1, 2]
    assert chunk.texts("list", both).to_pylist()[0] == "[1, 2]"


def test_numbers_are_told_from_labels():
    columns = open_columns({"a": [1.5], "b": [True], "c": ["x"]}, [], ["a", "b", "c"])
    assert [is_numeric(columns, name) for name in "abc"] == [True, False, False]


def test_a_pipe_is_told_by_its_first_bytes():
    frame, parquet = pl.DataFrame({"y": [1.0, 2.0]}), io.BytesIO()
    frame.write_parquet(parquet)
    for content in (parquet.getvalue(), b"y\n1\n2\n"):
        with spooled(io.BytesIO(content)) as path:
            assert read(open_columns(path, ["y"]), "y").tolist() == [1.0, 2.0]
        assert not path.exists()


def test_a_label_may_be_empty_for_long(tmp_path):
    """Types are those of all rows, not of the first megabyte; streamed, a column that is empty there is text."""
    lines = [*["1.5,"] * 300_000, "2.5,A"]
    (tmp_path / "a.csv").write_text("y,label\n" + "\n".join(lines))
    for whole_below in (0, 1 << 28):
        columns = open_columns(tmp_path / "a.csv", ["y"], ["label"], whole_below=whole_below)
        *_, last = columns.chunks()
        assert last.texts("label", np.array([len(last) - 1])).to_pylist() == ["A"]
        assert not is_numeric(columns, "label")


def test_one_text_among_numbers_is_named():
    with pytest.raises(ValueError, match=r"column 'y', row 2: 'abc' is text, not a number; correct or remove"):
        open_columns({"y": ["1", "2.5", "abc"]}, ["y"])


def test_a_column_of_text_is_refused_with_what_it_holds_and_how_numbers_are_written(tmp_path):
    (tmp_path / "a.csv").write_text('id,amount\n7,\n8,€12.50\n9,"€1,234.50"\n', encoding="utf-8")
    text = (
        "column 'amount' holds text such as '€12.50', and must hold numbers: write numbers as 1234.5, without "
        "currency, unit or thousands mark, or name another; columns of numbers are id"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        open_columns(tmp_path / "a.csv", ["amount"])
    with pytest.raises(ValueError, match="column 'amount' holds text, and must hold numbers: write numbers"):
        open_columns(tmp_path / "a.csv", ["amount"], whole_below=0)
