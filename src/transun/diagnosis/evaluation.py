"""A saved model evaluated on a table: its predictions, their assessment, and the certificate that records it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial, reduce
from importlib.metadata import version
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from transun.data.columns import Chunk, Columns, Rows, S
from transun.data.exposure import read_exposure, to_rates
from transun.data.fingerprint import fingerprint
from transun.data.sample import HashSample
from transun.data.schema import require_columns
from transun.data.seen_rows import SeenMatches, row_hashes
from transun.data.shift import TableShift
from transun.data.spool import Spool
from transun.data.table import column_array
from transun.diagnosis.assessment import assess, assess_sums, require_finite, segment_metrics
from transun.diagnosis.error_sums import ErrorSums
from transun.diagnosis.moments import Floats
from transun.diagnosis.passes import first_pass, second_pass, segment_codes
from transun.diagnosis.reading import ArrayRows, ColumnNames, ColumnRows, RowSource, usable_rows
from transun.diagnosis.result import Assessment, Covered, ModelAssessment
from transun.diagnosis.segmentation import Integers
from transun.diagnosis.tail import AmountTail, relative_amounts
from transun.metrics import STANDARD, Estimate, SampleMetric
from transun.models.certificate import Certificate, Measured, Part, write_certificate
from transun.models.description import describe_model
from transun.models.noise import Noise
from transun.models.row_intervals import RowIntervals, cross_coverage
from transun.support.extras import need
from transun.support.group import Group
from transun.tables.model import TableModel
from transun.tables.prediction import PredictedChunk, predict_chunk, predict_in_chunks
from transun.training.evaluation import predict_with_kappa

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "INTERVAL_LEVEL",
    "Evaluation",
    "Novelty",
    "RowsWithPredictions",
    "certify_folder",
    "evaluate_held_out",
    "evaluate_model",
    "evaluate_rows",
    "noise_errors",
    "noise_tail",
    "segment_columns",
    "unit_codes",
    "whole_part",
]


# The level at which the coverage of intervals of rows is measured, and the fewest rows that show it.
INTERVAL_LEVEL, _FEWEST_ROWS = 0.9, 100
# A column of segments: what its name puts before a title, titles, and for some rows segment, prediction and target.
_Division = tuple[str, Sequence[str], Integers, Floats, Floats]


@dataclass(frozen=True)
class Evaluation:
    """The assessment of a model, with a sample of the predictions "pred", targets "y" and weights behind it.

    `dropped` is the number of rows without a target, which are left out, and `seen` the estimated share of the others
    that were training rows of the model. `shift` counts what training has not seen.
    """

    assessment: ModelAssessment
    sample: HashSample
    dropped: int
    seen: float
    shift: TableShift

    @property
    def remark(self) -> str:
        """Which numbers are of a sample of the rows, in a sentence; empty if none is."""
        if self.sample.whole:
            return ""
        sampled = ", ".join(metric.name for metric in STANDARD if isinstance(metric, SampleMetric))
        return (
            f"{sampled} and differences between models are of {len(self.sample):,} of {self.assessment.rows:,} rows, "
            "drawn by a hash of the row number; everything else is of all rows"
        )


@dataclass(frozen=True)
class Novelty:
    """What is new in some rows to a model: values and rows that training has not seen; those of two chunks add up.

    Attributes:
        rows: how many there are.
        dropped: rows without a target or weight.
        shift: what training has not seen of their columns.
        seen: which training rows are among them; None where the model remembers none.

    """

    rows: int
    dropped: int
    shift: TableShift
    seen: SeenMatches | None

    def __add__(self, other: "Novelty") -> "Novelty":
        seen = None if self.seen is None or other.seen is None else self.seen + other.seen
        return Novelty(self.rows + other.rows, self.dropped + other.dropped, self.shift + other.shift, seen)


def evaluate_model(
    trained: TableModel,
    source: Any,
    by: Sequence[str] = (),
    *,
    cluster: str | None = None,
    name: str = "the model",
    progress: bool | None = None,
) -> Evaluation:
    """Predict the rows of a table, streamed, and assess the predictions against its target.

    Memory does not grow with the rows: predictions of many rows go to a temporary file, 24 bytes a row and the columns
    of segments. Rankings are then of a sample of a million rows; totals, errors and intervals are of all rows.

    Args:
        trained: the model.
        source: what `read_table` takes; it needs the model's target column.
        by: columns of segments.
        cluster: the column of customers or households, where rows of one are alike. The intervals of totals then count
            these instead of rows, and predictions are kept in memory, as the rows of one may be anywhere.
        name: of the model, on the progress bar.
        progress: show it; None shows it on a terminal.

    """
    names = _names(trained, by)
    numbers = [name for name in names.numbers if name != names.pred]
    novelties = []
    label = f"evaluating {name}"
    with Spool() as spool:
        keep = list(dict.fromkeys([*names.by, *([cluster] if cluster else [])]))
        for chunk in predict_in_chunks(trained, source, numbers=numbers, keep=keep, label=label, progress=progress):
            novelties.append(_novelty(trained, chunk))
            spool.append(_with_prediction(chunk, names))
        if cluster is not None:
            return _clustered_evaluation(trained, _in_memory(spool.columns(), names, cluster), novelties, cluster)
        return _evaluation(trained, ColumnRows(spool.columns(), names, show=False), reduce(add, novelties))


def _in_memory(columns: Columns, names: ColumnNames, cluster: str) -> ArrayRows:
    """All usable rows, with the unit of each."""
    tables = [chunk.table for chunk in columns.chunks()]
    table = need("pyarrow").concat_tables(tables, promote_options="permissive")
    rows = usable_rows(Chunk(0, table, len(table)), names)
    kept = table.take(rows.index)
    segments = kept.select(list(names.by)) if names.by else None
    return ArrayRows(rows.y, rows.pred, rows.weight, segments, unit_codes(kept, cluster))


def evaluate_rows(
    trained: TableModel, rows: Rows, by: Sequence[str] = (), *, progress: bool | None = None
) -> Evaluation:
    """The evaluation of a model on rows that live elsewhere; every number is computed from sums made there.

    Rows are read three times and predicted twice, because nothing of the size of the data is kept. Where predictions
    cost more than storage, write them beside the rows first, and use `diagnose_rows`.

    Args:
        trained: the model, which travels to the rows.
        rows: see `transun.diagnosis.diagnose_rows`; they need the model's target column.
        by: columns of segments.
        progress: show it, where the engine can; None shows it on a terminal.

    """
    names = _names(trained, by)
    numbers = [name for name in names.numbers if name != names.pred]
    require_columns(rows.schema.names, [*trained.sources, *numbers, *names.by])
    novelty = rows.total(partial(_novelty_of_chunk, trained, names), "evaluating", progress)
    return _evaluation(trained, ColumnRows(RowsWithPredictions(trained, rows, names), names, progress), novelty)


@dataclass(frozen=True)
class RowsWithPredictions:
    """Rows together with the predictions of a model, which are made anew, where the rows are, each time they are read.

    They are `Rows` with the columns that an assessment needs.
    """

    trained: TableModel
    rows: Rows
    names: ColumnNames

    @property
    def schema(self) -> "pa.Schema":
        """Names and Arrow types of the columns."""
        pa = need("pyarrow")
        return self.rows.schema.append(pa.field(self.names.pred, pa.float64()))

    def total(self, summarise: Callable[[Chunk], S], label: str = "reading", show: bool | None = None) -> S:
        """The sum of `summarise(chunk)` over chunks with predictions."""
        return self.rows.total(partial(_summarise_predicted, self.trained, self.names, summarise), label, show)


def _summarise_predicted(trained: TableModel, names: ColumnNames, summarise: Callable[[Chunk], S], chunk: Chunk) -> S:
    predicted = _with_prediction(_predicted(trained, names, chunk), names)
    return summarise(Chunk(chunk.first, predicted, chunk.done))


def _novelty_of_chunk(trained: TableModel, names: ColumnNames, chunk: Chunk) -> Novelty:
    return _novelty(trained, _predicted(trained, names, chunk))


def _predicted(trained: TableModel, names: ColumnNames, chunk: Chunk) -> PredictedChunk:
    kept = [name for name in (*names.numbers, *names.by) if name != names.pred]
    return predict_chunk(trained, chunk, list(dict.fromkeys(kept)))


def _novelty(trained: TableModel, chunk: PredictedChunk) -> Novelty:
    y = _numbers(chunk.columns, trained.target)
    if trained.exposure is not None:
        y = y / _numbers(chunk.columns, trained.exposure)
    weight = None if trained.weight is None else _numbers(chunk.columns, trained.weight)
    usable = np.isfinite(y) & (True if weight is None else np.isfinite(weight))
    hashes = row_hashes(chunk.x, torch.from_numpy(y.copy()))[usable]
    seen = None if trained.seen is None else trained.seen.matches(hashes)
    return Novelty(len(y), int((~usable).sum()), chunk.shift, seen)


def _with_prediction(chunk: PredictedChunk, names: ColumnNames) -> "pa.Table":
    pred = chunk.pred.double().numpy()
    require_finite(pred)
    return chunk.columns.append_column(names.pred, need("pyarrow").array(pred))


def _evaluation(trained: TableModel, source: RowSource, novelty: Novelty) -> Evaluation:
    if novelty.dropped == novelty.rows:
        raise ValueError(f"no row has a target {trained.target!r}: there is nothing to judge by")
    first = first_pass(source)
    second = second_pass(source, first, segment_metrics())
    assessed, sample = assess_sums(first, second), first.sample
    errors = _unit_errors(first.moments.ratio(), sample["pred"], sample["y"], sample["weight"])
    errors = errors.repeated(assessed.rows / max(len(sample), 1))
    divisions = [
        (f"{column} ", first.segmentations[column].titles, *(each[name] for name in ("code", "pred", "y")))
        for column, each in second.samples.items()
    ]
    covered = _covered(sample["pred"], sample["y"], divisions)
    seen = 0.0 if trained.seen is None or novelty.seen is None else trained.seen.share_of(novelty.seen)
    assessment = _of_model(assessed, trained, errors, None, covered)
    return Evaluation(assessment, sample, novelty.dropped, seen, novelty.shift)


def evaluate_held_out(
    trained: TableModel,
    table: "pa.Table",
    by: Sequence[str] = (),
    cluster: str | None = None,
    *,
    group: Group = Group(),
) -> ModelAssessment:
    """The assessment of rows in memory that the training held out, with the mean slope κ of every level.

    The rows are encoded once, for predictions and slopes alike.

    Args:
        trained: the model.
        table: the rows held out.
        by: columns of segments.
        cluster: column of the units that rows belong to, such as users; None takes every row as one.
        group: ranks that share the predictions, all of which must call this.

    """
    columns = list(_names(trained, by).by)
    rows = trained.dataset(table)
    estimates, kappa = predict_with_kappa(trained.model, rows, group=group)
    pred, y, unit = estimates.double().numpy(), _numbers(table, trained.target), unit_codes(table, cluster)
    weight = _numbers(table, trained.weight) if trained.weight else None
    if trained.exposure is not None:
        y, weight = to_rates(y, weight, read_exposure(table, trained.exposure))
    segments = table.select(columns) if columns else None
    assessed = assess(pred, y, weight, segments, None if kappa is None else kappa.double().numpy(), unit)
    return _of_rows(
        assessed, trained, ArrayRows(y, pred, np.ones(len(y)) if weight is None else weight, segments, unit), cluster
    )


def whole_part(assessment: Assessment) -> Part:
    """The metrics of all rows, as a certificate holds them."""
    return Part("", "all rows", assessment.rows, _measured(assessment.metrics))


def certify_folder(
    folder: Path, trained: TableModel, source: Any, assessment: ModelAssessment, held_out: str, seen: float = 0.0
) -> Certificate:
    """Write the certificate of the model in a folder, dated now; rows of its training are refused.

    Args:
        folder: of the saved model.
        trained: the model.
        source: the rows that it was assessed on.
        assessment: of these rows.
        held_out: how the rows were chosen, in words.
        seen: the share of them that were training rows, which prove nothing.

    """
    if seen:
        raise ValueError(
            f"about {seen:.0%} of these rows are training rows of the model, which prove nothing: certify it on rows "
            "that it has not seen"
        )
    description = describe_model(folder)
    certificate = Certificate(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        model=description.checksum,
        head=description.head,
        seed=description.seed,
        target=trained.target,
        held_out=held_out,
        fingerprint=fingerprint(source, _columns(trained)),
        versions={name: version(name) for name in ("transun", "torch", "numpy", "pyarrow")},
        whole=whole_part(assessment),
        weight=trained.weight,
        segments=tuple(
            Part(table.column, segment.value, segment.rows, _measured(segment.metrics))
            for table in assessment.segments
            for segment in table.segments
        ),
        noise=assessment.noise,
    )
    write_certificate(certificate, folder)
    return certificate


def segment_columns(trained: TableModel, by: Sequence[str]) -> tuple[str, ...]:
    """The columns of segments, each once; the target among them is an error."""
    columns = tuple(dict.fromkeys(by))
    if trained.target in columns:
        raise ValueError(
            f"segments by the target {trained.target!r} would call every model biased, since what turned out high was "
            "predicted lower: use columns known beforehand"
        )
    return columns


def _names(trained: TableModel, by: Sequence[str]) -> ColumnNames:
    columns = segment_columns(trained, by)
    pred = "prediction"
    while pred in (trained.target, trained.weight, trained.exposure, *columns):
        pred += " of the model"
    return ColumnNames(trained.target, pred, trained.weight, columns, trained.exposure)


def unit_codes(table: "pa.Table", name: str | None) -> Integers | None:
    """The index (n,) of each row's value in the column of clusters; None of no column."""
    if name is None:
        return None
    require_columns(table.column_names, [name])
    column = column_array(table, name)
    if column.null_count:
        row = int(column.is_null().to_numpy(zero_copy_only=False).argmax())
        raise ValueError(f"column {name!r} is empty in row {row}: fill it, or name another column as the cluster")
    codes: Integers = column.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _clustered_evaluation(
    trained: TableModel, rows: ArrayRows, novelties: Sequence[Novelty], cluster: str
) -> Evaluation:
    """The evaluation of rows in memory whose units are known."""
    novelty = reduce(add, novelties)
    assessed = assess(rows.pred, rows.y, rows.weight, rows.segments, unit=rows.unit)
    values = {"y": rows.y, "pred": rows.pred, "weight": rows.weight}
    sample = HashSample.of(max(len(rows.y), 1), np.arange(len(rows.y)), values)
    seen = 0.0 if trained.seen is None or novelty.seen is None else trained.seen.share_of(novelty.seen)
    return Evaluation(_of_rows(assessed, trained, rows, cluster), sample, novelty.dropped, seen, novelty.shift)


def _of_rows(assessed: Assessment, trained: TableModel, rows: ArrayRows, cluster: str | None) -> ModelAssessment:
    ratio = assessed.actual / assessed.predicted if assessed.predicted else math.nan
    divisions = [
        (f"{column} ", segmentation.titles, codes, rows.pred, rows.y)
        for column, (segmentation, codes) in ({} if rows.segments is None else segment_codes(rows.segments)).items()
    ]
    errors = _unit_errors(ratio, rows.pred, rows.y, rows.weight, rows.unit)
    return _of_model(assessed, trained, errors, cluster, _covered(rows.pred, rows.y, divisions))


def _unit_errors(ratio: float, pred: Floats, y: Floats, weight: Floats, unit: Integers | None = None) -> ErrorSums:
    """The errors w(y - Rŷ) of each unit at the ratio R of actual to predicted total."""
    counted = weight > 0.0
    sums = [values[counted] for values in (weight * y, weight * pred)]
    if unit is not None:
        codes = np.unique(unit[counted], return_inverse=True)[1]
        sums = [np.bincount(codes, values).astype(np.float64) for values in sums]
    tail = AmountTail.of(relative_amounts(*sums))
    return ErrorSums.of(sums[0] - (ratio if math.isfinite(ratio) else 1.0) * sums[1], tail)


def _of_model(
    assessed: Assessment, trained: TableModel, errors: ErrorSums, cluster: str | None, covered: tuple[Covered, ...]
) -> ModelAssessment:
    """The assessment with the noise of its total and the coverage of intervals of rows."""
    noise = Noise(
        training_rows=0 if trained.seen is None else trained.seen.rows,
        rows=assessed.rows,
        units=errors.units,
        cluster=cluster,
        actual=assessed.actual,
        predicted=assessed.predicted,
        squares=errors.squares,
        cubes=errors.cubes,
        fourths=errors.fourths,
        largest=errors.largest,
        tail_index=errors.tail.index,
        tail_error=errors.tail.error,
        tail_count=errors.tail.count,
    )
    return ModelAssessment(**vars(assessed), noise=noise, covered=covered)


def noise_errors(noise: Noise) -> ErrorSums:
    """The errors that a noise was measured by."""
    return ErrorSums(noise.units, noise.squares, noise.cubes, noise.fourths, noise.largest, noise_tail(noise))


def noise_tail(noise: Noise) -> AmountTail:
    """The tail of the amounts that a noise was measured by."""
    return AmountTail(noise.tail_index, noise.tail_error, noise.tail_count)


def _covered(pred: Floats, y: Floats, divisions: Sequence[_Division]) -> tuple[Covered, ...]:
    """The coverage of intervals of rows that are learned from every other row, by level and by segment."""
    if len(y) < _FEWEST_ROWS:
        return ()
    edges = RowIntervals.of(pred, y).edges
    starts = [f"predictions from {start:.4g}" for start in (float(pred.min()), *edges.tolist())]
    levels: _Division = ("", starts, np.searchsorted(edges, pred, side="right"), pred, y)
    found = []
    for column, titles, codes, some_pred, some_y in (levels, *divisions):
        shares = cross_coverage(some_pred, some_y, INTERVAL_LEVEL, codes)
        rows = np.bincount(codes)
        found += [
            Covered(f"{column}{titles[i]}", int(rows[i]), float(shares[i])) for i in np.flatnonzero(rows).tolist()
        ]
    return tuple(found)


def _measured(estimates: Sequence[Estimate]) -> dict[str, Measured]:
    return {estimate.name: Measured(estimate.value, estimate.low, estimate.high) for estimate in estimates}


def _columns(trained: TableModel) -> list[str]:
    return [*trained.sources, trained.target, *([trained.weight] if trained.weight else [])]


def _numbers(table: "pa.Table", name: str) -> Floats:
    compute, pa = need("pyarrow.compute"), need("pyarrow")
    numbers: Floats = compute.cast(table[name], pa.float64(), safe=False).to_numpy()
    return numbers
