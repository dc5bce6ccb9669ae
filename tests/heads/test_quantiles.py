import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import mean_pinball_loss

from population import population
from registry import raw_for
from transun.heads import QuantileMean

RAW = raw_for(QuantileMean(6), 40, seed=2)
HEAD = QuantileMean(6, scale=3.0)


def test_loss_is_the_mean_pinball_loss_of_sorted_quantiles():
    y = torch.randn(40, generator=torch.Generator().manual_seed(1)) * 3
    q = RAW[0].sort(dim=1).values
    expected = np.mean([mean_pinball_loss(y / 3, q[:, j], alpha=(j + 0.5) / 6) for j in range(6)])
    assert HEAD.loss(RAW, y)["pinball"].mean().item() == pytest.approx(expected, rel=1e-5)


def test_order_of_the_outputs_does_not_matter():
    y = torch.ones(40)
    flipped = (RAW[0].flip(1),)
    torch.testing.assert_close(HEAD.loss(flipped, y)["pinball"], HEAD.loss(RAW, y)["pinball"])
    torch.testing.assert_close(HEAD.cdf(flipped, y), HEAD.cdf(RAW, y))


def test_cdf_interpolates_between_the_quantiles():
    q, v = 3 * RAW[0][:1].sort(dim=1).values.squeeze(0), torch.linspace(-8, 8, 401)
    expected = np.interp(v, q, (np.arange(6) + 0.5) / 6, left=0.0, right=1.0)
    torch.testing.assert_close(
        HEAD.cdf((RAW[0][:1].expand(401, -1),), v).double(), torch.tensor(expected), atol=1e-5, rtol=0
    )


@pytest.mark.parametrize("level", [0.1, 0.25, 0.5, 0.9])
def test_quantile_inverts_the_cdf(level):
    torch.testing.assert_close(HEAD.cdf(RAW, HEAD.quantile(RAW, level)), torch.full((40,), level), atol=1e-5, rtol=0)


def test_ends_hold_atoms():
    low, high = HEAD.support(RAW)
    torch.testing.assert_close(HEAD.quantile(RAW, 0.01), low)
    torch.testing.assert_close(HEAD.quantile(RAW, 0.99), high)
    assert (HEAD.cdf(RAW, low - 1e-3) == 0).all()
    assert (HEAD.cdf(RAW, high) == 1).all()


def test_prediction_is_the_mean_of_the_law():
    levels = (torch.arange(6000) + 0.5) / 6000
    same_raw = (RAW[0][:1].expand(6000, -1),)
    assert HEAD.quantile(same_raw, levels).mean().item() == pytest.approx(HEAD(RAW)[0].item(), abs=1e-4)


def test_draws_follow_the_law():
    same_raw = (RAW[0][:1].expand(4000, -1),)
    draws = HEAD.sample(same_raw, torch.Generator().manual_seed(0))
    inner = draws[(draws > draws.min()) & (draws < draws.max())]  # between the atoms the law is continuous
    uniform = (HEAD.cdf((RAW[0][:1].expand(len(inner), -1),), inner) - 1 / 12) / (10 / 12)
    assert stats.kstest(uniform.numpy(), "uniform").pvalue > 1e-3
    assert (draws == draws.min()).float().mean().item() == pytest.approx(1 / 12, abs=0.02)


def test_repeated_values():
    """Coinciding quantiles jump: the cdf counts all of them."""
    head, raw = QuantileMean(4, 1.0), (torch.tensor([[0.0, 0.0, 0.0, 2.0]]),)
    assert head.cdf(raw, torch.tensor([0.0])).item() == pytest.approx(5 / 8)
    assert head.cdf(raw, torch.tensor([1.0])).item() == pytest.approx(6 / 8)


@pytest.mark.parametrize(("column", "scipy_law"), [("RS-G", stats.gamma(2)), ("SM-U", stats.uniform(0, 100))])
def test_start_is_the_mean_of_the_population_quantiles(column, scipy_law):
    y = population(column)
    head = QuantileMean(16).prepare(y)
    prediction = head((head.initial_outputs(y)[0].unsqueeze(0),)).item()
    assert prediction == pytest.approx(scipy_law.ppf((np.arange(16) + 0.5) / 16).mean(), rel=1e-3)


def test_the_tail_is_cut():
    """Under-estimates a skewed mean, less with more levels."""
    y = population("RS-G")
    few, many = (
        head((head.initial_outputs(y)[0].unsqueeze(0),)).item()
        for head in (QuantileMean(4).prepare(y), QuantileMean(64).prepare(y))
    )
    assert few < many < 2.0


def test_what_is_refused():
    with pytest.raises(ValueError, match="levels >= 1"):
        QuantileMean(0)
    with pytest.raises(ValueError, match="scale > 0"):
        QuantileMean(4, scale=-1.0)


def test_unit_is_the_mean_or_ten_times_what_the_levels_see():
    y = torch.linspace(1.0, 3.0, 999, dtype=torch.float64)
    assert QuantileMean().prepare(y).scale == pytest.approx(2.0)
    with_outlier = torch.cat((y, torch.tensor([1e12])))
    # The 32 levels are symmetric about the median of y, and a thousandth row hardly moves it.
    assert QuantileMean().prepare(with_outlier).scale == pytest.approx(20.0, rel=1e-3)
    rare = torch.zeros(1000, dtype=torch.float64).index_fill(0, torch.tensor([0]), 5.0)
    assert QuantileMean().prepare(rare).scale == pytest.approx(0.005)
