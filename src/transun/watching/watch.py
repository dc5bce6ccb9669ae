"""What was predicted against what came, period by period: which of three things has changed, and since when."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from transun.watching.delay import DelayCurve, arrivals_by_delay
from transun.watching.evidence import ChangeWatch, Evidence, recursive_residuals

__all__ = ["LEVEL", "PredictedRows", "WatchResult", "WatchedSeries", "watch"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEVEL = 0.05
"""The probability of any alarm in a year in which nothing changes."""

# How the probability is divided: half for the total, which matters most, a quarter for all segments together.
_TOTAL, _SEGMENTS, _DELAY, _INPUTS = 0.5, 0.25, 0.125, 0.125
# Sizes of changes that are looked for, as shares: of a total, and of the difference between early and late arrivals.
_SIZES, _DELAY_SIZES = (0.05, 0.1), (0.1, 0.3)
# Fewer periods before the watch say too little about how much totals scatter.
_FEWEST_PERIODS = 15
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

    def totals(self, inside: NDArray[np.bool_] | None = None) -> tuple[Floats, Floats]:
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
    """One thing that is watched: the total, a segment, the delay or the inputs.

    Args:
        what: "total", "segment", "delay" or "inputs".
        name: the segment, empty for the others.
        evidence: of a change, after each watched period.
        actual: what came in the watched periods, or what is compared; by period.
        expected: what was expected; by period.
        periods: the number of each watched period, counted from the first of the data.

    """

    what: str
    name: str
    evidence: Evidence
    actual: Floats
    expected: Floats
    periods: Integers

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
    """What watching has shown: the total first, then segments, the delay where there is one, and the inputs.

    Args:
        series: everything that is watched.
        curve: the delay curve of the history.
        since: the first watched period.
        periods: how many periods there are in all.
        skipped: what could not be watched, in sentences.

    """

    series: tuple[WatchedSeries, ...]
    curve: DelayCurve
    since: int
    periods: int
    skipped: tuple[str, ...] = ()

    def changed(self, *whats: str) -> list[WatchedSeries]:
        """The series of these kinds in which a change is called."""
        return [series for series in self.series if series.what in whats and series.changed]

    @property
    def alarm(self) -> bool:
        """Whether any change is called."""
        return any(series.changed for series in self.series)


def watch(rows: PredictedRows, since: int, periods_a_year: int, level: float = LEVEL) -> WatchResult:
    """Compare what was predicted with what came, and tell apart three things that may have changed.

    y|x: amounts that arrive in a period against those expected to, which is the sum over earlier periods of what was
    predicted, times the share that the delay curve says arrives after so long. Late labels are thus used as they come,
    and a young period is not taken for a bad one. Delay: the ratio of actual to expected among late arrivals less that
    among early ones, which stays where it is if all amounts change alike. Inputs: the mean prediction of a period, in
    which no label enters.

    The periods before `since` show the delay curve and how much totals scatter between periods. Whatever the number of
    looks, the probability of any alarm within a year in which nothing changes is at most `level`; see `ChangeWatch`.

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
    history = arrivals_by_delay(amounts)[:since].sum()
    if not history > 0.0 or not predicted[:since].sum() > 0.0:
        raise ValueError("nothing was predicted or nothing arrived before the watch: are ids and times the right ones?")
    known = _until(amounts, since - 1)
    curve = DelayCurve.of(known[:since], since - 1)
    skipped: list[str] = []
    step = max(1, round(periods_a_year / _STARTS))
    total = ChangeWatch(periods_a_year, step, _SIZES, level * _TOTAL)
    series = [_amounts(total, "total", "", predicted, amounts, curve, since)]
    parts = [
        (f"{column} {title}", codes == index)
        for column, (codes, titles) in rows.segments.items()
        for index, title in enumerate(titles)
    ]
    for name, inside in parts:
        part = ChangeWatch(periods_a_year, step, _SIZES, level * _SEGMENTS / len(parts))
        try:
            series.append(_amounts(part, "segment", name, *rows.totals(inside), curve, since))
        except ValueError:
            skipped.append(f"the segment {name} has too few periods with predictions and amounts to be watched")
    late = _delay(rows, predicted, amounts, curve, since, periods_a_year, step, level * _DELAY)
    inputs = _inputs(rows, predicted, since, periods_a_year, step, level * _INPUTS)
    series += [each for each in (late, inputs) if each is not None]
    if late is None and len(curve.arrived) > 1:
        skipped.append("the delay was not watched: too few periods have both early and late arrivals")
    return WatchResult(tuple(series), curve, since, rows.last + 1, tuple(skipped))


def _amounts(
    change: ChangeWatch, what: str, name: str, predicted: Floats, amounts: Floats, curve: DelayCurve, since: int
) -> WatchedSeries:
    """Arrivals of each period against those expected, the variance of both growing with the amount."""
    actual, expected = (arrivals_by_delay(each).sum(1) for each in (amounts, curve.expected(predicted)))
    usable = np.flatnonzero(expected > 0.0)
    if (usable < since).sum() < _FEWEST_PERIODS or not (usable >= since).any():
        raise ValueError(f"{name or 'the total'} has predictions in too few periods")
    unit = expected[usable[usable < since]].mean()
    x = (actual - expected)[usable] / np.sqrt(expected[usable] * unit)
    before = usable < since
    watched = usable[~before]
    return WatchedSeries(what, name, change(x[before], x[~before]), actual[watched], expected[watched], watched)


def _delay(
    rows: PredictedRows,
    predicted: Floats,
    amounts: Floats,
    curve: DelayCurve,
    since: int,
    horizon: int,
    step: int,
    level: float,
) -> WatchedSeries | None:
    """Late arrivals against early ones, each relative to what was expected."""
    actual, expected = (arrivals_by_delay(each) for each in (amounts, curve.expected(predicted)))
    late = np.arange(len(curve.arrived)) > curve.half
    sums = [each[:, part].sum(1) for each in (actual, expected) for part in (~late, late)]
    usable = np.flatnonzero((sums[2] > 0.0) & (sums[3] > 0.0))
    if (usable < since).sum() <= _FEWEST_PERIODS or not (usable >= since).any():
        return None
    early_ratio, late_ratio = (sums[index][usable] / sums[index + 2][usable] for index in (0, 1))
    return _level_series(
        "delay", late_ratio - early_ratio, usable, since, ChangeWatch(horizon, step, _DELAY_SIZES, level)
    )


def _inputs(
    rows: PredictedRows, predicted: Floats, since: int, horizon: int, step: int, level: float
) -> WatchedSeries | None:
    """The mean prediction of each period."""
    count = np.bincount(rows.period, minlength=len(predicted))[: len(predicted)]
    usable = np.flatnonzero((count > 0) & (predicted > 0.0))
    if (usable < since).sum() <= _FEWEST_PERIODS or not (usable >= since).any():
        return None
    mean = np.log(predicted[usable] / count[usable])
    return _level_series("inputs", mean, usable, since, ChangeWatch(horizon, step, _SIZES, level))


def _level_series(what: str, values: Floats, usable: Integers, since: int, change: ChangeWatch) -> WatchedSeries | None:
    """A series whose usual level is not known: each value is compared with those before it."""
    residuals, periods = recursive_residuals(values), usable[1:]
    before = periods < since
    if not residuals[before].any():
        return None
    usual = float(values[:-1][before].mean())
    shift = 1.0 + values[1:][~before] - usual
    return WatchedSeries(
        what, "", change(residuals[before], residuals[~before]), shift, np.ones(len(shift)), periods[~before]
    )


def _until(amounts: Floats, last: int) -> Floats:
    """The amounts that had arrived by a period, by period of prediction and delay."""
    period, delay = np.indices(amounts.shape)
    return np.where(period + delay <= last, amounts, 0.0)
