import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from transun.metrics import inversions as module
from transun.metrics.inversions import count_inversions, group_order, smaller_before, stable_order

SIZES = [1, 2, 3, 15, 16, 17, 100, 1000]
floats = st.floats(allow_nan=False, allow_infinity=False)


def starts(sorted_values):
    return [True, *(sorted_values[1:] != sorted_values[:-1]).tolist()]


@given(st.lists(floats, min_size=1, max_size=40))
def test_stable_order_is_a_stable_argsort(values):
    x = np.array(values)
    order, new = stable_order(x)
    assert order.tolist() == np.argsort(x, kind="stable").tolist()
    assert new.tolist() == starts(x[order])


@pytest.mark.parametrize("step", [1, 2, 1000])
def test_stable_order_of_values_that_differ_in_the_last_bit(step):
    rng = np.random.default_rng(0)
    x = 1.0 + rng.integers(0, 500, 5000) * step * np.finfo(float).eps
    x = x * rng.choice([-1, 1], len(x))
    order, new = stable_order(x)
    assert order.tolist() == np.argsort(x, kind="stable").tolist()
    assert new.tolist() == starts(x[order])


def test_stable_order_of_some_rows_in_an_order_of_their_own():
    rng = np.random.default_rng(0)
    x, of = rng.normal(size=70_000).round(2) + rng.choice([0.0, 1e-15], 70_000), rng.permutation(70_000)
    order, new = stable_order(x, of)
    assert (order == np.argsort(x[of], kind="stable")).all()
    assert new.tolist() == starts(x[of][order])


def test_stable_order_over_many_chunks():
    x = np.random.default_rng(0).normal(size=200_000).round(3)
    order, new = stable_order(x)
    assert (order == np.argsort(x, kind="stable")).all()
    assert new.sum() == len(np.unique(x))


def test_group_order_is_a_stable_argsort():
    group = np.random.default_rng(0).integers(0, 20, 500).astype(np.int32)
    assert group_order(group).tolist() == np.argsort(group, kind="stable").tolist()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("seed", range(3))
def test_inversions_by_brute_force(n, seed):
    order = np.random.default_rng(seed).permutation(n)
    assert count_inversions(order) == int(np.triu(order[:, None] > order[None, :], 1).sum())


@pytest.mark.parametrize("n", [65_536, 65_537, 131_072, 300_000])
def test_inversions_over_many_chunks(n):
    order = np.random.default_rng(n).permutation(n)
    pairs = n * (n - 1) / 2
    assert count_inversions(order) == round((1 - kendalltau(np.arange(n), order).statistic) / 2 * pairs)
    assert count_inversions(np.arange(n)) == 0
    assert count_inversions(np.arange(n)[::-1].copy()) == n * (n - 1) // 2


def test_inversions_with_more_levels_than_tag_bits(monkeypatch):
    """Beyond 2²⁸ rows keys are 64 bits wide and tags renewed; small chunks reach the same code with few rows."""
    monkeypatch.setattr(module, "_CHUNK", 5)
    monkeypatch.setattr(module, "_CHUNK_SIZE", 32)
    order = np.random.default_rng(0).permutation(70_000)
    pairs = 70_000 * 69_999 / 2
    assert count_inversions(order) == round((1 - kendalltau(np.arange(70_000), order).statistic) / 2 * pairs)


@pytest.mark.parametrize("n", SIZES)
def test_smaller_before_by_brute_force(n):
    rng = np.random.default_rng(n)
    order, weight = rng.permutation(n), rng.integers(0, 5, n).astype(float)
    expected = (np.tril(order[:, None] > order[None, :], -1) * weight).sum(1)
    assert smaller_before(order, weight).tolist() == expected.tolist()


@pytest.mark.parametrize("n", [65_537, 200_000])
def test_smaller_before_over_many_chunks(n):
    """Against the other algorithm, and for some rows against a plain count."""
    rng = np.random.default_rng(n)
    order, weight = rng.permutation(n), rng.integers(0, 5, n).astype(float)
    below = smaller_before(order, weight)
    for i in (1, n // 2, 65_535, 65_536, n - 1):
        assert below[i] == weight[:i][order[:i] < order[i]].sum()
    assert n * (n - 1) // 2 - smaller_before(order, np.ones(n)).sum() == count_inversions(order)
