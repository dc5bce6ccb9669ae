"""A model evaluated on a table: the predictions of its rows and their assessment."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from transun.data.columns import Chunk, Columns, Rows, S
from transun.data.encodings import concatenate
from transun.data.exposure import read_exposure, to_rates
from transun.data.sample import HashSample
from transun.data.schema import require_columns
from transun.data.seen_rows import SeenMatches, row_hashes
from transun.data.shift import TableShift
from transun.data.spool import Spool
from transun.data.table import as_numbers, column_array
from transun.diagnosis.assessment import assess, assess_sums, require_finite, segment_metrics
from transun.diagnosis.coverage import Division, coverage
from transun.diagnosis.passes import first_pass, second_pass, segment_codes
from transun.diagnosis.reading import ArrayRows, ColumnNames, ColumnRows, RowSource, usable_rows
from transun.diagnosis.result import Assessment, ModelAssessment
from transun.diagnosis.segmentation import Segmentation
from transun.diagnosis.total_noise import noise_of, unit_errors
from transun.metrics import STANDARD
from transun.support.arguments import listed
from transun.support.arrays import Floats, Integers
from transun.support.extras import need
from transun.support.group import Group
from transun.tables.model import TableModel
from transun.tables.prediction import PredictedChunk, predict_chunk, predict_in_chunks
from transun.training.evaluation import predict_with_kappa

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Evaluation",
    "Novelty",
    "RowsWithPredictions",
    "evaluate_held_out",
    "evaluate_model",
    "evaluate_rows",
    "segment_columns",
    "unit_codes",
]


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
        sampled = ", ".join(metric.name for metric in STANDARD if metric.keeps_rows)
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
    label = f"evaluating {name}"
    keep = list(dict.fromkeys([*names.by, *cluster_columns(trained, cluster)]))
    with Spool() as spool:

        def novelties() -> Iterator[Novelty]:
            for chunk in predict_in_chunks(trained, source, numbers=numbers, keep=keep, label=label, progress=progress):
                spool.append(_with_prediction(chunk, names))
                yield _novelty(trained, chunk)

        novelty = reduce(add, novelties())
        if cluster is not None:
            return _clustered_evaluation(trained, _in_memory(spool.columns(), names, cluster), novelty, cluster)
        return _evaluation(trained, ColumnRows(spool.columns(), names, show=False), novelty)


def _in_memory(columns: Columns, names: ColumnNames, cluster: str) -> ArrayRows:
    """All usable rows, with the unit of each."""
    tables = [chunk.table for chunk in columns.chunks()]
    table = concatenate(tables)
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
    errors = unit_errors(first.moments.ratio(), sample["pred"], sample["y"], sample["weight"])
    errors = errors.repeated(assessed.rows / max(len(sample), 1))
    divisions = [
        Division(_titles(column, first.segmentations[column]), each["code"], each["pred"], each["y"])
        for column, each in second.samples.items()
    ]
    seen = 0.0 if trained.seen is None or novelty.seen is None else trained.seen.share_of(novelty.seen)
    assessment = ModelAssessment(
        **vars(assessed),
        noise=noise_of(assessed, trained, errors, cluster=None),
        covered=coverage(sample["pred"], sample["y"], divisions),
    )
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


def segment_columns(trained: TableModel, by: Sequence[str]) -> tuple[str, ...]:
    """The columns of segments, each once; the target among them is an error."""
    columns = tuple(dict.fromkeys(listed("by", by)))
    if trained.target in columns:
        raise ValueError(
            f"segments by the target {trained.target!r} would call every model biased, since what turned out high was "
            "predicted lower: use columns known beforehand"
        )
    return columns


def cluster_columns(trained: TableModel, cluster: str | None) -> tuple[str, ...]:
    """The column of clusters, if there is one; the target is an error."""
    if cluster == trained.target:
        raise ValueError(
            f"the target {cluster!r} names no customers or households: rows of one amount have nothing else in common"
        )
    return () if cluster is None else (cluster,)


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


def _clustered_evaluation(trained: TableModel, rows: ArrayRows, novelty: Novelty, cluster: str) -> Evaluation:
    """The evaluation of rows in memory whose units are known."""
    assessed = assess(rows.pred, rows.y, rows.weight, rows.segments, unit=rows.unit)
    values = {"y": rows.y, "pred": rows.pred, "weight": rows.weight}
    sample = HashSample.of(max(len(rows.y), 1), np.arange(len(rows.y)), values)
    seen = 0.0 if trained.seen is None or novelty.seen is None else trained.seen.share_of(novelty.seen)
    return Evaluation(_of_rows(assessed, trained, rows, cluster), sample, novelty.dropped, seen, novelty.shift)


def _of_rows(assessed: Assessment, trained: TableModel, rows: ArrayRows, cluster: str | None) -> ModelAssessment:
    ratio = assessed.actual / assessed.predicted if assessed.predicted else math.nan
    divisions = [
        Division(_titles(column, segmentation), codes, rows.pred, rows.y)
        for column, (segmentation, codes) in ({} if rows.segments is None else segment_codes(rows.segments)).items()
    ]
    errors = unit_errors(ratio, rows.pred, rows.y, rows.weight, rows.unit)
    return ModelAssessment(
        **vars(assessed),
        noise=noise_of(assessed, trained, errors, cluster),
        covered=coverage(rows.pred, rows.y, divisions),
    )


def _titles(column: str, segmentation: Segmentation) -> list[str]:
    """The titles of a column's segments, as they stand among those of other columns."""
    return [f"{column} {title}" for title in segmentation.titles]


def _numbers(table: "pa.Table", name: str) -> Floats:
    return as_numbers(f"column {name!r}", column_array(table, name), "name another column")
