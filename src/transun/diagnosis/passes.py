"""The two passes over the data: sums and a sample, then levels and segments whose edges the sample decided."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from transun.data.columns import Columns, is_numeric
from transun.diagnosis.moments import RatioMoments
from transun.diagnosis.reading import Gaps, Names, Rows, rows_of, skipped_rows
from transun.diagnosis.sample import HashSample
from transun.diagnosis.splits import MOST, Split, by_number, by_text, quantile_edges
from transun.metrics import FLOORED, MRE, NMAE, NRMSE, Meter

__all__ = ["Everything", "First", "first_pass", "second_pass"]

# Rows of the sample: ranking, shape, test and corrections; of the sample that segments are chosen by.
SAMPLE, LABELS = 1 << 20, 1 << 17
_LEVELS = 10


@dataclass(frozen=True)
class First:
    """What the first pass knows: sums over all rows, a sample, and what the segments are."""

    rows: int
    skipped: tuple[str, ...]
    moments: RatioMoments
    meter: Meter
    sample: HashSample
    splits: Mapping[str, Split]


@dataclass(frozen=True)
class Everything:
    """Sums by level of the prediction, with the levels' lower ends, with the largest targets cut, and by segment."""

    edges: tuple[float, ...]
    levels: RatioMoments
    capped: RatioMoments
    segments: Mapping[str, RatioMoments]


def first_pass(columns: Columns, names: Names, show: bool | None = None) -> First:
    """Read everything once."""
    gaps, meter, sample = Gaps(), Meter(MRE, NRMSE, NMAE, FLOORED), HashSample(SAMPLE)
    labels = {name: HashSample(LABELS) for name in names.by}
    moments, read = _none(1), 0
    for rows in rows_of(columns, names, "reading", show, gaps):
        read = rows.chunk.first + len(rows.chunk)
        moments += RatioMoments.of(rows.y, rows.pred, rows.weight, np.zeros(len(rows), dtype=np.int64), 1)
        meter.update(rows.pred, rows.y, rows.weight)
        sample.add(rows.number, {"y": rows.y, "pred": rows.pred, "weight": rows.weight})
        for name, held in labels.items():
            _add_labels(held, rows, name)
    skipped = skipped_rows(gaps, read)
    splits = {name: _split(columns, name, held) for name, held in labels.items()}
    return First(read, skipped, moments, meter, sample, splits)


def second_pass(columns: Columns, names: Names, first: First, show: bool | None = None) -> Everything:
    """Read everything again, now that the edges are known."""
    sample = first.sample
    edges = quantile_edges(sample["pred"], sample["weight"], _LEVELS)
    levels, capped, highest = _none(len(edges) + 1), _none(1), _cap(sample)
    segments = {name: _none(len(split.titles)) for name, split in first.splits.items()}
    for rows in rows_of(columns, names, "levels and segments", show, Gaps()):
        level = np.searchsorted(edges, rows.pred, side="right")
        levels += RatioMoments.of(rows.y, rows.pred, rows.weight, level, len(levels))
        cut = np.where(rows.pred > 0.0, np.minimum(rows.y, highest * rows.pred), rows.y)
        capped += RatioMoments.of(cut, rows.pred, rows.weight, np.zeros(len(rows), dtype=np.int64), 1)
        for name, split in first.splits.items():
            codes = split.codes(rows, name)
            segments[name] += RatioMoments.of(rows.y, rows.pred, rows.weight, codes, len(split.titles))
    return Everything((float(sample["pred"].min()), *edges.tolist()), levels, capped, segments)


def _cap(sample: HashSample) -> float:
    """The ratio of target to prediction that one row in a hundred exceeds."""
    y, pred = sample["y"], sample["pred"]
    positive = pred > 0.0
    return float(np.quantile(y[positive] / pred[positive], 0.99)) if positive.any() else 0.0


def _none(groups: int) -> RatioMoments:
    return RatioMoments(np.zeros(groups), np.zeros(groups), np.zeros((groups, 5, 5)))


def _add_labels(held: HashSample, rows: Rows, name: str) -> None:
    wanted = held.wants(rows.number)
    texts = np.array([*rows.chunk.texts(name, rows.place[wanted]), None], dtype=object)[:-1]
    held.add(rows.number[wanted], {"text": texts})


def _split(columns: Columns, name: str, held: HashSample) -> Split:
    texts = held["text"].tolist()
    if is_numeric(columns, name) and len(set(texts)) > MOST:
        return by_number(np.array([np.nan if text is None else float(text) for text in texts]))
    return by_text(name, texts)
