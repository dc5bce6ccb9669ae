import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import somersd
from sklearn.metrics import ndcg_score

from transun.metrics import NDCG, XAUC, TopNDCG, TopXAUC
from transun.metrics.ranking import XAUC_EGMN, XAUC_TPM, SampledXAUC

small = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12)


def brute(pred, y, weight):
    """XAUC pair by pair."""
    score = count = 0.0
    for i, j in itertools.combinations(range(len(y)), 2):
        if y[i] != y[j]:
            w = weight[i] * weight[j]
            count += w
            score += w * (0.5 if pred[i] == pred[j] else float((pred[i] > pred[j]) == (y[i] > y[j])))
    return score / count if count else math.nan


def script(pred, y, right):
    """XAUC as published scripts count it: sort by prediction, descending and stable, then compare targets."""
    label = [y[i] for i in sorted(range(len(y)), key=lambda i: -pred[i])]
    pairs = list(itertools.combinations(label, 2))
    return sum(right(a, b) for a, b in pairs) / len(pairs)


def over_all_orders(pred, y, right):
    orders = list(itertools.permutations(range(len(y))))
    return np.mean([script([pred[i] for i in o], [y[i] for i in o], right) for o in orders])


@given(small)
def test_by_brute_force(rows):
    pred, y, weight = (list(map(float, x)) for x in zip(*rows, strict=True))
    if sum(weight) == 0:
        weight[0] = 1.0
    assert XAUC(pred, y, weight) == pytest.approx(brute(pred, y, weight), nan_ok=True)
    assert XAUC(pred, y) == pytest.approx(brute(pred, y, [1.0] * len(y)), nan_ok=True)


@pytest.mark.parametrize("decimals", [0, 1, 12])
def test_against_somers_d(decimals):
    rng = np.random.default_rng(decimals)
    y = rng.gamma(1, 2, 60).round(decimals)
    pred = (y + rng.normal(0, 2, 60)).round(decimals)
    assert XAUC(pred, y) == pytest.approx((1 + somersd(y, pred).statistic) / 2, rel=1e-12)
    # Ones that are not all ones take the weighted algorithm.
    assert XAUC(pred, y, np.full(60, 0.5)) == pytest.approx((1 + somersd(y, pred).statistic) / 2, rel=1e-12)


def test_fast_and_weighted_algorithms_agree_on_many_rows():
    rng = np.random.default_rng(0)
    y = rng.gamma(1, 2, 150_000).round(2)
    pred = (y + rng.normal(0, 2, 150_000)).round(2)
    for metric in (XAUC, XAUC_EGMN):
        assert metric(pred, y) == pytest.approx(metric(pred, y, np.full(len(y), 1 + 1e-12)), rel=1e-9)


@given(small)
def test_negating_predictions_mirrors_xauc(rows):
    pred, y, _ = (np.array(x, dtype=float) for x in zip(*rows, strict=True))
    assert XAUC(-pred, y) == pytest.approx(1 - XAUC(pred, y), nan_ok=True)


def test_extremes():
    y = np.array([0.0, 0.0, 1.0, 5.0, 5.0])
    assert XAUC(y, y) == 1.0
    assert XAUC(-y, y) == 0.0
    assert XAUC(np.ones(5), y) == 0.5
    assert XAUC([-0.0, 0.0], [1.0, 2.0]) == 0.5
    assert math.isnan(XAUC([1.0, 2.0], [3.0, 3.0]))
    assert math.isnan(XAUC.standard_error([1.0, 2.0], [3.0, 3.0]))
    assert math.isnan(XAUC_TPM([1.0], [3.0]))


@pytest.mark.parametrize("seed", range(4))
def test_compat_conventions_are_the_scripts_mean_over_input_orders(seed):
    rng = np.random.default_rng(seed)
    pred, y = rng.integers(0, 3, 6).tolist(), rng.integers(0, 3, 6).tolist()
    assert XAUC_TPM(pred, y) == pytest.approx(over_all_orders(pred, y, lambda a, b: a >= b))
    assert XAUC_EGMN(pred, y) == pytest.approx(over_all_orders(pred, y, lambda a, b: a > b))


def test_compat_conventions_are_the_scripts_where_predictions_differ():
    rng = np.random.default_rng(0)
    pred, y = rng.permutation(50), rng.integers(0, 5, 50)
    assert XAUC_TPM(pred, y) == pytest.approx(script(pred, y, lambda a, b: a >= b))
    assert XAUC_EGMN(pred, y) == pytest.approx(script(pred, y, lambda a, b: a > b))


def test_egmn_cannot_exceed_its_maximum():
    y = np.r_[np.zeros(8000), 1 + np.arange(2000)]
    assert XAUC_EGMN(y, y) == pytest.approx(0.36, abs=1e-3)


def test_sampled_estimates_the_exact_value():
    rng = np.random.default_rng(0)
    y = rng.gamma(1, 2, 400).round(1)
    pred, weight = (y + rng.normal(0, 2, 400)).round(1), rng.random(400)
    # The noise of a mean of 2·10⁵ numbers in [0, 1] is at most 0.5/√(2·10⁵); pairs of equal targets drop out (≈ 4 %).
    tolerance = 5 * 0.5 / math.sqrt(2e5 * 0.9)
    assert SampledXAUC(pairs=200_000)(pred, y, weight) == pytest.approx(XAUC(pred, y, weight), abs=tolerance)
    assert SampledXAUC(pairs=100)(pred, y) != SampledXAUC(pairs=100, seed=1)(pred, y)
    assert math.isnan(SampledXAUC(pairs=10)([1.0, 2.0], [3.0, 3.0]))


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("n", [10, 11, 101, 200])
def test_top_xauc_is_xauc_over_the_largest_targets(share, n):
    rng = np.random.default_rng(n)
    y = rng.gamma(1, 2, n)
    pred = y + rng.normal(0, 1, n)
    whole = math.floor(share * n + 1e-9)
    order = np.argsort(-y)
    kept = np.zeros(n)
    kept[order[:whole]] = 1.0
    if whole < n:
        kept[order[whole]] = share * n - whole
    assert TopXAUC(share=share)(pred, y) == pytest.approx(brute(pred, y, kept), nan_ok=True, rel=1e-6)


def test_top_xauc_is_the_mean_over_the_choices_among_equal_targets():
    y = np.array([0.0] * 8 + [1.0, 2.0])
    pred = np.array([3.0, 1.0, 4.0, 1.5, 9.0, 2.5, 6.0, 5.0, 3.5, 7.0])
    # The best three rows are the last two and any one of eight zeros; every choice has three comparable pairs.
    choices = [XAUC(pred[[zero, 8, 9]], y[[zero, 8, 9]]) for zero in range(8)]
    assert TopXAUC(share=0.3)(pred, y) == pytest.approx(np.mean(choices))
    assert TopXAUC(share=0.2)([*pred[:8], 2.0, 1.0], y) == 0.0


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1])
def test_senseless_shares_are_refused(share):
    with pytest.raises(ValueError, match="`share` is"):
        TopXAUC(share=share)


def sklearn_ndcg(pred, y, k=None):
    return ndcg_score(np.asarray(y)[None], np.asarray(pred)[None], k=k)


@pytest.mark.parametrize("share", [0.02, 0.1, 0.35, 1.0])
@pytest.mark.parametrize("decimals", [0, 12])
@pytest.mark.parametrize("n", [2, 30, 1001])
def test_ndcg_against_scikit_learn(share, decimals, n):
    rng = np.random.default_rng(n)
    y = rng.gamma(1, 2, n).round(decimals) + (np.arange(n) == 0)
    pred = (y + rng.normal(0, 2, n)).round(decimals)
    k = -(-n * round(share * 100) // 100)  # ⌈share·n⌉ in integers
    assert TopNDCG(share=share)(pred, y) == pytest.approx(sklearn_ndcg(pred, y, k), rel=1e-12)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=10))
def test_ndcg_of_ties_against_scikit_learn(rows):
    pred, y = (np.array(x, dtype=float) for x in zip(*rows, strict=True))
    if y.any():
        assert NDCG(pred, y) == pytest.approx(sklearn_ndcg(pred, y), rel=1e-12)
    else:
        assert math.isnan(NDCG(pred, y))


def test_ndcg_of_a_perfect_order_is_one_and_half_a_rank_is_half_a_discount():
    assert NDCG([3.0, 2.0, 1.0], [5.0, 1.0, 0.0]) == pytest.approx(1.0)
    # Weight ½ first: the row of gain 1 takes half of rank 1 and half of rank 2.
    value = NDCG([2.0, 1.0], [0.0, 1.0], [0.5, 1.0])
    best = 1.0
    assert value == pytest.approx((0.5 + 0.5 / math.log2(3)) / best)


def test_ndcg_of_negative_targets_and_too_many_ranks_are_refused():
    with pytest.raises(ValueError, match=r"`y` is -1.0 at row 1"):
        NDCG([1.0, 2.0], [1.0, -1.0])
    with pytest.raises(ValueError, match="divide the weights"):
        NDCG([1.0, 2.0], [1.0, 1.0], [1e9, 1.0])
    with pytest.raises(ValueError, match="`share` is 0"):
        TopNDCG(share=0)
