"""Columns that hold the same values in different types."""

from itertools import permutations

import pyarrow as pa
import pytest

from transun.data.encodings import concatenate, values_of

NUMBERS = [pa.int8(), pa.uint8(), pa.int64(), pa.float16(), pa.float32(), pa.float64(), pa.decimal128(5, 2), pa.null()]
TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.null()]
LISTS = [pa.list_(pa.int32()), pa.large_list(pa.int64()), pa.list_(pa.float64()), pa.null()]


def columns(values, types):
    arrays = [pa.array([None] * len(values) if pa.types.is_null(type_) else values, type_) for type_ in types]
    return {str(array.type): array for array in arrays}


ALIKE = {
    "numbers": columns([3, None, 1], NUMBERS)
    | {"dictionary of numbers": pa.array([3, None, 1], pa.int64()).dictionary_encode()},
    "texts": columns(["b", None, "a"], TEXTS)
    | {
        "dictionary": pa.array(["b", None, "a"]).dictionary_encode(),
        "dictionary of views": pa.DictionaryArray.from_arrays([1, None, 0], pa.array(["a", "b"], pa.string_view())),
        "run ends": pa.RunEndEncodedArray.from_arrays([1, 2, 3], pa.array(["b", None, "a"])),
    },
    "lists": columns([[3], None, []], LISTS),
}
PAIRS = [(kind, *pair) for kind, alike in ALIKE.items() for pair in permutations(alike, 2)]


@pytest.mark.parametrize(("kind", "first", "second"), PAIRS)
def test_tables_whose_columns_hold_alike_things_are_put_together(kind, first, second):
    parts = [ALIKE[kind][first], ALIKE[kind][second]]
    table = concatenate([pa.table({"x": part, "y": [1, 2, 3]}) for part in parts])
    assert table["x"].to_pylist() == [value for part in parts for value in part.to_pylist()]
    assert table["y"].to_pylist() == [1, 2, 3, 1, 2, 3]


def test_columns_are_found_by_name():
    first, second = pa.table({"x": [1], "y": ["a"]}), pa.table({"y": ["b"], "x": [2.5]})
    assert concatenate([first, second]).to_pydict() == {"x": [1.0, 2.5], "y": ["a", "b"]}


def test_a_dictionary_without_rows_is_text():
    empty = pa.chunked_array([], pa.dictionary(pa.int8(), pa.string()))
    assert values_of(empty).type == pa.large_string()
