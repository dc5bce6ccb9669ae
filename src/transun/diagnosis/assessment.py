"""The assessment of predictions: metrics with intervals, of all rows, by level of the prediction and by segment.

`transun evaluate`, `fit` and `compare` assess rows in memory, `transun diagnose` streams them from files. Both use the
same sums, intervals and verdict, so the same rows get the same numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from transun import metrics
from transun.diagnosis.interval import (
    TOTALS,
    bias_p_value,
    capped_interval,
    differs_from_one,
    mean_interval,
    metric_estimate,
    ratio_interval,
    total_estimates,
)
from transun.diagnosis.passes import FirstPass, SecondPass, first_pass, second_pass
from transun.diagnosis.reading import ArrayRows
from transun.diagnosis.result import Assessment, Level, Segment, SegmentTable
from transun.diagnosis.segmentation import holm
from transun.diagnosis.verdict import write_verdict
from transun.metrics import Estimate, Meter, Metric
from transun.metrics.metric import LEVEL, Interval
from transun.support.arrays import Floats, Integers

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "assess",
    "assess_sums",
    "is_biased",
    "require_finite",
    "require_segments",
    "requirement_names",
    "segment_metrics",
    "total_interval",
]

# The columns of a sample in the order in which a metric takes them.
_VALUES = ("pred", "y", "weight")


def assess(
    pred: Floats,
    y: Floats,
    weight: Floats | None = None,
    segments: "pa.Table | None" = None,
    kappa: Floats | None = None,
    unit: Integers | None = None,
) -> Assessment:
    """The assessment of predictions in memory.

    The intervals of TRE, STRE and PGR are Hall's, which hold for skewed errors; the others are ± 2.58 standard errors.

    Args:
        pred: predictions (n,) of rows that the model was not trained on.
        y: actual values (n,).
        weight: importance weights (n,), how much each row counts, or None. A row of weight 3 is one observation: three
            equal rows would make the intervals narrower.
        segments: n rows of the columns that divide the rows: text by its values, numbers by ranges.
        kappa: the slope κ of each row (n,), where the head has one.
        unit: the index of the customer or household of each row (n,), where rows of one are alike; the intervals of
            totals then count these instead of rows.

    >>> assessment = assess(np.array([2.0, 2.0, 2.0]), np.array([1.0, 2.0, 3.0]))
    >>> assessment.metric("TRE").value, assessment.metric("PGR").value
    (0.0, 1.0)

    """
    require_finite(pred)
    rows = ArrayRows(y, pred, np.ones(len(y)) if weight is None else weight, segments, unit)
    first = first_pass(rows, sample_size=len(y))
    second = second_pass(rows, first, segment_metrics())
    assessment = assess_sums(first, second)
    if kappa is None:
        return assessment
    level = np.searchsorted(second.edges[1:], pred, side="right")
    mass, weighted = (np.bincount(level, values, len(second.edges)) for values in (rows.weight, rows.weight * kappa))
    means = (weighted[mass > 0.0] / mass[mass > 0.0]).tolist()
    levels = [replace(level, kappa=mean) for level, mean in zip(assessment.levels, means, strict=True)]
    return replace(assessment, levels=tuple(levels))


def require_segments(table: "pa.Table") -> None:
    """Raise a `ValueError` for a column whose values name rows instead of segments; call it before long work."""
    ones = np.ones(len(table))
    first_pass(ArrayRows(ones, ones, ones, table), sample_size=len(table))


def segment_metrics() -> list[Metric]:
    """The metrics of every segment of an assessment besides those of its totals: the rest of the standard ones."""
    return [metric for metric in metrics.STANDARD if metric.name not in TOTALS]


def assess_sums(first: FirstPass, second: SecondPass, cause: str = "") -> Assessment:
    """The assessment that follows from the sums of both passes; `cause` completes the verdict on a biased total."""
    moments = first.moments
    totals = total_estimates(moments.ratio(), total_interval(first, second))
    estimates, tables = _metrics(first, totals), _segments(first, second)
    ranking = next((estimate for estimate in estimates if estimate.name == "XAUC"), None)
    verdict = write_verdict(
        totals["PGR"], moments.actual(), moments.predicted(), is_biased(first, second), tables, ranking, cause
    )
    levels = tuple(_level(second, index) for index in np.flatnonzero(second.levels.count).tolist())
    return Assessment(int(moments.rows[0]), moments.actual(), moments.predicted(), verdict, estimates, levels, tables)


def total_interval(first: FirstPass, second: SecondPass) -> Interval:
    """The interval of actual / predicted total, which is shown and which the verdict follows from."""
    return capped_interval(first.moments, second.capped)


def is_biased(first: FirstPass, second: SecondPass) -> bool:
    """Whether the total is biased: its interval excludes 1, and not by rounding alone."""
    interval = total_interval(first, second)
    return differs_from_one(first.moments.ratio()) and not math.isnan(interval.low) and 1.0 not in interval


def requirement_names() -> tuple[str, ...]:
    """The names that a requirement on an assessment may use: metrics in lower case and the ends of their intervals.

    >>> requirement_names()[:3]
    ('pgr', 'pgr_low', 'pgr_high')
    """
    return tuple(f"{metric.name.lower()}{end}" for metric in metrics.STANDARD for end in ("", "_low", "_high"))


def _metrics(first: FirstPass, totals: dict[str, Estimate]) -> tuple[Estimate, ...]:
    others = [metric for metric in metrics.STANDARD if metric.name not in totals]
    sample = tuple(first.sample[name] for name in _VALUES)
    estimates = totals | {each.name: each for each in _estimates(others, first.meter, sample)}
    return tuple(estimates[metric.name] for metric in metrics.STANDARD)


def _estimates(of: Sequence[Metric], meter: Meter, sample: tuple[Floats, ...]) -> list[Estimate]:
    """The metrics that the meter sums up from there, and the others from the predictions, targets, weights sampled."""
    values, errors = meter.compute(), meter.standard_errors()
    estimates = []
    for metric in of:
        if metric.name in values:
            estimates.append(metric_estimate(metric, values[metric.name], errors[metric.name]))
        elif len(sample[0]):
            estimates.append(metric_estimate(metric, metric(*sample), metric.standard_error(*sample)))
        else:  # a segment so rare that the sample has none of its rows
            estimates.append(Estimate(metric.name, math.nan, math.nan, math.nan))
    return estimates


def _level(second: SecondPass, index: int) -> Level:
    levels = second.levels
    mass = float(levels.weight[index])
    pred = levels.predicted(index) / mass
    ends = ratio_interval(levels, index)
    totals = total_estimates(levels.ratio(index), ends)
    # Where nothing is predicted there is no ratio, but there is a mean.
    plain, rows_per_weight = mean_interval(levels.studentised(index, ratio=0.0)), float(levels.count[index]) / mass
    low, high = (
        (ends.low * pred, ends.high * pred)
        if pred > 0.0
        else (plain.low * rows_per_weight, plain.high * rows_per_weight)
    )
    actual = Estimate("mean actual", levels.actual(index) / mass, low, high)
    return Level(second.edges[index], int(levels.rows[index]), pred, actual, totals["PGR"], totals["STRE"])


def _segments(first: FirstPass, second: SecondPass) -> tuple[SegmentTable, ...]:
    filled = [
        (column, index)
        for column, moments in second.segments.items()
        for index in np.flatnonzero(moments.count).tolist()
    ]
    adjusted = holm([bias_p_value(second.segments[column], index) for column, index in filled])
    segments: dict[str, list[Segment]] = {column: [] for column in second.segments}
    for (column, index), probability in zip(filled, adjusted, strict=True):
        moments = second.segments[column]
        share = moments.actual(index) / first.moments.actual() if first.moments.actual() else math.nan
        totals = total_estimates(moments.ratio(index), ratio_interval(moments, index))
        segments[column].append(
            Segment(
                first.segmentations[column].titles[index],
                int(moments.rows[index]),
                share,
                (*totals.values(), *_segment_metrics(second, column, index)),
                probability,
                probability < 1.0 - LEVEL and differs_from_one(moments.ratio(index)),
            )
        )
    return tuple(
        SegmentTable(column, first.segmentations[column].how, tuple(segments[column])) for column in second.segments
    )


def _segment_metrics(second: SecondPass, column: str, index: int) -> list[Estimate]:
    if column not in second.meters:
        return []
    sample = second.samples[column]
    inside = sample["code"] == index
    return _estimates(second.by_segment, second.meters[column][index], tuple(sample[name][inside] for name in _VALUES))


def require_finite(pred: Floats) -> None:
    """Raise a `ValueError` if a prediction is not a number: the model is of no use."""
    wrong = np.flatnonzero(~np.isfinite(pred))
    if len(wrong):
        raise ValueError(
            f"the prediction of row {wrong[0]} is {pred[wrong[0]]}: the training diverged; lower the learning rate"
        )
