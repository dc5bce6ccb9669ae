"""Intervals of means and ratios that hold their level for skewed, heavy-tailed errors."""

import math
from statistics import NormalDist

from transun.diagnosis.moments import RatioMoments, Studentised
from transun.metrics import PGR, STRE, TRE, Estimate, Metric
from transun.metrics.metric import LEVEL, Interval
from transun.support.extras import need

__all__ = [
    "TOTALS",
    "bias_p_value",
    "capped_interval",
    "differs_from_one",
    "mean_interval",
    "metric_estimate",
    "ratio_interval",
    "skewed_quantile",
    "total_estimates",
]

# The metrics that are functions of the ratio of totals alone, so that their intervals follow from its interval.
TOTALS = (TRE.name, STRE.name, PGR.name)
# Predictions are often float32: totals nearer than this are equal.
_ROUNDING = 1e-5
_FEWEST = 5.0


def mean_interval(moments: Studentised, level: float = LEVEL) -> Interval:
    """An interval of the mean of the errors whose moments are given, with unequal sides where they are skewed.

    The studentised mean t of skewed errors is not Student's: where the largest were not drawn, mean and spread are
    both too low. Two corrections, both from sums alone. Hall's cubic g(t) = t + γt²/(3√n) + γ²t³/(27n) + γ/(6√n) has
    a nearly symmetric law, γ being the skewness, and is inverted in closed form. And the quantile is Student's with
    2n/(kurtosis - 1) degrees of freedom, those of a normal sample whose variance is known as badly (Satterthwaite), so
    that a total that hangs on three rows gets an interval of three rows' worth.

    >>> even = Studentised(count=10_001, mean=0.0, error=1.0, skewness=0.0, kurtosis=3.0)
    >>> round(mean_interval(even).high, 2)  # 2.58 standard errors
    2.58
    >>> skewed = mean_interval(Studentised(count=100, mean=0.0, error=1.0, skewness=4.0, kurtosis=30.0))
    >>> -skewed.low < 2.58 < skewed.high
    True
    """
    if not math.isfinite(moments.error):
        return Interval(-math.inf, math.inf)
    upper = _quantile(moments, 0.5 * (1.0 + level))
    lower = _quantile(moments, 0.5 * (1.0 - level))
    return Interval(moments.mean - upper * moments.error, moments.mean - lower * moments.error)


def ratio_interval(moments: RatioMoments, group: int = 0, level: float = LEVEL) -> Interval:
    """An interval of Σwy / Σwŷ in a group: that of the mean error at the observed ratio, over the mean prediction.

    NaN where the total of the predictions is not positive, as a ratio to it means nothing.
    """
    predicted = moments.predicted(group)
    if not predicted > 0.0:
        return Interval(math.nan, math.nan)
    ratio = moments.ratio(group)
    ends = mean_interval(moments.studentised(group, ratio=ratio), level)
    each = predicted / float(moments.count[group])
    return Interval(ratio + ends.low / each, ratio + ends.high / each)


def capped_interval(moments: RatioMoments, capped: RatioMoments, level: float = LEVEL) -> Interval:
    """The interval of a ratio whose lower end may also come from the same rows with their largest targets cut.

    Cutting targets can only lower the ratio, so that a lower limit of the cut ratio is also one of the ratio. It is the
    better one where a single row is most of the total, because such a row widens the interval on both sides: a huge
    target on top of a model that is far too low would hide the bias.

    >>> import numpy as np
    >>> y, one, all_ = np.array([4.0, 5.0, 6.0, 9e3] * 50), np.ones(200), np.zeros(200, dtype=np.int64)
    >>> y[3:199] = 5.0  # one huge target
    >>> whole, cut = (RatioMoments.of(v, one, one, all_, 1) for v in (y, np.minimum(y, 10.0)))
    >>> ratio_interval(whole).low < 1.0 < capped_interval(whole, cut).low
    True
    """
    plain, cut = ratio_interval(moments, level=level), ratio_interval(capped, level=level)
    return Interval(max(plain.low, cut.low), plain.high)


def differs_from_one(ratio: float) -> bool:
    """Whether a ratio of totals differs from 1 by more than the rounding of predictions.

    >>> differs_from_one(1.0 + 1e-7), differs_from_one(0.99)
    (False, True)
    """
    return abs(ratio - 1.0) > _ROUNDING


def total_estimates(ratio: float, interval: Interval) -> dict[str, Estimate]:
    """TRE = |1 - R|, STRE = 1 - R and PGR = 1/R of a ratio R of actual to predicted total, with their intervals.

    >>> estimates = total_estimates(0.5, Interval(0.25, 1.0))
    >>> [(estimate.value, estimate.low, estimate.high) for estimate in estimates.values()]
    [(0.5, 0.0, 0.75), (0.5, 0.0, 0.75), (2.0, 1.0, 4.0)]
    """
    if math.isnan(interval.low):
        return {name: Estimate(name, math.nan, math.nan, math.nan) for name in TOTALS}
    ends = sorted((abs(1.0 - interval.low), abs(1.0 - interval.high)))
    tre = Estimate(TRE.name, abs(1.0 - ratio), 0.0 if 1.0 in interval else ends[0], ends[1])
    stre = Estimate(STRE.name, 1.0 - ratio, 1.0 - interval.high, 1.0 - interval.low)
    low = 1.0 / interval.high if interval.high > 0.0 else math.nan
    high = 1.0 / interval.low if interval.low > 0.0 else math.inf
    pgr = Estimate(PGR.name, 1.0 / ratio if ratio > 0.0 else math.nan, low, high)
    return {estimate.name: estimate for estimate in (tre, stre, pgr)}


def metric_estimate(metric: Metric, value: float, error: float) -> Estimate:
    """A metric with the interval ± 2.58 standard errors, within what the metric can be.

    >>> estimate = metric_estimate(NRMSE, 1.0, 1.0)
    >>> estimate.low, round(estimate.high, 2)
    (0.0, 3.58)
    """
    half = NormalDist().inv_cdf(0.5 * (1.0 + LEVEL)) * error
    least, largest = metric.bounds
    return Estimate(metric.name, value, max(value - half, least), min(value + half, largest))


def bias_p_value(moments: RatioMoments, group: int = 0) -> float:
    """The p-value of Σwy = Σwŷ in a group, two-sided, by the same statistic as the intervals.

    It is 1 where the predictions look too high and fewer than five rows' worth of right-skewed errors say so: the
    large targets that would make up for it may not have been drawn, and no formula knows.
    """
    errors = moments.studentised(group, ratio=1.0)
    if not math.isfinite(errors.error):
        return 1.0
    if errors.error == 0.0:
        return float(errors.mean == 0.0)
    t, root = errors.mean / errors.error, math.sqrt(errors.count)
    bend = errors.skewness / (3.0 * root)
    if t < 0.0 and bend > 0.0 and _freedom(errors) < _FEWEST:
        return 1.0
    even = t + bend * t**2 + bend**2 * t**3 / 3.0 + 0.5 * bend
    return float(2.0 * need("scipy.special").stdtr(_freedom(errors), -abs(even)))


def _freedom(moments: Studentised) -> float:
    return min(moments.count - 1.0, 2.0 * moments.count / max(moments.kurtosis - 1.0, 1e-9))


def _quantile(moments: Studentised, share: float) -> float:
    """The quantile of the studentised mean, Hall's cubic inverted."""
    bend = moments.skewness / (3.0 * math.sqrt(moments.count))
    return skewed_quantile(_freedom(moments), share, bend, 0.5 * bend)


def skewed_quantile(freedom: float, share: float, bend: float, shift: float) -> float:
    """The quantile of a statistic t for which t + bend·t² + bend²·t³/3 + shift is nearly Student's.

    The cubic is (1 + bend·t)³ up to constants, so that it increases and is inverted in closed form.

    >>> round(skewed_quantile(1e9, 0.975, bend=0.0, shift=0.0), 2)
    1.96
    >>> t = skewed_quantile(10.0, 0.975, bend=0.1, shift=0.05)
    >>> round(t + 0.1 * t**2 + 0.01 * t**3 / 3 + 0.05, 3)  # Student's quantile with ten degrees of freedom
    2.228
    """
    tau = float(need("scipy.special").stdtrit(freedom, share)) - shift
    if abs(bend) < 1e-8:
        return tau
    return (math.cbrt(1.0 + 3.0 * bend * tau) - 1.0) / bend
