import math

import numpy as np
import pytest
import torch
from sklearn.isotonic import IsotonicRegression

from transun.backbones import EmbeddingMLP
from transun.data import OrderLog
from transun.heads import LogMSE, LogSUN
from transun.metrics import XAUC
from transun.models.network import Model
from transun.training import fit, plain_recipe, predict
from transun.training.fusion import fuse, fusion_threshold


def simulated(rows=20_000, seed=0):
    """The debiased prediction is the base with noise where the base is below e⁰, its middle, and the truth above."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=rows)
    base = truth + 0.1 * rng.normal(size=rows)
    debiased = np.where(base < 0.0, base + rng.normal(size=rows), truth)
    y = truth + 0.3 * rng.normal(size=rows)
    return tuple(torch.from_numpy(np.exp(values)) for values in (base, debiased, y))


@pytest.mark.parametrize("seed", range(3))
def test_finds_where_the_gain_begins(seed):
    """In a bin of 2000 rows XAUC has a standard error of 0.007; the gains are about -0.07 below and 0.02 above."""
    base, debiased, y = simulated(seed=seed)
    threshold = fusion_threshold(base, debiased, y, bins=10).threshold
    assert 0.35 < (base < threshold).double().mean() < 0.75
    fused = torch.where(base < threshold, base, debiased)
    assert XAUC(fused, y) > max(XAUC(base, y), XAUC(debiased, y))


def test_one_lucky_bin_does_not_choose():
    """The literal rule stops at the first bin, which gains by luck; the eight bins after it lose."""
    y = torch.arange(40.0)
    base, debiased = y.clone(), y.clone()
    base[:4] = torch.tensor([0.0, 1.0, 3.0, 2.0])
    debiased[4:36] = y[4:36].reshape(8, 4)[:, [3, 2, 1, 0]].flatten()
    choice = fusion_threshold(base, debiased, y, bins=10)
    assert choice.gains[0] > 0.0
    assert choice.threshold == math.inf or choice.threshold >= 36.0


def test_gains_are_smoothed_by_isotonic_regression():
    base, debiased, y = simulated(rows=4000)
    choice = fusion_threshold(base, debiased, y, bins=20)
    expected = IsotonicRegression().fit_transform(np.arange(len(choice.gains)), choice.gains)
    np.testing.assert_allclose(choice.smoothed, expected, atol=1e-12)
    assert choice.threshold == next(e for e, gain in zip(choice.edges, expected, strict=True) if gain > 0.0)


def test_the_ends():
    base, _, y = simulated(rows=2000)
    assert fusion_threshold(base, y, y).threshold == -math.inf
    assert fusion_threshold(y, base, y).threshold == math.inf


def test_bins_without_an_order_are_left_out_and_refused_where_there_is_no_other():
    base = torch.arange(8.0)
    y = torch.tensor([1.0, 1.0, 1.0, 1.0, 5.0, 6.0, 7.0, 8.0])
    assert fusion_threshold(base, base, y, bins=2).edges == (4.0,)
    with pytest.raises(ValueError, match="fewer bins or more rows"):
        fusion_threshold(base, base, torch.ones(8))


def test_a_fused_model_predicts_its_base_below_the_threshold():
    log = OrderLog(orders=3000, users=30, items=20, history=2)
    train, held_out = log.dataset(stop=2000), log.dataset(2000)
    model = Model(EmbeddingMLP(log.sizes, {"history": "item"}, ("log_price",), dim=4, hidden=(8,)), LogSUN(shared=1))
    fit(model, train, plain_recipe())
    fused = fuse(model, held_out, bins=10)
    base = model.head.undebiased(model.raw(held_out.x)).detach()
    expected = torch.where(base < fused.head.threshold, base, predict(model, held_out))
    torch.testing.assert_close(predict(fused, held_out), expected)
    with pytest.raises(ValueError, match="no bias branch"):
        fuse(Model(EmbeddingMLP(log.sizes), LogMSE()), held_out)
