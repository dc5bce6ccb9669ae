"""The two passes over the data: sums and a sample first, then sums by level and segment, which the sample defines.

A pass has three parts: `summarise(rows)` of a chunk, `+` of two summaries, and `report(summary)` of the sum over all
chunks. Only the first part sees rows, and it needs nothing but the chunk, so it runs where the rows are: in a loop over
a file, or in the workers of Spark, Ray or Dask. Any order and grouping of the chunks gives the same report, but for the
rounding of sums.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from transun import metrics
from transun.data.sample import HashSample
from transun.diagnosis.interval import TOTALS
from transun.diagnosis.moments import RatioMoments
from transun.diagnosis.reading import ArrayRows, RowSource, SkippedRows, UsableRows
from transun.diagnosis.segmentation import Segmentation, choose_segmentation, quantile_edges
from transun.metrics import Meter, Metric
from transun.support.arrays import Floats, Integers

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "FirstPass",
    "FirstSums",
    "LevelsPass",
    "SecondPass",
    "SecondSums",
    "TotalsPass",
    "first_pass",
    "second_pass",
    "segment_codes",
]

# Rows of the sample behind ranking, shape, test and corrections, and of the sample that segments are chosen from.
SAMPLE, LABELS = 1 << 20, 1 << 17
_LEVELS = 10


@dataclass(frozen=True)
class FirstPass:
    """What the first pass finds: sums over all rows, a sample, and how each column divides the rows into segments.

    `meter` holds the metrics that are sums over rows. A metric that needs all rows at once, such as a ranking, is
    computed from the sample. `skipped` has a sentence on each reason for which rows were left out.
    """

    rows: int
    skipped: tuple[str, ...]
    moments: RatioMoments
    meter: Meter
    sample: HashSample
    segmentations: Mapping[str, Segmentation]


@dataclass(frozen=True)
class FirstSums:
    """The summary of some rows that the first pass adds up; `labels` has a sample of every column of segments."""

    rows: int
    skipped: SkippedRows
    moments: RatioMoments
    meter: Meter
    sample: HashSample
    labels: Mapping[str, HashSample]

    def __add__(self, other: "FirstSums") -> "FirstSums":
        return FirstSums(
            self.rows + other.rows,
            self.skipped + other.skipped,
            self.moments + other.moments,
            self.meter + other.meter,
            self.sample + other.sample,
            {column: sample + other.labels[column] for column, sample in self.labels.items()},
        )


@dataclass(frozen=True)
class TotalsPass:
    """The first pass: totals, additive metrics, a sample of the rows, and of the values of every segment column.

    Args:
        by: the columns of segments.
        numeric: those of them that hold numbers.
        sample_size: the most rows of the sample.

    """

    by: tuple[str, ...] = ()
    numeric: frozenset[str] = frozenset()
    sample_size: int = SAMPLE

    def summarise(self, rows: UsableRows) -> FirstSums:
        """The sums of some rows, possibly none."""
        meter = Meter(*(metric for metric in _streamed(metrics.STANDARD) if metric.name not in TOTALS))
        meter.update(rows.pred, rows.y, rows.weight)
        columns = {"y": rows.y, "pred": rows.pred, "weight": rows.weight}
        labels = {
            column: HashSample.of(LABELS, rows.number, {"text": rows.chunk.texts(column, rows.index)})
            for column in self.by
        }
        return FirstSums(
            len(rows.chunk),
            rows.skipped,
            _moments_of(rows.y, rows),
            meter,
            HashSample.of(self.sample_size, rows.number, columns),
            labels,
        )

    def report(self, sums: FirstSums) -> FirstPass:
        """What follows from the sums over all rows; columns whose values name rows, not segments, are refused."""
        skipped = sums.skipped.sentences(sums.rows)
        segmentations = {
            column: choose_segmentation(column, sample.table["text"].to_pylist(), numeric=column in self.numeric)
            for column, sample in sums.labels.items()
        }
        return FirstPass(sums.rows, skipped, sums.moments, sums.meter, sums.sample.in_order(), segmentations)


@dataclass(frozen=True)
class SecondPass:
    """What the second pass finds: sums by level of the prediction, with the largest targets cut, and by segment.

    `edges` are the lower ends of the levels. `by_segment` are further metrics of every segment: `meters` has those of
    them that are sums over rows, and `samples` the rows, with a column "code" of segments, for the others.
    """

    edges: tuple[float, ...]
    levels: RatioMoments
    capped: RatioMoments
    segments: Mapping[str, RatioMoments]
    by_segment: tuple[Metric, ...]
    meters: Mapping[str, tuple[Meter, ...]]
    samples: Mapping[str, HashSample]


@dataclass(frozen=True)
class SecondSums:
    """The summary of some rows that the second pass adds up; `samples` has a sample with the segments of its rows."""

    levels: RatioMoments
    capped: RatioMoments
    segments: Mapping[str, RatioMoments]
    meters: Mapping[str, tuple[Meter, ...]]
    samples: Mapping[str, HashSample]

    def __add__(self, other: "SecondSums") -> "SecondSums":
        return SecondSums(
            self.levels + other.levels,
            self.capped + other.capped,
            {column: moments + other.segments[column] for column, moments in self.segments.items()},
            {
                column: tuple(a + b for a, b in zip(meters, other.meters[column], strict=True))
                for column, meters in self.meters.items()
            },
            {column: sample + other.samples[column] for column, sample in self.samples.items()},
        )


@dataclass(frozen=True)
class LevelsPass:
    """The second pass: sums by level and by segment.

    Args:
        edges: the lower ends of the levels of the prediction but for the lowest level.
        lowest: the smallest prediction of the sample.
        largest_ratio: of target to prediction, above which targets are cut.
        segmentations: how each column divides the rows.
        by_segment: metrics to compute for every segment besides those of its totals; they cost more than all the rest.
        sample_size: the most rows for those of them that need all rows at once.

    """

    edges: tuple[float, ...]
    lowest: float
    largest_ratio: float
    segmentations: Mapping[str, Segmentation]
    by_segment: tuple[Metric, ...] = ()
    sample_size: int = SAMPLE

    @staticmethod
    def after(first: FirstPass, by_segment: Sequence[Metric] = ()) -> "LevelsPass":
        """The pass whose levels and segments the sample of the first pass defines."""
        sample = first.sample
        edges = quantile_edges(sample["pred"], sample["weight"], _LEVELS).tolist()
        return LevelsPass(
            tuple(edges),
            float(sample["pred"].min()),
            _largest_ratio(sample),
            first.segmentations,
            tuple(by_segment),
            sample.capacity,
        )

    def summarise(self, rows: UsableRows) -> SecondSums:
        """The sums of some rows, possibly none."""
        level = np.searchsorted(np.array(self.edges), rows.pred, side="right")
        cut = np.where(rows.pred > 0.0, np.minimum(rows.y, self.largest_ratio * rows.pred), rows.y)
        codes = {column: rule.codes(rows, column) for column, rule in self.segmentations.items()}
        streamed = _streamed(self.by_segment)
        columns = {"y": rows.y, "pred": rows.pred, "weight": rows.weight}
        return SecondSums(
            rows.moments(level, len(self.edges) + 1),
            _moments_of(cut, rows),
            {column: rows.moments(code, self._size(column)) for column, code in codes.items()},
            {column: self._meters(streamed, rows, column, code) for column, code in codes.items() if streamed},
            {
                column: HashSample.of(self.sample_size, rows.number, columns | {"code": code})
                for column, code in codes.items()
                if len(streamed) < len(self.by_segment)
            },
        )

    def report(self, sums: SecondSums) -> SecondPass:
        """What follows from the sums over all rows."""
        samples = {column: sample.in_order() for column, sample in sums.samples.items()}
        return SecondPass(
            (self.lowest, *self.edges), sums.levels, sums.capped, sums.segments, self.by_segment, sums.meters, samples
        )

    def _size(self, column: str) -> int:
        return len(self.segmentations[column].titles)

    def _meters(self, streamed: list[Metric], rows: UsableRows, column: str, codes: np.ndarray) -> tuple[Meter, ...]:
        meters = tuple(Meter(*streamed) for _ in range(self._size(column)))
        for code, meter in enumerate(meters):
            inside = codes == code
            meter.update(rows.pred[inside], rows.y[inside], rows.weight[inside])
        return meters


def first_pass(source: RowSource, sample_size: int | None = None) -> FirstPass:
    """Read all rows once; a sample of at most `sample_size` rows is kept, or of `SAMPLE` if it is None."""
    numeric = frozenset(column for column in source.by if source.is_numeric(column))
    totals = TotalsPass(source.by, numeric, SAMPLE if sample_size is None else sample_size)
    return totals.report(source.total(totals.summarise, "reading"))


def second_pass(source: RowSource, first: FirstPass, by_segment: Sequence[Metric] = ()) -> SecondPass:
    """Read all rows again, now that the edges of levels and segments are known.

    Args:
        source: the rows of the first pass.
        first: what it found.
        by_segment: metrics to compute for every segment besides those of its totals; they cost more than all the rest.

    """
    levels = LevelsPass.after(first, by_segment)
    return levels.report(source.total(levels.summarise, "levels and segments"))


def segment_codes(table: "pa.Table") -> dict[str, tuple[Segmentation, Integers]]:
    """How each column of a table in memory divides its rows, and the index of each row's segment (n,)."""
    ones = np.ones(len(table))
    source = ArrayRows(ones, ones, ones, table)
    segmentations = first_pass(source, sample_size=len(table)).segmentations
    rows = source.rows()
    return {column: (each, each.codes(rows, column)) for column, each in segmentations.items()}


def _streamed(of: Sequence[Metric]) -> list[Metric]:
    """The metrics whose summaries do not grow with the rows."""
    return [metric for metric in of if not metric.keeps_rows]


def _moments_of(y: Floats, rows: UsableRows) -> RatioMoments:
    return rows.moments(np.zeros(len(rows), dtype=np.int64), 1, y)


def _largest_ratio(sample: HashSample) -> float:
    """The ratio of target to prediction that one row in a hundred exceeds."""
    y, pred = sample["y"], sample["pred"]
    positive = pred > 0.0
    return float(np.quantile(y[positive] / pred[positive], 0.99)) if positive.any() else 0.0
