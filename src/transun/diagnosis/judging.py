"""A saved model judged on a table: its predictions, their assessment, and the certificate that follows."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from transun.data.fingerprint import fingerprint
from transun.diagnosis.assessment import Assessment, assess, certify
from transun.diagnosis.moments import Floats
from transun.models.certificate import Certificate, read_certificate, write_certificate
from transun.models.description import describe_model
from transun.support.extras import need
from transun.tables.model import TableModel
from transun.tables.prediction import score
from transun.tables.training import slopes

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Judged", "as_certified", "certify_folder", "judge", "judge_held_out"]


@dataclass(frozen=True)
class Judged:
    """An assessment and the rows behind it; `dropped` rows had no target."""

    assessment: Assessment
    pred: Floats
    y: Floats
    weight: Floats | None
    dropped: int


def judge(
    trained: TableModel, source: Any, by: Sequence[str] = (), *, name: str = "the model", progress: bool | None = None
) -> Judged:
    """Predict the rows of a table, streamed, and compare with its target.

    Args:
        trained: the model.
        source: what `read_table` takes, or a folder of CSV files; it needs the model's target column.
        by: columns of segments.
        name: what the progress bar calls the model.
        progress: show it; None shows it on a terminal.

    """
    names = list(dict.fromkeys(by))
    if trained.target in names:
        raise ValueError(
            f"segments by the target {trained.target!r} would call every model biased, since what turned out high was "
            "predicted lower: use columns known beforehand"
        )
    pa = need("pyarrow")
    numbers = [trained.target, *([trained.weight] if trained.weight else [])]
    preds, kept = [], []
    for part in score(trained, source, numbers=numbers, keep=names, label=f"judging {name}", progress=progress):
        preds.append(part.pred.double())
        kept.append(part.kept)
    table = pa.concat_tables(kept, promote_options="permissive")
    pred = torch.cat(preds).numpy()
    y = _numbers(table, trained.target)
    weight = _numbers(table, trained.weight) if trained.weight else None
    fine = np.isfinite(y) & (np.isfinite(weight) if weight is not None else True)
    if not fine.any():
        raise ValueError(f"no row has a target {trained.target!r}: there is nothing to judge by")
    if weight is not None and (weight[fine] < 0.0).any():
        raise ValueError(f"column {trained.weight!r} has weights below 0: use 0 to leave a row out")
    y, pred, weight = y[fine], pred[fine], None if weight is None else weight[fine]
    segments = table.select(names).filter(pa.array(fine)) if names else None
    return Judged(assess(pred, y, weight, segments), pred, y, weight, int((~fine).sum()))


def judge_held_out(trained: TableModel, table: "pa.Table", by: Sequence[str] = ()) -> Assessment:
    """The assessment of rows in memory that the training held out, with the mean slope of every bin."""
    data = trained.dataset(table)
    found = judge(trained, table, by, progress=False)
    kappa = slopes(trained.model, data)
    segments = table.select(list(dict.fromkeys(by))) if by else None
    if kappa is None:
        return found.assessment
    return assess(found.pred, found.y, found.weight, segments, kappa.double().numpy())


def certify_folder(
    folder: Path, trained: TableModel, source: Any, assessment: Assessment, held_out: str
) -> Certificate:
    """Write the certificate of the model that lies in the folder, for rows that it was judged on."""
    said = describe_model(folder)
    certificate = certify(
        assessment,
        weights=said.weights,
        head=said.head,
        seed=said.seed,
        target=trained.target,
        weight=trained.weight,
        held_out=held_out,
        fingerprint=fingerprint(source, _used(trained)),
    )
    write_certificate(certificate, folder)
    return certificate


def as_certified(folder: Path, trained: TableModel, source: Any) -> bool:
    """Whether these rows are those that the model's certificate is of, so that its training has not seen them."""
    try:
        return read_certificate(folder).fingerprint == fingerprint(source, _used(trained))
    except (OSError, ValueError):
        return False


def _used(trained: TableModel) -> list[str]:
    return [*trained.features.sources, trained.target, *([trained.weight] if trained.weight else [])]


def _numbers(table: "pa.Table", name: str) -> Floats:
    compute, pa = need("pyarrow.compute"), need("pyarrow")
    column = compute.cast(table[name], pa.float64(), safe=False)
    found: Floats = column.to_numpy()
    return found
