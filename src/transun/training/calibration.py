"""What held-out rows teach a trained model: a correction, how far its bias branch is credible, or one last factor."""

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from transun.corrections import Correction, TotalRatio, TotalShift
from transun.data import Batch
from transun.heads import Corrected, Credible
from transun.heads.head import Raw
from transun.models.network import Model
from transun.support.group import Group
from transun.training.batches import BatchPart, BatchSource, RowBatch, own_parts

__all__ = ["balance", "calibrate", "shrink"]


@torch.no_grad()
def calibrate(
    model: Model, data: BatchSource, correction: Correction, *, batch_size: int | None = None, group: Group = Group()
) -> Model:
    """A copy of a trained model whose predictions go through a correction learned from held-out rows.

    The model itself stays as it is, so the two can be compared. A model that is corrected already gets a second
    correction on top of the first. With a backbone of several members, a correction is learned from the outputs of
    each member and applied to them before the mean.

    Args:
        model: trained; its weights are kept.
        data: rows that the model was not trained on, a split of their own. On training rows the residuals are too
            small; on test rows the test flatters the correction.
        correction: what to learn; see `transun.corrections`.
        batch_size: rows at a time; None leaves it to the model.
        group: ranks that predict a part of each batch, all of which must call this and get the same model. By default
            this process predicts all rows.

    >>> data = Dataset({"a": [0.0, 1.0]}, [1.0, 7.0])
    >>> model = Model(Constant(), LogMSE()).prepare(data.targets())
    >>> [round(v, 4) for v in predict(model, data).tolist()]  # √(2·8) - 1
    [3.0, 3.0]
    >>> [round(v, 4) for v in predict(calibrate(model, data, Smearing()), data).tolist()]
    [4.0, 4.0]

    """
    corrected, raw, y, weight = _outputs(model, data, batch_size, group)
    corrected.head = Corrected(corrected.head, correction).calibrate(raw, y, weight)
    return corrected.train(model.training)


@torch.no_grad()
def shrink(model: Model, data: BatchSource, *, group: Group = Group()) -> Model:
    """A copy of a debiased model that believes its bias branch as far as held-out rows do; see `Credible`.

    The ratio of the prediction to its base, in every row, is raised to the power c between 0 and 1 that has the least
    Poisson deviance on these rows, and their total is made right. It costs two numbers, so that a few hundred rows are
    enough. A branch that has found only noise ends near c = 0, where the base remains.

    Args:
        model: trained, with a bias branch, for amounts that are not negative; it stays as it is.
        data: rows that the model was not trained on.
        group: ranks that share the work; see `calibrate`.

    >>> data = Dataset({"a": [0.0, 1.0]}, [1.0, 7.0])
    >>> model = Model(Constant(), LogSUN()).prepare(data.targets())
    >>> [round(v, 4) for v in predict(shrink(model, data), data).tolist()]
    [4.0, 4.0]

    """
    shrunk, raw, y, weight = _outputs(model, data, None, group)
    shrunk.head = Credible(shrunk.head).calibrate(raw, y, weight)
    return shrunk.train(model.training)


def _outputs(
    model: Model, data: BatchSource, batch_size: int | None, group: Group
) -> tuple[Model, Raw, Tensor, Tensor]:
    """A copy of a trained model in evaluation mode, and its outputs, the targets and the weights of all rows."""
    model.require_trained()
    copied = copy.deepcopy(model).eval()
    raws, targets, weights = [], [], []
    for rows in own_parts(data, group, model.rows_at_once if batch_size is None else batch_size):
        # Batch by batch, so that the rows of all ranks come in the order in which one rank would see them.
        raws.append(tuple(torch.cat(group.gather(outputs)) for outputs in copied.raw(rows.x)))
        targets.append(model.for_members(torch.cat(group.gather(rows.y))))
        weights.append(model.for_members(torch.cat(group.gather(_weights(rows)))))
    raw = tuple(torch.cat(outputs) for outputs in zip(*raws, strict=True))
    return copied, raw, torch.cat(targets), torch.cat(weights)


def balance(model: Model, trained: BatchSource, valid: BatchSource | None = None, *, group: Group = Group()) -> Model:
    """A copy of a trained model times the factor that makes a total right: Σy / Σŷ over rows that are not for testing.

    Early stopping keeps the weights of least squared error, wherever the total happens to be in that step. Adam adds a
    bias of its own: it divides by the size of recent gradients, which is large just when a large target has come, so on
    heavy tails totals come out low. One factor mends both and changes no order. A head for targets of both signs gets a
    shift instead.

    Training rows are many, but a model fits them too well; validation rows are fair but few, and one huge amount among
    them decides their total. So both count, every row by the inverse of the mean squared error of its part.

    Args:
        model: trained; it stays as it is.
        trained: the rows it was trained on.
        valid: the rows that stopped it, if there are any.
        group: ranks that share the work; see `calibrate`.

    >>> data = Dataset({"a": [0.0, 1.0]}, [1.0, 7.0])
    >>> model = Model(Constant(), LogMSE()).prepare(data.targets())  # predicts √(2·8) - 1 = 3; the mean is 4
    >>> [round(v, 4) for v in predict(balance(model, data), data).tolist()]
    [4.0, 4.0]

    """
    correction = TotalRatio() if model.head.transform.lower >= 0.0 else TotalShift()
    if valid is None:
        return calibrate(model, trained, correction, group=group)
    sources = (trained, valid)
    return calibrate(model, _WeightedSources(sources, _precisions(model, sources, group)), correction, group=group)


@torch.no_grad()
def _precisions(model: Model, sources: Sequence[BatchSource], group: Group) -> list[float]:
    """The inverse of each source's mean squared error, the largest of which is 1; 1 for all where one is unknown.

    Weights are of single precision, in which the inverse of a squared amount of 1e-20 is infinite, and of 1e30 is zero.
    """
    errors = []
    for source in sources:
        squares = rows = 0.0
        for batch in own_parts(source, group, model.rows_at_once):
            weight = _weights(batch)
            squares += float(((model(batch.x) - batch.y).double() ** 2 * weight).sum())
            rows += float(weight.sum())
        squares, rows = (sum(parts) for parts in zip(*group.gather_numbers([squares, rows]), strict=True))
        errors.append(squares / rows if rows else 0.0)
    known = all(0.0 < error < math.inf for error in errors)
    return [min(errors) / error for error in errors] if known else [1.0] * len(errors)


@dataclass(frozen=True)
class _WeightedSources:
    """Several sources one after the other; the weight of a row is multiplied by that of its source."""

    sources: tuple[BatchSource, ...]
    weights: Sequence[float]

    def __len__(self) -> int:
        return sum(map(len, self.sources))

    def targets(self) -> Tensor:
        return torch.cat([source.targets() for source in self.sources])

    def batches(self, size: int, *, seed: int | None = None) -> Iterator[RowBatch]:
        for source, weight in zip(self.sources, self.weights, strict=True):
            for rows in source.batches(size, seed=seed):
                yield Batch(rows.x, rows.y, _weights(rows) * weight)

    def parts(self, group: Group, size: int, seed: int | None) -> Iterator[BatchPart]:
        for source, weight in zip(self.sources, self.weights, strict=True):
            for part in own_parts(source, group, size, seed=seed):
                yield replace(part, weight=_weights(part) * weight, total=part.total * weight)


def _weights(rows: RowBatch) -> Tensor:
    """The weights of a batch's rows, 1 for each where there are none."""
    return torch.ones_like(rows.y) if rows.weight is None else rows.weight
