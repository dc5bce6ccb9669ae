"""The default does no harm where there is nothing to mend."""

import math

import pytest
import torch

from transun import MSE, Adam, AutoSUN, Dataset, Model, PoissonSUN, Scaled, balance, fit
from transun.backbones import EmbeddingMLP
from transun.training import linear
from transun.training.recipe import plain_recipe

ITEMS, EACH = 4, 1_000
LEVELS = 4.0 + 2.0 * torch.arange(ITEMS)


def symmetric(generator):
    """Uniform within ±3 of its level: standard deviation √3."""
    return 6.0 * torch.rand(ITEMS * EACH, generator=generator) - 3.0


def left_skewed(generator):
    """An exponential of mean 1 below its level, at most 3.5: its mean and variance follow from the cut."""
    draws = -torch.rand(ITEMS * EACH, generator=generator).log()
    return 1.0 - math.exp(-3.5) - draws.clamp(max=3.5)


@pytest.mark.parametrize("noise", [symmetric, left_skewed])
@pytest.mark.parametrize("head", [AutoSUN(), AutoSUN(shared=1), Scaled(MSE())], ids=["apart", "shared", "MSE"])
def test_the_mean_of_targets_that_need_no_help(noise, head):
    generator = torch.Generator().manual_seed(3)
    item = torch.arange(ITEMS).repeat_interleave(EACH)
    data = Dataset({"item": item}, LEVELS[item] + noise(generator))
    assert (data.y >= 0.0).all()
    model = Model(EmbeddingMLP({"item": ITEMS}, hidden=(16,)), head)
    fit(model, data, plain_recipe(optimiser=Adam(3e-3), epochs=12, batch_size=100, decay=linear))
    prediction = balance(model, data)({"item": torch.arange(ITEMS)})
    # 1,000 rows of sd √3 tell a mean within 0.055; four of these for the sample, the rest for the training.
    assert (prediction - LEVELS).abs().max().item() < 0.3


def test_two_thousand_rows_of_a_heavy_tail_do_not_diverge():
    """Pareto noise of tail 1.5 has a mean and no variance."""
    generator = torch.Generator().manual_seed(0)
    item = torch.randint(0, 500, (2_000,), generator=generator)
    y = (1.0 + item % 7) * torch.rand(2_000, generator=generator) ** (-1.0 / 1.5)
    data = Dataset({"item": item}, y)
    model = Model(EmbeddingMLP({"item": 500}), AutoSUN())
    history = fit(model, data, plain_recipe(epochs=10, batch_size=64))
    predictions = model({"item": torch.arange(500)})
    assert all(math.isfinite(step.loss) for step in history.steps)
    assert (predictions > 0.0).all()
    assert predictions.max() < y.max()


@pytest.mark.parametrize("head", [AutoSUN(), PoissonSUN()])
def test_negative_targets_are_refused(head):
    with pytest.raises(ValueError, match=r"target -1 in row 1.*for signed targets"):
        head.prepare(torch.tensor([1.0, -1.0]))


def test_shares_add_up_to_one():
    """A head of equal parts predicts the part; whatever the share that keeps the order."""
    y = torch.tensor([0.0, 1.0, 5.0])
    for order in (0.05, 0.2, 0.6):
        head = AutoSUN(order=order).prepare(y)
        raw = tuple(value.unsqueeze(0) for value in head.initial_outputs(y))
        assert head(raw).item() == pytest.approx(2.0, rel=1e-4)
