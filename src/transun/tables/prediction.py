"""Predictions for a table of any size, piece by piece, with columns of the table beside them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from transun.data.columns import Columns, open_columns
from transun.data.schema import MissingColumnError
from transun.support.progress import Progress
from transun.support.text_form import dumps
from transun.tables.model import TableModel

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Scored", "score"]

# Below this a CSV file is read whole: the types of its columns are then judged by all values, as in training.
_WHOLE = 1 << 28
# Beyond this a float no longer tells neighbouring integers apart.
_EXACT = 2.0**53


@dataclass(frozen=True)
class Scored:
    """Some consecutive rows: columns of theirs, predictions (n,), and quantiles (n,) by level."""

    kept: "pa.Table"
    pred: Tensor
    quantiles: dict[float, Tensor]


@torch.no_grad()
def score(
    trained: TableModel,
    source: Any,
    *,
    numbers: Sequence[str] = (),
    keep: Sequence[str] = (),
    quantiles: Sequence[float] = (),
    label: str = "predicting",
    progress: bool | None = None,
) -> Iterator[Scored]:
    """The rows of a table in order, with what the model says of them; memory does not grow with the rows.

    Args:
        trained: the model.
        source: what `read_table` takes, or a folder of CSV files. Parquet files are streamed, CSV files from 256 MB
            on; the types of a streamed CSV column are judged by its first megabyte.
        numbers: further columns to hand out, which must hold numbers, such as the target.
        keep: further columns to hand out, of any kind.
        quantiles: levels between 0 and 1, for heads that have a law of y|x.
        label: what the progress bar says.
        progress: show it; None shows it on a terminal.

    >>> trained = train({"item": ["a", "b"], "gmv": [1.0, 3.0]}, "gmv", MSE())
    >>> parts = list(score(trained, {"item": ["b"]}, keep=["item"]))
    >>> [(part.kept["item"].to_pylist(), tuple(part.pred.shape)) for part in parts]
    [(['b'], (1,))]

    """
    head = trained.model.head
    for level in quantiles:
        if not 0.0 < level < 1.0:
            raise ValueError(f"quantile {level:g} must lie strictly between 0 and 1")
    if quantiles and head.distribution is None:
        raise ValueError(
            f"{dumps(head)} predicts a mean and has no quantiles: train a head with a law, such as LogNormal(), "
            "QuantileMean() or GaussianMixture()"
        )
    wanted = list(dict.fromkeys([*numbers, *keep]))
    columns = _open(trained, source, list(numbers), wanted)
    with Progress(label, columns.size, progress) as bar:
        for chunk in columns.chunks():
            kept = chunk.table.select(wanted)
            if columns.infers_types:
                _require_exact(kept)
            yield _scored(trained, chunk.table, kept, quantiles)
            bar.advance(chunk.done)


def _open(trained: TableModel, source: Any, numbers: list[str], wanted: list[str]) -> Columns:
    names = list(dict.fromkeys([*wanted, *trained.features.sources]))
    try:
        return open_columns(source, numbers, names, whole_below=_WHOLE)
    except MissingColumnError as error:
        if error.name in trained.features.sources and error.name not in wanted:
            raise ValueError(f"the model was trained with a column that the data lacks: {error}") from None
        raise


def _scored(trained: TableModel, table: "pa.Table", kept: "pa.Table", quantiles: Sequence[float]) -> Scored:
    trained.model.eval()
    raw = trained.model.raw(trained.features.encode(table))
    pred = trained.model.head(raw)
    law = trained.model.head.distribution
    return Scored(kept, pred, {} if law is None else {level: law.quantile(raw, level) for level in quantiles})


def _require_exact(kept: "pa.Table") -> None:
    """Whole numbers of a streamed CSV are read as floats: ids too long for a float must not be written down wrong."""
    for name in kept.column_names:
        if str(kept[name].type) == "double":
            largest = float(np.nanmax(np.abs(kept[name].to_numpy()), initial=0.0))
            if math.isfinite(largest) and largest >= _EXACT:
                raise ValueError(f"column {name!r} holds numbers of more than 15 digits: write the data as Parquet")
