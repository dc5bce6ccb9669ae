"""Multicalibration: segments that are wrong are found and put right, and where none is wrong nothing changes."""

import pytest
import torch

from transun.backbones import Constant, Trees
from transun.data import Dataset
from transun.heads import MSE
from transun.models.checkpoint import load_model, save_model
from transun.models.network import Model
from transun.training.evaluation import predict
from transun.training.multicalibration import Change, fit_ratio, multicalibrate

INPUTS = Trees(ids={"a": 2, "b": 2}, numeric=("c",))
# Gamma noise of shape 4: the standard deviation of an amount is half of its mean.
SHAPE = 4.0


def world(rows, seed, factor):
    """Amounts around 10·factor(a, b), where the predictions are 10 everywhere."""
    generator = torch.Generator().manual_seed(seed)
    a, b = (torch.randint(0, 2, (rows,), generator=generator) for _ in range(2))
    torch.manual_seed(seed)
    noise = torch.distributions.Gamma(SHAPE, SHAPE).sample((rows,))
    return Dataset({"a": a, "b": b, "c": torch.rand(rows, generator=generator)}, 10.0 * factor(a, b) * noise)


def crossed(a, b):
    """Too high by 40 % for a = 0, right or too low by 60 % for a = 1, as b says."""
    return torch.where(a == 0, 0.6, torch.where(b == 0, 1.0, 1.6))


def ratios(pred, data):
    """Predicted / actual total of every pair of values."""
    inside = [(data.x["a"] == a) & (data.x["b"] == b) for a in (0, 1) for b in (0, 1)]
    return [float(pred[rows].sum() / data.y[rows].sum()) for rows in inside]


def test_pairs_of_columns_that_are_wrong_are_put_right():
    data, fresh = world(2_000, 0, crossed), world(8_000, 1, crossed)
    fitted = fit_ratio(data, torch.full((2_000,), 10.0), INPUTS, progress=False)
    assert fitted.model is not None, str(fitted)
    assert "multicalibrated by 2,000 rows" in str(fitted)
    # 500 rows of a segment are known to 0.5/√500 = 2.2 %, the 2,000 fresh ones to 1.1 %; four segments, three errors.
    assert ratios(10.0 * predict(fitted.model, fresh), fresh) == pytest.approx([1.0] * 4, abs=0.1)


def test_nothing_changes_where_nothing_is_wrong():
    """A ratio by chance is not kept, or hardly differs from 1; one in three plain means of 500 rows is off by 2 %."""
    kept = []
    for seed in range(3):
        data = world(1_500, seed, lambda a, b: torch.ones(len(a)))
        fitted = fit_ratio(data, torch.full((1_500,), 10.0), INPUTS, progress=False)
        kept.append(torch.zeros(1) if fitted.model is None else predict(fitted.model, data) - 1.0)
    assert max(float(change.square().mean().sqrt()) for change in kept) < 0.02


def test_a_multicalibrated_model_is_a_model(tmp_path):
    data = world(2_000, 1, crossed)
    model = Model(Constant(), MSE()).prepare(data.targets())
    adjusted, fitted = multicalibrate(model, data, INPUTS, progress=False)
    assert fitted.deviance.falls(1.0)
    assert fitted.squares.falls(1.0)
    fresh = world(4_000, 2, crossed)
    pred = predict(adjusted, fresh)
    # Training and test segments have 500 and 1,000 rows: 2.2 % and 1.6 % of sampling error.
    assert ratios(pred, fresh) == pytest.approx([1.0] * 4, abs=0.1)
    save_model(adjusted, tmp_path / "model")
    torch.testing.assert_close(predict(load_model(tmp_path / "model"), fresh), pred)


def test_few_rows_and_no_amounts_change_nothing():
    few = world(300, 0, crossed)
    assert "it takes 1,000 rows in many groups, and there are 300" in str(
        fit_ratio(few, torch.full((300,), 10.0), INPUTS)
    )
    many = world(1_200, 0, crossed)
    grouped = fit_ratio(many, torch.full((1_200,), 10.0), INPUTS, group=torch.arange(1_200) % 3)
    assert grouped.model is None  # three groups cannot be in ten parts
    zeros = Dataset(world(1_200, 0, crossed).x, torch.zeros(1_200))
    assert fit_ratio(zeros, torch.full((1_200,), 10.0), INPUTS).model is None


def test_targets_below_zero_are_refused():
    data = Dataset(
        {"a": torch.zeros(3, dtype=torch.int64), "b": torch.zeros(3, dtype=torch.int64), "c": torch.ones(3)},
        [1.0, -2.0, 3.0],
    )
    with pytest.raises(ValueError, match="the target of row 1 is -2, below 0"):
        fit_ratio(data, torch.ones(3), INPUTS)


def test_a_change_falls_beyond_its_standard_errors():
    assert Change(-0.02, 0.01).falls(1.0)
    assert not Change(-0.02, 0.01).falls(3.0)
    assert not Change(-0.01, 0.02).falls(1.0)
    assert not Change(0.02, 0.01).falls(0.0)
