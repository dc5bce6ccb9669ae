import json
from typing import Any

import pytest

from transun.data import Features, Id


def damaged(**changes: Any) -> str:
    column = {"kind": "Id", "min_count": 1, "like": None, "vocabulary": {"kind": "Vocabulary", "ids": [1]}} | changes
    return json.dumps(
        {"format": "transun.features", "version": 1, "columns": {"x": column}, "why": {}, "missing": {"x": 0}}
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
        (damaged().replace('"version": 1', '"version": 2'), "features of version 2; this transun reads version 1"),
        (damaged().replace('"columns"', '"colums"'), "damaged: columns, why and missing must be objects"),
        (damaged().replace('"x": 0', '"x": "none"'), "a share in 'missing' is not a number"),
        (damaged().replace('"why": {}', '"why": {"x": 1}'), "a reason in 'why' is not text"),
        (damaged(kind="system"), "damaged at column 'x': unknown kind 'system'; known are Bag"),
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
    ],
)
def test_foreign_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Features.from_json(text)


def test_only_our_own_kinds_are_saved() -> None:
    class Mine(Id):
        pass

    with pytest.raises(TypeError, match="Mine cannot be saved"):
        Features({"x": Mine()}).to_json()
