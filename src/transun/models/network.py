"""A network computes the raw outputs that a head needs; a model is a network and a head."""

import copy
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import torch
from torch import Tensor, nn

from transun.backbones import Backbone, Inputs
from transun.heads import Branch, Head, Raw
from transun.support.arguments import require_kind

__all__ = ["Model", "Network", "require_base"]

# Rows of one member that are predicted at a time.
_CPU_ROWS, _GPU_ROWS = 1 << 13, 1 << 16


@dataclass(frozen=True)
class Route(Branch):
    """A branch within one network, whose number of stages is known: `shared` is a number."""

    shared: int = 0


class Network(nn.Module):
    """One stack of stages per branch, each followed by a linear output layer; shared stages exist once and run once.

    A branch continues from the activation of another branch, mostly the first, after `shared` stages. The parameters of
    the first branch have the same names and shapes whatever branches follow, so that the weights of a model without a
    bias branch fit one with it.

    The output layer of a backbone with k members consists of k layers, and every row has k outputs in each branch.

    >>> network = Network(EmbeddingMLP(numeric=("a",), hidden=(8,)), (Branch(), Branch(width=3, shared=2)))
    >>> [tuple(raw.shape) for raw in network({"a": torch.zeros(5)})]
    [(5, 1), (5, 3)]
    """

    def __init__(self, backbone: Backbone, branches: tuple[Branch, ...]) -> None:
        super().__init__()
        parts = self.backbones = [backbone.of_branch(index) for index in range(len(branches))]
        self.routes = tuple(_route(index, branch, parts) for index, branch in enumerate(branches))
        # How often an output is repeated, where other branches have more members.
        self.repeats = tuple(backbone.members // part.members for part in parts)
        self.stacks, self.outputs = nn.ModuleList(), nn.ModuleList()
        # Branch by branch, so that the first one draws the same weights under every head.
        for route, part in zip(self.routes, parts, strict=True):
            self.stacks.append(nn.Sequential(*(build() for build in part.stages()[route.shared :])))
            self.outputs.append(part.set_up_output(_output(part.out_features, route.width, part.members)))
        stages = [stage for stack, _ in self._parts() for stage in stack]
        if len({id(stage) for stage in stages}) < len(stages):
            raise ValueError("a backbone's builder returned the same module twice; each call must build a fresh one")

    def forward(self, batch: Inputs) -> Raw:
        """One (B·members, width) tensor per branch, the members of a row one after the other."""
        activations = branch_outputs(self.routes, self.stacks, batch)
        return tuple(
            _repeat(output(activation), times)
            for (_, output), activation, times in zip(self._parts(), activations, self.repeats, strict=True)
        )

    @torch.no_grad()
    def start_at(self, constants: Raw) -> None:
        """Make the outputs of every row these constants, (width,) per branch: set the biases, and zero the weights."""
        for (_, output), constant in zip(self._parts(), constants, strict=True):
            output.bias.copy_(constant)
            output.weight.zero_()

    def branch_modules(self, index: int) -> list[nn.Module]:
        """The modules that belong to one branch alone, or that others share with it: what its own loss trains."""
        stack, output = self._parts()[index]
        return [stack, output]

    def learned_numbers(self) -> int:
        """How many numbers training has found: parameters, and what stages such as trees have learned without them."""
        return sum(parameter.numel() for parameter in self.parameters()) + self.numbers_without_gradient()

    def numbers_without_gradient(self) -> int:
        """How many of them further training leaves as they are, because no gradient changes them."""
        stages = zip(self.backbones, cast(Any, self.stacks), strict=True)
        return sum(backbone.numbers_without_gradient(stack) for backbone, stack in stages)

    def _parts(self) -> list[tuple[nn.Sequential, "nn.Linear | MemberLinear"]]:
        return list(zip(cast(Any, self.stacks), cast(Any, self.outputs), strict=True))


class Model(nn.Module):
    """A network and a head: calling the model predicts, `loss` computes the loss of each row.

    The members of a backbone such as `TabM` are trained side by side: the loss of a row is the mean of its members'
    losses, its prediction the mean of their predictions. A head never sees members: to it they are further rows.

    Args:
        backbone: the layers between the features and the outputs.
        head: the method, which defines the outputs, their loss and their meaning.
        seed: seed of the initial weights; the same seed gives the first branch the same weights under every head.

    >>> y = torch.tensor([1.0, 2.0, 6.0])
    >>> model = Model(Constant(), LogSUN()).prepare(y)
    >>> [round(v, 3) for v in model(torch.zeros(1, 1)).tolist()]  # unbiased from the start
    [3.0]

    """

    def __init__(self, backbone: Backbone, head: Head, seed: int = 0) -> None:
        super().__init__()
        self.backbone, self.seed = backbone, seed
        self.head = head
        self.prepared = False
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = Network(backbone, head.branches)

    def forward(self, batch: Inputs) -> Tensor:
        """Predictions (B,), in units of the target."""
        return self.over_members(self.head(self.raw(batch)))

    def loss(self, batch: Inputs, y: Tensor) -> dict[str, Tensor]:
        """The terms of the loss by name, one number per row in each, (B,)."""
        return self.loss_of_raw(self.raw(batch), y)

    def loss_of_raw(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        """The terms of the loss by name, (B,) each, from the raw outputs of the rows with targets y (B,)."""
        members = self.members
        if members == 1:
            return self.head.loss(raw, y)
        if self.head.rowwise:
            terms = self.head.loss(raw, self.for_members(y))
            return {name: self.over_members(term) for name, term in terms.items()}
        # The loss of a row depends on the other rows, of which only those of the same member count.
        by_member = [self.head.loss(tuple(out[index::members] for out in raw), y) for index in range(members)]
        return {name: torch.stack([terms[name] for terms in by_member]).mean(0) for name in by_member[0]}

    @property
    def members(self) -> int:
        """The number of members of the backbone, each of which has raw outputs for every row."""
        return self.backbone.members

    @property
    def rows_at_once(self) -> int:
        """How many rows to predict at a time: 8,192 on a CPU and 65,536 on a GPU, divided by the number of members.

        Layers hold many times what a row of data does, once for each member. More rows would take more memory and, on a
        CPU, more time, because they leave its cache; many fewer would be noticed as time that Python takes, which is
        many more rows of a GPU.

        >>> Model(TabM(numeric=("a",), members=8), MSE()).rows_at_once
        1024
        """
        on_cpu = next(self.parameters()).device.type == "cpu"
        return max((_CPU_ROWS if on_cpu else _GPU_ROWS) // self.members, 1)

    def over_members(self, values: Tensor) -> Tensor:
        """The mean over the members of each row: (B·members,) to (B,)."""
        members = self.backbone.members
        return values if members == 1 else values.reshape(-1, members).mean(1)

    def for_members(self, values: Tensor) -> Tensor:
        """The value of each row, once for each member: (B,) to (B·members,), in the order of the raw outputs."""
        members = self.backbone.members
        return values if members == 1 else values.repeat_interleave(members)

    def raw(self, batch: Inputs) -> Raw:
        """The raw outputs, (B·members, width) per branch, the members of a row one after the other.

        In float32 or better: losses and inverse transforms are not computed in half precision.
        """
        return tuple(out.float() if out.dtype.itemsize < 4 else out for out in self.network(batch))

    def prepare(self, y: Tensor, base: "Model | None" = None, sample: "tuple[Inputs, Tensor] | None" = None) -> Self:
        """Learn the head's constants from the training targets and start the output biases there.

        Args:
            y: training targets (n,).
            base: a trained model with the same backbone and without the last branch or branches of this one: its
                weights and the constants of its head are copied, and only the new branches start untrained.
            sample: some training rows and their targets. The new branches start at what is best beside the base's
                outputs for these rows, so that the total is right from the first step; without them they start as if
                the base predicted a constant.

        """
        device = next(self.parameters()).device
        # Constants are learned on the CPU, so that heads need not know about devices.
        y = y.detach().cpu()
        head: Head = copy.deepcopy(self.head).cpu().prepare(y)
        if base is not None:
            head = head.wrap(copy.deepcopy(base.head).cpu())
        self.network.start_at(head.initial_outputs(y) if base is None else _outputs_beside(base, head, y, sample))
        self.head = head.to(device)
        if base is not None:
            self._copy_weights(base.network.state_dict())
        self.prepared = True
        return self

    def require_trained(self) -> None:
        """Raise a `ValueError` where the head knows no targets yet, so that predictions would mean nothing.

        >>> Model(Constant(), LogSUN()).require_trained()
        Traceback (most recent call last):
        ValueError: the model was never trained: fit it first
        """
        if not self.prepared:
            raise ValueError("the model was never trained: fit it first")

    def _copy_weights(self, state: dict[str, Tensor]) -> None:
        current = self.network.state_dict()
        for name, value in state.items():
            if name not in current or current[name].shape != value.shape:
                raise ValueError(f"the base does not fit: its {name!r} is missing here or has another shape")
        self.network.load_state_dict(state, strict=False)


@torch.no_grad()
def _outputs_beside(base: Model, head: Head, y: Tensor, sample: tuple[Inputs, Tensor] | None) -> Raw:
    """The constants at which a head around a trained base starts."""
    if sample is None:
        return head.initial_outputs(y)
    x, targets = sample
    training = base.training
    raw = base.eval().raw(x)
    base.train(training)
    return head.outputs_beside(tuple(out.cpu().to(y.dtype) for out in raw), base.for_members(targets).cpu().to(y.dtype))


def branch_outputs(routes: Iterable[Route], stacks: Iterable[Any], batch: Any) -> Iterator[Any]:
    """The last activation of every branch; stages that a branch shares are not computed again."""
    # For every branch the batch and the activation after each of its stages, shared ones included.
    activations: list[list[Any]] = []
    for route, stack in zip(routes, stacks, strict=True):
        branch = activations[route.shares_with][: route.shared + 1] if activations else [batch]
        value = branch[-1] if route.trains_shared else _stop_gradient(branch[-1])
        for stage in stack:
            value = stage(value)
            branch.append(value)
        activations.append(branch)
        yield value


def _repeat(raw: Tensor, times: int) -> Tensor:
    """The outputs of every row, once for each member."""
    return raw if times == 1 else raw.repeat_interleave(times, 0)


def _route(index: int, branch: Branch, parts: Sequence[Backbone]) -> Route:
    """The branch with its number of shared stages, after a check that its backbone has as many."""
    backbone = parts[index]
    count = len(backbone.stages())
    shared = count if branch.shared == "all" else branch.shared
    if not 0 <= shared <= count:
        raise ValueError(
            f"branch {index} asks to share {shared} stages, but {type(backbone).__name__} has {count}: "
            f"use shared=0..{count}"
        )
    if index == 0 and shared:
        raise ValueError(f"the first branch has nobody to share with; set its shared to 0, not {shared}")
    if shared and not 0 <= branch.shares_with < index:
        raise ValueError(f"branch {index} can share with an earlier branch only, not with branch {branch.shares_with}")
    if shared and parts[branch.shares_with] is not backbone:
        raise ValueError(f"branch {index} cannot share stages with branch {branch.shares_with} of another backbone")
    return Route(branch.width, shared, branch.shares_with, branch.trains_shared)


def _stop_gradient(value: Inputs) -> Inputs:
    # The columns of a batch, which are not a single tensor, have no gradient.
    return value.detach() if isinstance(value, Tensor) else value


class MemberLinear(nn.Module):
    """One linear layer for each of k members: rows (B·k, in_features) to (B·k, width), member by member."""

    def __init__(self, in_features: int, width: int, members: int) -> None:
        super().__init__()
        bound = in_features**-0.5  # as nn.Linear
        self.weight = nn.Parameter(torch.empty(members, in_features, width).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(members, width))

    def forward(self, x: Tensor) -> Tensor:
        by_member = x.reshape(-1, *self.weight.shape[:2]).transpose(0, 1)
        return torch.baddbmm(self.bias.unsqueeze(1), by_member, self.weight).transpose(0, 1).flatten(0, 1)


def _output(in_features: int, width: int, members: int) -> nn.Linear | MemberLinear:
    if members > 1:
        return MemberLinear(in_features, width, members)
    with warnings.catch_warnings():
        # A constant backbone has no features, so that the layer consists of its bias.
        warnings.filterwarnings("ignore", message="Initializing zero-element tensors")
        output = nn.Linear(in_features, width)
    nn.init.zeros_(output.bias)
    return output


def require_base(base: Any) -> None:
    """Raise a `TypeError` if the argument `base` of a training is something else, such as a model of a table."""
    require_kind("base", base, Model, "give the .model of a TableModel")
