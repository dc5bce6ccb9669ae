"""Intervals of rows: exact ranks, the level at every level of the prediction, and what few rows cannot say."""

import json
import math

import numpy as np
import pytest

from transun.models.row_intervals import RowIntervals, cross_coverage


def skewed(rows, seed, spread=1.0):
    rng = np.random.default_rng(seed)
    pred = np.exp(rng.standard_normal(rows))
    # The noise grows with the amount more than in proportion.
    return pred, pred * np.exp(spread * np.sqrt(pred / 3.0) * rng.standard_normal(rows))


@pytest.mark.parametrize(("rows", "level", "low", "high"), [(99, 0.9, 5, 95), (39, 0.95, 1, 39), (200, 0.8, 20, 181)])
def test_the_mean_coverage_is_the_exact_one(rows, level, low, high):
    """Between the order statistics l and h of n continuous errors lies a share of (h - l)/(n + 1) on average."""
    exact = (high - low) / (rows + 1)
    samples = np.random.default_rng(0).random((2000, rows))
    ends = [RowIntervals.of(np.full(rows, 0.5), sample).interval(np.array([0.5]), level)[0] for sample in samples]
    shares = np.clip(np.array(ends), 0.0, 1.0) @ [-1.0, 1.0]  # of a uniform law
    assert shares.mean() == pytest.approx(exact, abs=4 * shares.std() / math.sqrt(2000))


def test_it_holds_at_every_level_of_the_prediction():
    intervals = RowIntervals.of(*skewed(4000, 0))
    pred, y = skewed(20_000, 1)
    ends = intervals.interval(pred, 0.9)
    covered = (ends[:, 0] <= y) & (y <= ends[:, 1])
    level = np.searchsorted(np.quantile(pred, np.arange(1, 10) / 10), pred)
    shares = np.bincount(level, covered) / np.bincount(level)
    # A level has 400 rows to learn from and 2,000 to be judged by: 90 % is known to 1.6 points.
    assert shares == pytest.approx(np.full(10, 0.9), abs=4 * 0.016)
    one_for_all = np.quantile(np.abs(y - pred), 0.9)
    blind = np.bincount(level, np.abs(y - pred) <= one_for_all) / np.bincount(level)
    assert np.ptp(blind) > 3 * np.ptp(shares)


def test_units_do_not_matter():
    pred, y = skewed(1000, 2)
    one, thousand = RowIntervals.of(pred, y), RowIntervals.of(1e3 * pred, 1e3 * y)
    np.testing.assert_allclose(1e3 * one.interval(pred, 0.8), thousand.interval(1e3 * pred, 0.8))


def test_an_end_that_few_rows_cannot_know_is_infinite():
    ends = RowIntervals.of(np.ones(18), np.arange(18.0)).interval(np.ones(1), 0.9)[0]
    assert ends.tolist() == [0.0, math.inf]  # no target is below 0
    ends = RowIntervals.of(np.ones(18), np.arange(18.0) - 5.0).interval(np.ones(1), 0.9)[0]
    assert ends.tolist() == [-math.inf, math.inf]
    known = RowIntervals.of(np.ones(19), np.arange(19.0)).interval(np.ones(1), 0.9)[0]
    assert known == pytest.approx([0.0, 18.0])


def test_rows_of_which_most_are_0_have_a_lower_end_of_0():
    rng = np.random.default_rng(3)
    y = np.where(rng.random(900) < 0.6, 0.0, rng.gamma(2.0, 5.0, 900))
    ends = RowIntervals.of(np.full(900, 4.0), y).interval(np.array([4.0]), 0.8)[0]
    assert ends[0] == pytest.approx(0.0, abs=1e-12)
    assert ends[1] == pytest.approx(np.quantile(y, 0.9), rel=0.05)


def test_predictions_of_0_are_fine():
    ends = RowIntervals.of(np.zeros(99), np.arange(1.0, 100.0)).interval(np.zeros(1), 0.9)
    assert ends.tolist() == [[5.0, 95.0]]


def test_json_brings_it_back():
    intervals = RowIntervals.of(*skewed(1500, 4))
    again = RowIntervals.from_dict(json.loads(json.dumps(intervals.to_dict())))
    pred = np.array([0.1, 1.0, 50.0])
    np.testing.assert_array_equal(again.interval(pred, 0.9), intervals.interval(pred, 0.9))


@pytest.mark.parametrize(
    "change",
    [
        {"edges": [1.0]},
        {"errors": [[2.0, 1.0]]},
        {"errors": [[]]},
        {"errors": [[math.nan]]},
        {"units": []},
    ],
)
def test_damage_is_noticed(change):
    content = RowIntervals.of(np.ones(3), np.arange(3.0)).to_dict()
    with pytest.raises(ValueError, match="errors"):
        RowIntervals.from_dict(content | change)


def test_coverage_is_measured_on_rows_that_were_not_learned_from():
    pred, y = skewed(4000, 5)
    group = np.arange(4000) % 3
    whole, by_group = (cross_coverage(pred, y, 0.9, each) for each in (np.zeros(4000, dtype=np.int64), group))
    assert whole == pytest.approx([0.9], abs=4 * 0.007)
    assert by_group == pytest.approx(np.full(3, 0.9), abs=4 * 0.011)


@pytest.mark.parametrize(
    ("pred", "y", "message"),
    [([1.0], [1.0, 2.0], "one of each a row"), ([], [], "there are none"), ([1.0], [math.nan], "finite")],
)
def test_mistakes_are_named(pred, y, message):
    with pytest.raises(ValueError, match=message):
        RowIntervals.of(np.array(pred), np.array(y))


def test_a_level_is_a_probability():
    with pytest.raises(ValueError, match=r"such as 0.9, got 90"):
        RowIntervals.of(np.ones(3), np.ones(3)).interval(np.ones(1), 90)
