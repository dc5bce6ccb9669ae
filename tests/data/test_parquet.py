"""Row groups dealt to workers, read in exact order, and in pieces that are small whatever the row group."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transun.data import parquet
from transun.data.parquet import ParquetFiles, segments
from transun.data.row_rules import AllOf, FromMoment, HashedRows, Not
from transun.data.schema import MissingColumnError


@given(st.lists(st.integers(0, 9), max_size=8), st.integers(1, 5), st.none() | st.integers(0, 5))
def test_segments_are_a_partition(rows: list[int], count: int, seed: int | None) -> None:
    shares = [segments(rows, seed, index, count) for index in range(count)]
    read = sorted((part.group, row) for parts in shares for part in parts for row in range(part.start, part.stop))
    assert read == [(group, row) for group, n in enumerate(rows) for row in range(n)]


def write(folder: Path, rows: int, group: int) -> list[Path]:
    """Two files that hold 0..rows-1 in order."""
    half = rows // 2
    files = [folder / "a.parquet", folder / "b.parquet"]
    for file, numbers in zip(files, (np.arange(half), np.arange(half, rows)), strict=True):
        pq.write_table(pa.table({"n": numbers, "text": [str(n) for n in numbers]}), file, row_group_size=group)
    return files


def test_rows_are_read_in_order_with_their_numbers_in_the_file(tmp_path: Path) -> None:
    a, b = write(tmp_path, 50, group=7)
    files = ParquetFiles([a, b])
    assert files.contents == {"n": "numbers", "text": "text"}
    assert files.rows == [7, 7, 7, 4] * 2
    pieces = list(files.read(files.segments(), ["n"]))
    assert [row for piece in pieces for row in piece.table["n"].to_pylist()] == list(range(50))
    assert all(
        piece.table["n"].to_pylist() == (piece.rows + (25 if piece.file == b else 0)).tolist() for piece in pieces
    )
    assert {tuple(piece.table.column_names) for piece in pieces} == {("n",)}


def test_a_rule_selects_rows_by_their_numbers_and_values(tmp_path: Path) -> None:
    files = ParquetFiles(write(tmp_path, 50, group=7))
    half = HashedRows(0.5, seed=3)
    held = half.holds(None, np.arange(50))
    counts = [int(part.sum()) for part in np.split(held, np.cumsum(files.rows)[:-1])]
    part = files.where(half, counts)
    read = [piece for segment in range(3) for piece in part.read(part.segments(None, segment, 3), ["text"])]
    assert [text for piece in read for text in piece.table["text"].to_pylist()] == [
        str(n) for n in np.flatnonzero(held)
    ]
    assert [n for piece in read for n in part.numbers(piece)] == np.flatnonzero(held).tolist()
    late = files.where(FromMoment("n", 40), [0] * 6 + [7, 4])
    with pytest.raises(ValueError, match=r"b\.parquet has lost rows"):  # of which there are 6, not 7
        list(late.read(late.segments(), ["n"]))
    late = files.where(AllOf((FromMoment("n", 40), Not(FromMoment("n", 45)))), [0] * 6 + [5, 0])
    assert [n for piece in late.read(late.segments(), ["n"]) for n in piece.table["n"].to_pylist()] == list(
        range(40, 45)
    )


def test_pieces_of_a_huge_row_group_are_small(tmp_path: Path) -> None:
    files = ParquetFiles(write(tmp_path, 300_000, group=150_000))
    sizes = [len(piece.table) for piece in files.read(files.segments(), ["n"])]
    assert sum(sizes) == 300_000
    assert max(sizes) <= 1 << 15


def test_a_column_that_one_file_lacks_is_named_with_the_file(tmp_path: Path) -> None:
    a, b = write(tmp_path, 4, group=2)
    pq.write_table(pa.table({"m": [1]}), b)
    with pytest.raises(MissingColumnError, match=r"b\.parquet: there is no column 'n'") as caught:
        ParquetFiles([a, b], ["n"])
    assert (caught.value.name, caught.value.file) == ("n", b)


def test_freed_memory_is_given_back_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What many small tables leave behind would otherwise add up while a large folder is read."""
    calls: list[bool] = []
    monkeypatch.setattr(parquet, "return_freed_memory", lambda: calls.append(True))
    monkeypatch.setattr(parquet, "_PIECE_ROWS", 10)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"gmv": np.arange(1300.0)}), path, row_group_size=100)
    files = ParquetFiles([path])
    rows = [row for piece in files.read(files.segments(), ["gmv"]) for row in piece.rows.tolist()]
    assert rows == list(range(1300))
    assert len(calls) == 130 // 64
