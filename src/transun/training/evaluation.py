"""Predictions and metrics of a model over batches."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from transun.backbones import Inputs
from transun.data import Batch
from transun.metrics import STANDARD, Meter, Metric
from transun.models.network import Model
from transun.support.group import Group
from transun.training.batches import BatchSource, own_parts

__all__ = ["evaluate", "measure", "predict", "predict_with_kappa"]

# Rows from which outputs are started beside those of a trained model.
_SOME_ROWS = 16_384


@torch.no_grad()
def predict(model: Model, data: BatchSource, *, batch_size: int | None = None) -> Tensor:
    """Predictions (n,) for every row, in order.

    Args:
        model: predicts.
        data: rows.
        batch_size: rows at a time; None leaves it to the model, see `Model.rows_at_once`.

    >>> data = Dataset({"a": [0.0, 1.0]}, [1.0, 3.0])
    >>> predict(Model(Constant(), MSE()).prepare(data.targets()), data).tolist()
    [2.0, 2.0]

    """
    size = model.rows_at_once if batch_size is None else batch_size
    with _evaluating(model):
        return torch.cat([model(rows.x) for rows in data.batches(size)])


@torch.no_grad()
def predict_with_kappa(model: Model, data: BatchSource, *, group: Group = Group()) -> tuple[Tensor, Tensor | None]:
    """Predictions (n,) and the slope κ(u) of the bias branch (n,), or None where the head has none, in one pass.

    Args:
        model: predicts.
        data: rows, the same ones on every rank.
        group: ranks that take turns with whole batches, so that the predictions are those of one rank to the last bit;
            all of them must call this, and each gets all predictions.

    >>> data = Dataset({"a": [0.0, 1.0]}, [2.0, 2.0])
    >>> pred, kappa = predict_with_kappa(Model(Constant(), LogSUN()).prepare(data.targets()), data)
    >>> [round(value, 4) for value in kappa.tolist()]  # in the unit of z, in which y·κ is 1 on average
    [0.5, 0.5]

    """
    own = []
    with _evaluating(model):
        for number, rows in enumerate(data.batches(model.rows_at_once)):
            if number % group.size != group.rank:
                continue
            raw = model.raw(rows.x)
            kappa = model.head.kappa(raw)
            own.append(
                (number, model.over_members(model.head(raw)), None if kappa is None else model.over_members(kappa))
            )
    every = sorted((batch for part in group.gather_objects(own) for batch in part), key=lambda batch: batch[0])
    known = [kappa for _, _, kappa in every if kappa is not None]
    return torch.cat([pred for _, pred, _ in every]), torch.cat(known) if len(known) == len(every) else None


@torch.no_grad()
def measure(
    model: Model,
    data: BatchSource,
    metrics: Iterable[Metric] = STANDARD,
    *,
    batch_size: int | None = None,
    group: Group = Group(),
) -> Meter:
    """A meter filled with the model's predictions: merge those of several shards, then compute.

    Args:
        model: predicts.
        data: rows with targets.
        metrics: what to measure.
        batch_size: rows at a time; None leaves it to the model.
        group: ranks that predict a part of each batch, all of which must call this; each gets the meter of all rows.
            By default this process predicts them all.

    """
    chosen = tuple(metrics)
    size = model.rows_at_once if batch_size is None else batch_size
    meter = Meter(*chosen)
    with _evaluating(model):
        for rows in own_parts(data, group, size):
            meter.update(model(rows.x), rows.y, rows.weight)
    merged = Meter(*chosen)
    for part in group.gather_objects(meter):
        merged.merge(part)
    return merged


def evaluate(
    model: Model, data: BatchSource, metrics: Iterable[Metric] = STANDARD, *, batch_size: int | None = None
) -> dict[str, float]:
    """Metrics of the model on the data, by name.

    >>> data = Dataset({"a": [0.0, 1.0]}, [1.0, 3.0])
    >>> evaluate(Model(Constant(), MSE()).prepare(data.targets()), data, [PGR])
    {'PGR': 1.0}
    """
    return measure(model, data, metrics, batch_size=batch_size).compute()


def some_rows(data: BatchSource, seed: int) -> tuple[Inputs, Tensor] | None:
    """Features and targets of 16,384 random rows or fewer, drawn by their weight; None where this rank has no rows.

    >>> some_rows(Dataset({"a": [0.0, 1.0]}, [1.0, 3.0], weight=[0.0, 2.0]), seed=0)[1].tolist()
    [3.0, 3.0]
    """
    rows = next(iter(data.batches(_SOME_ROWS, seed=seed)), None)
    if rows is None:
        return None
    if rows.weight is None:
        return rows.x, rows.y
    generator = torch.Generator().manual_seed(seed)
    weight = rows.weight.detach().cpu()
    drawn = torch.multinomial(weight, len(weight), replacement=True, generator=generator).to(rows.y.device)
    chosen = Batch(rows.x, rows.y).map(lambda column: column[drawn])
    return chosen.x, chosen.y


@contextmanager
def _evaluating(model: Model) -> Iterator[None]:
    """Inside the `with` block a trained model is in evaluation mode; afterwards every part is in its mode of before."""
    model.require_trained()
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
