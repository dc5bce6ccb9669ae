"""What training has not seen is counted: in every kind of column, in whole tables and in parts of them."""

from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest

from transun.data import Bag, Buckets, Datetime, Features, HashedId, Id, Number, Split, Standardised
from transun.data.shift import Profile, Shift

TRAINING: dict[str, Any] = {
    "land": ["DE", "IT", "DE", "FR"],
    "rare": ["a", "a", "b", "a"],
    "tags": ["x|y", "y", None, "x"],
    "page": [1, 2, 3, 4],
    "price": [1.0, 2.0, None, 4.0],
    "year": [2015, 2016, 2017, 2018],
    "size": [10, 20, 30, 40],
    "day": ["2022-04-25", "2022-04-26", "2022-04-27", "2022-04-28"],
}
KINDS = {
    "land": Id(),
    "rare": Id(min_count=2),
    "tags": Bag(Split("|")),
    "page": HashedId(100),
    "price": Number(),
    "year": Standardised(),
    "size": Buckets(2),
    "day": Datetime(("weekday",)),
}
FEATURES = Features(KINDS).fit(TRAINING)


def test_the_training_rows_differ_from_themselves_only_in_rare_ids() -> None:
    shift = FEATURES.shift(TRAINING)
    assert {name: column.unseen for name, column in shift.columns.items() if column.unseen} == {"rare": 1}
    assert FEATURES.profiles["rare"] == Profile(missing=0.0, unseen=0.25)
    assert shift.sentences() == []


NEW: dict[str, Any] = {
    "land": ["de", "DE ", "DE", "GR", None],
    "rare": ["b", "c", "a", "a", "a"],
    "tags": ["x|z|w", "", "X", None, "y"],
    "page": [1, 9, 3, 4, None],
    "price": [0.5, 5.0, 6.0, None, 2.0],
    "year": [2019, 2019, 2019, 2014, 2016],
    "size": [10, 20, 30, 40, 41],
    "day": [None, "2022-04-26", "2030-01-01", "2022-04-28", "2022-04-28"],
}


def test_every_difference_is_counted() -> None:
    columns = FEATURES.shift(NEW).columns
    assert columns["land"] == Shift(
        rows=5,
        missing=1,
        values=4,
        unseen=3,
        examples=("de", "DE ", "GR"),
        hints=("'de' is 'DE'", "'DE ' is 'DE'"),
    )
    assert columns["rare"] == Shift(rows=5, values=5, unseen=2, examples=("b", "c"))
    assert columns["tags"] == Shift(5, 2, values=5, unseen=3, examples=("z", "w", "X"), hints=("'X' is 'x'",))
    assert columns["page"] == Shift(rows=5, missing=1, values=4)
    assert columns["price"] == Shift(rows=5, missing=1, below=1, above=2)
    assert columns["year"] == Shift(rows=5, below=1, above=3)
    assert columns["size"] == Shift(rows=5, above=1)
    assert columns["day"] == Shift(rows=5, missing=1)


def test_shifts_of_parts_add_up_to_that_of_the_whole() -> None:
    parts = [{name: values[start : start + 2] for name, values in NEW.items()} for start in (0, 2, 4)]
    assert reduce(add, [FEATURES.shift(part) for part in parts]) == FEATURES.shift(NEW)
    nothing = {name: np.array([], dtype=str) for name in NEW}
    assert FEATURES.shift(NEW) + FEATURES.shift(nothing) == FEATURES.shift(NEW)


def test_what_is_worth_a_sentence_is_said_once() -> None:
    sentences = FEATURES.shift(NEW).sentences()
    assert sentences == [
        "column 'land': 3 of 4 values (75.0 %) were not seen in training, such as 'de', 'DE ', 'GR'; "
        "'de' is 'DE', 'DE ' is 'DE' there",
        "column 'land': 1 of 5 rows has no value, and in training every row had one",
        "column 'rare': 2 of 5 values (40.0 %) were not seen in training (there 25.0 % were too rare), "
        "such as 'b', 'c'",
        "column 'tags': 3 of 5 values (60.0 %) were not seen in training, such as 'z', 'w', 'X'; 'X' is 'x' there",
        "column 'page': 1 of 5 rows has no value, and in training every row had one",
        "column 'price': 1 of 5 numbers is below 1, the smallest in training",
        "column 'price': 2 of 5 numbers are above 4, the largest in training",
        "column 'year': 1 of 5 numbers is below 2015, the smallest in training",
        "column 'year': 3 of 5 numbers are above 2018, the largest in training",
        "column 'size': 1 of 5 numbers is above 40, the largest in training",
        "column 'day': 1 of 5 rows has no value, and in training every row had one",
    ]


def test_a_row_in_a_thousand_is_counted_and_not_worth_a_sentence() -> None:
    features = Features({"item": Id(), "price": Number()}).fit({"item": [1, 2], "price": [1.0, 2.0]})
    shift = features.shift({"item": [1] * 999 + [3], "price": [1.0] * 999 + [3.0]})
    assert shift.sentences() == []
    assert shift.columns["item"].unseen == shift.columns["price"].above == 1
    assert shift.above(0.0) == ["item"]
    assert shift.above(0.001) == []
    assert shift.to_dict()["price"]["training"] == {"missing": 0.0, "unseen": 0.0, "smallest": 1.0, "largest": 2.0}


@pytest.mark.parametrize("shared", ["land", "tags"])
def test_a_shared_vocabulary_is_looked_up_too(shared: str) -> None:
    kinds = {"land": Id(), "tags": Bag(Split("|"), shares_table_with="land")}
    features = Features(kinds).fit({"land": ["a", "b"], "tags": ["c", "d"]})
    assert features.shift({"land": ["a", "c"], "tags": ["b", "d"]}).columns[shared].unseen == 0
    assert features.shift({"land": ["e", "a"], "tags": ["f", "a"]}).columns[shared].unseen == 1
