import gzip
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from transun.data import drop_missing, read_table
from transun.data.table import as_ids, as_numbers, as_times, column_array, overview, targets

COLUMNS = {"item": [3, 1, None], "price": [1.5, float("nan"), 2.0], "city": ["Rom", None, "Ulm"]}
EXPECTED = {"item": [3, 1, None], "price": [1.5, None, 2.0], "city": ["Rom", None, "Ulm"]}


def contents(table: pa.Table) -> dict[str, list[object]]:
    """Rows as the kinds of columns see them: NaN is missing."""
    return {name: column_array(table, name).to_pylist() for name in table.column_names}


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: COLUMNS,
        lambda folder: pd.DataFrame(COLUMNS),
        lambda folder: pd.DataFrame(COLUMNS, index=[7, 3, 5]),
        lambda folder: pd.DataFrame(COLUMNS).convert_dtypes(),
        lambda folder: pd.DataFrame(COLUMNS).astype({"city": "category"}),
        lambda folder: pl.DataFrame(COLUMNS),
        lambda folder: pl.DataFrame(COLUMNS).with_columns(pl.col("city").cast(pl.Categorical)),
        lambda folder: pa.table(COLUMNS),
        lambda folder: pa.concat_tables([pa.table(COLUMNS).slice(0, 1), pa.table(COLUMNS).slice(1)]),
    ],
    ids=[
        "dict",
        "pandas",
        "pandas-index",
        "pandas-nullable",
        "pandas-category",
        "polars",
        "polars-category",
        "arrow",
        "arrow-chunks",
    ],
)
def test_every_frame_gives_the_same_rows(make: Callable[[Path], object], tmp_path: Path) -> None:
    assert contents(read_table(make(tmp_path))) == EXPECTED


def write_csv(path: Path) -> Path:
    path.write_text("item,price,city\n3,1.5,Rom\n1,,\n,2.0,Ulm\n")
    return path


def write_tsv(path: Path) -> Path:
    path.write_text("item\tprice\tcity\n3\t1.5\tRom\n1\t\t\n\t2.0\tUlm\n")
    return path


def write_gzip(path: Path) -> Path:
    path.write_bytes(gzip.compress(b"item,price,city\n3,1.5,Rom\n1,,\n,2.0,Ulm\n"))
    return path


def write_parquet(path: Path) -> Path:
    pq.write_table(pa.table(COLUMNS), path)
    return path


def write_folder(path: Path) -> Path:
    # Written on two days: another width, another order, and what other programs leave behind.
    table = pa.table(COLUMNS)
    narrow = table.set_column(0, "item", table["item"].cast(pa.int16())).select(["city", "item", "price"])
    (path / "day=2").mkdir(parents=True)
    pq.write_table(table.slice(0, 2), path / "a.parquet")
    pq.write_table(narrow.slice(2), path / "day=2" / "b.parquet")
    (path / "_SUCCESS").write_text("")
    (path / ".a.parquet").write_text("half written")
    return path


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (write_csv, "t.csv"),
        (write_tsv, "t.tsv"),
        (write_gzip, "t.csv.gz"),
        (write_parquet, "t.parquet"),
        (write_folder, "t"),
    ],
)
def test_every_file_gives_the_same_rows(write: Callable[[Path], Path], name: str, tmp_path: Path) -> None:
    path = write(tmp_path / name)
    assert contents(read_table(path)) == EXPECTED
    assert read_table(str(path), ["city", "item"]).column_names == ["city", "item"]


def test_csv_types_come_from_all_rows(tmp_path: Path) -> None:
    # Arrow reads a megabyte at a time.
    path = tmp_path / "long.csv"
    path.write_text("n\n" + "1\n" * 1_200_000 + "2.5\n")
    assert read_table(path)["n"][-1].as_py() == 2.5


def test_parquet_is_read_for_the_wanted_columns_only(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"a": np.arange(1000), "b": np.random.default_rng(0).random(1000)})
    pq.write_table(table, path, compression="none", use_dictionary=False)
    meta = pq.ParquetFile(path).metadata.row_group(0).column(1)
    damaged = bytearray(path.read_bytes())
    damaged[meta.data_page_offset : meta.data_page_offset + meta.total_compressed_size] = bytes(
        meta.total_compressed_size
    )
    path.write_bytes(damaged)
    assert read_table(path, ["a"])["a"].to_pylist() == list(range(1000))
    with pytest.raises(ValueError, match=r"t\.parquet is truncated or no Parquet file"):
        read_table(path)


def test_matrices_and_tensors_are_columns() -> None:
    table = read_table({"history": np.array([[1, 2], [3, -1]]), "item": torch.tensor([5, 6])})
    assert table["history"].to_pylist() == [[1, 2], [3, -1]]
    assert table["item"].to_pylist() == [5, 6]


def truncated(folder: Path) -> Path:
    path = write_parquet(folder / "t.parquet")
    path.write_bytes(path.read_bytes()[:-20])
    return path


def empty(folder: Path, name: str) -> Path:
    (folder / name).write_bytes(b"")
    return folder / name


def text(folder: Path, name: str, content: str) -> Path:
    (folder / name).write_text(content)
    return folder / name


def duplicated(folder: Path) -> Path:
    pq.write_table(pa.table([[1], [2]], names=["item", "item"]), folder / "t.parquet")
    return folder / "t.parquet"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (truncated, r"t\.parquet is truncated or no Parquet file.*download it again"),
        (lambda f: text(f, "t.parquet", "item,price\n1,2\n"), r"t\.parquet is truncated or no Parquet file"),
        (lambda f: empty(f, "t.parquet"), r"t\.parquet is an empty file"),
        (lambda f: empty(f, "t.csv"), r"t\.csv is an empty file"),
        (lambda f: text(f, "t.csv", "item,price\n"), r"t\.csv has no rows"),
        (lambda f: text(f, "t.csv", "item,price\n1,2\n3\n"), r"t\.csv has 2 columns, and a line with 1, '3'"),
        (lambda f: text(f, "t.xlsx", "x"), r"t\.xlsx: cannot tell the format.*known endings are \.parquet"),
        (lambda f: f, r"the folder .* holds no \*\.parquet file and no \*\.csv file: name another"),
        (duplicated, r"t\.parquet has more than one column 'item': rename or drop one"),
        (lambda f: text(f, "t.csv", "item,item\n1,2\n"), r"t\.csv has more than one column 'item'"),
        (lambda f: pd.DataFrame([[1, 2]], columns=["a", "a"]), "the table has more than one column 'a'"),
        (lambda f: pa.table([[1], [2]], names=["a", "a"]), "the table has more than one column 'a'"),
        (lambda f: {"a": [1, "x"]}, "column 'a' mixes kinds of values"),
    ],
)
def test_bad_tables_say_what_to_do(make: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        read_table(make(tmp_path))


def test_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    write_parquet(tmp_path / "orders.parquet")
    with pytest.raises(FileNotFoundError, match=r"there is no file .*order\.parquet; did you mean orders\.parquet\?"):
        read_table(tmp_path / "order.parquet")


@pytest.mark.parametrize("source", [3, [1, 2], np.ones((2, 2))])
def test_what_is_no_table_is_refused(source: object) -> None:
    with pytest.raises(TypeError, match=r"cannot read a table from .*: give a frame of pandas, polars, Arrow"):
        read_table(source)


def test_missing_column_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"no column 'prices': did you mean 'price'\? The table has item, price, city"):
        read_table(COLUMNS, ["prices"])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, None, 2.0, None], "target 'y', row 1 is missing, as are 2 of 4 rows: drop_missing"),
        ([1.0, 2.0, float("nan")], "target 'y', row 2 is missing"),
        ([1.0, float("-inf")], r"target 'y', row 1 is infinite.*drop_missing\(table, 'y'\) drops them"),
        (["1", "2", "many"], "target 'y', row 2: 'many' is text, not a number; correct it"),
        (["€1.50"], r"target 'y', row 0: '€1\.50' is text, not a number; write numbers as 1234\.5, without currency"),
        ([date(2020, 1, 1)], "target 'y' holds date32.*not one number a row"),
        ([[1.0]], "target 'y' holds list.*not one number a row"),
        ([], "the table has no rows"),
    ],
)
def test_bad_targets_are_named_by_row(values: list[object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        targets(pa.table({"y": values}), "y")


def test_missing_target_column_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"no column 'gvm': did you mean 'gmv'"):
        targets(pa.table({"gmv": [1.0]}), "gvm")


def test_drop_missing_counts_what_it_drops() -> None:
    table, dropped = drop_missing({"y": [1.0, float("nan"), float("inf"), 4.0], "i": [0, 1, 2, 3]}, "y")
    assert (table["i"].to_pylist(), dropped) == ([0, 3], 2)
    assert targets(table, "y").tolist() == [1.0, 4.0]


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, 2, None], pa.uint8(), [1, 2, None]),
        ([1.0, float("nan"), None], pa.float32(), [1, None, None]),
        ([True, False], pa.bool_(), [1, 0]),
        (["a", None], pa.string(), ["a", None]),
        (["a", None], pa.string_view(), ["a", None]),
        (["a", None, "a"], pa.dictionary(pa.int8(), pa.string()), ["a", None, "a"]),
        ([5, None, 5], pa.dictionary(pa.int8(), pa.int64()), [5, None, 5]),
        ([None, None], pa.null(), [None, None]),
    ],
)
def test_ids_of_every_type(values: list[object], kind: pa.DataType, expected: list[object]) -> None:
    ids = as_ids("x", column_array(pa.table({"x": pa.array(values, kind)}), "x"))
    assert ids.to_pylist() == expected
    assert ids.type in (pa.int64(), pa.large_string())


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        ([2**63], pa.uint64(), "column 'x' holds ids above 2⁶³: cast them to text"),
        ([1.0, 1.5], pa.float64(), r"column 'x', row 1: 1\.5 is a number, not an id"),
        ([float("inf")], pa.float64(), r"column 'x', row 0: inf is a number, not an id"),
        ([date(2020, 1, 1)], pa.date32(), r"column 'x' holds date32.*Datetime\(\)"),
        ([[1]], pa.list_(pa.int64()), r"column 'x' holds list.*Bag\(\)"),
        ([b"x"], pa.binary(), "column 'x' holds binary.*cast it to integers or text"),
    ],
)
def test_what_is_no_id_is_refused(values: list[object], kind: pa.DataType, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_ids("column 'x'", pa.array(values, kind))


def test_numbers_of_every_type() -> None:
    for kind in (pa.int8(), pa.uint64(), pa.float32(), pa.decimal128(5, 1)):
        np.testing.assert_array_equal(as_numbers("x", pa.array([1, None], kind)), [1.0, np.nan])
    text = pa.array([" 1.5", "-2e3", ".5", None], pa.large_string())
    np.testing.assert_array_equal(as_numbers("x", text), [1.5, -2000.0, 0.5, np.nan])


def test_times_of_every_type() -> None:
    expected = "2022-04-25 13:00:00"
    micros = int(np.datetime64(expected, "us").astype(int))
    for array in (
        pa.array([expected], pa.large_string()),
        pa.array([np.datetime64(expected, "s")]),
        pa.array([np.datetime64(expected, "ns")]),
        pa.array(["2022-04-25T15:00:00+02:00"], pa.large_string()),
    ):
        assert as_times("x", array).cast(pa.int64()).to_pylist() == [micros]
    with pytest.raises(ValueError, match=r"x, row 0: 'soon' is no time as in 2022"):
        as_times("x", pa.array(["soon"], pa.large_string()))
    mixed = pa.array(["2022-04-25T15:00:00", "2022-04-26", None, "2022-04-25T15:00:00+02:00"], pa.large_string())
    for array, row in ((mixed, 3), (mixed[::-1], 2)):
        with pytest.raises(ValueError, match=rf"x mixes times with and without an offset.* row 0 and .* row {row}"):
            as_times("x", array)
    with pytest.raises(ValueError, match=r"x, row 2: '25\.04\.2022' is no time"):
        as_times("x", pa.array(["2022-04-25", None, "25.04.2022", "soon"], pa.large_string()))
    with pytest.raises(ValueError, match=r"x holds int64, not times: write them as in 2022"):
        as_times("x", pa.array([1650000000]))


def test_values_that_arrow_has_no_type_for_are_refused():
    with pytest.raises(ValueError, match="column 'price' holds integers above 2⁶³: give them as text"):
        read_table({"price": [2**63 + 1, -1]})
    with pytest.raises(ValueError, match=r"mixes kinds of values .* column price with type complex128"):
        read_table(pd.DataFrame({"price": [1j]}))


def test_the_other_columns_of_a_wide_table_are_not_looked_at():
    """All names for each of thousands of columns would be millions."""

    class Wide:
        schema = pa.schema([(f"x{number}", pa.int64()) for number in range(3)])
        column_names = property(lambda self: pytest.fail("all names were asked for"))

        def column(self, index):
            return pa.chunked_array([[10 * index]])

    assert column_array(Wide(), "x2").to_pylist() == [20]


def test_an_overview_shows_infinite_values():
    """A training refuses them, so that whoever looks for the reason must see them."""
    (column,) = overview({"gmv": [1.0, float("inf"), float("-inf"), None]}).columns
    assert (column.smallest, column.largest, column.infinite, column.missing) == (-np.inf, np.inf, 2, 0.25)


def test_a_mask_is_a_missing_value():
    table = read_table({"gmv": np.ma.masked_array([1.0, 99.0], mask=[False, True])})
    assert table["gmv"].to_pylist() == [1.0, None]


def test_columns_of_reordered_rows_are_refused():
    with pytest.raises(ValueError, match="gmv and pred have the same row labels in another order"):
        read_table({"gmv": pd.Series([1.0, 2.0], [7, 8]), "pred": pd.Series([1.0, 2.0], [8, 7])})


def test_a_target_of_dates_is_no_matter_of_its_kind():
    with pytest.raises(ValueError, match=r"target 'gmv' holds timestamp.*: name another target"):
        targets(pa.table({"gmv": pa.array([0, 1], pa.timestamp("us"))}), "gmv")
