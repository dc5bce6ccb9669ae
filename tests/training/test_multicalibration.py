"""A multicalibrated model is a model."""

import pytest
import torch

from transun.backbones import Constant, Trees
from transun.data import Dataset
from transun.heads import MSE
from transun.models.checkpoint import load_model, save_model
from transun.models.network import Model
from transun.training.evaluation import predict
from transun.training.multicalibration import multicalibrate

# Gamma noise of shape 4: the standard deviation of an amount is half of its mean.
SHAPE = 4.0


def world(rows, seed):
    """Amounts around 6 and 16, as an id says."""
    a = torch.randint(0, 2, (rows,), generator=torch.Generator().manual_seed(seed))
    torch.manual_seed(seed)
    noise = torch.distributions.Gamma(SHAPE, SHAPE).sample((rows,))
    return Dataset({"a": a}, torch.where(a == 0, 6.0, 16.0) * noise)


def test_segments_are_put_right_and_the_model_is_saved(tmp_path):
    data = world(2_000, 1)
    model = Model(Constant(), MSE()).prepare(data.targets())
    adjusted, fitted = multicalibrate(model, data, Trees(ids={"a": 2}), progress=False)
    assert fitted.deviance.falls(1.0)
    assert fitted.squares.falls(1.0)
    fresh = world(4_000, 2)
    pred = predict(adjusted, fresh)
    of_segments = [pred[fresh.x["a"] == a].sum() / fresh.y[fresh.x["a"] == a].sum() for a in (0, 1)]
    # Training and test segments have 1,000 and 2,000 rows: 1.6 % and 1.1 % of sampling error.
    assert of_segments == pytest.approx([1.0, 1.0], abs=0.08)
    save_model(adjusted, tmp_path / "model")
    torch.testing.assert_close(predict(load_model(tmp_path / "model"), fresh), pred)


def test_a_model_whose_segments_are_right_stays_as_it_is():
    data = world(300, 1)
    model = Model(Constant(), MSE()).prepare(data.targets())
    same, fitted = multicalibrate(model, data, Trees(ids={"a": 2}), progress=False)
    assert same is model
    assert "there are 300 rows" in str(fitted)
