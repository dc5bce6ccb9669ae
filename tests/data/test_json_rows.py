"""Rows in JSON: every type to Arrow and back, and mistakes with their column and row."""

import json
from datetime import UTC, datetime

import pytest

from transun.data.json_rows import JsonReader, TooManyRowsError, parse_json
from transun.data.logical import (
    AnyType,
    BooleanType,
    FractionType,
    IntegerType,
    ListType,
    TextType,
    TimeType,
)

NOON = datetime(2024, 5, 1, 12)
VALUES = {
    "text": (TextType(), ["a", 12, True, None], ["a", "12", "true", None]),
    "whole": (IntegerType(), [7, 8.0, "9007199254740993", None], [7, 8, 9007199254740993, None]),
    "whole by chance": (IntegerType(), [7, 9.5, None], [7.0, 9.5, None]),
    "fraction": (FractionType(), [1, 2.5, None], [1.0, 2.5, None]),
    "boolean": (BooleanType(), [True, False, None], [True, False, None]),
    "local time": (TimeType(), ["2024-05-01T12:00", "2024-05-01", None], [NOON, NOON.replace(hour=0), None]),
    "instant": (TimeType("UTC"), ["2024-05-01T14:00:00+02:00", "2024-05-01T12:00Z"], [NOON.replace(tzinfo=UTC)] * 2),
    "list": (ListType(TextType()), [["a", None], [], None], [["a", None], [], None]),
    "list of numbers": (ListType(IntegerType()), [None, [1, "2"]], [None, [1, 2]]),
    "nothing": (AnyType(), [None], [None]),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_of_every_type(name):
    type_, written, expected = VALUES[name]
    reader = JsonReader({"a": type_}, most_rows=9)
    by_rows = reader.read(json.loads(json.dumps([{"a": value} for value in written])))
    by_columns = reader.read({"columns": {"a": written, "further": 1}})
    assert by_rows == by_columns
    assert reader.to_arrow(by_rows)["a"].to_pylist() == expected


WRONG = {
    "text": (TextType(), 1.5, "1.5 is not text"),
    "object": (TextType(), {"b": 1}, "is not text"),
    "no number": (FractionType(), "9,99", "'9,99' is not a number"),
    "boolean number": (FractionType(), True, "True is not a number"),
    "overflow": (FractionType(), 1e999, "inf is not a finite number"),
    "many digits": (FractionType(), 10**400, "is not a finite number"),
    "65 bits": (IntegerType(), 2**64, "more than 64 bits"),
    "no whole number": (IntegerType(), "A20", "'A20' is not a number; write a whole number"),
    "no boolean": (BooleanType(), 1, "1 is neither true nor false"),
    "no time": (TimeType(), "yesterday", "'yesterday' is not a local time"),
    "seconds": (TimeType(), 1714564800, "is not a local time"),
    "instant": (TimeType(), "2024-05-01T12:00Z", "is not a local time"),
    "no offset": (TimeType("Asia/Tokyo"), "2024-05-01T12:00", "is not a time with its offset"),
    "no list": (ListType(TextType()), "a", "'a' is not a list"),
    "in a list": (ListType(TextType()), ["a", 1.5], "1.5 is not text"),
    "nothing": (AnyType(), 1, "is not null"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_named_with_its_column_and_row(name):
    type_, value, message = WRONG[name]
    with pytest.raises(ValueError, match="column 'a', row 2: ") as error:
        JsonReader({"a": type_}, most_rows=9).read([{"a": None}, {"a": None}, {"a": value}])
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (7, "the body is no row"),
        ([], "there are no rows"),
        ({"columns": {"a": [], "b": []}}, "there are no rows"),
        ([{"a": 1, "b": 2}, 3], "row 1 is not an object"),
        ([{"a": 1, "b": 2}, {"a": 1}], "row 1 has no column 'b'"),
        ({"columns": {"a": [1]}}, "there is no column 'b'"),
        ({"columns": {"a": [1], "b": 2}}, "column 'b' is not a list"),
        ({"columns": {"a": [1], "b": [2, 3]}}, "column 'b' has 2 rows and column 'a' has 1"),
    ],
)
def test_a_wrong_form_is_explained(content, message):
    with pytest.raises(ValueError, match=message):
        JsonReader({"a": FractionType(), "b": FractionType()}, most_rows=9).read(content)


def test_the_most_rows_are_allowed_and_no_more():
    reader = JsonReader({"a": FractionType()}, most_rows=3)
    assert reader.read([{"a": 1}] * 3) == {"a": [1.0] * 3}
    for content in ([{"a": 1}] * 4, {"columns": {"a": [1] * 4}}):
        with pytest.raises(TooManyRowsError, match="4 rows are more than the 3 allowed"):
            reader.read(content)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000, b'{"a": Infinity}', b"1" * 10_000])
def test_what_is_not_json_is_one_sentence(body):
    with pytest.raises(ValueError, match="the body is not JSON") as error:
        parse_json(body)
    assert "\n" not in str(error.value)


def test_a_repeated_name_is_found_among_many():
    """A stranger's object of 100,000 names may not cost 100,000² comparisons, which would take minutes."""
    names = [*map(str, range(100_000)), "99999"]
    body = "{" + ",".join(f'"{name}":1' for name in names) + "}"
    with pytest.raises(ValueError, match="an object has the name '99999' twice"):
        parse_json(body.encode())
