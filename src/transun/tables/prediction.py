"""Predictions for a table of any size, piece by piece, with columns of the table beside them."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from transun.data.columns import WHOLE_BELOW, Chunk, Columns, open_columns
from transun.data.schema import MissingColumnError, given_names
from transun.data.shift import TableShift
from transun.models.head_summary import summarise_head
from transun.models.network import Model
from transun.support.arguments import listed
from transun.support.progress import Progress
from transun.support.text_form import dumps
from transun.tables.model import TableModel

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PredictedChunk", "check_levels", "predict_chunk", "predict_in_chunks", "shift_of"]

# Smaller CSV files are read whole: types of columns that the model does not know are then guessed from all values.
_WHOLE = WHOLE_BELOW
# From here on a float cannot represent every whole number.
_EXACT = 2.0**53


@dataclass(frozen=True)
class PredictedChunk:
    """Consecutive rows of a table: some of their columns, predictions (n,), and quantiles (n,) by level.

    `interval` has the lower and upper ends (n,) of intervals of the rows, where they are wanted. `x` is what the model
    predicted from, the encoded columns. `shift` counts what training has not seen; the sum over all chunks is that of
    the table.
    """

    columns: "pa.Table"
    pred: Tensor
    quantiles: dict[float, Tensor]
    x: dict[str, Tensor]
    shift: TableShift
    interval: tuple[Tensor, ...] = ()


def predict_in_chunks(
    trained: TableModel,
    source: Any,
    *,
    numbers: Sequence[str] = (),
    keep: Sequence[str] = (),
    verbatim: bool = False,
    quantiles: Sequence[float] = (),
    interval: float | None = None,
    label: str = "predicting",
    progress: bool | None = None,
) -> Iterator[PredictedChunk]:
    """Predictions for the rows of a table, in order and piece by piece; memory does not grow with the rows.

    Args:
        trained: the model.
        source: what `read_table` takes. Parquet files are streamed, CSV files from 256 MB on. The columns of the model
            are read in the types that they had in training.
        numbers: columns of the table to return too, which must hold numbers, such as the target.
        keep: columns of the table to return too, of any kind. Types of CSV columns that the model does not know are
            guessed, from the first megabyte if the file is streamed.
        verbatim: return the kept columns of a CSV file as text, as it is written.
        quantiles: levels between 0 and 1, for heads that have a law of y|x.
        interval: the probability of intervals of the rows, see `TableModel.predict_interval`; None makes none.
        label: the text of the progress bar.
        progress: show the bar; None shows it on a terminal.

    >>> trained = train({"item": ["a", "b"], "gmv": [1.0, 3.0]}, "gmv", MSE())
    >>> chunks = list(predict_in_chunks(trained, {"item": ["b"]}, keep=["item"]))
    >>> [(chunk.columns["item"].to_pylist(), tuple(chunk.pred.shape)) for chunk in chunks]
    [(['b'], (1,))]

    """
    check_levels(trained.model, quantiles)
    wanted = given_names(*listed("numbers", numbers), *listed("keep", keep))
    columns = _open(trained, source, list(numbers), wanted, keep if verbatim else ())
    with Progress(label, columns.size, progress) as bar:
        for chunk in columns.chunks():
            predicted = predict_chunk(trained, chunk, wanted, verbatim, quantiles, interval)
            if columns.infers_types and not verbatim:
                _require_exact(predicted.columns)
            yield predicted
            bar.advance(chunk.done)


@torch.no_grad()
def predict_chunk(
    trained: TableModel,
    chunk: Chunk,
    wanted: Sequence[str],
    verbatim: bool = False,
    quantiles: Sequence[float] = (),
    interval: float | None = None,
) -> PredictedChunk:
    """Predictions for some consecutive rows, which need nothing but the model and may be made anywhere.

    Args:
        trained: the model.
        chunk: the rows.
        wanted: columns to return too, in the types of training where the model knows them.
        verbatim: return these as they are.
        quantiles: levels between 0 and 1, for heads that have a law of y|x.
        interval: the probability of intervals of the rows; None makes none.

    """
    kept = chunk.table.select(list(wanted))
    with _rows_counted_from(chunk.first):
        if not verbatim:
            kept = trained.features.convert(kept)
        return _predict(trained, chunk.table, kept, quantiles, interval)


def check_levels(model: Model, levels: Sequence[float]) -> None:
    """Raise a `ValueError` for levels outside (0, 1), and for any level if the head has no quantiles."""
    for level in levels:
        if not 0.0 < level < 1.0:
            raise ValueError(f"quantile {level:g} must lie strictly between 0 and 1")
    if levels and model.head.distribution is None:
        raise ValueError(
            f"{summarise_head(dumps(model.head))} predicts a mean and has no quantiles: train a head with a law, such "
            "as LogNormal(), QuantileMean() or GaussianMixture()"
        )


def shift_of(trained: TableModel, source: Any) -> TableShift:
    """How the rows of a table differ from those of training, before anything is predicted; files are streamed.

    >>> trained = train({"item": ["a", "b"], "gmv": [1.0, 3.0]}, "gmv", MSE())
    >>> shift_of(trained, {"item": ["b", "c", "d"]}).columns["item"].unseen
    2
    """
    shifts = [trained.features.shift(chunk.table) for chunk in _open(trained, source, [], []).chunks()]
    return reduce(add, shifts)


def _open(
    trained: TableModel, source: Any, numbers: list[str], wanted: list[str], verbatim: Sequence[str] = ()
) -> Columns:
    names, numbers = given_names(*wanted, *trained.sources), given_names(*numbers, trained.exposure)
    try:
        return open_columns(source, numbers, names, verbatim={*trained.features.types, *verbatim}, whole_below=_WHOLE)
    except MissingColumnError as error:
        if error.name in trained.sources and error.name not in wanted:
            raise ValueError(f"the model was trained with a column that the data lacks: {error}") from None
        raise


@contextmanager
def _rows_counted_from(first: int) -> Iterator[None]:
    """Say in an error about a chunk where its rows begin."""
    try:
        yield
    except ValueError as error:
        if not first:
            raise
        raise ValueError(f"among the rows from {first:,} on, which count as row 0 and so on: {error}") from error


def _predict(
    trained: TableModel, table: "pa.Table", kept: "pa.Table", quantiles: Sequence[float], interval: float | None
) -> PredictedChunk:
    trained.model.require_trained()
    model = trained.model.eval()
    x, shift = trained.features.encode_with_shift(table)
    law = model.head.distribution
    parts: list[Tensor] = []
    of_levels: dict[float, list[Tensor]] = {level: [] for level in quantiles}
    size = model.rows_at_once
    for first in range(0, max(len(table), 1), size):
        raw = model.raw({name: column[first : first + size] for name, column in x.items()})
        parts.append(model.over_members(model.head(raw)))
        if law is not None:
            for level, values in of_levels.items():
                values.append(model.over_members(law.quantile(raw, level)))
    rates = torch.cat(parts)
    ends = () if interval is None else trained.intervals_of(rates, interval).unbind(1)
    amounts = {level: trained.to_amounts(torch.cat(values), table) for level, values in of_levels.items() if values}
    pred, interval_ends = trained.to_amounts(rates, table), tuple(trained.to_amounts(end, table) for end in ends)
    return PredictedChunk(kept, pred, amounts, x, shift, interval_ends)


def _require_exact(kept: "pa.Table") -> None:
    """Whole numbers of a streamed CSV are read as floats: ids too long for a float must not be written down wrong."""
    for name in kept.column_names:
        if str(kept[name].type) == "double":
            largest = float(np.nanmax(np.abs(kept[name].to_numpy()), initial=0.0))
            if math.isfinite(largest) and largest >= _EXACT:
                raise ValueError(f"column {name!r} holds numbers of more than 15 digits: write the data as Parquet")
