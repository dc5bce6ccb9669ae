"""The promise of a certificate: kept ones seldom raise an alarm, broken ones do, in closed form and by simulation."""

from dataclasses import replace

import numpy as np
import pytest

from certified import ROWS, certificate
from transun.models.certificate import Part
from transun.serving.promise import Promise


def feed(promise, mean, blocks, rng):
    amounts = rng.exponential(mean, blocks * promise.block)
    promise.update(np.ones_like(amounts), amounts)
    return promise


@pytest.mark.parametrize("mean", [1.0, 1.0 / 0.95, 1.0 / 1.05])
def test_a_kept_promise_seldom_raises_an_alarm_even_at_its_ends(mean):
    rng = np.random.default_rng(0)
    alarms = sum(feed(Promise(certificate(), level=0.2), mean, 30, rng).broken is not None for _ in range(50))
    # At most 20 % of 50, beyond which 10 + 3·√(50·0.2·0.8) = 18 is three standard errors away.
    assert alarms <= 18


@pytest.mark.parametrize(("mean", "side"), [(1.3, "above"), (0.75, "below")])
def test_a_broken_promise_raises_an_alarm_and_names_the_side(mean, side):
    # A block scatters by 1/√200 = 7 %: the breach, of 20 %, is three standard deviations in each of 20 blocks.
    promise = feed(Promise(certificate()), 1.0, 20, np.random.default_rng(1))
    assert promise.broken is None
    assert feed(promise, mean, 20, np.random.default_rng(2)).broken == side
    assert f"actual amounts are {side} that" in promise.sentence()
    assert promise.log_evidence >= np.log(2 / 0.05)
    feed(promise, 1.0, 5, np.random.default_rng(3))
    assert promise.broken == side  # an alarm stays


def test_how_rows_arrive_does_not_matter():
    amounts = np.random.default_rng(4).exponential(1.02, 1_234)
    together, single = Promise(certificate()), Promise(certificate())
    together.update(np.ones_like(amounts), amounts)
    for part in np.array_split(amounts, 97):
        single.update(np.ones_like(part), part)
    assert single.log_evidence == pytest.approx(together.log_evidence, rel=1e-9)
    assert together.log_evidence != 0.0


def test_no_unit_matters():
    amounts = np.random.default_rng(5).exponential(1.1, 800)
    noise = certificate().noise
    large = replace(noise, actual=1e6 * ROWS, predicted=1e6 * ROWS, squares=1e12 * ROWS)
    small, scaled = Promise(certificate()), Promise(replace(certificate(), noise=large))
    small.update(np.ones(800), amounts)
    scaled.update(np.full(800, 1e6), 1e6 * amounts)
    assert scaled.log_evidence == pytest.approx(small.log_evidence, rel=1e-9)


def test_a_watch_begins_anew_after_a_year_of_blocks(monkeypatch):
    monkeypatch.setattr("transun.serving.promise._HORIZON", 3)
    promise, fresh = Promise(certificate()), Promise(certificate())
    amounts = np.random.default_rng(6).exponential(1.0, 4 * promise.block)
    promise.update(np.ones_like(amounts), amounts)
    fresh.update(np.ones(promise.block), amounts[-promise.block :])
    assert promise.log_evidence == pytest.approx(fresh.log_evidence)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": "importance"}, "counts rows by the weight 'importance'"),
        ({"whole": Part("", "all rows", 9, {})}, "no interval of PGR"),
        ({"noise": None}, "how much errors scatter"),
        ({"noise": certificate(rows=150).noise}, "is of 150 rows, and 200 are needed"),
        ({"noise": replace(certificate().noise, squares=1e-30)}, "scatter by rounding alone"),
    ],
)
def test_a_promise_that_cannot_be_tested_says_why(change, message):
    with pytest.raises(ValueError, match=message):
        Promise(replace(certificate(), **change))
