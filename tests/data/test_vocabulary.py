import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from encoding import encoded
from transun.data import Buckets, Datetime, Features, HashedId, Id, Number, Standardised


def test_unseen_rare_and_missing_ids() -> None:
    train = ["b", "a", "b", None, "c", None, "a", "b"]
    assert encoded(Id(), train, ["a", "b", "c", "new", None]).tolist() == [1, 2, 3, 0, 4]
    assert encoded(Id(min_count=2), train, ["a", "b", "c", "new", None]).tolist() == [1, 2, 0, 0, 3]
    # Where training had no missing id, a missing one is as good as unseen.
    assert encoded(Id(), [5, 7], [7, None, 5]).tolist() == [2, 0, 1]


@pytest.mark.parametrize("scale", [1, 10**12], ids=["dense", "hashed"])
def test_missing_is_empty_text_and_not_zero(scale: int) -> None:
    assert encoded(Id(), [0, -scale, None, scale], [0, None, scale, -scale, 5]).tolist() == [2, 4, 3, 1, 0]
    assert encoded(Id(), ["", "x", "0"], ["x", None, "", "0"]).tolist() == [2, 3, 3, 1]
    assert encoded(Id(), [scale, None], [0, None]).tolist() == [0, 2]


@settings(max_examples=60, deadline=None)
@given(
    train=st.lists(st.none() | st.text(max_size=20), min_size=1, max_size=60),
    rows=st.lists(st.none() | st.text(max_size=20), max_size=60),
    least=st.integers(1, 3),
)
def test_text_vocabulary_is_a_counter(train: list[str | None], rows: list[str | None], least: int) -> None:
    seen, asked = ([value or None for value in values] for values in (train, rows))  # empty text is missing
    kept = {value for value in seen if seen.count(value) >= least}
    assume(kept and set(seen) != {None})
    place = {value: index for index, value in enumerate(sorted(kept - {None}), 1)}  # type: ignore[type-var]
    place[None] = len(kept) if None in kept else 0  # type: ignore[index]
    features = Features({"x": Id(min_count=least)}).fit({"x": pa.array(train, pa.string())})
    index = features.encode({"x": pa.array(rows, pa.string())})["x"]
    assert index.tolist() == [place.get(value, 0) for value in asked]  # type: ignore[arg-type]
    assert features.ids == {"x": len(kept) + 1}


def test_repeated_texts_are_encoded_as_single_ones() -> None:
    # Thousands of rows of few texts go another way.
    words = ["Rom", None, "Ulm", "Köln", "unseen"]
    features = Features({"x": Id()}).fit({"x": words[:4]})
    assert features.encode({"x": words * 1000})["x"].tolist() == [2, 4, 3, 1, 0] * 1000
    hashed = Features({"x": HashedId(50)}).fit({"x": words})
    assert hashed.encode({"x": words * 1000})["x"].tolist() == hashed.encode({"x": words})["x"].tolist() * 1000


def test_a_common_hash_is_no_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transun.data.vocabulary.hash_text", lambda ids: np.full(len(ids), 7))
    assert encoded(Id(), ["a"], ["a", "b", None]).tolist() == [1, 0, 0]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int64(), pa.float32(), pa.string(), pa.large_string()])
def test_width_and_type_of_ids_do_not_matter(kind: pa.DataType) -> None:
    features = Features({"x": Id()}).fit({"x": [5, 7, 9]})
    text = Features({"x": Id()}).fit({"x": ["5", "7", "nine"]})
    rows = pa.array([9, 5, 6, None]).cast(kind)
    assert features.encode({"x": rows})["x"].tolist() == [3, 1, 0, 0]
    assert text.encode({"x": rows})["x"].tolist() == [0, 1, 0, 0]
    assert features.encode({"x": ["nine", "7"]})["x"].tolist() == [0, 2]


@settings(max_examples=40, deadline=None)
@given(
    first=st.lists(st.integers(0, 30), min_size=1, max_size=40),
    second=st.lists(st.integers(0, 60), min_size=1, max_size=40),
    least=st.integers(1, 2),
)
def test_growth_keeps_indices(first: list[int], second: list[int], least: int) -> None:
    assume(any(first.count(x) >= least for x in first))
    old = Features({"x": Id(min_count=least)}).fit({"x": first})
    new = old.grow({"x": second})
    everything = {"x": list(range(61))}
    before, after = old.encode(everything)["x"], new.encode(everything)["x"]
    assert bool((after[before > 0] == before[before > 0]).all())
    known = {x for x in range(61) if first.count(x) >= least or second.count(x) >= least}
    assert {x for x in range(61) if after[x] > 0} == known
    assert sorted(after[after > 0].tolist()) == list(range(1, len(known) + 1))
    assert new.ids == {"x": len(known) + 1}


def test_growth_moves_neither_edges_nor_scales() -> None:
    kinds = {"i": Id(), "n": Number(), "b": Buckets(3), "s": Standardised(), "h": HashedId(9), "t": Datetime()}
    train = {"i": [1, 2], "b": [1.0, 2.0], "s": [1.0, 3.0], "h": [1, 2], "t": ["2020-01-01", "2020-02-01"]}
    later = {"i": [9, 2], "b": [50.0, 70.0], "s": [9.0, 8.0], "h": [5, 6], "t": ["2021-01-01", "2022-02-01"]}
    train["n"], later["n"] = [1.0, 4.0], [None, 70.0]
    old = Features(kinds).fit(train)
    new = old.grow(later)
    assert {name for name in kinds if new.columns[name] != old.columns[name]} == {"i"}
    assert old.ids["i"] == 3
    assert new.ids["i"] == 4


def test_integers_may_grow_into_texts() -> None:
    grown = Features({"x": Id()}).fit({"x": [7, 5]}).grow({"x": ["new", "5"]})
    assert grown.encode({"x": ["7", "5", "new"]})["x"].tolist() == [2, 1, 3]
    assert grown.encode({"x": [7, 5]})["x"].tolist() == [2, 1]
