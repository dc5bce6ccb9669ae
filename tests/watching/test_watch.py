"""Watching: delay curves by hand, and changes of amounts, delays and inputs told apart."""

from dataclasses import replace

import numpy as np
import pytest

from transun.report.watching import WatchReport
from transun.watching.delay import DelayCurve, arrivals_by_delay
from transun.watching.reading import Calendar
from transun.watching.watch import PredictedRows, watch

HISTORY, WATCHED = 80, 80


def rows(kind="nothing", size=0.3, seed=0):
    """150 predictions a day, half of whose amounts arrive at once and half three days later; a change from day 100 on.

    The noise of an amount is a tenth of it, so that a day's total is known to 1 %.
    """
    rng = np.random.default_rng(seed)
    period = np.repeat(np.arange(HISTORY + WATCHED), 150)
    changed = period >= 100
    pred = rng.uniform(5.0, 15.0, len(period)) * np.where(changed & (kind == "inputs"), 1.0 + size, 1.0)
    amount = pred * rng.normal(1.0, 0.1, len(period)) * np.where(changed & (kind == "amounts"), 1.0 + size, 1.0)
    code = rng.integers(0, 2, len(period))
    amount *= np.where(changed & (kind == "segment") & (code == 1), 1.0 + size, 1.0)
    late = rng.random(len(period)) < np.where(changed & (kind == "delay"), 0.5 + size, 0.5)
    delay = np.where(late, 3, 0)
    return PredictedRows(
        period, pred, np.arange(len(period)), delay, amount, HISTORY + WATCHED - 1, {"shop": (code, ("A", "B"))}
    )


def called(kind):
    result = watch(rows(kind), HISTORY, 365)
    return {(kind, name) for kind, name, series in result.series() if series.changed}, result


def test_nothing_is_called_where_nothing_changes():
    changed, result = called("nothing")
    assert changed == set()
    assert not result.alarm
    assert result.curve.arrived[[0, 3]] == pytest.approx([0.5, 1.0], abs=0.02)  # 12,000 coins: 0.5 ± 0.5 %


def test_a_change_of_amounts_is_neither_one_of_delay_nor_of_inputs():
    changed, result = called("amounts")
    assert changed == {("total", ""), ("segment", "shop A"), ("segment", "shop B")}
    assert 93 <= result.total.since <= 107
    assert result.total.ratio == pytest.approx(1.3, abs=0.08)  # from a start that may be a week off


def test_a_change_in_one_segment_is_found_there():
    changed, _ = called("segment")
    assert ("segment", "shop B") in changed
    assert ("segment", "shop A") not in changed


def test_a_change_of_the_delay_is_called_one():
    changed, result = called("delay")
    assert ("delay", "") in changed
    assert ("inputs", "") not in changed
    assert result.delay.evidence.up


def test_a_change_of_the_inputs_is_called_one_and_nothing_else():
    changed, _ = called("inputs")
    assert changed == {("inputs", "")}


def test_segments_that_cannot_be_watched_are_named_with_the_reason():
    """Shop A has no prediction before day 90, and shop C has exactly what was predicted."""
    quiet = rows()
    number = quiet.row % 3
    code = np.where((number == 0) & (quiet.period < 90), 1, number)
    at_once = replace(
        quiet,
        delay=np.zeros_like(quiet.delay),
        amount=np.where(code == 2, quiet.pred, quiet.amount),
        segments={"shop": (code, ("A", "B", "C"))},
    )
    result = watch(at_once, HISTORY, 365)
    assert [name for name, _ in result.segments] == ["shop B"]
    assert result.skipped == (
        "the segment shop A was not watched: shop A has predictions in too few periods",
        "the segment shop C was not watched: a watch needs at least two periods of history that are not all exactly as "
        "predicted",
    )


@pytest.mark.parametrize("pred", [10.0, 0.1, 3.3])
def test_predictions_that_never_differ_are_not_watched(pred):
    """The mean of 150 equal numbers may differ from them in its last digits, which is no scatter."""
    quiet = rows()
    result = watch(replace(quiet, pred=np.full_like(quiet.pred, pred), amount=0.1 * pred * quiet.amount), HISTORY, 365)
    assert result.inputs is None
    assert any("the inputs were not watched" in reason for reason in result.skipped)


def test_young_periods_are_not_taken_for_low_ones():
    """Every amount arrives ten days late, so that the last ten days have nothing yet."""
    quiet = rows()
    late = PredictedRows(
        quiet.period, quiet.pred, quiet.row, np.full(len(quiet.pred), 10), quiet.amount, quiet.last, {}
    )
    result = watch(late, HISTORY, 365)
    assert not result.alarm
    assert result.total.ratio == pytest.approx(1.0, abs=0.01)


def test_chain_ladder():
    """A triangle by hand: 100 → 150 of the two older periods, 150 → 165 of the oldest."""
    amounts = np.array([[100.0, 50.0, 15.0], [100.0, 50.0, 0.0], [120.0, 0.0, 0.0]])
    curve = DelayCurve.of(amounts, now=2)
    assert curve.arrived.tolist() == pytest.approx([1.0 / (1.5 * 1.1), 1.0 / 1.1, 1.0])
    assert curve.half == 0
    assert arrivals_by_delay(amounts).sum(1).tolist() == [100.0, 150.0, 185.0]


@pytest.mark.parametrize(
    ("since", "year", "message"),
    [
        (3, 365, "3 periods before the watch are too few"),
        (80, 50, "more than a year"),
        (400, 365, "no period to watch"),
    ],
)
def test_impossible_watches_are_refused(since, year, message):
    with pytest.raises(ValueError, match=message):
        watch(rows(), since, year)


def test_predictions_that_were_wrong_before_are_called_that_and_not_usual():
    quiet = rows()
    doubled = replace(quiet, amount=2.07 * quiet.amount)
    result = watch(doubled, HISTORY, 365)
    assert not result.alarm
    assert result.total.wrong_before
    assert result.total.ratio_before == pytest.approx(2.07, rel=0.01)  # a day is known to 1 %, and there are 80
    report = WatchReport("model", "gmv", result, Calendar("day", np.datetime64("2026-01-01")))
    assert "usual scatter" not in report.verdict()
    assert "wrong before: what came is 2.0" in report.verdict()
    assert not watch(quiet, HISTORY, 365).total.wrong_before
