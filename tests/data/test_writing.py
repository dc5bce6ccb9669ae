"""Tables in pieces: whole files or none."""

from pathlib import Path

import pytest

from transun.data.table import read_table
from transun.data.writing import writing

pytest.importorskip("pyarrow")
PIECES = [{"item": ["a", None], "v": [1.5, 2.0]}, {"item": ["b"], "v": [3.0]}]


@pytest.mark.parametrize("ending", ["csv", "parquet", "PARQUET"])
def test_what_was_written_is_read(tmp_path, ending):
    path = tmp_path / "deep" / f"out.{ending}"
    with writing(path) as write:
        for piece in PIECES:
            write(read_table(piece))
    assert read_table(path).to_pydict() == {"item": ["a", None, "b"], "v": [1.5, 2.0, 3.0]}
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_failure_keeps_the_old_file(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")

    def fail():
        with writing(path) as write:
            write(read_table(PIECES[0]))
            raise KeyError("stop")

    with pytest.raises(KeyError):
        fail()
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["out.csv"]


def test_a_later_piece_of_nulls_has_the_first_one_s_type(tmp_path):
    with writing(tmp_path / "out.parquet") as write:
        write(read_table({"v": [1.0]}))
        write(read_table({"v": [None]}))
    assert read_table(tmp_path / "out.parquet")["v"].to_pylist() == [1.0, None]


def test_unknown_ending(tmp_path):
    with pytest.raises(ValueError, match=r"end it in .parquet or .csv"), writing(Path("out.xlsx")):
        pass
