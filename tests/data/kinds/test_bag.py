from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from encoding import encoded
from transun.data import Bag, Features, HashedId, Id, Lists, Numbered, Split

NAN = float("nan")


BAG = [[30, 10], [], [20, 10, 30], None, [10]]
PADDED = [[3, 1, -1], [-1, -1, -1], [2, 1, 3], [-1, -1, -1], [1, -1, -1]]


def padded(values: Any = -1) -> np.ndarray:
    return np.array([[*(row or []), *[values] * (3 - len(row or []))] for row in BAG])


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        (Bag(), {"x": BAG}),
        (Bag(), {"x": pa.array(BAG, pa.large_list(pa.int16()))}),
        (Bag(), {"x": padded()}),
        (Bag(), {"x": pa.array([None if row is None else [*map(str, row)] for row in BAG])}),
        (Bag(), pl.DataFrame({"x": [None if row is None else [*map(str, row)] for row in BAG]})),
        (Bag(Lists(pad=0)), {"x": padded(0)}),
        (Bag(Numbered(3)), {f"x_{i}": padded()[:, i] for i in range(3)}),
        (Bag(Numbered(3, start=1, join="")), {f"x{i + 1}": padded()[:, i].astype(np.int8) for i in range(3)}),
        (Bag(Numbered(3)), {f"x_{i}": np.where(padded() < 0, NAN, padded())[:, i] for i in range(3)}),
        (Bag(Numbered(3)), {f"x_{i}": padded()[:, i].astype(str) for i in range(3)}),
        (Bag(Split("|")), {"x": ["30|10", "", "20| 10 |30", None, "10"]}),
        (Bag(Split(", ")), {"x": ["30, 10", "", "20, 10, 30", None, "10, "]}),
    ],
)
def test_every_layout_gives_the_same_bag(kind: Bag, table: Any) -> None:
    features = Features({"x": kind}).fit(table)
    assert features.encode(table)["x"].tolist() == PADDED
    assert features.bags == {"x": 4}
    assert features.missing["x"] == 0.4


def test_pads_in_the_middle_are_closed_up() -> None:
    table = {"x_0": [-1, 5], "x_1": [7, -1], "x_2": [7, 9]}
    assert Features({"x": Bag(Numbered(3))}).fit(table).encode(table)["x"].tolist() == [[2, 2], [1, 3]]


def test_numbered_columns_are_found_in_any_order_beyond_ten() -> None:
    table = {f"x_{i}": [i] for i in range(12)}
    shuffled = {name: table[name] for name in sorted(table, reverse=True)}
    assert Features({"x": Bag(Numbered(12))}).fit(table).encode(shuffled)["x"].tolist() == [list(range(1, 13))]


def test_length_keeps_the_first_or_the_last() -> None:
    train = [[1, 2, 3, 4], [5], []]
    assert encoded(Bag(length=2), train).tolist() == [[1, 2], [5, -1], [-1, -1]]
    assert encoded(Bag(length=-2), train).tolist() == [[3, 4], [5, -1], [-1, -1]]
    assert encoded(Bag(length=6), train).shape == (3, 6)
    # Without one, rows longer than those of training are cut.
    assert encoded(Bag(), train, [[5, 4, 3, 2, 1]]).tolist() == [[5, 4, 3, 2]]


def test_unseen_ids_of_a_bag_are_not_padding() -> None:
    assert encoded(Bag(), [[1, 2]], [[9, 2], [9, 9]]).tolist() == [[0, 2], [0, 0]]
    assert encoded(Bag(of=HashedId(5)), [[1, 2]], [[9, -1]])[0, 1] == -1


def test_bag_and_column_share_a_vocabulary() -> None:
    table = {"item": [5, 7], "bought": [[9, 5], []], "seen": [[7], [11]]}
    kinds = {"bought": Bag(shares_table_with="item"), "item": Id(), "seen": Bag(shares_table_with="item")}
    features = Features(kinds).fit(table)
    assert features.ids == {"item": 5}
    assert features.bags == {"bought": "item", "seen": "item"}
    tensors = features.encode(table)
    assert tensors["item"].tolist() == [1, 2]
    assert tensors["bought"].tolist() == [[3, 1], [-1, -1]]
    assert tensors["seen"].tolist() == [[2], [4]]
    grown = features.grow({"item": [5], "bought": [[3]], "seen": [[11]]})
    assert grown.encode({"item": [3], "bought": [[3]], "seen": [[11]]})["item"].tolist() == [5]
    assert Features.from_json(grown.to_json()).encode(table)["seen"].tolist() == [[2], [4]]


def test_a_bag_shares_its_vocabulary_too() -> None:
    table = {"bought": [[5], [9]], "seen": [[7, 5], []]}
    features = Features({"bought": Bag(), "seen": Bag(shares_table_with="bought")}).fit(table)
    assert features.bags == {"bought": 4, "seen": "bought"}
    assert features.encode(table)["seen"].tolist() == [[2, 1], [-1, -1]]
    grown = features.grow({"bought": [[5]], "seen": [[1]]})
    assert grown.encode({"bought": [[1]], "seen": [[1]]})["bought"].tolist() == [[4]]


def test_two_id_columns_share_a_hashed_or_learned_table() -> None:
    table = {"home": ["a", "b"], "away": ["c", "a"]}
    for kind in (Id(), HashedId(100)):
        features = Features({"home": kind, "away": replace(kind, shares_table_with="home")}).fit(table)  # type: ignore[type-var]
        tensors = features.encode(table)
        assert tensors["home"][0] == tensors["away"][1]
        assert features.ids["away"] == "home"
