import math

import pytest
import torch

from registry import TRANSFORMS, name

LARGE = 1e3


def credible(transform, n=200, dtype=torch.float64):
    """Targets across the whole credible range, dense near its lower end."""
    low = max(transform.bounds[0], -LARGE)
    high = min(transform.bounds[1], LARGE)
    return low + (high - low) * torch.linspace(0, 1, n, dtype=dtype) ** 3


@pytest.mark.parametrize("transform", TRANSFORMS, ids=name)
class TestTransform:
    def test_inverse_undoes_it(self, transform):
        y = credible(transform)
        # Relative to the target: what the bounded transforms lose near their asymptote is 1e-16 / 1e-6.
        torch.testing.assert_close(transform.inverse(transform(y)), y, rtol=1e-6, atol=1e-9)

    def test_inverse_undoes_it_in_float32(self, transform):
        y = credible(transform, dtype=torch.float32)
        y = y[y <= 0.3 * transform.upper_limit]
        torch.testing.assert_close(transform.inverse(transform(y)), y, rtol=2e-2, atol=1e-4)

    def test_increases(self, transform):
        assert (transform(credible(transform)).diff() > 0).all()

    def test_inverse_of_anything_is_finite_and_credible(self, transform):
        u = torch.tensor([-math.inf, -1e30, -1e4, -1.0, 0.0, 1.0, 1e4, 1e30, math.inf])
        for dtype in (torch.float32, torch.float64):
            y = transform.inverse(u.to(dtype))
            assert y.isfinite().all()
            assert (y >= transform.lower - 1e-6).all()
            assert (y <= transform.upper).all()

    def test_inverse_never_decreases(self, transform):
        assert (transform.inverse(torch.linspace(-50, 50, 1001)).diff() >= 0).all()

    def test_prepare_learns_a_bound_beyond_the_targets(self, transform):
        y = torch.tensor([1.0, 2.0, 700.0])
        prepared = transform.prepare(y)
        assert prepared.upper >= 700.0
        assert prepared == prepared.prepare(y), "preparing twice changes nothing"
        torch.testing.assert_close(prepared(y), prepared.prepare(y)(y))

    def test_zero_is_no_trouble(self, transform):
        y = torch.zeros(1, requires_grad=True)
        assert transform(y).isfinite().all()
        assert transform.inverse(transform(y.detach())).abs().item() < 1e-5


@pytest.mark.parametrize("transform", [t for t in TRANSFORMS if math.isfinite(t.lower)], ids=name)
def test_targets_below_the_domain_are_named(transform):
    y = torch.tensor([1.0, transform.lower - 0.5, 2.0])
    with pytest.raises(ValueError, match=r"row 1 is below .* use Asinh\(\) or Identity\(\)"):
        transform.prepare(y)


@pytest.mark.parametrize("transform", TRANSFORMS, ids=name)
def test_targets_that_no_prediction_could_reach_are_named(transform):
    """Predictions end at e⁸⁰: a target beyond would be predicted as that, with a total that is wrong by any factor."""
    y = torch.tensor([1.0, 1e36], dtype=torch.float64)
    with pytest.raises(ValueError, match=r"row 1 is (beyond .* larger unit|above)"):
        transform.prepare(y)
