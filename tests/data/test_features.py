import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import torch

from encoding import same
from transun.backbones import EmbeddingMLP
from transun.data import Bag, Buckets, Datetime, Features, HashedId, Id, Number, Numbered, Split, Standardised
from transun.data.vocabulary import Vocabulary

NAN, INF = float("nan"), float("inf")


EVERY = {
    "user": Id(min_count=2),
    "page": HashedId(1000),
    "item": Bag(Numbered(2)),
    "bought": Bag(length=-3, shares_table_with="user"),
    "genres": Bag(Split("|"), of=Id(min_count=2)),
    "price": Buckets(4),
    "spent": Number(),
    "age": Standardised(),
    "ts": Datetime(),
}


def table(n: int = 40, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    user = [None if i % 7 == 0 else f"u{i % 5}" for i in rng.integers(0, 50, n).tolist()]
    return {
        "user": user,
        "page": rng.integers(0, 10**12, n),
        "item_0": rng.integers(0, 9, n),
        "item_1": rng.integers(-1, 9, n),
        "bought": [[f"u{i}" for i in range(k)] for k in rng.integers(0, 6, n).tolist()],
        "genres": ["|".join("abc"[:k]) for k in rng.integers(0, 4, n).tolist()],
        "price": np.where(rng.random(n) < 0.2, NAN, rng.gamma(2, 1, n)),
        "spent": np.where(rng.random(n) < 0.2, NAN, rng.lognormal(0, 2, n)),
        "age": np.where(rng.random(n) < 0.2, NAN, rng.normal(40, 9, n)),
        "ts": np.datetime64("2022-01-01", "s") + rng.integers(0, 10**7, n).astype("m8[s]"),
        "gmv": rng.gamma(2, 1, n),
        "weight": rng.random(n),
    }


def test_saved_features_encode_alike() -> None:
    features = Features(EVERY, why={"user": "so it is"}).fit(table())
    for copy in (Features.from_json(features.to_json()), pickle.loads(pickle.dumps(features))):
        assert copy == features
        assert copy.to_json() == features.to_json()
        assert copy.summary() == features.summary()
        assert same(copy.encode(table(seed=1)), features.encode(table(seed=1)))


def test_unlearned_features_are_saved_too() -> None:
    features = Features(EVERY)
    assert Features.from_json(features.to_json()) == features
    assert Features.from_json(features.to_json()).fit(table()) == features.fit(table())


def test_order_of_columns_chunks_and_extra_columns_do_not_matter() -> None:
    features = Features(EVERY).fit(table())
    rows = pa.table(table(seed=1))
    expected = features.encode(rows)
    reordered = rows.select(rows.column_names[::-1]).append_column("extra", pa.nulls(len(rows)))
    assert same(features.encode(reordered), expected)
    assert same(features.encode(pa.concat_tables([rows.slice(0, 7), rows.slice(7)])), expected)
    assert same(features.encode(pl.from_arrow(rows)), expected)
    # Rows are encoded each by itself: a stream in pieces gives what the table gives.
    pieces = [features.encode(rows.slice(start, 11)) for start in range(0, len(rows), 11)]
    assert same({name: torch.cat([piece[name] for piece in pieces]) for name in expected}, expected)


def test_order_of_training_rows_does_not_matter() -> None:
    rows = pa.table(table())
    # Means of floats depend on the order of summing, in the last bit.
    kinds = {name: kind for name, kind in EVERY.items() if name not in ("age", "ts")}
    assert Features(kinds).fit(rows) == Features(kinds).fit(rows.take(np.random.default_rng(0).permutation(len(rows))))


def test_tensors_fit_the_network_and_no_row_is_too_few() -> None:
    features = Features(EVERY).fit(table())
    embed = EmbeddingMLP(features.ids, features.bags, features.numeric, ranks=features.ranks).stages()[0]()
    for seed, n in ((0, 40), (1, 40), (2, 1)):
        tensors = features.encode(table(n, seed))
        assert embed(tensors).isfinite().all()
        assert set(tensors) == {*features.ids, *features.bags, *features.numeric, *features.ranks}
        for name, tensor in tensors.items():
            is_number = name in (*features.numeric, *features.ranks)
            assert tensor.dtype == (torch.float32 if is_number else torch.int64)
            assert tensor.shape[0] == n
    assert {len(tensor) for tensor in features.encode(pa.table(table()).slice(0, 0)).values()} == {0}


def test_dataset_has_targets_and_weights() -> None:
    features = Features(EVERY).fit(table())
    data = features.to_dataset(table(), "gmv", weight="weight")
    np.testing.assert_allclose(data.y.numpy(), table()["gmv"], rtol=1e-6)
    assert data.weight is not None
    np.testing.assert_allclose(data.weight.numpy(), table()["weight"], rtol=1e-6)
    assert isinstance(data.x, dict)
    assert same(data.x, features.encode(table()))
    assert features.to_dataset(table(), "gmv").weight is None


def test_features_do_not_change() -> None:
    features = Features({"x": Id()}).fit({"x": [1]})
    with pytest.raises(TypeError):
        features.columns["y"] = Id()  # type: ignore[index]
    with pytest.raises(AttributeError):
        features.columns = {}  # type: ignore[misc]
    assert features.fit({"x": [1, 2]}).ids == {"x": 3}
    assert features.ids == {"x": 2}


FITTED = Features({"x": Id()}).fit({"x": [1]})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Features({}), r"at least one column, e\.g\. Features"),
        (lambda: Features({"x": Id()}).encode({"x": [1]}), r"column 'x' is not fitted yet: call features\.fit"),
        (lambda: Features({"x": Id()}).ids, "column 'x' is not fitted yet"),
        (lambda: FITTED.encode({"y": [1]}), "there is no column 'x'.*The table has y"),
        (lambda: Features({"item": Id()}).fit({"itme": [1]}), "no column 'item': did you mean 'itme'"),
        (lambda: Features({"x": Bag(Numbered(3))}).fit({"x_0": [1], "x_1": [1]}), "no column 'x_2': did you mean"),
        (lambda: Features({"x": Id()}).fit({"x": []}), "the table has no rows to learn from"),
        (lambda: Features({"x": Id()}).fit({"x": [None, None]}), "column 'x' is missing in every row: leave it out"),
        (lambda: Features({"x": HashedId(9)}).fit({"x": [NAN]}), "column 'x' is missing in every row"),
        (lambda: Features({"x": Buckets()}).fit({"x": [NAN, None]}), "column 'x' is missing in every row"),
        (lambda: Features({"x": Standardised()}).fit({"x": [NAN]}), "column 'x' is missing in every row"),
        (lambda: Features({"x": Datetime()}).fit({"x": [None]}), "column 'x' is missing in every row"),
        (lambda: Features({"x": Bag()}).fit({"x": [[], [-1]]}), "column 'x' is missing in every row"),
        (lambda: Features({"x": Id(min_count=3)}).fit({"x": [1, 1]}), "'x' has no id in 3 rows: lower min_count"),
        (lambda: Features({"x": Buckets()}).fit({"x": ["1", "a"]}), "column 'x', row 1: 'a' is text, not a number"),
        (lambda: Features({"x": Standardised()}).fit({"x": ["a"]}), r"column 'x', row 0: 'a' is text.*Id\(\)"),
        (lambda: Features({"x": Standardised()}).fit({"x": [1.0, INF]}), "column 'x', row 1: an infinite number"),
        (lambda: Features({"x": Id()}).fit({"x": [1.5]}), r"column 'x', row 0: 1\.5 is a number, not an id"),
        (lambda: Features({"x": Id()}).fit({"x": [[1]]}), r"column 'x' holds list.*Bag\(\)"),
        (lambda: Features({"x": Bag()}).fit({"x": ["a|b"]}), r"column 'x' holds .*not lists: Bag\(Split"),
        (lambda: Features({"x": Datetime()}).fit({"x": [1]}), "column 'x' holds int64, not times"),
        (lambda: Features({"x": Id(shares_table_with="y")}), "there is no column 'y'"),
        (
            lambda: Features({"x": Id(shares_table_with="y"), "y": Buckets()}),
            r"column 'y' is Buckets\(\): it has no vocabulary",
        ),
        (
            lambda: Features({"x": Id(shares_table_with="y"), "y": Id(shares_table_with="z"), "z": Id()}),
            "'x' shares the table of 'y', which itself shares that of 'z'",
        ),
        (
            lambda: Features({"t": Datetime(), "t.hour": Id()}).fit({"t": ["2020-01-01"], "t.hour": [1]}),
            r"two columns make a tensor 't\.hour': rename",
        ),
        (lambda: FITTED.to_dataset({"x": [1], "y": [NAN]}, "y"), r"target 'y', row 0 is missing.*drop_missing"),
        (lambda: FITTED.to_dataset({"x": [1], "gmv": [1]}, "gvm"), "no column 'gvm': did you mean 'gmv'"),
        (lambda: FITTED.to_dataset({"x": [1]}, "x"), "the target 'x' is among the features"),
        (lambda: Id(min_count=0), "min_count >= 1"),
        (lambda: HashedId(1), "rows >= 2"),
        (lambda: Buckets(0), "count >= 1"),
        (lambda: Bag(length=0), "length other than 0"),
        (lambda: Split(""), "needs a separator"),
        (lambda: Numbered(0), "count >= 1"),
        (lambda: Datetime(("hour", "minute")), "parts hour, weekday, month, age"),
        (lambda: Vocabulary([1, 1]), "names an id twice"),
    ],
)
def test_errors_name_place_and_remedy(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_class_is_no_kind() -> None:
    with pytest.raises(TypeError, match=r"column 'x' has kind .*such as Id\(\)"):
        Features({"x": Id})  # type: ignore[dict-item]


@pytest.mark.parametrize("missing_in_training", [False, True])
@pytest.mark.parametrize("kind", [Id(), HashedId(50), Buckets(2), Number(), Standardised(), Datetime(("hour", "age"))])
def test_the_meanings_tell_what_a_missing_value_becomes(kind: Any, missing_in_training: bool) -> None:
    values = ["2022-04-25 13:05:00", "2022-04-26 14:00:00"] if isinstance(kind, Datetime) else ["1", "2"]
    training = [*values, None] if missing_in_training else values
    features = Features({"x": kind}).fit({"x": training})
    tensors = features.encode({"x": pa.nulls(1, pa.string())})
    assert set(features.meanings) == set(tensors)
    for name, meaning in features.meanings.items():
        value = tensors[name].item()
        assert f"{value:g} for a missing" in meaning or (name.endswith("missing") and meaning.startswith("1 where"))


def test_the_meaning_of_a_shared_table_is_that_of_its_owner() -> None:
    features = Features({"user": Id(), "bought": Bag(shares_table_with="user")})
    meanings = features.fit({"user": [5, None], "bought": [[5, 7], []]}).meanings
    assert meanings["user"] == "codes 0..3: 3 for a missing id, 0 for one that training has not seen"
    assert meanings["bought"].startswith(meanings["user"])


def test_encoding_with_shift_is_encoding_and_shift() -> None:
    features, new = Features(EVERY).fit(table()), table(seed=1)
    x, shift = features.encode_with_shift(new)
    assert same(x, features.encode(new))
    assert shift == features.shift(new)
    assert shift.columns["user"].rows == 40
