"""What was predicted against what came, period by period: which of three things has changed, and since when."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from transun.support.arrays import Flags, Floats, Integers
from transun.watching.delay import DelayCurve, arrivals_by_delay
from transun.watching.evidence import ChangeWatch, Evidence, recursive_residuals

__all__ = ["LEVEL", "PredictedRows", "WatchResult", "WatchedSeries", "watch"]


LEVEL = 0.05
"""The probability of any alarm in a year in which nothing changes."""

# How the probability is divided: half for the total, which matters most, a quarter for all segments together.
_TOTAL, _SEGMENTS, _DELAY, _INPUTS = 0.5, 0.25, 0.125, 0.125
# Sizes of changes that are looked for, as shares: of a total, and of the difference between early and late arrivals.
_SIZES, _DELAY_SIZES = (0.05, 0.1), (0.1, 0.3)
# Fewer periods before the watch say too little about how much totals scatter.
_FEWEST_PERIODS = 15
# By chance alone a total is this many standard errors off once in 400 times.
_NOTABLE_ERRORS = 3.0
# Starts of a change that are tried in a year.
_STARTS = 52


@dataclass(frozen=True, eq=False)
class PredictedRows:
    """Predictions with their periods, and the amounts that arrived for them.

    Args:
        period: of the prediction of each row (n,), counted from 0.
        pred: predictions (n,).
        row: of each arrival (m,), the row that it belongs to.
        delay: of each arrival (m,), periods after the prediction.
        amount: of each arrival (m,).
        last: the last period whose arrivals are known.
        segments: by column, the index of the segment of each row (n,) and the titles of the segments.

    """

    period: Integers
    pred: Floats
    row: Integers
    delay: Integers
    amount: Floats
    last: int
    segments: Mapping[str, tuple[Integers, Sequence[str]]] = field(default_factory=dict)

    def totals(self, inside: Flags | None = None) -> tuple[Floats, Floats]:
        """Predicted totals by period, and amounts by period of prediction and delay; of some rows or of all."""
        chosen = np.ones(len(self.pred), bool) if inside is None else inside
        predicted = np.asarray(np.bincount(self.period[chosen], self.pred[chosen], self.last + 1), np.float64)
        delays = int(self.delay.max(initial=0)) + 1
        known = chosen[self.row] & (self.period[self.row] + self.delay <= self.last)
        cell = self.period[self.row[known]] * delays + self.delay[known]
        amounts = np.asarray(np.bincount(cell, self.amount[known], (self.last + 1) * delays), np.float64)
        return predicted, amounts.reshape(-1, delays)


@dataclass(frozen=True)
class WatchedSeries:
    """What was expected in each watched period, what came, and the evidence of a change.

    Args:
        evidence: of a change, after each watched period.
        actual: what came, by period.
        expected: what was expected, by period.
        periods: the number of each watched period, counted from the first of the data.
        ratio_before: what came over what was expected before the watch.
        wrong_before: whether that is further from 1 than the least change that is looked for, and beyond chance.

    """

    evidence: Evidence
    actual: Floats
    expected: Floats
    periods: Integers
    ratio_before: float = 1.0
    wrong_before: bool = False

    @property
    def changed(self) -> bool:
        """Whether a change is called."""
        return self.evidence.alarm is not None

    @property
    def since(self) -> int:
        """The period since when a change is most likely."""
        return int(self.periods[min(self.evidence.begin, len(self.periods) - 1)])

    @property
    def ratio(self) -> float:
        """What came over what was expected, since a change is most likely."""
        begin = self.evidence.begin if self.changed else 0
        return float(self.actual[begin:].sum() / self.expected[begin:].sum())


@dataclass(frozen=True)
class WatchResult:
    """What watching has shown.

    Args:
        total: the amounts of all rows.
        segments: the name of each segment, its column and value such as "country IT", and its amounts.
        delay: how late amounts arrive; None where it could not be watched. A ratio above 1 means later than usual.
        inputs: the mean prediction; None where it could not be watched. A ratio above 1 means higher than usual.
        curve: the delay curve of the history.
        since: the first watched period.
        periods: how many periods there are in all.
        skipped: what could not be watched, in sentences.

    """

    total: WatchedSeries
    segments: tuple[tuple[str, WatchedSeries], ...]
    delay: WatchedSeries | None
    inputs: WatchedSeries | None
    curve: DelayCurve
    since: int
    periods: int
    skipped: tuple[str, ...] = ()

    def series(self) -> list[tuple[str, str, WatchedSeries]]:
        """Everything that is watched: its kind ("total", "segment", "delay" or "inputs"), its segment, and itself."""
        segments = [("segment", name, series) for name, series in self.segments]
        others = [(kind, "", series) for kind, series in (("delay", self.delay), ("inputs", self.inputs)) if series]
        return [("total", "", self.total), *segments, *others]

    @property
    def alarm(self) -> bool:
        """Whether any change is called."""
        return any(series.changed for _, _, series in self.series())


def watch(rows: PredictedRows, since: int, periods_a_year: int, level: float = LEVEL) -> WatchResult:
    """Compare what was predicted with what came, and tell apart three things that may have changed.

    - Amounts given the inputs, y|x. What arrives in a period is compared with what is expected: for every earlier
      period, its predicted total times the share that usually arrives after so long. Late labels thus count as they
      come, and a young period is not taken for a bad one.
    - The delay. The ratio of actual to expected among late arrivals is compared with that among early ones; the
      difference stays where it is if all amounts change alike.
    - The inputs. The mean prediction of a period needs no label.

    The periods before `since` show how late amounts arrive and how much totals scatter between periods. However often
    one looks, the probability of any alarm within a year in which nothing changes is at most `level`; see
    `ChangeWatch`.

    Args:
        rows: predictions and arrivals.
        since: the first watched period.
        periods_a_year: how many periods a year has, the longest watch.
        level: the probability of a false alarm in a year.

    """
    if since < _FEWEST_PERIODS:
        raise ValueError(
            f"{since} periods before the watch are too few to know how much totals scatter: begin it after "
            f"{_FEWEST_PERIODS} or more"
        )
    if rows.last + 1 - since > periods_a_year:
        raise ValueError(f"more than a year ({periods_a_year} periods) is watched at once: begin the watch later")
    if rows.last < since:
        raise ValueError("there is no period to watch: begin the watch earlier, or give later rows")
    predicted, amounts = rows.totals()
    for what, total in (
        ("predictions", predicted[:since].sum()),
        ("amounts that arrived", arrivals_by_delay(amounts)[:since].sum()),
    ):
        if not total > 0.0:
            raise ValueError(
                f"the {what} before the watch add up to {total:g}, and must be more than 0: are columns, ids "
                "and times the right ones?"
            )
    known = _until(amounts, since - 1)
    curve = DelayCurve.of(known[:since], since - 1)
    watched = _Watch(since, periods_a_year, level, curve)
    skipped: list[str] = []
    total = watched.amounts(_TOTAL, "the total", predicted, amounts)
    parts = [
        (f"{column} {title}", codes == index)
        for column, (codes, titles) in rows.segments.items()
        for index, title in enumerate(titles)
    ]
    segments = []
    for name, inside in parts:
        try:
            segments.append((name, watched.amounts(_SEGMENTS / len(parts), name, *rows.totals(inside))))
        except ValueError as reason:
            skipped.append(f"the segment {name} was not watched: {reason}")
    delay = watched.delay(predicted, amounts)
    if delay is None and len(curve.arrived) > 1:
        skipped.append("the delay was not watched: too few periods have both early and late arrivals")
    counts = np.bincount(rows.period, minlength=len(predicted))[: len(predicted)]
    inputs = watched.inputs(predicted, counts)
    if inputs is None:
        skipped.append("the inputs were not watched: too few periods have predictions above 0, or these never differ")
    return WatchResult(total, tuple(segments), delay, inputs, curve, since, rows.last + 1, tuple(skipped))


@dataclass(frozen=True)
class _Watch:
    """Looks for changes in several series.

    Args:
        since: the first watched period.
        horizon: the most periods that can be watched.
        level: the probability of any false alarm, of which each series gets a share.
        curve: the delay curve of the history.

    """

    since: int
    horizon: int
    level: float
    curve: DelayCurve

    def amounts(self, share: float, name: str, predicted: Floats, amounts: Floats) -> WatchedSeries:
        """Arrivals of each period against those expected, the variance of both growing with the amount."""
        actual, expected = (arrivals_by_delay(each).sum(1) for each in (amounts, self.curve.expected(predicted)))
        usable = np.flatnonzero(expected > 0.0)
        before = usable < self.since
        if before.sum() < _FEWEST_PERIODS or before.all():
            raise ValueError(f"{name} has predictions in too few periods")
        unit = expected[usable[before]].mean()
        x = (actual - expected)[usable] / np.sqrt(expected[usable] * unit)
        watched = usable[~before]
        evidence = self._change(share, _SIZES)(x[before], x[~before])
        ratio, error = _ratio_of_totals(actual[usable[before]], expected[usable[before]])
        wrong = abs(ratio - 1.0) > max(_SIZES[0], _NOTABLE_ERRORS * error)
        return WatchedSeries(evidence, actual[watched], expected[watched], watched, ratio, wrong)

    def delay(self, predicted: Floats, amounts: Floats) -> WatchedSeries | None:
        """Late arrivals against early ones, each relative to what was expected."""
        actual, expected = (arrivals_by_delay(each) for each in (amounts, self.curve.expected(predicted)))
        late = np.arange(len(self.curve.arrived)) > self.curve.half
        actual_early, actual_late, expected_early, expected_late = (
            each[:, part].sum(1) for each in (actual, expected) for part in (~late, late)
        )
        usable = np.flatnonzero((expected_early > 0.0) & (expected_late > 0.0))
        early_ratio = actual_early[usable] / expected_early[usable]
        late_ratio = actual_late[usable] / expected_late[usable]
        return self._level_series(self._change(_DELAY, _DELAY_SIZES), late_ratio - early_ratio, usable)

    def inputs(self, predicted: Floats, counts: Integers) -> WatchedSeries | None:
        """The mean prediction of each period, from predicted totals and numbers of rows."""
        usable = np.flatnonzero((counts > 0) & (predicted > 0.0))
        mean = np.log(predicted[usable] / counts[usable])
        return self._level_series(self._change(_INPUTS, _SIZES), mean, usable)

    def _level_series(self, change: ChangeWatch, values: Floats, usable: Integers) -> WatchedSeries | None:
        """A series whose usual level is not known: each value is compared with those before it."""
        if (usable < self.since).sum() <= _FEWEST_PERIODS or not (usable >= self.since).any():
            return None
        residuals, periods = recursive_residuals(values), usable[1:]
        before = periods < self.since
        if not change.scatters(residuals[before]):
            return None
        usual = float(values[:-1][before].mean())
        shift = 1.0 + values[1:][~before] - usual
        evidence = change(residuals[before], residuals[~before])
        return WatchedSeries(evidence, shift, np.ones(len(shift)), periods[~before])

    def _change(self, share: float, sizes: tuple[float, ...]) -> ChangeWatch:
        """The test of a series, with its share of the false alarms."""
        return ChangeWatch(self.horizon, max(1, round(self.horizon / _STARTS)), sizes, share * self.level)


def _ratio_of_totals(actual: Floats, expected: Floats) -> tuple[float, float]:
    """Σ actual / Σ expected over independent periods, and its standard error by the delta method."""
    ratio = float(actual.sum() / expected.sum())
    misses = actual - ratio * expected
    return ratio, math.sqrt(len(actual) / (len(actual) - 1) * float(misses @ misses)) / float(expected.sum())


def _until(amounts: Floats, last: int) -> Floats:
    """The amounts that had arrived by a period, by period of prediction and delay."""
    period, delay = np.indices(amounts.shape)
    return np.where(period + delay <= last, amounts, 0.0)
