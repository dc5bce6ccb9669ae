import pytest
import torch

from registry import SCHEMES, SLOPES, TRANSFORMS, name
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


@pytest.mark.parametrize("slope", SLOPES, ids=name)
@pytest.mark.parametrize("eps", [0.0, -1.0])
def test_eps_must_be_positive(slope, eps):
    with pytest.raises(ValueError, match="eps > 0"):
        type(slope)(eps=eps)
