import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from encoding import encoded
from transun.data import Buckets, Features, Standardised

NAN, INF = float("nan"), float("inf")


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
