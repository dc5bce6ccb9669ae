"""Boosted trees as a model: totals are right, and there is something that they learn."""

from dataclasses import replace

import pytest
import torch

from transun.backbones import Trees
from transun.backbones.boosters import LightGBM, ScikitLearn
from transun.data import Dataset
from transun.training.boosting import LARGE_TREES, LOG_TREES, SMALL_TREES, fit_trees

BOOSTERS = [LightGBM(), ScikitLearn()]


def rows(n: int, seed: int, sigma: float = 1.0) -> Dataset:
    """Amounts that depend on a number and on an id; another id, of which there are many, says nothing."""
    generator = torch.Generator().manual_seed(seed)
    a = torch.rand(n, generator=generator)
    shop = torch.randint(1, 7, (n,), generator=generator)
    user = torch.randint(1, n // 3, (n,), generator=generator)
    noise = (sigma * torch.randn(n, generator=generator) - sigma**2 / 2).exp()
    return Dataset({"a": a, "shop": shop, "user": user}, (1.0 + 4.0 * (a > 0.5)) * shop * noise)


@pytest.fixture(params=BOOSTERS, ids=lambda booster: booster.name)
def booster(request):
    pytest.importorskip({"LightGBM": "lightgbm", "scikit-learn": "sklearn"}[request.param.name])
    return request.param


@pytest.mark.parametrize("settings", [SMALL_TREES, LARGE_TREES, LOG_TREES], ids=["small", "large", "log"])
def test_the_total_of_the_training_rows_is_right(booster, settings) -> None:
    """Without means of ids, by which a row is seen otherwise while trees are boosted."""
    data, valid = rows(900, 1), rows(300, 2)
    model = fit_trees(data, valid, Trees({"shop": 7}, {}, ("a",)), replace(settings, by_means=False), booster=booster)
    assert float(model(data.x).detach().double().sum()) == pytest.approx(float(data.y.sum()), rel=1e-5)


def test_trees_learn_what_there_is_to_learn(booster) -> None:
    """Of the variance of the means, which is known here, trees explain nearly all where there is little noise."""
    data, valid, test = rows(3000, 3, 0.1), rows(1000, 4, 0.1), rows(2000, 5, 0.1)
    model = fit_trees(data, valid, Trees({"shop": 7, "user": 1000}, {}, ("a",)), booster=booster)
    mean = (1.0 + 4.0 * (test.x["a"] > 0.5)) * test.x["shop"]
    assert float((model(test.x).detach() - mean).square().mean() / mean.var()) < 0.02


@pytest.mark.parametrize("unit", [1e-12, 1e15])
def test_the_unit_of_the_target_does_not_matter(booster, unit: float) -> None:
    data, valid = rows(600, 6), rows(200, 7)
    inputs = Trees({"shop": 7, "user": 200}, {}, ("a",))
    plain = fit_trees(data, valid, inputs, booster=booster)
    scaled = fit_trees(
        Dataset(data.x, data.y.double() * unit), Dataset(valid.x, valid.y.double() * unit), inputs, booster=booster
    )
    torch.testing.assert_close(scaled(valid.x).double() / unit, plain(valid.x).double(), rtol=1e-3, atol=0.0)


def test_no_second_is_no_endless_boosting(booster) -> None:
    data, valid = rows(600, 6), rows(200, 7)
    model = fit_trees(data, valid, Trees({"shop": 7, "user": 200}, {}, ("a",)), booster=booster, seconds=0.0)
    assert model.backbone.trees < 60
    assert bool(model(valid.x).isfinite().all())


def test_bags_are_seen_by_their_size_and_the_means_of_their_ids(booster) -> None:
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(0, 5, (800, 3), generator=generator)
    codes[::2, 1:] = -1
    y = (codes >= 0).sum(1) * 10.0 + (codes[:, 0] == 3) * 100.0
    data = Dataset({"items": codes}, y)
    model = fit_trees(data, data, Trees(bags={"items": 5}), booster=booster)
    error = (model(data.x).detach() - y).abs().mean() / y.mean()
    assert error < 0.5 * (y - y.mean()).abs().mean() / y.mean()
