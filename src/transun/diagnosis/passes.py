"""The two passes over the data: sums and a sample first, then sums by level and segment, which the sample defines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from transun import metrics
from transun.diagnosis.interval import TOTALS
from transun.diagnosis.moments import RatioMoments
from transun.diagnosis.reading import RowSource, SkippedRows, UsableRows
from transun.diagnosis.sample import HashSample
from transun.diagnosis.segmentation import MOST, Segmentation, by_number, by_text, quantile_edges
from transun.metrics import Meter, Metric, SampleMetric

__all__ = ["FirstPass", "SecondPass", "first_pass", "second_pass"]

# Rows of the sample behind ranking, shape, test and corrections, and of the sample that segments are chosen from.
SAMPLE, LABELS = 1 << 20, 1 << 17
_LEVELS = 10


@dataclass(frozen=True)
class FirstPass:
    """What the first pass finds: sums over all rows, a sample, and how each column divides the rows into segments.

    `meter` holds the metrics that are sums over rows. A metric that needs all rows at once, such as a ranking, is
    computed from the sample.
    """

    rows: int
    skipped: tuple[str, ...]
    moments: RatioMoments
    meter: Meter
    sample: HashSample
    segmentations: Mapping[str, Segmentation]


@dataclass(frozen=True)
class SecondPass:
    """What the second pass finds: sums by level of the prediction, with the largest targets cut, and by segment.

    `edges` are the lower ends of the levels. `meters` holds further metrics of every segment, where they are wanted.
    """

    edges: tuple[float, ...]
    levels: RatioMoments
    capped: RatioMoments
    segments: Mapping[str, RatioMoments]
    meters: Mapping[str, tuple[Meter, ...]]


def first_pass(source: RowSource, sample_size: int | None = None) -> FirstPass:
    """Read all rows once; a sample of at most `sample_size` rows is kept, or of `SAMPLE` if it is None."""
    skipped, sample = SkippedRows(), HashSample(SAMPLE if sample_size is None else sample_size)
    sums = [metric for metric in metrics.STANDARD if metric.name not in TOTALS and not isinstance(metric, SampleMetric)]
    meter = Meter(*sums)
    labels = {column: HashSample(LABELS) for column in source.by}
    moments, read = _no_moments(1), 0
    for rows in source.read("reading", skipped):
        read = rows.chunk.first + len(rows.chunk)
        moments += RatioMoments.of(rows.y, rows.pred, rows.weight, np.zeros(len(rows), dtype=np.int64), 1)
        meter.update(rows.pred, rows.y, rows.weight)
        sample.add(rows.number, {"y": rows.y, "pred": rows.pred, "weight": rows.weight})
        for column, label_sample in labels.items():
            _add_labels(label_sample, rows, column)
    segmentations = {column: _segmentation(source, column, label_sample) for column, label_sample in labels.items()}
    return FirstPass(read, skipped.sentences(read), moments, meter, sample, segmentations)


def second_pass(source: RowSource, first: FirstPass, by_segment: Sequence[Metric] = ()) -> SecondPass:
    """Read all rows again, now that the edges of levels and segments are known.

    Args:
        source: the rows of the first pass.
        first: what it found.
        by_segment: metrics to compute for every segment besides those of its totals; they cost more than all the rest.

    """
    sample = first.sample
    edges = quantile_edges(sample["pred"], sample["weight"], _LEVELS)
    levels, capped, largest_ratio = _no_moments(len(edges) + 1), _no_moments(1), _largest_ratio(sample)
    sizes = {column: len(segmentation.titles) for column, segmentation in first.segmentations.items()}
    segments = {column: _no_moments(size) for column, size in sizes.items()}
    meters = {column: tuple(Meter(*by_segment) for _ in range(size)) for column, size in sizes.items() if by_segment}
    for rows in source.read("levels and segments", SkippedRows()):
        level = np.searchsorted(edges, rows.pred, side="right")
        levels += RatioMoments.of(rows.y, rows.pred, rows.weight, level, len(levels))
        cut = np.where(rows.pred > 0.0, np.minimum(rows.y, largest_ratio * rows.pred), rows.y)
        capped += RatioMoments.of(cut, rows.pred, rows.weight, np.zeros(len(rows), dtype=np.int64), 1)
        for column, segmentation in first.segmentations.items():
            codes = segmentation.codes(rows, column)
            segments[column] += RatioMoments.of(rows.y, rows.pred, rows.weight, codes, sizes[column])
            for code, meter in enumerate(meters.get(column, ())):
                inside = codes == code
                meter.update(rows.pred[inside], rows.y[inside], rows.weight[inside])
    return SecondPass((float(sample["pred"].min()), *edges.tolist()), levels, capped, segments, meters)


def _largest_ratio(sample: HashSample) -> float:
    """The ratio of target to prediction that one row in a hundred exceeds."""
    y, pred = sample["y"], sample["pred"]
    positive = pred > 0.0
    return float(np.quantile(y[positive] / pred[positive], 0.99)) if positive.any() else 0.0


def _no_moments(groups: int) -> RatioMoments:
    return RatioMoments(np.zeros(groups), np.zeros(groups), np.zeros((groups, 5, 5)))


def _add_labels(sample: HashSample, rows: UsableRows, column: str) -> None:
    wanted = sample.wants(rows.number)
    texts = np.array([*rows.chunk.texts(column, rows.index[wanted]), None], dtype=object)[:-1]
    sample.add(rows.number[wanted], {"text": texts})


def _segmentation(source: RowSource, column: str, sample: HashSample) -> Segmentation:
    texts = sample["text"].tolist()
    # A few different numbers are names of segments; many are an amount.
    if source.is_numeric(column) and len(set(texts)) > MOST:
        return by_number(np.array([np.nan if text is None else float(text) for text in texts]))
    return by_text(column, texts)
