"""Predictions and metrics of a model over batches."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

import torch
from torch import Tensor

from transun.backbones import Inputs
from transun.metrics import STANDARD, Meter, Metric
from transun.models.network import Model

__all__ = ["BatchSource", "RowBatch", "evaluate", "measure", "predict", "predict_with_kappa"]

# Large enough that the cost of Python does not matter, small enough for any memory.
BATCH = 16_384


class RowBatch(Protocol):
    """A batch: features, targets (B,), and weights (B,) or None."""

    @property
    def x(self) -> Inputs: ...
    @property
    def y(self) -> Tensor: ...
    @property
    def weight(self) -> Tensor | None: ...


class BatchSource(Protocol):
    """Data that is read in batches, in order or, with a seed, shuffled. `Dataset` is one."""

    def __len__(self) -> int: ...
    def targets(self) -> Tensor:
        """All targets (n,), from which a head learns its constants."""

    def batches(self, size: int, *, seed: int | None = None) -> Iterator[RowBatch]:
        """The rows in batches of at most `size`."""


@torch.no_grad()
def predict(model: Model, data: BatchSource, *, batch_size: int = BATCH) -> Tensor:
    """Predictions (n,) for every row, in order.

    >>> data = Dataset({"a": [0.0, 1.0]}, [1.0, 3.0])
    >>> predict(Model(Constant(), MSE()).prepare(data.targets()), data).tolist()
    [2.0, 2.0]
    """
    return torch.cat([pred for pred, _ in _predictions(model, data, batch_size)])


@torch.no_grad()
def predict_with_kappa(model: Model, data: BatchSource, *, batch_size: int = BATCH) -> tuple[Tensor, Tensor | None]:
    """Predictions (n,) and the slope κ(u) of the bias branch (n,), or None where the head has none, in one pass.

    >>> data = Dataset({"a": [0.0, 1.0]}, [2.0, 2.0])
    >>> pred, kappa = predict_with_kappa(Model(Constant(), LogSUN()).prepare(data.targets()), data)
    >>> [round(value, 4) for value in kappa.tolist()]  # in the unit of z, in which y·κ is 1 on average
    [0.5, 0.5]
    """
    preds, kappas = [], []
    with _evaluating(model):
        for rows in data.batches(batch_size):
            raw = model.raw(rows.x)
            preds.append(model.over_members(model.head(raw)))
            kappa = model.head.kappa(raw)
            kappas.append(None if kappa is None else model.over_members(kappa))
    known = [kappa for kappa in kappas if kappa is not None]
    return torch.cat(preds), torch.cat(known) if len(known) == len(kappas) else None


@torch.no_grad()
def measure(model: Model, data: BatchSource, metrics: Iterable[Metric] = STANDARD, *, batch_size: int = BATCH) -> Meter:
    """A meter filled with the model's predictions: merge those of several shards, then compute."""
    meter = Meter(*metrics)
    for pred, rows in _predictions(model, data, batch_size):
        meter.update(pred, rows.y, rows.weight)
    return meter


def evaluate(
    model: Model, data: BatchSource, metrics: Iterable[Metric] = STANDARD, *, batch_size: int = BATCH
) -> dict[str, float]:
    """Metrics of the model on the data, by name.

    >>> data = Dataset({"a": [0.0, 1.0]}, [1.0, 3.0])
    >>> evaluate(Model(Constant(), MSE()).prepare(data.targets()), data, [PGR])
    {'PGR': 1.0}
    """
    return measure(model, data, metrics, batch_size=batch_size).compute()


def _predictions(model: Model, data: BatchSource, batch_size: int) -> Iterator[tuple[Tensor, RowBatch]]:
    with _evaluating(model):
        for rows in data.batches(batch_size):
            yield model(rows.x), rows


def some_rows(data: BatchSource, seed: int) -> tuple[Inputs, Tensor]:
    """Features and targets of 16,384 random rows or fewer, drawn by their weight.

    >>> some_rows(Dataset({"a": [0.0, 1.0]}, [1.0, 3.0], weight=[0.0, 2.0]), seed=0)[1].tolist()
    [3.0, 3.0]
    """
    rows = next(iter(data.batches(BATCH, seed=seed)))
    if rows.weight is None:
        return rows.x, rows.y
    generator = torch.Generator().manual_seed(seed)
    weight = rows.weight.detach().cpu()
    drawn = torch.multinomial(weight, len(weight), replacement=True, generator=generator).to(rows.y.device)
    x = rows.x[drawn] if isinstance(rows.x, Tensor) else {name: column[drawn] for name, column in rows.x.items()}
    return x, rows.y[drawn]


@contextmanager
def _evaluating(model: Model) -> Iterator[None]:
    """Inside the `with` block the model is in evaluation mode; afterwards every part is in the mode it had before."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
