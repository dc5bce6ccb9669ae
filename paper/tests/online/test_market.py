"""The simulated market: its truth against averages of draws, its rankings, and its memory of chunks."""

import math

import numpy as np
import pytest
import torch

from transun.data import OrderLog
from transun_paper.online import market as module
from transun_paper.online.market import Market

LOG = OrderLog(orders=2_000, users=300, items=40, history=0, zero_share=0.2)


@pytest.mark.parametrize("noise", [None, 0.7])
def test_the_mean_of_amounts_is_the_truth(noise):
    market = Market(LOG, noise=noise)
    x, _, _ = LOG.chunk(0, 4)
    x = {name: column.repeat(50_000) for name, column in x.items()}
    drawn = market.amounts(x, torch.Generator().manual_seed(0)).view(-1, 4).double()
    error = drawn.std(0) / math.sqrt(50_000)
    assert ((drawn.mean(0) - market.expected(x)[:4]).abs() < 4.0 * error).all()


def test_equal_noise_makes_the_bias_of_the_logarithm_a_factor():
    market = Market(LOG, noise=0.7)
    x, _, _ = LOG.chunk(0, 100)
    factor = market.expected(x) / LOG.geometric(x)
    assert torch.allclose(factor, torch.tensor(0.8 * math.exp(0.245)), rtol=1e-5)


def test_no_ranking_is_worth_more_than_that_of_the_truth():
    market = Market(LOG, candidates=8, shown=3)
    (visits,) = market.visits(0, 500)
    best = market.value(visits, market.ranked(visits, market.expected(visits.x)))
    # By all orders of three of eight: the best three by their worth, best first, whatever the position is worth.
    worth = (market.expected(visits.x) * visits.click * visits.buy).view(-1, 8).double()
    assert torch.allclose(best, (worth.topk(3).values * market.seen()).sum(1), rtol=1e-5)
    other = market.value(visits, market.ranked(visits, visits.x["log_price"].exp()))
    assert (best >= other * (1 - 1e-6)).all()
    assert (best > other * 1.01).any()


def test_a_factor_changes_no_order():
    market = Market(LOG)
    (visits,) = market.visits(0, 200)
    amount = visits.x["log_price"].exp()
    assert torch.equal(market.ranked(visits, amount), market.ranked(visits, 4.0 * amount))


def test_what_is_bought_is_what_was_expected():
    """Total of a period against the expected value of its rankings, within the noise of the purchases."""
    market = Market(LOG, candidates=6, shown=2)
    price = {0: lambda x: x["log_price"].exp(), 1: market.expected}
    arm = torch.arange(300) % 2
    sums = np.zeros(2)
    for visits in market.visits(1, 20_000):
        for number, score in price.items():
            value = market.value(visits, market.ranked(visits, score(visits.x)))
            sums[number] += float(value[arm[visits.user] == number].sum())
    totals = [market.serve(1, 20_000, price, arm, market.expected, seed) for seed in range(5)]
    assert totals[0].impressions.sum() == 40_000
    for number in (0, 1):
        bought = np.array([total.gmv[arm.numpy() == number].sum() for total in totals])
        # Purchases are heavy-tailed: a standard deviation of 5 periods is uncertain by a third.
        assert abs(bought.mean() - sums[number]) < 5.0 * max(bought.std(ddof=1), 0.01 * sums[number]) / math.sqrt(5)
    predicted = sum(total.predicted.sum() for total in totals) / 5
    assert predicted == pytest.approx(sums.sum(), rel=1e-4)  # what was shown does not depend on the seed


def test_chunks_make_no_difference(monkeypatch):
    market = Market(LOG)
    (whole,) = market.visits(0, 100)
    monkeypatch.setattr(module, "_CHUNK", 32)
    parts = list(market.visits(0, 100))
    assert len(parts) == 4
    assert torch.equal(torch.cat([part.x["item"] for part in parts]), whole.x["item"])
    assert torch.equal(torch.cat([part.click for part in parts]), whole.click)


def test_periods_differ():
    market = Market(LOG)
    first, second = (next(market.visits(period, 50)).x["item"] for period in (0, 1))
    assert not torch.equal(first, second)


def test_impossible_markets_are_named():
    with pytest.raises(ValueError, match="history=0"):
        Market(OrderLog())
    with pytest.raises(ValueError, match="shown=11"):
        Market(LOG, shown=11)
