import math

import numpy as np
import pytest
import torch
from scipy import stats

from population import COLUMNS, population, sre
from transun.heads import GTS, ZILN, LogNormal

# paper/methods.md §13.1 at constant input and full batch.
ROWS = {
    "log1p": (ZILN(), [-0.0034, -0.2061, -0.0034, 0.0006, 0.1871, 0.1322, 0.0010, 0.2829]),
    "log": (ZILN(shift=0.0), [0.0535, -0.2008, 0.0535, 0.0126, 0.2308, 0.2131, 0.0011, 0.3887]),
    # Without the classification branch zeros join the normal, as in the exact normal-theory estimate (NTE log).
    "no branch": (LogNormal(), [-0.0034, -0.2061, -0.1278, 0.0006, 0.1871, 0.1322, 0.0010, 0.2829]),
}
HEADS = [LogNormal(), LogNormal(shift=0.0), ZILN(), ZILN(shift=0.0), ZILN(shift=2.5)]
MU, RHO = 0.7, -0.4
SIGMA = math.log1p(math.exp(RHO))
AMOUNTS = torch.tensor([0.01, 0.5, 1.0, 3.0, 40.0], dtype=torch.float64)


def raw_of(head, *values, rows=1):
    """The last two of (a, μ, ρ) for a LogNormal, all three for a ZILN."""
    return (torch.tensor(values[-head.branches[0].width :], dtype=torch.float64).expand(rows, -1),)


def law(head, mu=MU, sigma=SIGMA):
    return stats.lognorm(s=sigma, loc=-head.shift, scale=math.exp(mu))


def spec(head):
    return f"{type(head).__name__}-{head.shift}"


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("row", ROWS)
def test_constant_input_limit(row, column):
    head, expected = ROWS[row]
    assert sre(head, column, n=5000, perturb=0.05) == pytest.approx(expected[COLUMNS.index(column)], abs=1e-3)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_starts_at_the_closed_form(shift, column):
    y = population(column, 2000)
    head = ZILN(shift).prepare(y)
    u = np.log(shift + y[y > 0].numpy())
    expected = (y > 0).double().mean().item() * (math.exp(u.mean() + u.var() / 2) - shift)
    assert head((head.initial_outputs(y)[0].unsqueeze(0),)).item() == pytest.approx(expected, rel=3e-6)


@pytest.mark.parametrize("column", ["RS-ZIG", "SM-BU"])
@pytest.mark.parametrize("head", [ZILN(), LogNormal()], ids=spec)
def test_gts_recovers_the_mean(head, column):
    assert abs(sre(head, column, n=2000)) > 2e-3, "nothing to correct"
    assert sre(GTS(head), column, n=2000, perturb=0.01) == pytest.approx(0.0, abs=1e-3)


class TestLikelihood:
    @pytest.mark.parametrize("head", [LogNormal(), LogNormal(shift=0.0), LogNormal(shift=2.5)], ids=spec)
    def test_is_that_of_scipy(self, head):
        cost = head.loss(raw_of(head, MU, RHO, rows=5), AMOUNTS)["amount"]
        np.testing.assert_allclose(cost.numpy(), -law(head).logpdf(AMOUNTS.numpy()), rtol=1e-12)

    @pytest.mark.parametrize("shift", [0.0, 1.0])
    def test_zero_inflated(self, shift):
        head = ZILN(shift)
        y = torch.cat((torch.zeros(2, dtype=torch.float64), AMOUNTS))
        terms = head.loss(raw_of(head, 0.3, MU, RHO, rows=7), y)
        bought = stats.bernoulli(1 / (1 + math.exp(-0.3)))
        np.testing.assert_allclose(terms["zero"].numpy(), -bought.logpmf(y.numpy() > 0), rtol=1e-12)
        assert terms["amount"][:2].tolist() == [0.0, 0.0]
        np.testing.assert_allclose(terms["amount"][2:].numpy(), -law(head).logpdf(AMOUNTS.numpy()), rtol=1e-12)

    def test_zeros_leave_no_nan_in_the_gradient_and_do_not_pull_on_the_amount(self):
        head = ZILN(shift=0.0)
        raw = raw_of(head, 0.3, MU, RHO, rows=2)[0].clone().requires_grad_()
        sum(term.sum() for term in head.loss((raw,), torch.tensor([0.0, 1.0])).values()).backward()
        assert raw.grad.isfinite().all()
        assert raw.grad[0, 1:].tolist() == [0.0, 0.0]
        assert (raw.grad[1] != 0).all()

    def test_a_zero_that_prepare_never_saw_is_finite(self):
        head = LogNormal(shift=0.0)
        assert head.loss(raw_of(head, MU, RHO), torch.tensor([0.0]))["amount"].isfinite().all()


class TestSpread:
    """The public ZILN clamps σ in the loss and predicts with another."""

    @pytest.mark.parametrize(("rho", "sigma"), [(20.0, 5.0), (1e4, 5.0), (-20.0, 1e-3), (-1e4, 1e-3)])
    @pytest.mark.parametrize("head", [LogNormal(), ZILN(shift=0.0)], ids=spec)
    def test_loss_prediction_and_law_read_the_same(self, head, rho, sigma):
        raw = raw_of(head, 30.0, MU, rho, rows=5)
        amounts = torch.linspace(-2.0, 2.0, 5, dtype=torch.float64).mul(sigma).add(MU).exp() - head.shift
        v = amounts.clamp(min=0.0)
        np.testing.assert_allclose(
            head.loss(raw, v + 1e-9)["amount"].numpy(), -law(head, sigma=sigma).logpdf(v.numpy() + 1e-9), rtol=1e-9
        )
        mean = math.exp(MU + sigma**2 / 2) - head.shift
        assert head(raw)[0].item() == pytest.approx(mean, rel=1e-9)
        np.testing.assert_allclose(head.cdf(raw, v).numpy(), law(head, sigma=sigma).cdf(v.numpy()), rtol=1e-7)

    def test_the_likeliest_spread_of_wide_targets_is_the_cap(self):
        y = torch.tensor([1e-12, 1.0, 1e12], dtype=torch.float64)
        rho = LogNormal(shift=0.0).prepare(y).initial_outputs(y)[0][1]
        assert torch.nn.functional.softplus(rho).item() == pytest.approx(5.0)


class TestRange:
    @pytest.mark.parametrize("head", HEADS, ids=spec)
    def test_prediction_never_leaves_it(self, head):
        head = head.prepare(torch.tensor([0.5, 3.0]))
        assert head.upper == 30.0
        for mu in (-1e4, -1.0, 5.0, 100.0, 1e4):
            raw = raw_of(head, 50.0, mu, 4.0)
            assert 0.0 <= head(raw).item() <= 30.0
            assert 0.0 <= head.quantile(raw, 0.999).item() <= 30.0
        assert head(raw).item() == pytest.approx(30.0)

    def test_runaway_outputs_cancel_to_a_number(self):
        assert ZILN().point((torch.tensor([[-1e4, 1e4, 0.0]]),)).item() == 0.0  # not 0·∞

    def test_a_given_bound_is_kept_and_checked(self):
        assert ZILN(upper=7.0).prepare(torch.tensor([0.0, 5.0])).upper == 7.0
        with pytest.raises(ValueError, match="row 1 is above 7"):
            ZILN(upper=7.0).prepare(torch.tensor([0.0, 8.0]))

    @pytest.mark.parametrize("head", HEADS, ids=spec)
    def test_negative_targets_are_named(self, head):
        with pytest.raises(ValueError, match=f"-2 in row 1 is negative, and {type(head).__name__} is for amounts"):
            head.prepare(torch.tensor([1.0, -2.0]))

    def test_zeros_need_a_shift_or_a_branch(self):
        y = torch.tensor([1.0, 0.0])
        with pytest.raises(ValueError, match="target 0 in row 1 has no logarithm"):
            LogNormal(shift=0.0).prepare(y)
        LogNormal().prepare(y)
        ZILN(shift=0.0).prepare(y)

    @pytest.mark.parametrize("shift", [-1.0, math.inf, math.nan])
    def test_shift_is_checked(self, shift):
        with pytest.raises(ValueError, match="finite shift >= 0"):
            ZILN(shift)


class TestStart:
    @pytest.mark.parametrize("shift", [0.0, 1.0])
    @pytest.mark.parametrize(
        ("y", "expected"),
        [([0.0, 0.0, 0.0], 0.0), ([3.0, 3.0], 3.0), ([5.0], 5.0), ([0.0, 8.0], 4.0)],
        ids=["all zero", "constant", "one", "one buyer"],
    )
    def test_degenerate_targets(self, shift, y, expected):
        y = torch.tensor(y)
        head = ZILN(shift).prepare(y)
        start = head.initial_outputs(y)[0]
        assert start.isfinite().all()
        assert head((start.unsqueeze(0),)).item() == pytest.approx(expected, abs=1e-4)
        assert all(term.isfinite().all() for term in head.loss((start.expand(len(y), -1),), y).values())

    @pytest.mark.parametrize("column", ["RS-G", "RS-ZIG"])
    @pytest.mark.parametrize("head", [ZILN(), ZILN(shift=0.0), LogNormal()], ids=spec)
    def test_the_gradient_vanishes_there(self, head, column):
        y = population(column, 2000)
        head = head.prepare(y)
        start = head.initial_outputs(y)[0].requires_grad_()
        sum(term.mean() for term in head.loss((start.expand(len(y), -1),), y).values()).backward()
        torch.testing.assert_close(start.grad, torch.zeros_like(start), atol=2e-6, rtol=0.0)


class TestLaw:
    LEVELS = torch.tensor([0.01, 0.3, 0.5, 0.9, 0.999], dtype=torch.float64)

    @pytest.mark.parametrize("shift", [0.0, 1.0, 2.5])
    def test_lognormal_is_that_of_scipy_censored_at_zero(self, shift):
        head = LogNormal(shift)
        raw = raw_of(head, MU, RHO, rows=5)
        np.testing.assert_allclose(
            head.cdf(raw, AMOUNTS).numpy(), law(head).cdf(AMOUNTS.numpy()), rtol=1e-9, atol=1e-15
        )
        expected = np.clip(law(head).ppf(self.LEVELS.numpy()), 0.0, None)
        np.testing.assert_allclose(head.quantile(raw, self.LEVELS).numpy(), expected, rtol=1e-9)

    @pytest.mark.parametrize("shift", [0.0, 1.0])
    def test_ziln_adds_an_atom_at_zero(self, shift):
        head = ZILN(shift)
        raw = raw_of(head, 0.0, MU, RHO, rows=5)  # half zeros
        v = torch.cat((torch.tensor([-1.0], dtype=torch.float64), AMOUNTS[:4]))
        expected = np.where(v >= 0, 0.5 + 0.5 * law(head).cdf(v.numpy()), 0.0)
        np.testing.assert_allclose(head.cdf(raw, v).numpy(), expected, rtol=1e-9)
        rest = np.clip(2.0 * self.LEVELS.numpy() - 1.0, 0.0, 1.0)
        expected = np.where(rest > 0, np.clip(law(head).ppf(rest), 0.0, None), 0.0)
        np.testing.assert_allclose(head.quantile(raw, self.LEVELS).numpy(), expected, rtol=1e-9)

    @pytest.mark.parametrize("head", HEADS, ids=spec)
    def test_closed_form_is_the_bisection_of_every_density(self, head):
        head = head.prepare(torch.tensor([0.5, 3.0]))
        raw = raw_of(head, 1.0, MU, RHO, rows=5)
        bisected = super(LogNormal, head).quantile(raw, self.LEVELS)
        torch.testing.assert_close(head.quantile(raw, self.LEVELS), bisected, atol=1e-9, rtol=1e-9)

    @pytest.mark.parametrize("head", HEADS, ids=spec)
    def test_the_prediction_is_its_mean(self, head):
        raw = raw_of(head, 0.0, MU, RHO)
        share = 0.5 if head.branches[0].width == 3 else 1.0
        assert head(raw).item() == pytest.approx(max(share * law(head).mean(), 0.0), rel=1e-12)

    def test_all_of_it_lies_in_the_credible_range(self):
        head = ZILN(upper=10.0)
        raw = raw_of(head, 0.0, 3.0, 2.0, rows=3)
        ends = torch.tensor([-1e-9, 0.0, 10.0], dtype=torch.float64)
        below, zero, all_of_it = head.cdf(raw, ends).tolist()
        assert below == 0.0
        assert 0.5 <= zero < 1.0
        assert all_of_it == 1.0

    def test_without_buyers_every_quantile_is_zero(self):
        head = ZILN()
        assert head.quantile((torch.tensor([[-1e4, MU, RHO]]),), 0.999).item() == 0.0

    def test_draws_follow_it(self):
        head = ZILN(shift=0.0)
        draws = head.sample(raw_of(head, 0.0, MU, RHO, rows=4000), torch.Generator().manual_seed(1))
        assert (draws == 0).double().mean().item() == pytest.approx(0.5, abs=0.03)
        assert stats.kstest(draws[draws > 0].numpy(), law(head).cdf).pvalue > 1e-3
