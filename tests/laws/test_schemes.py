from dataclasses import dataclass

import pytest
import torch

from registry import SCHEMES, SLOPES, TRANSFORMS, name
from transun.backbones import EmbeddingMLP
from transun.data import Dataset
from transun.heads import GTS, LogMSE
from transun.models.network import Model
from transun.schemes import Slope
from transun.training import fit, plain_recipe, predict
from transun.transforms import Log1p

ANY_POINT = torch.tensor([-1e4, -30.0, -0.5, 0.0, 0.5, 3.0, 30.0, 1e4])


@pytest.mark.parametrize("scheme", SCHEMES, ids=name)
@pytest.mark.parametrize("transform", TRANSFORMS, ids=name)
def test_decode_undoes_encode_at_any_point(scheme, transform):
    """Errata E3: training and prediction use one slope, also where the point is outside the range of T."""
    prepared = transform.prepare(torch.tensor([1.0, 100.0]))
    y = torch.tensor([0.0, 1e-3, 1.0, 7.0, 1e3])
    u, y = torch.meshgrid(ANY_POINT, y, indexing="ij")
    u, y = u.flatten().double(), y.flatten().double()
    back = scheme.decode(scheme.encode(y, u, prepared), u, prepared)
    torch.testing.assert_close(back, y, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("slope", SLOPES, ids=name)
@pytest.mark.parametrize("transform", TRANSFORMS, ids=name)
def test_slope_is_positive_and_finite(slope, transform):
    kappa = slope.kappa(ANY_POINT, transform)
    assert (kappa > 0).all()
    assert kappa.isfinite().all()


@pytest.mark.parametrize("scheme", SCHEMES, ids=name)
def test_start_is_the_cheapest_constant(scheme):
    y = torch.tensor([0.5, 1.0, 4.0, 9.0], dtype=torch.float64)
    u = torch.full_like(y, 1.2)
    start = scheme.initial_z(y, u, Log1p())

    def cost(z):
        return scheme.cost(z.expand_as(y), y, u, Log1p()).mean()

    assert cost(start) < cost(start + 1e-3)
    assert cost(start) < cost(start - 1e-3)


@pytest.mark.parametrize("slope", SLOPES, ids=name)
def test_cost_of_a_slope_is_weighted_least_squares(slope):
    """(z - κy)² = κ²(ŷ - y)²."""
    y, u, z = torch.rand(3, 50, dtype=torch.float64).unbind()
    kappa = slope.kappa(u, Log1p())
    pred = slope.decode(z, u, Log1p())
    torch.testing.assert_close(slope.cost(z, y, u, Log1p()), kappa**2 * (pred - y) ** 2)


@dataclass(frozen=True)
class Multiplied(Slope):
    """factor·κ."""

    slope: Slope
    factor: float

    def shape(self, u, transform):
        return self.factor * self.slope.shape(u, transform)


@pytest.mark.parametrize("slope", SLOPES, ids=name)
def test_a_constant_factor_of_a_slope_changes_nothing_in_training(slope):
    """Powers of two, so that not even rounding differs."""
    generator = torch.Generator().manual_seed(0)
    item = torch.randint(10, (1000,), generator=generator)
    data = Dataset({"item": item}, torch.empty(1000).exponential_(1.0, generator=generator) * (1.0 + item) * 50.0)
    predictions = []
    for factor in (1.0, 2.0**-10, 2.0**10):
        model = Model(EmbeddingMLP({"item": 10}, hidden=(8,)), GTS(LogMSE(), Multiplied(slope, factor), shared=1))
        fit(model, data, plain_recipe(batch_size=50))
        predictions.append(predict(model, data))
    assert torch.equal(predictions[0], predictions[1])
    assert torch.equal(predictions[0], predictions[2])


@pytest.mark.parametrize("slope", SLOPES, ids=name)
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e5])
def test_prepared_slopes_encode_to_one_on_average(slope, unit):
    y = unit * torch.tensor([0.5, 1.0, 4.0, 9.0], dtype=torch.float64)
    u = Log1p()(y).flip(0)
    prepared = slope.prepare(y, u, Log1p())
    assert prepared.encode(y, u, Log1p()).mean().item() == pytest.approx(1.0)
    assert prepared.prepare(7.0 * y, u, Log1p()) == prepared  # what is learned stays


@pytest.mark.parametrize("slope", SLOPES, ids=name)
def test_a_scale_changes_no_prediction(slope):
    y, u = torch.rand(2, 50, dtype=torch.float64).unbind()
    scaled = slope.prepare(y, u, Log1p())
    assert scaled.scale not in (None, 1.0)
    back = scaled.decode(scaled.encode(y, u, Log1p()), u, Log1p())
    torch.testing.assert_close(back, y)
    torch.testing.assert_close(scaled.kappa(u, Log1p()), scaled.scale * slope.kappa(u, Log1p()))


def test_targets_that_are_all_zero_have_no_scale():
    assert SLOPES[0].prepare(torch.zeros(3), torch.zeros(3), Log1p()).scale == 1.0


@pytest.mark.parametrize("slope", SLOPES, ids=name)
@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf")])
def test_a_scale_must_be_positive(slope, scale):
    with pytest.raises(ValueError, match="finite scale > 0"):
        type(slope)(scale=scale)


@pytest.mark.parametrize("slope", SLOPES, ids=name)
@pytest.mark.parametrize("eps", [0.0, -1.0])
def test_eps_must_be_positive(slope, eps):
    with pytest.raises(ValueError, match="eps > 0"):
        type(slope)(eps=eps)
