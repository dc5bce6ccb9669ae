"""Poisson, Gamma and Tweedie: paper/methods.md §13.1, and scikit-learn's deviance."""

import pytest
import torch
from sklearn.metrics import mean_tweedie_deviance

from population import COLUMNS, sre
from transun.heads import Gamma, Poisson, Tweedie

HEADS = {1.0: Poisson(), 2.0: Gamma(), 1.5: Tweedie(), 1.2: Tweedie(1.2)}
Y = torch.tensor([0.3, 1.0, 4.0, 11.0], dtype=torch.float64)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("power", HEADS)
def test_constant_input_limit_is_the_mean(power, column):
    assert sre(HEADS[power], column) == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize("power", HEADS)
def test_differences_are_those_of_the_deviance(power):
    """The loss leaves out what depends on y alone; a deviance is twice it, and scales like scale^(2-p)."""
    head = HEADS[power].replace(scale=2.5)

    def both(shift):
        raw = (torch.linspace(-1, 1, 4, dtype=torch.float64).unsqueeze(1) + shift,)
        return 2 * head.loss(raw, Y)["deviance"].mean().item(), mean_tweedie_deviance(Y, head(raw), power=power)

    (ours, theirs), (ours_too, theirs_too) = both(0.0), both(0.7)
    assert (ours - ours_too) * 2.5 ** (2 - power) == pytest.approx(theirs - theirs_too, rel=1e-9)


@pytest.mark.parametrize("power", HEADS)
def test_gradient_is_the_error_at_the_weight_of_the_power(power):
    """∂loss/∂s = μ^(1-p)·(μ - y), times the slope of the bend, in units of the scale."""
    head = HEADS[power].replace(scale=2.0)
    raw = torch.tensor([[-30.0], [0.1], [1.0], [30.0]], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(head.loss((raw,), Y)["deviance"].sum(), raw)
    mu, y, bend = head((raw,)).detach() / 2.0, Y / 2.0, 1 - (raw.detach().squeeze(1) / 20).tanh() ** 2
    torch.testing.assert_close(gradient.squeeze(1), mu ** (1 - power) * (mu - y) * bend)


@pytest.mark.parametrize("power", HEADS)
def test_scale_is_the_mean_and_the_start_is_exact(power):
    prepared = HEADS[power].prepare(Y)
    assert prepared.scale == pytest.approx(Y.mean().item())
    assert prepared.initial_outputs(Y)[0].item() == pytest.approx(0.0, abs=1e-12)
    hundred = HEADS[power].replace(scale=100.0).prepare(Y)
    assert hundred.scale == 100.0
    assert hundred((hundred.initial_outputs(Y)[0].unsqueeze(0),)).item() == pytest.approx(Y.mean().item())


def test_all_zero_targets_predict_next_to_nothing():
    head = Poisson().prepare(torch.zeros(3))
    assert head.scale == 1.0
    assert 0.0 <= head((head.initial_outputs(torch.zeros(3))[0].unsqueeze(0),)).item() < 1e-8


def test_predictions_stay_within_the_bend():
    raw = (torch.tensor([[-1e4], [1e4]]),)
    assert Poisson(scale=3.0)(raw).log().tolist() == pytest.approx(
        [-20 + torch.tensor(3.0).log().item(), 20 + torch.tensor(3.0).log().item()], rel=1e-5
    )


def test_what_is_refused():
    with pytest.raises(ValueError, match="target -2 in row 1"):
        Gamma().prepare(torch.tensor([1.0, -2.0]))
    with pytest.raises(ValueError, match=r"use Poisson\(\) for 1"):
        Tweedie(1.0)
    with pytest.raises(ValueError, match="Poisson needs a finite scale > 0"):
        Poisson(scale=0.0)
