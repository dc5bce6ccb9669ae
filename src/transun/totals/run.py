"""A total with its interval, from a model and tables or from arrays of predictions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from transun.data.encodings import concatenate
from transun.data.seen_rows import row_hashes
from transun.data.shift import TableShift
from transun.data.table import as_numbers, column_array
from transun.diagnosis.evaluation import cluster_columns, segment_columns, unit_codes
from transun.diagnosis.passes import segment_codes
from transun.diagnosis.tail import AmountTail
from transun.support.arrays import Floats, Integers, distinct
from transun.support.counting import counted
from transun.support.extras import need
from transun.tables.model import TableModel
from transun.tables.prediction import predict_in_chunks
from transun.totals.difference import estimate_total, labelled_tail
from transun.totals.result import SegmentTotals, Total, Totals
from transun.totals.rows import Rows

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["total", "total_of"]


def total(
    model: TableModel,
    new_rows: Any,
    labelled: Any,
    *,
    by: Sequence[str] = (),
    cluster: str | None = None,
    weight: str | None = None,
    level: float = 0.95,
    cap: float = math.inf,
    tail: AmountTail | None = None,
    finite_variance: bool = False,
    expected: bool = False,
    progress: bool | None = None,
) -> Totals:
    """What rows without targets add up to, with an interval, from a model and labelled rows that it was not trained on.

    The estimate is right whatever the model is, as long as the labelled rows are like the new ones; the better the
    model, the narrower the interval, see `transun.totals.difference`. No interval holds its level for every tail: where
    the variance of the amounts is likelier infinite than finite, the answer is a refusal, with its reason and a remedy.

    Args:
        model: the model that predicts both.
        new_rows: the rows whose total is wanted; what `read_table` takes.
        labelled: rows with the model's target, not of its training, and like the new ones.
        by: columns of segments, in both; each segment gets a total of its own.
        cluster: the column, in both, whose values are independent of each other, such as customers or households. Rows
            of one customer are alike, and an interval that takes them for independent is too narrow. None does so.
        weight: the column, in both, by which amounts are multiplied in the total; None takes the model's, if any.
        level: of the intervals.
        cap: amounts above it count as the cap, in labels and predictions, and the total is one of capped amounts.
        tail: how heavy the tail of the amounts is, by rows other than the labelled ones, such as those of the model's
            certificate (`transun.totals.certified_tail`). Without it the labelled rows alone decide whether the
            variance is likely to be finite, and a few hundred of them are wrong about it now and then.
        finite_variance: take the variance of the amounts to be finite, as where they have an upper end, unless the
            rows show beyond chance that it is not.
        expected: the total that so many rows like these have on average, with other predictions and other luck; this is
            what prediction-powered inference estimates.
        progress: show a progress bar; None shows it on a terminal.

    >>> model = train({"item": ["a", "b"] * 50, "gmv": [1.0, 10.0, 3.0, 30.0] * 25}, "gmv", MSE())
    >>> labelled = {"item": ["a", "b"] * 50, "gmv": [1.5, 15.0, 2.5, 25.0] * 25}
    >>> result = total(model, {"item": ["a"] * 30 + ["b"] * 70}, labelled).whole
    >>> result.low < 30 * 2 + 70 * 20 < result.high
    True

    """
    weight = weight or model.weight
    names = segment_columns(model, by)
    columns = list(dict.fromkeys([*names, *cluster_columns(model, cluster)]))
    numbers = [name for name in (weight, model.exposure) if name]
    wanted = _predict(model, new_rows, numbers, columns, "predicting the new rows", progress)
    known = _predict(model, labelled, [model.target, *numbers], columns, "predicting the labelled rows", progress)
    known = known.with_target(model.target)
    seen = 0.0 if model.seen is None else model.seen.share(known.hashes)
    if seen:
        raise ValueError(
            f"about {seen:.0%} of the labelled rows are training rows of the model, whose errors are smaller than "
            "those of new rows: give rows that it has not seen"
        )
    new = Rows.of("new", wanted.pred, None, wanted.numbers(weight), unit_codes(wanted.columns, cluster))
    rows = Rows.of(
        "labelled", known.pred, known.numbers(model.target), known.numbers(weight), unit_codes(known.columns, cluster)
    )
    segments = {}
    if names:
        both = concatenate([part.columns.select(names) for part in (wanted, known)])
        for column, (segmentation, codes) in segment_codes(both).items():
            segments[column] = _Segments(segmentation.how, segmentation.titles, codes[: len(new)], codes[len(new) :])
    options = _TotalOptions(level, cap, tail, finite_variance, expected)
    totals = _totals(new, rows, segments, options, cluster=cluster, weight=weight)
    sources = {"new rows": wanted.shift, "labelled rows": known.shift}
    remarks = [f"{name}, {sentence}" for name, shift in sources.items() for sentence in shift.sentences()]
    return replace(totals, remarks=tuple(remarks), repeated=rows.repeated(known.hashes))


def total_of(
    pred: Any,
    labelled_pred: Any,
    labelled_y: Any,
    *,
    segment: Any = None,
    labelled_segment: Any = None,
    cluster: Any = None,
    labelled_cluster: Any = None,
    weight: Any = None,
    labelled_weight: Any = None,
    level: float = 0.95,
    cap: float = math.inf,
    tail: AmountTail | None = None,
    finite_variance: bool = False,
    expected: bool = False,
) -> Totals:
    """The total of rows without targets from predictions of any origin; see `total`.

    Args:
        pred: predictions (N,) of the rows whose total is wanted.
        labelled_pred: predictions (n,), by the same model, of labelled rows that it was not trained on.
        labelled_y: their targets (n,).
        segment: the segment of each new row (N,), or None.
        labelled_segment: of each labelled row (n,).
        cluster: the customer or household of each new row (N,), where rows of one are alike; or None.
        labelled_cluster: of each labelled row (n,).
        weight: of each new row (N,), by which its amount is multiplied in the total; None is 1.
        labelled_weight: the same of labelled rows (n,).
        level: of the intervals.
        cap: amounts above it count as the cap.
        tail: of the amounts by other rows, `AmountTail.of(relative_amounts(y, pred))`; see `total`.
        finite_variance: take the variance of the amounts to be finite; see `total`.
        expected: the total that so many rows like these have on average; see `total`.

    >>> y = [10.0, 14.0] * 50
    >>> result = total_of([6.0] * 1000, labelled_pred=[6.0] * 100, labelled_y=y)  # half of what it should be
    >>> result.whole.predicted, result.whole.value
    (6000.0, 12000.0)

    """
    new = Rows.of("new", pred, None, weight, cluster)
    rows = Rows.of("labelled", labelled_pred, labelled_y, labelled_weight, labelled_cluster)
    for name, pair in (
        ("cluster", (cluster, labelled_cluster)),
        ("weight", (weight, labelled_weight)),
        ("segment", (segment, labelled_segment)),
    ):
        if (pair[0] is None) != (pair[1] is None):
            raise ValueError(f"give both {name} and labelled_{name}, or neither")
    segments = {}
    if segment is not None:
        values = [np.asarray(part) for part in (segment, labelled_segment)]
        for part, length in zip(values, (len(new), len(rows)), strict=True):
            if part.shape != (length,):
                raise ValueError(f"there are {length:,} predictions and segments of shape {part.shape}: give one a row")
        names, codes = distinct(np.concatenate(values))
        titles = tuple("missing" if name is None else str(name) for name in names)
        segments["segment"] = _Segments(counted(len(titles), "value"), titles, codes[: len(new)], codes[len(new) :])
    totals = _totals(new, rows, segments, _TotalOptions(level, cap, tail, finite_variance, expected))
    return replace(totals, repeated=rows.repeated(rows.pred))


@dataclass(frozen=True)
class _Segments:
    """How a column divides the rows: names of the segments, and the index of each row's segment."""

    how: str
    titles: tuple[str, ...]
    new: Integers
    labelled: Integers


@dataclass(frozen=True)
class _Predicted:
    """Rows of a table: predictions (n,), the columns beside them, hashes (n,) of labelled rows, and their shift."""

    pred: Floats
    columns: "pa.Table"
    hashes: np.ndarray
    shift: TableShift

    def numbers(self, name: str | None) -> Floats | None:
        """A column as numbers (n,), NaN where one is missing; None of no column."""
        return None if name is None else _numbers(self.columns, name)

    def with_target(self, target: str) -> "_Predicted":
        """The rows whose target is known."""
        y = _numbers(self.columns, target)
        infinite = np.flatnonzero(np.isinf(y))
        if len(infinite):
            raise ValueError(
                f"column {target!r} of labelled row {infinite[0]} is infinite, as of {len(infinite):,} rows: correct "
                "it, or leave the row out"
            )
        known = ~np.isnan(y)
        if not known.any():
            raise ValueError(f"no labelled row has a target {target!r}: there is nothing to learn the errors from")
        columns = self.columns.filter(need("pyarrow").array(known))
        return _Predicted(self.pred[known], columns, self.hashes[known], self.shift)


def _numbers(table: "pa.Table", name: str) -> Floats:
    """A column as numbers (n,), NaN where one is missing."""
    return as_numbers(f"column {name!r}", column_array(table, name), "name another column")


def _predict(
    model: TableModel, source: Any, numbers: Sequence[str], keep: Sequence[str], label: str, progress: bool | None
) -> _Predicted:
    preds, columns, hashes, shifts = [], [], [], []
    for chunk in predict_in_chunks(model, source, numbers=numbers, keep=keep, label=label, progress=progress):
        preds.append(chunk.pred.double())
        columns.append(chunk.columns)
        shifts.append(chunk.shift)
        if model.target in numbers:
            y = _numbers(chunk.columns, model.target)
            if model.exposure is not None:  # what a model remembers is a rate
                y = y / _numbers(chunk.columns, model.exposure)
            hashes.append(row_hashes(chunk.x, torch.from_numpy(y.copy())))
    table = concatenate(columns)
    seen = np.concatenate(hashes) if hashes else np.zeros(0)
    return _Predicted(torch.cat(preds).numpy(), table, seen, reduce(add, shifts))


@dataclass(frozen=True)
class _TotalOptions:
    """What is asked of a total; see `total`."""

    level: float
    cap: float
    tail: AmountTail | None
    finite_variance: bool
    expected: bool

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise ValueError(
                f"the level of an interval lies strictly between 0 and 1, such as 0.95, got {self.level:g}"
            )
        if not self.cap > 0.0:
            raise ValueError(f"a cap is an amount above 0, got {self.cap:g}")


def _totals(
    new: Rows,
    labelled: Rows,
    segments: Mapping[str, _Segments],
    options: _TotalOptions,
    *,
    cluster: str | None = None,
    weight: str | None = None,
) -> Totals:
    if not len(new):
        raise ValueError("there are no new rows, so that there is no total")
    for name, rows in (("new", new), ("labelled", labelled)):
        if len(rows) and not rows.weight.any():
            raise ValueError(f"the weight of every {name} row is 0, so that there is no total: name another weight")
    # Amounts that a cap cuts have a finite variance, and the tail that they had without it no longer matters.
    cut = labelled.exceeds(options.cap)
    tail = labelled_tail(labelled, options.cap).joined(None if cut else options.tail)
    assumed = cut or options.finite_variance

    def estimate(some_new: Rows, known: Rows) -> Total:
        return estimate_total(
            some_new, known, options.level, tail, expected=options.expected, cap=options.cap, assumed=assumed
        )

    tables = []
    for column, division in segments.items():
        totals = {
            title: estimate(new.part(division.new == code), labelled.part(division.labelled == code))
            for code, title in enumerate(division.titles)
            if (division.new == code).any()
        }
        tables.append(SegmentTotals(column, division.how, totals))
    whole = estimate(new, labelled)
    return Totals(whole, tuple(tables), cluster, weight, options.cap, options.expected, tail=tail)
