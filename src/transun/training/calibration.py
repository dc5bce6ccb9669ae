"""What held-out rows teach a trained model: a correction, how far its bias branch is credible, or one last factor."""

import copy
import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from transun.corrections import Correction, TotalRatio, TotalShift
from transun.heads import Corrected, Credible
from transun.heads.head import Raw
from transun.models.network import Model
from transun.support.group import Group
from transun.training.batches import BatchSource, RowBatch, own_parts

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
    return _corrected(model, correction, _outputs(model, data, batch_size, group))


def _corrected(model: Model, correction: Correction, outputs: "_Outputs") -> Model:
    """A copy of the model with a correction that is learned from outputs of its own."""
    corrected = copy.deepcopy(model)
    corrected.head = Corrected(corrected.head, correction).calibrate(outputs.raw, outputs.y, outputs.weight)
    return corrected


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
    shrunk, outputs = copy.deepcopy(model), _outputs(model, data, None, group)
    shrunk.head = Credible(shrunk.head).calibrate(outputs.raw, outputs.y, outputs.weight)
    return shrunk


@dataclass(frozen=True)
class _Outputs:
    """What a model says of rows, once for each member: raw outputs, targets and weights, all (rows · members, ...)."""

    raw: Raw
    y: Tensor
    weight: Tensor

    def weighted(self, factor: float) -> "_Outputs":
        """The same rows, each of which counts so many times."""
        return replace(self, weight=self.weight * factor)

    def joined(self, others: "_Outputs") -> "_Outputs":
        """These rows and the others."""
        raw = tuple(torch.cat(pair) for pair in zip(self.raw, others.raw, strict=True))
        return _Outputs(raw, torch.cat([self.y, others.y]), torch.cat([self.weight, others.weight]))


def _outputs(model: Model, data: BatchSource, batch_size: int | None, group: Group) -> _Outputs:
    """The outputs of a trained model in evaluation mode, of all rows of all ranks."""
    model.require_trained()
    copied = copy.deepcopy(model).eval()
    raws, targets, weights = [], [], []
    for rows in own_parts(data, group, model.rows_at_once if batch_size is None else batch_size):
        # Batch by batch, so that the rows of all ranks come in the order in which one rank would see them.
        raws.append(tuple(torch.cat(group.gather(outputs)) for outputs in copied.raw(rows.x)))
        targets.append(model.for_members(torch.cat(group.gather(rows.y))))
        weights.append(model.for_members(torch.cat(group.gather(_weights(rows)))))
    raw = tuple(torch.cat(outputs) for outputs in zip(*raws, strict=True))
    return _Outputs(raw, torch.cat(targets), torch.cat(weights))


@torch.no_grad()
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
    learned, judged = (_outputs(model, source, None, group) for source in (trained, valid))
    errors = [_mean_square(model, outputs) for outputs in (learned, judged)]
    # Relative to the smaller: in single precision the inverse of a squared amount of 1e-20 is infinite, of 1e30 zero.
    known = all(0.0 < error < math.inf for error in errors)
    precisions = [min(errors) / error for error in errors] if known else [1.0, 1.0]
    both = learned.weighted(precisions[0]).joined(judged.weighted(precisions[1]))
    return _corrected(model, correction, both)


def _mean_square(model: Model, outputs: _Outputs) -> float:
    """The mean squared error of the rows' predictions; 0 where no row has a weight."""
    weight = model.over_members(outputs.weight).double()
    wrong = model.over_members(model.head(outputs.raw)) - model.over_members(outputs.y)
    return float((wrong.double() ** 2 * weight).sum() / weight.sum().clamp(min=1e-300))


def _weights(rows: RowBatch) -> Tensor:
    """The weights of a batch's rows, 1 for each where there are none."""
    return torch.ones_like(rows.y) if rows.weight is None else rows.weight
