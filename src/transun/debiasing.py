"""Debiasing what is already trained: a correction on held-out rows, or a bias branch beside a user's own module."""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import torch
from torch import Tensor, nn

from transun.backbones import Backbone, Inputs
from transun.corrections import Correction, TotalRatio, TotalShift
from transun.data import Batch
from transun.evaluation import BATCH, Rows, Source
from transun.heads import GTS, Corrected, PointHead, Raw
from transun.losses import PointLoss
from transun.model import Model, Network
from transun.schemes import ReciprocalTarget, Scheme
from transun.transforms import Identity, Transform

__all__ = ["balance", "calibrate", "debias"]


@torch.no_grad()
def calibrate(model: Model, data: Source, correction: Correction, *, batch_size: int = BATCH) -> Model:
    """A copy of a trained model whose predictions go through a correction learned from held-out rows.

    The model itself stays as it is, so the two can be compared. A model that is corrected already gets a second
    correction on top of the first.

    Args:
        model: trained; its weights are kept.
        data: rows that the model was not trained on, a split of their own. On training rows the residuals are too
            small; on test rows the test flatters the correction.
        correction: what to learn; see `transun.corrections`.
        batch_size: rows at a time.

    >>> data = Dataset({"a": [0.0, 1.0]}, [1.0, 7.0])
    >>> model = Model(Constant(), LogMSE()).prepare(data.targets())
    >>> [round(v, 4) for v in predict(model, data).tolist()]  # √(2·8) - 1
    [3.0, 3.0]
    >>> [round(v, 4) for v in predict(calibrate(model, data, Smearing()), data).tolist()]
    [4.0, 4.0]

    """
    if not model.prepared:
        raise ValueError("calibrate corrects a trained model: fit it first")
    corrected = copy.deepcopy(model).eval()
    raws, targets, weights = [], [], []
    for rows in data.batches(batch_size):
        raws.append(corrected.raw(rows.x))
        targets.append(rows.y)
        weights.append(_weights(rows))
    raw = tuple(torch.cat(outputs) for outputs in zip(*raws, strict=True))
    corrected.head = Corrected(corrected.head, correction).calibrate(raw, torch.cat(targets), torch.cat(weights))
    return corrected.train(model.training)


def balance(model: Model, trained: Source, valid: Source | None = None) -> Model:
    """A copy of a trained model times the factor that makes a total right: Σy / Σŷ over rows that are not for testing.

    Early stopping keeps the weights of least squared error, wherever the total happens to be in that step. Adam adds a
    bias of its own: it divides by the size of recent gradients, which is large just when a large target has come, so on
    heavy tails totals come out low. One factor mends both and changes no order. A head for targets of both signs gets a
    shift instead.

    Training rows are many but flatter a model; validation rows are fair but few, and one huge amount among them makes
    their total a matter of luck. So both count, every row by the inverse of the mean squared error of its kind.

    Args:
        model: trained; it stays as it is.
        trained: the rows it was trained on.
        valid: the rows that stopped it, if there are any.

    >>> data = Dataset({"a": [0.0, 1.0]}, [1.0, 7.0])
    >>> model = Model(Constant(), LogMSE()).prepare(data.targets())  # says √(2·8) - 1 = 3, the mean is 4
    >>> [round(v, 4) for v in predict(balance(model, data), data).tolist()]
    [4.0, 4.0]

    """
    correction = TotalRatio() if model.head.transform.lower >= 0.0 else TotalShift()
    if valid is None:
        return calibrate(model, trained, correction)
    return calibrate(model, _Weighed((trained, valid), _precisions(model, (trained, valid))), correction)


@torch.no_grad()
def _precisions(model: Model, sources: Sequence[Source]) -> list[float]:
    """The inverse of each source's mean squared error; 1 each where one has no error to tell rows apart by."""
    errors = []
    for source in sources:
        squares = rows = 0.0
        for batch in source.batches(BATCH):
            weight = _weights(batch)
            squares += float(((model(batch.x) - batch.y).double() ** 2 * weight).sum())
            rows += float(weight.sum())
        errors.append(squares / rows if rows else 0.0)
    return [1.0 / error for error in errors] if all(0.0 < error < math.inf for error in errors) else [1.0] * len(errors)


@dataclass(frozen=True)
class _Weighed:
    """Sources one after the other, each row's weight times that of its source."""

    sources: tuple[Source, ...]
    weights: Sequence[float]

    def __len__(self) -> int:
        return sum(map(len, self.sources))

    def targets(self) -> Tensor:
        return torch.cat([source.targets() for source in self.sources])

    def batches(self, size: int, *, seed: int | None = None) -> Iterator[Rows]:
        for source, weight in zip(self.sources, self.weights, strict=True):
            for rows in source.batches(size, seed=seed):
                yield Batch(cast(Any, rows.x), rows.y, _weights(rows) * weight)


def _weights(rows: Rows) -> Tensor:
    """The weights of a batch's rows, one each where there are none."""
    return torch.ones_like(rows.y) if rows.weight is None else rows.weight


def _whole_batch(module: nn.Module, batch: Inputs) -> Inputs:
    return batch


def debias(
    module: nn.Module,
    loss: PointLoss,
    *,
    backbone: Backbone,
    features: Callable[[nn.Module, Inputs], Inputs] = _whole_batch,
    transform: Transform = Identity(),
    scheme: Scheme = ReciprocalTarget(),
    freeze: bool = True,
    seed: int = 0,
) -> Model:
    """A model that predicts z / κ(u): u is what a user's own module says, z a new branch that learns its bias.

    `fit`, `predict` and export treat it like any other model; its head is a `GTS`. The module is copied and yours
    stays as it is. A module of yours has no text form, so keep the `state_dict`, or a pickle: to load it, build the
    model by the same call first.

    Args:
        module: maps a batch to (B,) or (B, 1), trained or not.
        loss: its per-sample loss (estimate, T(target)) -> (B,). A frozen module's is only reported.
        backbone: what z is computed by, from what `features` returns. `Custom(nn.Identity, d)` makes z a linear
            function of d features, which is cheap, and unbiased only where that can follow E[y|x]·κ(u).
        features: called with the module and the batch, e.g. `Net.encode`, where the module has features worth reusing;
            the batch itself otherwise. What it computes is run again, beside the module's own forward.
        transform: T, if the module estimates T(y); Identity if it predicts y itself.
        scheme: how z encodes the target; see `transun.schemes`.
        freeze: True never changes the module: its weights are not trained, its dropout is off and its running
            statistics stand still. False trains it by its own loss, as ever; the bias branch reaches it only
            through `features`.
        seed: of the branch's initial weights.

    >>> trained = torch.nn.Linear(1, 1)  # says 2x + 1
    >>> _ = trained.load_state_dict({"weight": torch.tensor([[2.0]]), "bias": torch.tensor([1.0])})
    >>> model = debias(trained, squared, backbone=Constant())
    >>> _ = model.prepare(torch.tensor([6.0, 6.0]))  # so far z = mean of y·κ at the constant u = 6, 6/7
    >>> x = torch.tensor([[1.0], [2.0]])
    >>> [round(v, 4) for v in model(x).tolist()]  # (2x + 2)·6/7
    [3.4286, 5.1429]

    """
    _require_per_sample(loss)
    wrap = _Frozen if freeze else _Host
    # A model of the branch alone, to which the module is then added: the branch's weights do not depend on it.
    model = Model(backbone, PointHead(), seed)
    model.network = _Beside(wrap(copy.deepcopy(module), features), model.network)
    model.head = GTS(PointHead(transform, loss), scheme)
    model.backbone = _Hosted(module, backbone)
    return model


class _Hosted:
    """The branch's backbone beside a module that only its owner can build: it cannot be written as text.

    With the branch's backbone alone, a saved model would come back without the module.
    """

    def __init__(self, module: nn.Module, backbone: Backbone) -> None:
        self._kind, self.backbone = type(module).__name__, backbone

    @property
    def module(self) -> nn.Module:
        raise ValueError(f"debias cannot write your {self._kind} as text: keep the state_dict and the call of debias")

    @property
    def out_features(self) -> int:
        return self.backbone.out_features

    def stages(self) -> list[Callable[[], nn.Module]]:
        return self.backbone.stages()


class _Host(nn.Module):
    """The user's module: a batch to its estimate (B, 1) and to what the bias branch is computed from."""

    def __init__(self, module: nn.Module, features: Callable[[nn.Module, Inputs], Inputs]) -> None:
        super().__init__()
        self.module, self.features = module, features

    def forward(self, batch: Inputs) -> tuple[Tensor, Inputs]:
        estimate = self.module(batch)
        _require_column(estimate, batch)
        return estimate.reshape(-1, 1), self.features(self.module, batch)


class _Frozen(_Host):
    """A host that stays in evaluation mode and asks for no gradients."""

    def __init__(self, module: nn.Module, features: Callable[[nn.Module, Inputs], Inputs]) -> None:
        super().__init__(module, features)
        self.requires_grad_(False)
        self.eval()

    def train(self, mode: bool = True) -> Self:
        return super().train(False)


class _Beside(Network):
    """Raw outputs of a host and of a network beside it; only the network has output biases to start."""

    def __init__(self, host: _Host, branch: Network) -> None:
        nn.Module.__init__(self)  # the stacks are the branch's
        self.host, self.branch = host, branch

    def forward(self, batch: Inputs) -> Raw:
        estimate, features = self.host(batch)
        return (estimate, *self.branch(features))

    def start(self, constants: Raw) -> None:
        self.branch.start(constants[1:])


def _require_per_sample(loss: PointLoss) -> None:
    rows = 3
    cost = loss(torch.full((rows,), 0.5), torch.ones(rows))
    if cost.shape != (rows,):
        raise ValueError(
            f"debias needs a loss of one cost per row, (B,); for {rows} rows this one returned {tuple(cost.shape)}: "
            "leave out its mean, as reduction='none' does"
        )


def _require_column(estimate: Tensor, batch: Inputs) -> None:
    if torch.compiler.is_compiling():
        return
    column = batch if isinstance(batch, Tensor) else next(iter(batch.values()))
    if estimate.shape not in ((len(column),), (len(column), 1)):
        raise ValueError(
            f"the module must return one estimate per row, (B,) or (B, 1); for {len(column)} rows it returned "
            f"{tuple(estimate.shape)}"
        )
