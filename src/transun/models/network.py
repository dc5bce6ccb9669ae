"""A network supplies a head's raw outputs; a model is the two together."""

import copy
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self, cast

import torch
from torch import Tensor, nn

from transun.backbones import Backbone, Inputs
from transun.heads import Branch, Head, Raw

__all__ = ["Model", "Network"]


@dataclass(frozen=True)
class Route(Branch):
    """A branch within one network, whose number of stages is known: `shared` is a number."""

    shared: int = 0


class Network(nn.Module):
    """One stack of stages per branch, each ending in a linear output; shared stages exist and run once.

    Branch i continues from another branch's activation after `shared` stages, mostly the first one's. The first branch
    has the same names and shapes whatever follows it, so the weights of a model without a bias branch fit one with it.

    >>> network = Network(EmbeddingMLP(numeric=("a",), hidden=(8,)), (Branch(), Branch(width=3, shared=2)))
    >>> [tuple(raw.shape) for raw in network({"a": torch.zeros(5)})]
    [(5, 1), (5, 3)]
    """

    def __init__(self, backbone: Backbone, branches: tuple[Branch, ...]) -> None:
        super().__init__()
        builders = backbone.stages()
        self.routes = tuple(_route(index, branch, backbone) for index, branch in enumerate(branches))
        self.stacks, self.outputs = nn.ModuleList(), nn.ModuleList()
        for route in self.routes:  # whole branches in turn, so that the first draws the same weights under every head
            self.stacks.append(nn.Sequential(*(build() for build in builders[route.shared :])))
            self.outputs.append(_output(backbone.out_features, route.width))
        stages = [stage for stack, _ in self._parts() for stage in stack]
        if len({id(stage) for stage in stages}) < len(stages):
            raise ValueError("a backbone's builder returned the same module twice; each call must build a fresh one")

    def forward(self, batch: Inputs) -> Raw:
        """One (B, width) tensor per branch."""
        ends = branch_outputs(self.routes, self.stacks, batch)
        return tuple(output(end) for (_, output), end in zip(self._parts(), ends, strict=True))

    @torch.no_grad()
    def start_at(self, constants: Raw) -> None:
        """Make every row's outputs these constants, (width,) per branch: biases set, output weights zero."""
        for (_, output), constant in zip(self._parts(), constants, strict=True):
            output.bias.copy_(constant)
            output.weight.zero_()

    def _parts(self) -> list[tuple[nn.Sequential, nn.Linear]]:
        return list(zip(cast(Any, self.stacks), cast(Any, self.outputs), strict=True))


class Model(nn.Module):
    """A network and a head: calling it predicts, `loss` costs.

    Args:
        backbone: what the features go through.
        head: the method.
        seed: of the initial weights; the same seed gives the first branch the same weights under every head.

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
        return self.head(self.raw(batch))  # type: ignore[no-any-return]

    def loss(self, batch: Inputs, y: Tensor) -> dict[str, Tensor]:
        """Named per-sample terms, each (B,)."""
        return self.head.loss(self.raw(batch), y)

    def raw(self, batch: Inputs) -> Raw:
        """The raw outputs, in float32 or better: losses and inverses are not computed in half precision."""
        return tuple(out.float() if out.dtype.itemsize < 4 else out for out in self.network(batch))

    def prepare(self, y: Tensor, base: "Model | None" = None) -> Self:
        """Learn the head's constants from the training targets and start the output biases there.

        Args:
            y: training targets (n,).
            base: a trained model with the same backbone, without the last branch or branches of this one: its weights
                and its head's constants are taken over, only the new branches start afresh.

        """
        device = next(self.parameters()).device
        # Constants are learned on the CPU, whatever the model runs on: heads need not care.
        y = y.detach().cpu()
        head: Head = copy.deepcopy(self.head).cpu().prepare(y)
        if base is not None:
            head = head.wrap(copy.deepcopy(base.head).cpu())
        self.network.start_at(head.initial_outputs(y))
        self.head = head.to(device)
        if base is not None:
            self._take_over(base.network.state_dict())
        self.prepared = True
        return self

    def _take_over(self, state: dict[str, Tensor]) -> None:
        own = self.network.state_dict()
        for name, value in state.items():
            if name not in own or own[name].shape != value.shape:
                raise ValueError(f"the base does not fit: its {name!r} is missing here or has another shape")
        self.network.load_state_dict(state, strict=False)


def branch_outputs(routes: Iterable[Route], stacks: Iterable[Any], batch: Any) -> Iterator[Any]:
    """What every branch ends in: its own stages, after those that it shares and that have run already."""
    # What every branch has seen: the batch and the activation after each of its stages, shared ones included.
    seen: list[list[Any]] = []
    for route, stack in zip(routes, stacks, strict=True):
        own = seen[route.shares_with][: route.shared + 1] if seen else [batch]
        value = own[-1] if route.trains_shared else _read_only(own[-1])
        for stage in stack:
            value = stage(value)
            own.append(value)
        seen.append(own)
        yield value


def _route(index: int, branch: Branch, backbone: Backbone) -> Route:
    """The branch with "all" as a number, after a check that this network can have it."""
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
    return Route(branch.width, shared, branch.shares_with, branch.trains_shared)


def _read_only(value: Inputs) -> Inputs:
    # Columns of a batch have no gradient to keep back.
    return value.detach() if isinstance(value, Tensor) else value


def _output(in_features: int, width: int) -> nn.Linear:
    with warnings.catch_warnings():
        # A constant backbone has no features: the layer is its bias alone, on purpose.
        warnings.filterwarnings("ignore", message="Initializing zero-element tensors")
        output = nn.Linear(in_features, width)
    nn.init.zeros_(output.bias)
    return output
