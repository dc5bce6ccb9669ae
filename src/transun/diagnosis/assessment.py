"""Predictions of held-out rows in numbers with intervals: of all rows, by segment and by level of the prediction."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np
import torch

from transun.data.columns import Chunk, is_numeric, open_columns
from transun.diagnosis.cures import inverted
from transun.diagnosis.interval import VERDICT_LEVEL, chance, ratio_interval
from transun.diagnosis.moments import Floats, RatioMoments
from transun.diagnosis.reading import Rows
from transun.diagnosis.result import Estimate
from transun.diagnosis.splits import Split, by_number, by_text, holm
from transun.metrics import FLOORED, MRE, NMAE, NRMSE, XAUC, Metric, bin_by_prediction
from transun.models.certificate import Certificate, Measured, Part

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["NAMES", "Assessment", "Bin", "SegmentMetrics", "assess", "certify", "require_segments"]

_WHOLE: tuple[Metric, ...] = (MRE, NRMSE, NMAE, XAUC, FLOORED)
_SEGMENT: tuple[Metric, ...] = (MRE, NRMSE)
_HALF = 1.96
# Predictions are float32: totals nearer than this are the same.
_ROUNDING = 1e-5
_METRICS = ("TRE", "STRE", "PGR", *(metric.name for metric in _WHOLE))
# What a requirement on an assessment may name.
NAMES = tuple(name.lower() + end for end in ("", "_low", "_high") for name in _METRICS)


@dataclass(frozen=True)
class Bin:
    """Rows of similar predictions: signed TRE with its standard error, and the mean slope κ where the head has one."""

    lowest: float
    rows: int
    pred: float
    actual: float
    stre: float
    error: float
    slope: float | None


@dataclass(frozen=True)
class SegmentMetrics:
    """Rows that share a value of a column; `chance` is Holm's adjusted p-value of "no bias here" over all segments."""

    column: str
    value: str
    rows: int
    metrics: tuple[Estimate, ...]
    chance: float
    biased: bool


@dataclass(frozen=True)
class Assessment:
    """What predictions are worth; every metric is an estimate with a 95 % interval.

    The total is `biased` if its 99 % interval leaves the right one out, as in a diagnosis: at 95 % one fair model in
    twenty would be called so.
    """

    rows: int
    metrics: tuple[Estimate, ...]
    segments: tuple[SegmentMetrics, ...]
    bins: tuple[Bin, ...]
    biased: bool = False

    def part(self) -> Part:
        """The metrics of all rows, as a certificate holds them."""
        return Part("", "all rows", self.rows, _measured(self.metrics))


def assess(
    pred: Floats,
    y: Floats,
    weight: Floats | None = None,
    segments: "pa.Table | None" = None,
    slope: Floats | None = None,
) -> Assessment:
    """Metrics of predictions with 95 % intervals.

    Those of TRE, STRE and PGR are Hall's, which hold for skewed errors; the others are ± 1.96 standard errors.

    Args:
        pred: predictions (n,) of rows that the model was not trained on.
        y: actual values (n,).
        weight: how often each row counts (n,), or None.
        segments: columns to tell rows apart by: text by its values, numbers by ranges.
        slope: κ of each row (n,), where the head has one.

    >>> found = assess(np.array([2.0, 2.0, 2.0]), np.array([1.0, 2.0, 3.0]))
    >>> [(one.name, one.value) for one in found.metrics[:3]]
    [('TRE', 0.0), ('STRE', 0.0), ('PGR', 1.0)]

    """
    _require_finite(pred)
    mass = np.ones(len(y)) if weight is None else weight
    everyone = np.zeros(len(y), dtype=np.int64)
    moments = RatioMoments.of(y, pred, mass, everyone, 1)
    metrics = (*_totals(moments, 0), *_others(_WHOLE, pred, y, mass))
    found = () if segments is None else _segments(pred, y, mass, segments)
    strict = ratio_interval(moments, level=VERDICT_LEVEL)
    outside = _differs(moments) and not strict.low <= 1.0 <= strict.high
    return Assessment(len(y), metrics, found, _bins(pred, y, mass, slope), outside)


def certify(
    assessment: Assessment,
    *,
    weights: str,
    head: str,
    seed: int,
    target: str,
    weight: str | None,
    held_out: str,
    fingerprint: str,
) -> Certificate:
    """The certificate of a model with these weights, dated now."""
    versions = {name: version(name) for name in ("transun", "torch", "numpy", "pyarrow")}
    parts = tuple(Part(one.column, one.value, one.rows, _measured(one.metrics)) for one in assessment.segments)
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return Certificate(
        date, weights, head, seed, target, held_out, fingerprint, versions, assessment.part(), weight, parts
    )


def _measured(metrics: Sequence[Estimate]) -> dict[str, Measured]:
    return {one.name: Measured(one.value, one.low, one.high) for one in metrics}


def _totals(moments: RatioMoments, group: int) -> tuple[Estimate, ...]:
    ends = ratio_interval(moments, group)
    if math.isnan(ends.low):
        return tuple(Estimate(name, math.nan, math.nan, math.nan) for name in ("TRE", "STRE", "PGR"))
    ratio = moments.ratio(group)
    pgr, tre = inverted(ratio, ends)
    return tre, Estimate("STRE", 1.0 - ratio, 1.0 - ends.high, 1.0 - ends.low), pgr


def _differs(moments: RatioMoments) -> bool:
    return abs(moments.ratio() - 1.0) > _ROUNDING


def _others(metrics: Sequence[Metric], pred: Floats, y: Floats, mass: Floats) -> list[Estimate]:
    found = []
    for metric in metrics:
        value, half = metric(pred, y, mass), _HALF * metric.standard_error(pred, y, mass)
        found.append(Estimate(metric.name, value, max(value - half, 0.0), value + half))
    return found


def _segments(pred: Floats, y: Floats, mass: Floats, table: "pa.Table") -> tuple[SegmentMetrics, ...]:
    rows = Rows(Chunk(0, table, len(table)), np.arange(len(y)), np.arange(len(y)), y, pred, mass)
    found: list[tuple[str, str, np.ndarray, RatioMoments]] = []
    for column in table.column_names:
        split = _split(table, rows, column)
        codes = split.codes(rows, column)
        for code in np.unique(codes).tolist():
            places = np.flatnonzero((codes == code) & (mass > 0.0))
            if len(places):
                moments = RatioMoments.of(y[places], pred[places], mass[places], np.zeros(len(places), np.int64), 1)
                found.append((column, split.titles[code], places, moments))
    chances = holm([chance(moments) for _, _, _, moments in found])
    return tuple(
        SegmentMetrics(
            column,
            value,
            len(places),
            (*_totals(moments, 0), *_others(_SEGMENT, pred[places], y[places], mass[places])),
            probability,
            probability < 1.0 - VERDICT_LEVEL and _differs(moments),
        )
        for (column, value, places, moments), probability in zip(found, chances, strict=True)
    )


def require_segments(table: "pa.Table") -> None:
    """Raise a `ValueError` for a column whose values name rows instead of segments; call it before long work."""
    count = len(table)
    rows = Rows(Chunk(0, table, count), np.arange(count), np.arange(count), *(np.ones(count) for _ in range(3)))
    for column in table.column_names:
        _split(table, rows, column)


def _split(table: "pa.Table", rows: Rows, column: str) -> Split:
    if is_numeric(open_columns(table, [], [column]), column):
        values = rows.chunk.numbers(column)
        known = values[np.isfinite(values)]
        # A few whole numbers are names of segments; many are an amount.
        if len(np.unique(known)) > 20:
            return by_number(values)
    return by_text(column, rows.chunk.texts(column, np.arange(len(rows))))


def _bins(pred: Floats, y: Floats, mass: Floats, slope: Floats | None) -> tuple[Bin, ...]:
    table = bin_by_prediction(pred, y, mass)
    code = torch.bucketize(torch.from_numpy(pred), torch.from_numpy(table.edges[1:-1].copy()), right=True).numpy()
    kappa: list[float | None] = [None] * len(table)
    if slope is not None:
        total, count = (np.bincount(code, values, len(table)) for values in (mass * slope, mass))
        kappa = (total / count).tolist()
    return tuple(
        Bin(float(low), int(rows), float(p), float(a), float(s), float(e), k)
        for low, rows, p, a, s, e, k in zip(
            table.edges[:-1], table.count, table.pred, table.y, table.stre, table.stre_error, kappa, strict=True
        )
    )


def _require_finite(pred: Floats) -> None:
    wrong = np.flatnonzero(~np.isfinite(pred))
    if len(wrong):
        raise ValueError(
            f"the prediction of row {wrong[0]} is {pred[wrong[0]]}: the training diverged; lower the learning rate"
        )
