"""A saved model evaluated on a table: its predictions, their assessment, and the certificate that records it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from importlib.metadata import version
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from transun.data.fingerprint import fingerprint
from transun.data.seen_rows import row_hashes
from transun.data.shift import TableShift
from transun.diagnosis.assessment import assess
from transun.diagnosis.moments import Floats
from transun.diagnosis.result import Assessment
from transun.metrics import Estimate
from transun.models.certificate import Certificate, Measured, Part, write_certificate
from transun.models.description import describe_model
from transun.support.extras import need
from transun.tables.model import TableModel
from transun.tables.prediction import predict_in_chunks
from transun.training.evaluation import predict_with_kappa

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Evaluation", "certify_folder", "evaluate_held_out", "evaluate_model", "whole_part"]


@dataclass(frozen=True)
class Evaluation:
    """The assessment of a model, with the predictions, targets and weights (n,) behind it.

    `dropped` is the number of rows without a target, which are left out, and `seen` the estimated share of the others
    that were training rows of the model. `shift` counts what training has not seen.
    """

    assessment: Assessment
    pred: Floats
    y: Floats
    weight: Floats | None
    dropped: int
    seen: float
    shift: TableShift


def evaluate_model(
    trained: TableModel, source: Any, by: Sequence[str] = (), *, name: str = "the model", progress: bool | None = None
) -> Evaluation:
    """Predict the rows of a table, streamed, and assess the predictions against its target.

    Args:
        trained: the model.
        source: what `read_table` takes; it needs the model's target column.
        by: columns of segments.
        name: of the model, on the progress bar.
        progress: show it; None shows it on a terminal.

    """
    columns = _segment_columns(trained, by)
    pa = need("pyarrow")
    numbers = [trained.target, *([trained.weight] if trained.weight else [])]
    preds, parts, hashes, shifts = [], [], [], []
    label = f"evaluating {name}"
    for chunk in predict_in_chunks(trained, source, numbers=numbers, keep=columns, label=label, progress=progress):
        preds.append(chunk.pred.double())
        parts.append(chunk.columns)
        hashes.append(row_hashes(chunk.x, torch.from_numpy(_numbers(chunk.columns, trained.target).copy())))
        shifts.append(chunk.shift)
    table = pa.concat_tables(parts, promote_options="permissive")
    pred = torch.cat(preds).numpy()
    y, weight = _numbers(table, trained.target), _numbers(table, trained.weight) if trained.weight else None
    usable = np.isfinite(y) & (np.isfinite(weight) if weight is not None else True)
    if not usable.any():
        raise ValueError(f"no row has a target {trained.target!r}: there is nothing to judge by")
    if weight is not None and (weight[usable] < 0.0).any():
        raise ValueError(f"column {trained.weight!r} has weights below 0: use 0 to leave a row out")
    y, pred, weight = y[usable], pred[usable], None if weight is None else weight[usable]
    segments = table.select(columns).filter(pa.array(usable)) if columns else None
    seen = 0.0 if trained.seen is None else trained.seen.share(np.concatenate(hashes)[usable])
    dropped = int((~usable).sum())
    return Evaluation(assess(pred, y, weight, segments), pred, y, weight, dropped, seen, reduce(add, shifts))


def evaluate_held_out(trained: TableModel, table: "pa.Table", by: Sequence[str] = ()) -> Assessment:
    """The assessment of rows in memory that the training held out, with the mean slope κ of every level.

    The rows are encoded once, for predictions and slopes alike.
    """
    columns = _segment_columns(trained, by)
    rows = trained.dataset(table)
    pred, kappa = predict_with_kappa(trained.model, rows)
    return assess(
        pred.double().numpy(),
        _numbers(table, trained.target),
        _numbers(table, trained.weight) if trained.weight else None,
        table.select(columns) if columns else None,
        None if kappa is None else kappa.double().numpy(),
    )


def whole_part(assessment: Assessment) -> Part:
    """The metrics of all rows, as a certificate holds them."""
    return Part("", "all rows", assessment.rows, _measured(assessment.metrics))


def certify_folder(
    folder: Path, trained: TableModel, source: Any, assessment: Assessment, held_out: str, seen: float = 0.0
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
    )
    write_certificate(certificate, folder)
    return certificate


def _segment_columns(trained: TableModel, by: Sequence[str]) -> list[str]:
    columns = list(dict.fromkeys(by))
    if trained.target in columns:
        raise ValueError(
            f"segments by the target {trained.target!r} would call every model biased, since what turned out high was "
            "predicted lower: use columns known beforehand"
        )
    return columns


def _measured(estimates: Sequence[Estimate]) -> dict[str, Measured]:
    return {estimate.name: Measured(estimate.value, estimate.low, estimate.high) for estimate in estimates}


def _columns(trained: TableModel) -> list[str]:
    return [*trained.features.sources, trained.target, *([trained.weight] if trained.weight else [])]


def _numbers(table: "pa.Table", name: str) -> Floats:
    compute, pa = need("pyarrow.compute"), need("pyarrow")
    numbers: Floats = compute.cast(table[name], pa.float64(), safe=False).to_numpy()
    return numbers
