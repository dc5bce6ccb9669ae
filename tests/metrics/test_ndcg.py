import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from transun.metrics import NDCG, TopNDCG


def reference(pred, y, k=None):
    return ndcg_score(np.asarray(y)[None], np.asarray(pred)[None], k=k)


@pytest.mark.parametrize("share", [0.02, 0.1, 0.35, 1.0])
@pytest.mark.parametrize("decimals", [0, 12])
@pytest.mark.parametrize("n", [2, 30, 1001])
def test_against_scikit_learn(share, decimals, n):
    rng = np.random.default_rng(n)
    y = rng.gamma(1, 2, n).round(decimals) + (np.arange(n) == 0)
    pred = (y + rng.normal(0, 2, n)).round(decimals)
    k = -(-n * round(share * 100) // 100)  # ⌈share·n⌉ in integers
    assert TopNDCG(share=share)(pred, y) == pytest.approx(reference(pred, y, k), rel=1e-12)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=10))
def test_ties_against_scikit_learn(rows):
    pred, y = (np.array(x, dtype=float) for x in zip(*rows, strict=True))
    if y.any():
        assert NDCG(pred, y) == pytest.approx(reference(pred, y), rel=1e-12)
    else:
        assert math.isnan(NDCG(pred, y))


def test_a_perfect_order_is_one_and_half_a_rank_is_half_a_discount():
    assert NDCG([3.0, 2.0, 1.0], [5.0, 1.0, 0.0]) == pytest.approx(1.0)
    # Weight ½ first: the row of gain 1 takes half of rank 1 and half of rank 2.
    value = NDCG([2.0, 1.0], [0.0, 1.0], [0.5, 1.0])
    best = 1.0
    assert value == pytest.approx((0.5 + 0.5 / math.log2(3)) / best)


def test_negative_targets_and_too_many_ranks_are_refused():
    with pytest.raises(ValueError, match=r"`y` is -1.0 at row 1"):
        NDCG([1.0, 2.0], [1.0, -1.0])
    with pytest.raises(ValueError, match="divide the weights"):
        NDCG([1.0, 2.0], [1.0, 1.0], [1e9, 1.0])
    with pytest.raises(ValueError, match="`share` is 0"):
        TopNDCG(share=0)
