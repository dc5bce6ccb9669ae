import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from transun.data import Bag, Buckets, Datetime, Features, HashedId, Id, Kind, Number, Split, Standardised, infer
from transun.data.kinds import Inputs
from transun.data.saving import from_object
from transun.heads import MSE
from transun.tables import load, train


def damaged(**changes: Any) -> str:
    column = {
        "kind": "Id",
        "min_count": 1,
        "shares_table_with": None,
        "vocabulary": {"kind": "Vocabulary", "ids": [1]},
    } | changes
    return json.dumps(
        {
            "format": "transun.features",
            "version": 2,
            "columns": {"x": column},
            "why": {},
            "profiles": {"x": {"kind": "Profile", "missing": 0}},
            "types": {"x": {"kind": "IntegerType"}},
        }
    )


def test_the_undamaged_text_is_read() -> None:
    assert Features.from_json(damaged()).encode({"x": [1, 2]})["x"].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a features file"),
        ("{", "not a features file"),
        ("[1, 2]", "not a features file"),
        ("[" * 100_000, "not a features file"),
        ('{"a": 1}', "its format is not 'transun.features'"),
        (damaged().replace('"version": 2', '"version": 1'), "features of version 1; this transun reads version 2"),
        (damaged().replace('"columns"', '"colums"'), "damaged: columns, why, profiles and types must be objects"),
        (damaged().replace('"missing": 0', '"missing": "none"'), "Profile has no field 'missing' with a value such as"),
        (
            damaged().replace('"Profile"', '"IntegerType"').replace(', "missing": 0', ""),
            "at column 'x': it is no profile",
        ),
        (damaged().replace('"IntegerType"', '"Profile"'), "at column 'x': it is no logical type"),
        (damaged().replace('"IntegerType"', '"ListType"'), "damaged at column 'x'"),
        (damaged().replace('"why": {}', '"why": {"x": 1}'), "a reason in 'why' is not text"),
        (damaged(kind="system"), "damaged at column 'x': unknown kind 'system'; known are .*Bag"),
        (damaged(kind="Lists"), "damaged at column 'x': Lists has no field"),
        (damaged(min_count="1"), "Id has no field 'min_count' with a value such as '1'"),
        (damaged(min_count=True), "Id has no field 'min_count'"),
        (damaged(min_count=0), "damaged at column 'x': Id needs min_count >= 1"),
        (damaged(colour="red"), "Id has no field 'colour'"),
        (damaged(vocabulary=[1, 2]), "Id has no field 'vocabulary'"),
        (damaged(vocabulary={"kind": "Vocabulary", "ids": "abc"}), "damaged at column 'x': a vocabulary is a list"),
        (damaged(vocabulary={"kind": "Vocabulary", "ids": [1, "a"]}), "damaged at column 'x'"),
        (damaged(vocabulary={"kind": "Vocabulary", "ids": [1, 1]}), "names an id twice"),
        (damaged(vocabulary={"kind": "Vocabulary", "ids": [2**80]}), "damaged at column 'x'"),
        (damaged(vocabulary={"kind": "Buckets", "count": 3}), "Id has no field 'vocabulary'"),
        (
            damaged().replace('"missing": 0', '"missing": 2'),
            "the share 'missing' of a profile is not a number from 0 to 1",
        ),
        (damaged().replace('"missing": 0', '"missing": NaN'), "Profile has no field 'missing'"),
        (damaged(kind="IdEncoder"), "damaged at column 'x': unknown kind 'IdEncoder'"),
    ],
)
def test_foreign_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Features.from_json(text)


@pytest.mark.parametrize("content", [None, 5, "text", [], ["columns"], {"format": []}, {"format": {"a": 1}}])
def test_foreign_objects_are_refused(content: Any) -> None:
    # What a forged model folder may hold where the features should be.
    with pytest.raises(ValueError, match="not a features file"):
        Features.from_dict(content)
    with pytest.raises(ValueError, match="not a features file"):
        Features.from_json(content)


@pytest.mark.parametrize(
    "value", [None, 3, "Id", [], [1], True, {}, {"kind": None}, {"kind": ["Id"]}, {"kind": "Kind"}]
)
def test_foreign_columns_are_refused(value: Any) -> None:
    content = json.loads(damaged()) | {"columns": {"x": value}}
    with pytest.raises(ValueError, match="the features file is damaged at column 'x'"):
        Features.from_dict(content)


def positions(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The paths of all values inside a JSON value."""
    if isinstance(value, dict):
        return [path, *(inner for key, item in value.items() for inner in positions(item, (*path, key)))]
    if isinstance(value, list):
        return [path, *(inner for index, item in enumerate(value) for inner in positions(item, (*path, index)))]
    return [path]


EVERY_KIND = Features(
    {
        "x": Id(),
        "t": Datetime(),
        "b": Bag(of=HashedId(9)),
        "g": Bag(Split("|"), shares_table_with="x"),
        "p": Buckets(2),
        "v": Number(),
        "s": Standardised(),
    }
).fit(
    {
        "x": ["a", None],
        "t": ["2020-01-01", "2020-01-02"],
        "b": [[1], [2, 3]],
        "g": ["a|b", "c"],
        "p": [1.0, 2.0],
        "v": [1.0, None],
        "s": [None, 3.0],
    }
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["kind", "ids", "x"]), inner),
    max_leaves=5,
)


@settings(max_examples=400, deadline=None)
@given(where=st.sampled_from(positions(EVERY_KIND.to_dict())[1:]), value=JSON)
def test_a_forged_value_is_harmless_or_a_value_error(where: tuple[str | int, ...], value: Any) -> None:
    forged: Any = json.loads(EVERY_KIND.to_json())
    parent = forged
    for key in where[:-1]:
        parent = parent[key]
    parent[where[-1]] = value
    with suppress(ValueError):
        Features.from_dict(forged).summary()


def test_the_object_holds_nothing_that_json_changes() -> None:
    features = Features({"x": Id(), "t": Datetime(("hour",)), "b": Bag(of=HashedId(9))})
    fitted = features.fit({"x": ["a", None], "t": ["2020-01-01", "2020-01-02"], "b": [[1], [2, 3]]})
    for saved in (features, fitted):
        assert json.loads(json.dumps(saved.to_dict())) == saved.to_dict()
        assert Features.from_dict(saved.to_dict()) == saved


def test_what_has_no_json_is_not_saved() -> None:
    @dataclass(frozen=True)
    class SetOfIds(Id):
        allowed: frozenset[int] = frozenset({1})

    with pytest.raises(TypeError, match="frozenset cannot be saved: a kind of column holds numbers, text"):
        Features({"x": SetOfIds()}).to_json()


@dataclass(frozen=True)
class Capped(Kind):
    """min(v, cap) / cap, cap = the largest value of training: what a user would have to write to add a kind."""

    missing_as: float = 0.0
    limits: tuple[float, ...] | None = field(default=None, repr=False)

    def fit(self, name: str, table: pa.Table, counts=None) -> "Capped":
        return replace(self, limits=(float(max(table[name].drop_null().to_pylist())),))

    def encode(self, name: str, table: pa.Table) -> dict[str, Tensor]:
        assert self.limits is not None
        cap = self.limits[0]
        values = [self.missing_as if v is None else min(v, cap) / cap for v in table[name].to_pylist()]
        return {name: torch.tensor(values)}

    def inputs(self, name: str) -> Inputs:
        return Inputs(numeric=(name,))

    def missing(self, name: str, table: pa.Table) -> float:
        return float(table[name].null_count / len(table))


def test_an_added_kind_is_fitted_saved_and_loaded(tmp_path: Path) -> None:
    rows = {"price": [1.0, 4.0, None, 2.0] * 5, "gmv": [1.0, 2.0, 3.0, 4.0] * 5}
    features = infer(rows, "gmv", columns={"price": Capped(missing_as=-1.0)})
    assert features.encode({"price": [8.0, None, 1.0]})["price"].tolist() == [1.0, -1.0, 0.25]
    assert str(features.columns["price"]) == "Capped(missing_as=-1.0)"
    assert Features.from_json(features.to_json()) == features
    trained = train(rows, "gmv", MSE(), features=features)
    trained.save(tmp_path)
    loaded = load(tmp_path)
    assert loaded.features == features
    assert torch.equal(loaded.predict(rows), trained.predict(rows))


def test_a_saved_model_holds_its_features_as_an_object(tmp_path: Path) -> None:
    trained = train({"x": ["a", "b"] * 9, "gmv": [1.0, 2.0] * 9}, "gmv", MSE())
    trained.save(tmp_path)
    content = json.loads((tmp_path / "transun.json").read_text())
    assert content["extra"]["features"]["columns"]["x"]["vocabulary"] == {"kind": "Vocabulary", "ids": ["a", "b"]}


def test_two_classes_of_one_name_are_refused() -> None:
    with pytest.raises(TypeError, match=r"there is a class 'Id' already, in transun\.data\.kinds\.ids.*another one"):
        type("Id", (Kind,), {})
    # The same class once more, as when a cell of a notebook runs twice, replaces the first.
    first = type("FromANotebook", (Capped,), {})
    again = type("FromANotebook", (Capped,), {})
    assert first is not again
    assert type(from_object({"kind": "FromANotebook"})) is again
