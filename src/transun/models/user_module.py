"""A bias branch added to a module of the user, trained or not."""

import copy
from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor, nn

from transun.backbones import Backbone, Inputs
from transun.heads import GTS, PointHead, Raw
from transun.losses import PointLoss
from transun.models.network import Model, Network
from transun.schemes import ReciprocalTarget, Scheme
from transun.transforms import Identity, Transform

__all__ = ["debias"]


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
    """A model that predicts z / κ(u): u is the output of a user's module, z a new branch that learns its bias.

    `fit`, `predict` and export treat it like any other model; its head is a `GTS`. The module is copied, and the
    original is not changed. A user's module has no text form, so that `save_model` refuses the model: keep its
    `state_dict`, or a pickle. To load a `state_dict`, build the model by the same call first.

    Args:
        module: maps a batch to (B,) or (B, 1), trained or not.
        loss: its loss per row (estimate, T(target)) -> (B,). For a frozen module it is only reported.
        backbone: the layers that compute z from the result of `features`. `Custom(nn.Identity, d)` makes z a linear
            function of d features, which is cheap, and unbiased only if a linear function can follow E[y|x]·κ(u).
        features: called with the module and the batch, such as `Net.encode`, if the module computes features worth
            reusing; by default the batch itself. It runs in addition to the module's forward pass.
        transform: T, if the module estimates T(y); Identity if it predicts y itself.
        scheme: how z encodes the target; see `transun.schemes`.
        freeze: True never changes the module: its weights are not trained, its dropout is off and its running
            statistics are not updated. False trains it by `loss`; gradients of the bias branch reach it only through
            `features`.
        seed: seed of the branch's initial weights.

    >>> trained = torch.nn.Linear(1, 1)  # computes 2x + 1
    >>> _ = trained.load_state_dict({"weight": torch.tensor([[2.0]]), "bias": torch.tensor([1.0])})
    >>> model = debias(trained, squared, backbone=Constant())
    >>> _ = model.prepare(torch.tensor([6.0, 6.0]))  # so far z = mean of y·κ at the constant u = 6, 6/7
    >>> x = torch.tensor([[1.0], [2.0]])
    >>> [round(v, 4) for v in model(x).tolist()]  # (2x + 2)·6/7
    [3.4286, 5.1429]

    """
    _require_per_sample(loss)
    wrap = _FrozenModule if freeze else _UserModule
    # The module is added to a model of the branch alone, so that the branch's weights do not depend on the module.
    model = Model(backbone, PointHead(), seed)
    model.network = _ModuleAndBranch(wrap(copy.deepcopy(module), features), model.network, backbone.members)
    # A learned unit of z would be lost with the head: of a model around a module, users keep the state_dict alone.
    model.head = GTS(PointHead(transform, loss), scheme.with_own_scale())
    model.backbone = _BackboneWithModule(module, backbone)
    return model


class _BackboneWithModule(Backbone):
    """The backbone of the branch, without a text form, because only the user can build the module.

    With the text of the branch's backbone, a model would be saved and then loaded without the module.
    """

    def __init__(self, module: nn.Module, backbone: Backbone) -> None:
        self._class, self.backbone = type(module).__name__, backbone

    @property
    def module(self) -> nn.Module:
        # The text form reads every constructor argument, this one included.
        raise ValueError(f"debias cannot write your {self._class} as text: keep the state_dict and the call of debias")

    @property
    def out_features(self) -> int:
        return self.backbone.out_features

    @property
    def members(self) -> int:
        return self.backbone.members

    def stages(self) -> list[Callable[[], nn.Module]]:
        return self.backbone.stages()


class _UserModule(nn.Module):
    """The user's module, which computes its estimate (B, 1) and the features of the bias branch from a batch."""

    def __init__(self, module: nn.Module, features: Callable[[nn.Module, Inputs], Inputs]) -> None:
        super().__init__()
        self.module, self.features = module, features

    def forward(self, batch: Inputs) -> tuple[Tensor, Inputs]:
        estimate = self.module(batch)
        _require_column(estimate, batch)
        return estimate.reshape(-1, 1), self.features(self.module, batch)


class _FrozenModule(_UserModule):
    """A user's module that stays in evaluation mode and whose weights get no gradients."""

    def __init__(self, module: nn.Module, features: Callable[[nn.Module, Inputs], Inputs]) -> None:
        super().__init__(module, features)
        self.requires_grad_(False)
        self.eval()

    def train(self, mode: bool = True) -> Self:
        return super().train(False)


class _ModuleAndBranch(Network):
    """The raw outputs of a user's module and of a branch; only the branch has output biases to initialise.

    The estimate of the module is the same for every member of the branch.
    """

    def __init__(self, host: _UserModule, branch: Network, members: int) -> None:
        nn.Module.__init__(self)  # the stages are those of the branch
        self.host, self.branch, self.members = host, branch, members

    def forward(self, batch: Inputs) -> Raw:
        estimate, features = self.host(batch)
        if self.members > 1:
            estimate = estimate.repeat_interleave(self.members, 0)
        return (estimate, *self.branch(features))

    def start_at(self, constants: Raw) -> None:
        self.branch.start_at(constants[1:])

    def learned_numbers(self) -> int:
        return sum(parameter.numel() for parameter in self.host.parameters()) + self.branch.learned_numbers()

    def numbers_without_gradient(self) -> int:
        return self.branch.numbers_without_gradient()

    def branch_modules(self, index: int) -> list[nn.Module]:
        return [self.host] if index == 0 else self.branch.branch_modules(index - 1)


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
