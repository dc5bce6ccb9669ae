"""Rows are read in the types of training, so that a CSV file and a Parquet file of the same rows are the same rows."""

import csv
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoding import same
from transun.data import Bag, Datetime, Features, Id, Number, Split, infer, read_table
from transun.data.logical import (
    BooleanType,
    FractionType,
    IntegerType,
    ListType,
    TextType,
    TimeType,
    logical_type,
)

KINDS = {
    "code": Id(),
    "item": Id(),
    "tags": Bag(Split("|")),
    "price": Number(),
    "member": Id(),
    "day": Datetime(("weekday", "age")),
    "ts": Datetime(),
    "instant": Datetime(),
}
ROWS: dict[str, Any] = {
    "code": ["001", "002", "A20", None],
    "item": [7, None, 12, 7],
    "tags": ["a|b", "1", None, "2|a"],
    "price": [1.10, None, 3.0, -0.5],
    "member": [True, False, None, True],
    "day": [date(2022, 4, 25), None, date(2022, 4, 26), date(2023, 1, 1)],
    "ts": [datetime(2022, 4, 25, 13, 5), None, datetime(2022, 4, 26), datetime(2023, 1, 1, 23)],
    "instant": pa.array([0, 10**9, None, 2 * 10**9], pa.timestamp("s", "Asia/Tokyo")),
}


def as_csv(path: Path, rows: pa.Table) -> Path:
    """The rows as another program might write them."""
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(rows.column_names)
        for row in rows.to_pylist():
            lines.writerow(["" if value is None else value for value in row.values()])
    return path


@pytest.mark.parametrize("rows", [slice(None), slice(0, 2), slice(2, 4), slice(3, 4)])
def test_csv_and_parquet_of_the_same_rows_are_encoded_alike(tmp_path: Path, rows: slice) -> None:
    """Whatever rows a file has: a type that is guessed from a few of them is not that of training."""
    table = pa.table(ROWS)
    features = Features(KINDS).fit(table)
    part = table.slice(rows.start or 0, (rows.stop or 4) - (rows.start or 0))
    pq.write_table(part, tmp_path / "rows.parquet")
    path = as_csv(tmp_path / "rows.csv", part)
    expected = features.encode(part)
    assert same(features.encode(tmp_path / "rows.parquet"), expected)
    assert same(features.encode(path), expected)
    assert same(features.encode(read_table(path, verbatim=table.column_names)), expected)
    assert same(Features.from_json(features.to_json()).encode(path), expected)


def test_training_on_a_csv_file_encodes_it_as_its_guess(tmp_path: Path) -> None:
    path = as_csv(tmp_path / "rows.csv", pa.table(ROWS).append_column("y", pa.array([1.0, 2.0, 3.0, 4.0])))
    features = infer(path, "y")
    assert same(features.encode(path), features.encode(read_table(path)))
    assert same(features.encode(path), features.to_dataset(path, "y").x)


@given(st.lists(st.one_of(st.integers(-(2**62), 2**62), st.floats(allow_nan=False), st.booleans()), min_size=1))
def test_numbers_written_as_text_are_the_numbers(values: list[Any]) -> None:
    types = {bool: BooleanType(), int: IntegerType(), float: FractionType()}
    for type_, logical in types.items():
        chosen = [value for value in values if type(value) is type_]
        text = pa.array([f" {value}" for value in chosen], pa.large_string())
        assert logical.convert("", text).to_pylist() == chosen


@pytest.mark.parametrize("missing", ["", "NA", "NaN", "null", "#N/A"])
def test_a_missing_number_has_many_spellings_and_text_has_one(missing: str) -> None:
    text = pa.array(["1", missing], pa.large_string())
    for logical in (IntegerType(), FractionType(), BooleanType()):
        assert logical.convert("", text)[1].as_py() is None
    assert TextType().convert("", text).to_pylist() == ["1", missing]


@pytest.mark.parametrize("texts", [["true", "false"], ["True", "False"], ["TRUE", "0"], ["1", "false"]])
def test_text_of_truth_is_truth(texts: list[str]) -> None:
    features = Features({"member": Id()}).fit({"member": [True, False, True]})
    assert same(features.encode({"member": texts}), features.encode({"member": [True, False]}))
    unseen, known = features.encode({"member": ["perhaps", texts[0]]})["member"].tolist()
    assert (unseen, known) == (0, features.encode({"member": [True]})["member"].item())


def test_truth_is_text_where_training_had_text() -> None:
    features = Features({"member": Id()}).fit({"member": ["true", "false", "unknown"]})
    assert same(features.encode({"member": [True, False]}), features.encode({"member": ["true", "false"]}))


def test_types_are_those_of_arrow() -> None:
    expected = {
        pa.uint8(): IntegerType(),
        pa.float16(): FractionType(),
        pa.decimal128(9, 2): FractionType(),
        pa.bool_(): BooleanType(),
        pa.large_string(): TextType(),
        pa.date32(): TimeType(),
        pa.timestamp("ms", "UTC"): TimeType("UTC"),
        pa.large_list(pa.int64()): ListType(IntegerType()),
    }
    assert {type_: logical_type(type_) for type_ in expected} == expected


def test_a_number_that_is_none_is_named_with_its_row() -> None:
    features = Features({"price": Number()}).fit({"price": [1.0, 2.0]})
    with pytest.raises(ValueError, match="column 'price', row 1: 'cheap' is text, not a number"):
        features.encode({"price": ["NA", "cheap"]})
