import numpy as np
import pytest
import torch
from scipy import integrate, stats
from scipy.interpolate import BPoly

from population import COLUMNS, MEANS, population, sre
from registry import raw_for
from transun.heads import CLTM, CTM
from transun.heads.density import LinearAxis, LogAxis
from transun.heads.transformation import GridScore, Likelihood, log_ndtr

CUBIC = CTM(3, Likelihood(), lower=0.5, upper=20.0)
RAW = tuple(r.double() for r in raw_for(CUBIC, 20, seed=5))


def rows(row, n):
    return (RAW[0][row : row + 1].expand(n, -1),)


def h_of(row):
    """scipy's Bernstein polynomial with the same coefficients."""
    first, *steps = RAW[0][row].tolist()
    theta = first + np.concatenate(([0.0], np.cumsum(np.log1p(np.exp(steps)) + 1e-6)))
    return BPoly(theta[:, None], [np.log1p(0.5), np.log1p(20.0)])


class TestCTM:
    @pytest.mark.parametrize("row", range(4))
    def test_law_against_scipy(self, row):
        v = torch.linspace(0.6, 19.9, 50, dtype=torch.float64)
        h, u = h_of(row), np.log1p(v.numpy())
        np.testing.assert_allclose(CUBIC.cdf(rows(row, 50), v), stats.norm.cdf(h(u)), rtol=1e-9)
        density = stats.norm.pdf(h(u)) * h.derivative()(u) / (1 + v.numpy())
        np.testing.assert_allclose(CUBIC.loss(rows(row, 50), v)["law"], -np.log(density), rtol=1e-9)

    @pytest.mark.parametrize("row", range(4))
    def test_prediction_is_the_integral_of_the_survival_function(self, row):
        h = h_of(row)
        area, _ = integrate.quad(lambda v: stats.norm.sf(h(np.log1p(v))), 0.5, 20.0)
        assert CUBIC(rows(row, 1)).item() == pytest.approx(0.5 + area, rel=1e-3)

    def test_ends_hold_atoms(self):
        low, high = CUBIC.support(RAW)
        assert (CUBIC.cdf(RAW, low - 1e-9) == 0).all()
        assert (CUBIC.cdf(RAW, high) == 1).all()
        at = CUBIC.cdf(RAW, low)
        torch.testing.assert_close(CUBIC.loss(RAW, low)["law"], -at.log())
        torch.testing.assert_close(CUBIC.quantile(RAW, at / 2), low)

    @pytest.mark.parametrize("level", [0.2, 0.5, 0.9])
    def test_quantile_inverts_the_cdf(self, level):
        v = CUBIC.quantile(RAW, level)
        inner = (v > 0.5) & (v < 20.0)
        assert inner.any()
        below = CUBIC.cdf(RAW, v)[inner]
        torch.testing.assert_close(below, torch.full_like(below, level), atol=1e-6, rtol=0)

    def test_h_goes_on_straight_beyond_the_targets(self):
        v = torch.tensor([0.0, 0.1, 25.0, 1e6], dtype=torch.float64)
        h, u = h_of(0), np.log1p(v.numpy())
        end = np.where(u < np.log1p(0.5), np.log1p(0.5), np.log1p(20.0))
        expected = h(end) + h.derivative()(end) * (u - end)
        np.testing.assert_allclose(CUBIC.h(rows(0, 1), v.unsqueeze(0))[0], expected, rtol=1e-9)

    @pytest.mark.parametrize("column", ["RS-G", "RS-ZIG", "LS-B", "SM-U", "SM-TN"])
    def test_constant_input_limit_is_close_to_the_mean(self, column):
        y = population(column, 2000)
        head = CTM().prepare(y)
        assert head((head.initial_outputs(y)[0].unsqueeze(0),)).item() == pytest.approx(MEANS[column], rel=1e-2)
        # Of 25 grid points RS-ZIG leaves five above zero: the tail beyond them is extrapolated.
        tolerance = 1e-2 if column == "RS-ZIG" else 3e-3
        assert sre(CTM(), column, n=2000) == pytest.approx(0.0, abs=tolerance)

    # Not the likelihood of RS-ZIG: CTM gives zeros a probability and CLTM a density, which cannot be compared.
    @pytest.mark.parametrize(
        ("criterion", "column"),
        [(GridScore(), column) for column in COLUMNS]
        + [(Likelihood(), column) for column in COLUMNS if column != "RS-ZIG"],
    )
    def test_start_beats_a_lognormal_law(self, criterion, column):
        y = population(column, 2000)
        head, plain = CTM(criterion=criterion).prepare(y), CLTM(criterion=criterion).prepare(y)

        def cost(head):
            return head.loss((head.initial_outputs(y)[0].expand(len(y), -1),), y)["law"].mean().item()

        assert cost(head) < cost(plain)

    def test_predictions_stay_between_the_training_targets(self):
        y = population("RS-BU", 1000)
        head = CTM().prepare(y)
        pred = head(tuple(1e4 * r for r in raw_for(head, 100)))
        assert (pred >= y.min()).all()
        assert (pred <= y.max() * (1 + 1e-6)).all()

    def test_what_is_refused(self):
        with pytest.raises(ValueError, match="order >= 1"):
            CTM(0)
        with pytest.raises(ValueError, match="target -1 in row 1"):
            CTM().prepare(torch.tensor([2.0, -1.0]))
        signed = CTM(axis=LinearAxis()).prepare(torch.tensor([2.0, -1.0]))
        assert (signed.lower, signed.upper) == (-1.0, 2.0)


class TestCLTM:
    def law(self, head, raw):
        alpha, beta = raw[0][:, 0].numpy(), 1e-2 + np.log1p(np.exp(raw[0][:, 1].numpy()))
        location, spread = 0.7 - 1.3 * alpha / beta, 1.3 / beta
        if head.axis == LinearAxis():
            return stats.norm(location, spread)
        return stats.lognorm(s=spread, scale=np.exp(location), loc=-1.0)

    @pytest.mark.parametrize("axis", [LinearAxis(), LogAxis()])
    def test_against_scipy(self, axis):
        head = CLTM(axis, centre=0.7, scale=1.3)
        raw = tuple(0.5 * r.double() for r in raw_for(head, 20, seed=6))
        y = torch.linspace(0.1, 9.0, 20, dtype=torch.float64)
        law = self.law(head, raw)
        np.testing.assert_allclose(head.loss(raw, y)["law"], -law.logpdf(y.numpy()), rtol=1e-9)
        np.testing.assert_allclose(head.cdf(raw, y), law.cdf(y.numpy()), rtol=1e-9)
        np.testing.assert_allclose(head.quantile(raw, 0.3), law.ppf(0.3), rtol=1e-6)
        np.testing.assert_allclose(head.point(raw), law.mean(), rtol=1e-9)
        low, high = head.support(raw)
        np.testing.assert_allclose(law.cdf(low), stats.norm.cdf(-8.0), atol=1e-12)
        np.testing.assert_allclose(law.sf(high), stats.norm.sf(8.0), atol=1e-12)

    @pytest.mark.parametrize("column", COLUMNS)
    def test_linear_axis_is_unbiased_by_likelihood(self, column):
        assert sre(CLTM(LinearAxis()), column, n=5000) == pytest.approx(0.0, abs=1e-3)

    def test_log_axis_has_the_lognormal_limit(self):
        """paper/methods.md §13.1, "NTE log (exact)", which is normal theory on ln(1 + y) with zeros among the rest."""
        expected = [-0.0034, -0.2061, -0.1278, 0.0006, 0.1871, 0.1322, 0.0010, 0.2829]
        errors = [sre(CLTM(), column, n=5000) for column in COLUMNS]
        assert errors == pytest.approx(expected, abs=1e-3)

    def test_draws_follow_the_law(self):
        head = CLTM(centre=0.7, scale=1.3)
        raw = (torch.tensor([[0.3, 0.2]]).double().expand(3000, -1),)
        draws = head.sample(raw, torch.Generator().manual_seed(0))
        assert stats.kstest(draws.numpy(), self.law(head, (raw[0][:1],)).cdf).pvalue > 1e-3


class TestGridScore:
    def test_is_the_mean_cross_entropy_over_the_grid(self):
        y = population("RS-G", 500)
        head = CLTM(criterion=GridScore(7)).prepare(y)
        raw = tuple(r.double() for r in raw_for(head, 500, seed=3))
        expected = 0.0
        for v in head.grid:
            below = head.cdf(raw, v.double().expand(500))
            expected += -torch.where(y.float() <= v, below.log(), (1 - below).log()) / 7
        torch.testing.assert_close(head.loss(raw, y)["law"], expected, rtol=1e-5, atol=1e-6)

    def test_grid_is_of_targets_at_the_middle_levels(self):
        y = torch.arange(1, 11).double().flip(0)
        assert CTM(criterion=GridScore(5)).prepare(y).grid.tolist() == [1.0, 3.0, 5.0, 7.0, 9.0]
        assert CTM(criterion=GridScore(3)).prepare(y).grid.tolist() == [2.0, 5.0, 9.0]
        assert CTM(criterion=GridScore(3)).prepare(y[:1]).grid.tolist() == [10.0] * 3

    @pytest.mark.parametrize("column", COLUMNS)
    def test_line_is_where_the_score_rests(self, column):
        """The starting values of CLTM: the gradient of the score vanishes beside that of single rows."""
        y = population(column, 5000)
        head = CLTM(criterion=GridScore()).prepare(y)
        raw = head.initial_outputs(y)[0].expand(len(y), -1).clone().requires_grad_()
        (gradient,) = torch.autograd.grad(head.loss((raw,), y)["law"].sum(), raw)
        assert (gradient.mean(0).abs() <= 1e-3 * gradient.square().mean(0).sqrt()).all()


def test_log_ndtr_and_its_gradient():
    x = torch.tensor([-1e6, -3000.0, -40.0, -1.5, -1.0, 0.0, 3.0, 30.0])
    leaf = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(log_ndtr(leaf).sum(), leaf)
    np.testing.assert_allclose(log_ndtr(x), stats.norm.logcdf(x.double()), rtol=1e-5, atol=1e-30)
    mills = np.exp(stats.norm.logpdf(x.double()) - stats.norm.logcdf(x.double()))
    np.testing.assert_allclose(gradient[1:], mills[1:], rtol=1e-4, atol=1e-12)
    assert gradient[0].item() == pytest.approx(1e6)
