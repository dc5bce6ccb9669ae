import math

import pytest
import torch
from scipy import integrate, stats

from population import MEANS, optimum, population
from registry import raw_for
from transun.heads import SplineFlow

HEAD = SplineFlow(5, zeros=0.0, centre=0.8, scale=0.6, upper=1e3)
RAW = tuple(r.double() for r in raw_for(HEAD, 30, seed=1, scale=1.5))


def rows(row, n):
    return (RAW[0][row : row + 1].expand(n, -1),)


@pytest.mark.parametrize("row", range(4))
def test_density_integrates_to_one(row):
    u = torch.linspace(-40, 40, 400_001, dtype=torch.float64)  # ln(1 + y)
    head = HEAD.replace(centre=0.0, scale=1.0)
    density = (-head.nll(rows(row, len(u))[0][:, 1:], u)).exp()
    assert integrate.trapezoid(density.numpy(), u.numpy()) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("row", range(4))
def test_loss_is_the_derivative_of_the_cdf(row):
    v = torch.linspace(-0.5, 30.0, 200, dtype=torch.float64, requires_grad=True)
    raw = rows(row, 200)
    (density,) = torch.autograd.grad(HEAD.cdf(raw, v).sum(), v)
    torch.testing.assert_close((-HEAD.loss(raw, v)["nll"]).exp().detach(), density, rtol=1e-6, atol=1e-12)


def test_cdf_increases_from_zero_to_one():
    v = torch.cat((torch.linspace(-0.999, 1, 500), torch.logspace(0, 12, 500))).double()
    for row in range(5):
        below = HEAD.cdf(rows(row, 1000), v)
        assert (below.diff() >= 0).all()
        assert below[0] < 1e-3
        assert below[-1] > 1 - 1e-6


def test_spline_inverts_inside_and_outside_of_the_box():
    spline = HEAD._spline(RAW[0][:, 1:])
    n = torch.linspace(-9, 9, 181, dtype=torch.float64).expand(30, -1)
    torch.testing.assert_close(spline(spline.inverse(n))[0], n, rtol=1e-9, atol=1e-9)


def test_spline_meets_its_knots_with_its_slopes():
    spline = HEAD._spline(RAW[0][:, 1:])
    value, log_slope = spline(spline.x)
    torch.testing.assert_close(value, torch.linspace(-4, 4, 6, dtype=torch.float64).expand(30, -1))
    torch.testing.assert_close(log_slope.exp(), spline.slope)


@pytest.mark.parametrize("level", [0.01, 0.5, 0.999])
def test_quantile_inverts_the_cdf(level):
    torch.testing.assert_close(
        HEAD.cdf(RAW, HEAD.quantile(RAW, level)), torch.full((30,), level).double(), atol=1e-6, rtol=0
    )


def test_draws_follow_the_law():
    raw = rows(2, 3000)
    draws = HEAD.sample(raw, torch.Generator().manual_seed(3))
    assert stats.kstest(HEAD.cdf(raw, draws).numpy(), "uniform").pvalue > 1e-3


def test_prediction_is_the_mean_of_the_law():
    """Many nodes against an integral of the density; a lognormal exactly."""
    head = SplineFlow(5, nodes=200, zeros=0.0, centre=0.8, scale=0.3, upper=1e3)
    levels = (torch.arange(20_000).double() + 0.5) / 20_000
    for row in range(3):
        draws = head.quantile(rows(row, 20_000), levels).clamp(max=1e3)
        assert head(rows(row, 1)).item() == pytest.approx(draws.mean().item(), rel=5e-3)
    plain = SplineFlow(zeros=0.0, centre=1.0, scale=0.5)
    assert plain((torch.zeros(1, 18),)).item() == pytest.approx(math.expm1(1.0 + 0.125), rel=1e-5)


def test_zeros_have_a_probability_of_their_own():
    head, raw = HEAD.replace(zeros=0.4), rows(0, 2)
    p = torch.sigmoid(RAW[0][0, 0]).item()
    below, at = head.cdf(raw, torch.tensor([-1e-9, 0.0]).double()).tolist()
    assert at - below == pytest.approx(1 - p, abs=1e-6)
    assert head(raw)[0].item() == pytest.approx(p * HEAD(raw)[0].item())
    terms = head.loss(raw, torch.tensor([0.0, 2.0]).double())
    assert terms["occurrence"].tolist() == pytest.approx([-math.log(1 - p), -math.log(p)])
    assert terms["nll"][0] == 0
    assert terms["nll"][1] == HEAD.loss(raw, torch.tensor([2.0, 2.0]).double())["nll"][1]


@pytest.mark.parametrize(("column", "tolerance"), [("RS-G", 2e-3), ("RS-ZIG", 2e-3), ("LS-B", 2e-3), ("SM-TN", 5e-3)])
def test_constant_input_limit_is_close_to_the_mean(column, tolerance):
    """paper/methods.md §9: E[y] up to the resolution of the spline and of the quadrature."""
    assert optimum(SplineFlow(), population(column, 4000)) == pytest.approx(MEANS[column], rel=tolerance)


@pytest.mark.parametrize("column", ["RS-G", "RS-BU", "RS-ZIG", "LS-B", "LS-BU", "SM-U", "SM-TN", "SM-BU"])
def test_start_beats_a_lognormal_law(column):
    y = population(column, 4000)
    head = SplineFlow().prepare(y)
    (start,) = head.initial_outputs(y)

    def cost(output):
        return head.loss((output.expand(len(y), -1),), y)["nll"].mean().item()

    plain = torch.zeros_like(start)  # h(x) = x
    assert cost(start) < cost(plain)


def test_predictions_are_capped_at_twice_the_largest_target():
    y = population("RS-G", 1000)
    head = SplineFlow().prepare(y)
    assert head.upper == pytest.approx(2 * y.max().item())
    wild = head(tuple(r * 1e4 for r in raw_for(head, 200)))
    assert wild.max() <= head.upper
    assert wild.min() >= 0.0


def test_what_is_refused():
    with pytest.raises(ValueError, match="bins >= 1"):
        SplineFlow(0)
    with pytest.raises(ValueError, match="nodes >= 1"):
        SplineFlow(nodes=0)
    with pytest.raises(ValueError, match="target -1 in row 0"):
        SplineFlow().prepare(torch.tensor([-1.0, 2.0]))
