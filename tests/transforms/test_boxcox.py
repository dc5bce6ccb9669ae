import numpy as np
import pytest
import torch
from scipy import special, stats

from population import COLUMNS, draw
from transun.transforms import BoxCox


@pytest.mark.parametrize("name", COLUMNS)
def test_learned_power_is_scipys(name):
    y = draw(name, 5000, seed=2)
    ours = BoxCox(shift=1.0).prepare(y).power
    _, theirs = stats.boxcox(y.numpy() + 1.0)
    assert ours == pytest.approx(np.clip(theirs, -2, 2), abs=2e-3)


@pytest.mark.parametrize("power", [-1.0, 0.0, 1e-9, 0.3, 1.0, 2.0])
def test_values_are_scipys(power):
    y = torch.linspace(0, 50, 101, dtype=torch.float64)
    np.testing.assert_allclose(BoxCox(power)(y).numpy(), special.boxcox1p(y.numpy(), power), rtol=1e-6, atol=1e-8)


def test_bad_arguments():
    with pytest.raises(ValueError, match="-2 <= power <= 4"):
        BoxCox(5.0)
    with pytest.raises(ValueError, match="lower \\+ shift > 0"):
        BoxCox(0.5, shift=0.0)


def test_a_constant_target_has_a_power():
    assert BoxCox().prepare(torch.full((9,), 3.0)).power is not None
