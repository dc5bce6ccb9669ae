import numpy as np
import pytest
import torch
from scipy.optimize import brentq

from population import COLUMNS, MEANS, draw, population
from registry import LOSSES, TRANSFORMS, name
from transun.heads import LogMAE, LogMSE, PointHead
from transun.heads.point import best_constant
from transun.losses import Huber, Pinball, absolute, absolute_percentage, squared, squared_percentage

T = draw("RS-G", 1001, seed=1)


def weighted_median(values, weights):
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order])
    return values[order][np.searchsorted(cumulative, cumulative[-1] / 2)]


EXPECTED = {
    squared: T.mean(),
    absolute: T.median(),
    squared_percentage: (T / (T + 1) ** 2).mean() / (1 / (T + 1) ** 2).mean(),
    absolute_percentage: weighted_median(T.numpy(), 1 / (T.numpy() + 1)),
    Pinball(0.5): T.median(),
    Pinball(0.9): T.quantile(0.9),
    Huber(1.0): brentq(lambda c: np.clip(T.numpy() - c, -1, 1).mean(), 0, 10),
}


@pytest.mark.parametrize("loss", EXPECTED, ids=name)
def test_constant_minimiser_is_the_statistic_claimed(loss):
    assert best_constant(loss, T).item() == pytest.approx(float(EXPECTED[loss]), rel=1e-5)


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_losses_are_per_sample_and_zero_at_the_target(loss):
    assert loss(T, T).shape == T.shape
    assert (loss(T, T) == 0).all()
    assert (loss(T + 1, T) > 0).all()


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_start_is_where_a_constant_rests(loss):
    """The mean gradient vanishes there beside the gradients of single rows."""
    head = PointHead(criterion=loss)
    raw = head.initial_outputs(T)[0].expand(len(T), 1).clone().requires_grad_()
    (gradient,) = torch.autograd.grad(head.loss((raw,), T)["point"].sum(), raw)
    assert gradient.mean().abs() <= 2e-3 * gradient.square().mean().sqrt()


@pytest.mark.parametrize("transform", TRANSFORMS, ids=name)
def test_transformed_median_is_the_median(transform):
    """Medians survive every increasing T."""
    head = PointHead(transform, absolute).prepare(T)
    start = tuple(value.unsqueeze(0) for value in head.initial_outputs(T))
    assert head(start).item() == pytest.approx(T.median().item(), rel=1e-4)


@pytest.mark.parametrize("law", COLUMNS)
def test_log_mse_is_biased_as_quadrature_says(law):
    y, mean = draw(law, 200_000, seed=0), MEANS[law]
    head = LogMSE().prepare(y)
    start = tuple(value.unsqueeze(0) for value in head.initial_outputs(y))
    limit = np.expm1(float(population(law).log1p().mean())) / mean - 1
    assert head(start).item() / mean - 1 == pytest.approx(limit, abs=0.01)


def test_named_heads():
    assert LogMAE().criterion is absolute
    assert LogMSE().criterion is squared


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5])
def test_pinball_level(level):
    with pytest.raises(ValueError, match="0 < level < 1"):
        Pinball(level)


def test_huber_delta():
    with pytest.raises(ValueError, match="delta > 0"):
        Huber(0.0)
