from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.preprocessing import StandardScaler

from encoding import encoded, same
from transun.data import Buckets, Features, Number, Standardised

NAN, INF = float("nan"), float("inf")


def number(train: object, rows: object) -> dict[str, np.ndarray]:
    features = Features({"x": Number()}).fit({"x": train})
    return {name: tensor.numpy() for name, tensor in features.encode({"x": rows}).items()}


@settings(max_examples=60, deadline=None)
@given(
    train=st.lists(st.floats(allow_nan=False), min_size=1, max_size=200).filter(lambda v: bool(np.isfinite(v).any())),
    rows=st.lists(st.floats(allow_nan=False), min_size=2, max_size=50),
)
def test_numbers_are_finite_and_ascend_with_the_value(train: list[float], rows: list[float]) -> None:
    tensors = number(train, sorted(rows))
    for values in tensors.values():
        assert np.isfinite(values).all()
        assert (np.diff(values) >= 0).all()
    assert tensors["x.rank"].min() >= 0
    assert tensors["x.rank"].max() <= 1


@pytest.mark.parametrize(
    "v",
    [
        np.random.default_rng(0).lognormal(0, 2, 5000),
        np.random.default_rng(1).normal(0, 1, 130),
        np.random.default_rng(2).integers(0, 1000, 3000),
        np.round(np.random.default_rng(3).exponential(300, 3000)),
    ],
    ids=["lognormal", "few", "whole", "ties"],
)
def test_the_rank_is_that_of_scipy_up_to_the_distance_of_two_knots(v: np.ndarray) -> None:
    expected = (stats.rankdata(v) - 0.5) / len(v)  # equal values share their average rank
    largest_tie = np.unique(v, return_counts=True)[1].max() / len(v)
    np.testing.assert_allclose(number(v, v)["x.rank"], expected, rtol=0, atol=1 / 128 + largest_tie)
    assert np.abs(number(v, v)["x.rank"] - expected).mean() < 1 / 256


def test_the_rank_is_that_of_scipy_if_there_are_few_different_values() -> None:
    v = np.random.default_rng(0).poisson(3, 5000) ** 3
    np.testing.assert_allclose(number(v, v)["x.rank"], (stats.rankdata(v) - 0.5) / len(v), rtol=1e-6)
    # A person can check these: two zeros have the ranks 1 and 2, a seven has the rank 3.
    np.testing.assert_allclose(number([0, 7, 0], [0, 7, 3.5])["x.rank"], [1 / 3, 5 / 6, 7 / 12], rtol=1e-6)


def test_numbers_are_standardised_and_extrapolate_like_a_logarithm() -> None:
    v = np.random.default_rng(0).lognormal(3, 2, 10_000)
    inside = number(v, v)["x"]
    assert inside.mean() == pytest.approx(0, abs=1e-5)
    assert inside.std() == pytest.approx(1, abs=1e-5)
    a = np.arcsinh((v - np.median(v)) / stats.iqr(v))
    np.testing.assert_allclose(inside, stats.zscore(a), rtol=1e-4, atol=1e-5)
    # Each factor of ten beyond the range is as far as the one before: log(10) / sd.
    outside = number(v, v.max() * np.array([1e2, 1e3, 1e4, 1e5]))["x"]
    np.testing.assert_allclose(np.diff(outside), np.log(10) / a.std(), rtol=1e-3)


def test_numbers_do_not_depend_on_units() -> None:
    v = np.random.default_rng(0).standard_t(2, 1000)
    for name, values in number(v, v).items():
        np.testing.assert_allclose(number(60 * v + 32, 60 * v + 32)[name], values, rtol=1e-4, atol=1e-5)


def test_a_missing_number_is_0_and_one_half_with_an_indicator() -> None:
    features = Features({"x": Number()}).fit({"x": [1.0, None, 3.0, 8.0]})
    tensors = {name: tensor.tolist() for name, tensor in features.encode({"x": [NAN, 3.0]}).items()}
    assert tensors["x"][0] == 0.0
    assert tensors["x.rank"] == [0.5, 0.5]
    assert tensors["x.missing"] == [1.0, 0.0]
    assert (features.numeric, features.ranks, features.ids) == (("x", "x.missing"), ("x.rank",), {})
    complete = Features({"x": Number()}).fit({"x": [1.0, 3.0]})
    assert (complete.numeric, complete.ranks) == (("x",), ("x.rank",))
    assert {name: t.tolist() for name, t in complete.encode({"x": [NAN]}).items()} == {"x": [0.0], "x.rank": [0.5]}


def test_numbers_without_a_spread_stay_finite() -> None:
    constant = number([0.1] * 7, [0.1, 1.1])
    np.testing.assert_allclose(constant["x"], [0.0, np.arcsinh(1)], atol=1e-6)
    assert constant["x.rank"].tolist() == [0.5, 0.5]
    # The interquartile range is zero, so the scale is the deviation, here .3.
    rare = number([0] * 9 + [1], [0, 1])["x"]
    np.testing.assert_allclose(rare, stats.zscore([0] * 9 + [1])[[0, 9]], rtol=1e-6)  # two values have two z-scores
    np.testing.assert_allclose(number([0.0] * 9 + [1e300], [0, 1e300])["x"], rare, rtol=1e-6)


def test_numbers_count_infinity_as_a_finite_number() -> None:
    tensors = number([1.0, 2.0, 3.0, 4.0, INF, -INF], [-INF, 1.0, 4.0, 1e299, INF])
    assert np.isfinite(tensors["x"]).all()
    assert (np.diff(tensors["x"]) > 0).all()
    np.testing.assert_allclose(tensors["x.rank"], [1 / 8, 1 / 8, 7 / 8, 7 / 8, 7 / 8])
    with pytest.raises(ValueError, match="column 'x' is missing in every row"):
        Features({"x": Number()}).fit({"x": [NAN, None]})


def test_numbers_are_saved_and_do_not_move_when_features_grow(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.random.default_rng(0).lognormal(0, 2, 500), "n": np.arange(500) ** 2})
    frame.loc[::7, "x"] = NAN
    features = Features({"x": Number(), "n": Number()}).fit(frame)
    assert Features.from_json(features.to_json()) == features
    assert features.grow(frame * 1000) == features
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    for path in (tmp_path / "rows.csv", tmp_path / "rows.parquet"):
        assert Features({"x": Number(), "n": Number()}).fit(path) == features
        assert same(features.encode(path), features.encode(frame))


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ({"knots": (1.0, 1.0), "ranks": (0.1, 0.9)}, "knots of Number must ascend"),
        ({"knots": (1.0, 2.0), "ranks": (0.9, 0.1)}, "ranks of Number must ascend"),
        ({"knots": (1.0, 2.0), "ranks": (0.5,)}, "one rank for each knot"),
        ({"scale": 0.0}, "scale > 0"),
        ({"sd": -1.0}, "sd > 0"),
    ],
)
def test_numbers_refuse_what_fit_cannot_have_learned(constants: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Number(**constants)


@settings(max_examples=40, deadline=None)
@given(
    values=st.lists(st.floats(-1e6, 1e6), min_size=30, max_size=200, unique=True),
    count=st.integers(1, 12),
)
def test_buckets_are_those_of_pandas(values: list[float], count: int) -> None:
    v = np.array(values)
    edges = np.quantile(v, np.arange(1, count) / count, method="lower")
    assume(len(np.unique(edges)) == len(edges))
    expected = pd.qcut(pd.Series(v), count, labels=False, duplicates="raise").to_numpy()
    features = Features({"x": Buckets(count)}).fit({"x": v})
    # pandas cuts between two values, here the lower one is the edge: one partition, but for rounding at an edge.
    between = np.quantile(v, np.arange(1, count) / count)
    near = np.isclose(v[:, None], between, rtol=1e-12, atol=1e-9).any(1)
    ours = features.encode({"x": v})["x"].numpy() - 1
    np.testing.assert_array_equal(ours[~near], expected[~near])
    assert features.ids == {"x": count + 1}
    fitted = features.columns["x"]
    assert isinstance(fitted, Buckets)
    np.testing.assert_allclose(fitted.edges or (), edges, rtol=0, atol=0)


def test_buckets_hold_equal_shares_and_the_missing_have_their_own() -> None:
    v = np.random.default_rng(0).gamma(2, 1, 10_000)
    v[::10] = NAN
    index = encoded(Buckets(9), v)
    assert torch.bincount(index).tolist() == [1000] * 10
    assert bool((index[::10] == 0).all())


def test_buckets_of_many_equal_numbers() -> None:
    # Three quarters are zero: quantiles 0, 0, 0, then positive ones. Zero has one bucket, and none is empty.
    v = np.concatenate([np.zeros(750), np.arange(1, 251)])
    index = encoded(Buckets(8), v)
    assert set(index[:750].tolist()) == {1}
    assert sorted(set(index.tolist())) == list(range(1, int(index.max()) + 1))
    features = Features({"x": Buckets(8)}).fit({"x": v})
    assert features.ids["x"] == int(index.max()) + 1
    assert Features({"x": Buckets(8)}).fit({"x": [3.0, 3.0]}).ids == {"x": 2}


def test_buckets_put_infinity_at_the_ends() -> None:
    assert encoded(Buckets(2), [1.0, 2.0, 3.0, 4.0, INF], [-INF, INF, NAN]).tolist() == [1, 2, 0]
    # Half of the values at infinity, but no edge there.
    half = Features({"x": Buckets(4)}).fit({"x": [-INF] * 3 + [1.0, 2.0, 3.0]})
    assert Features.from_json(half.to_json()).encode({"x": [-INF, 3.0]})["x"].tolist() == [1, 3]


def test_standardised_is_sklearns() -> None:
    v = np.random.default_rng(0).normal(300, 7, 1000)
    expected = StandardScaler().fit(v[:500, None]).transform(v[:, None])[:, 0]
    np.testing.assert_allclose(encoded(Standardised(), v[:500], v).numpy(), expected, rtol=1e-5, atol=1e-6)


def test_standardised_says_what_is_missing() -> None:
    features = Features({"x": Standardised()}).fit({"x": [1.0, None, 3.0]})
    tensors = features.encode({"x": [NAN, 5.0]})
    assert {name: tensor.tolist() for name, tensor in tensors.items()} == {"x": [0.0, 3.0], "x.missing": [1.0, 0.0]}
    assert features.numeric == ("x", "x.missing")
    whole = Features({"x": Standardised()}).fit({"x": [1.0, 3.0]})
    assert whole.encode({"x": [NAN]})["x"].tolist() == [0.0]
    assert whole.numeric == ("x",)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9])
def test_standardised_constants_stay_finite(constant: float) -> None:
    assert encoded(Standardised(), [constant] * 7, [constant, constant + 1]).tolist() == pytest.approx(
        [0.0, 1.0], abs=1e-6
    )


def test_text_that_is_numbers_is_numbers() -> None:
    assert encoded(Standardised(), ["1", " 3"], ["5.0"]).tolist() == [3.0]
