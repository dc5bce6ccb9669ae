"""The counting that a GPU runs, here on the CPU: the same operations on other tensors."""

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau

from transun.metrics import XAUC
from transun.metrics import ranking as module
from transun.metrics.pairs import count_pairs
from transun.metrics.pairs_gpu import count_inversions_gpu, count_pairs_gpu
from transun.metrics.ranking import XAUC_EGMN, XAUC_TPM
from transun.metrics.rows import check


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 1000])
def test_inversions_by_brute_force(n):
    order = torch.from_numpy(np.random.default_rng(n).permutation(n))
    assert count_inversions_gpu(order) == int(torch.triu(order[:, None] > order[None, :], 1).sum())
    assert count_inversions_gpu(torch.arange(n)) == 0
    assert count_inversions_gpu(torch.arange(n).flip(0)) == n * (n - 1) // 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("decimals", [0, 2, 12])
@pytest.mark.parametrize("n", [1, 2, 50, 100_000])
def test_pairs_are_those_of_the_other_algorithm(n, decimals, dtype):
    rng = np.random.default_rng(n)
    y = torch.from_numpy(rng.gamma(1.0, 2.0, n).round(decimals)).to(dtype)
    pred = torch.from_numpy((y.numpy() + rng.normal(0, 2, n)).round(decimals)).to(dtype)
    assert count_pairs_gpu(pred, y) == count_pairs(check(pred, y))


def test_against_scipy():
    rng = np.random.default_rng(0)
    y = rng.gamma(1.0, 1.0, 200_000)
    pred = y + rng.normal(size=len(y))
    pairs = count_pairs_gpu(torch.from_numpy(pred), torch.from_numpy(y))
    assert pairs.concordant / pairs.total == pytest.approx((1 + kendalltau(pred, y).statistic) / 2, rel=1e-12)


def test_signed_zeros_are_equal():
    assert count_pairs_gpu(torch.tensor([-0.0, 0.0]), torch.tensor([1.0, 2.0])).tied == 1.0


@pytest.mark.parametrize("metric", [XAUC, XAUC_TPM, XAUC_EGMN])
def test_tensors_on_a_gpu_are_counted_there(metric, monkeypatch):
    rng = np.random.default_rng(1)
    y = torch.from_numpy(rng.integers(0, 5, 300).astype(float))
    pred = y + torch.from_numpy(rng.normal(size=300)).round()
    expected = metric(pred, y)
    calls = []
    monkeypatch.setattr(module, "all_on_gpu", lambda *vectors: True)
    monkeypatch.setattr(module, "count_pairs_gpu", lambda *rows: calls.append(1) or count_pairs_gpu(*rows))
    assert metric(pred, y) == pytest.approx(expected, rel=1e-12)
    assert calls == [1]
    # Weights need the other algorithm, on the CPU.
    assert metric(pred, y, torch.ones(300)) == pytest.approx(expected, rel=1e-12)
    assert calls == [1]


def test_bad_rows_are_named(monkeypatch):
    monkeypatch.setattr(module, "all_on_gpu", lambda *vectors: True)
    with pytest.raises(ValueError, match="`pred` is nan at row 1"):
        XAUC(torch.tensor([1.0, float("nan")]), torch.tensor([1.0, 2.0]))
    with pytest.raises(ValueError, match="`pred` has 1 rows and `y` has 2"):
        XAUC(torch.tensor([1.0]), torch.tensor([1.0, 2.0]))
    with pytest.raises(ValueError, match="no rows"):
        XAUC(torch.tensor([]), torch.tensor([]))
