"""The concept of a backbone: stages of layers that turn a batch into features for a branch."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from transun.support.arguments import require_count
from transun.support.group import Group

Inputs = Tensor | Mapping[str, Tensor]
"""A batch of inputs: one (B, d) tensor, or named columns with first dimension B."""


@runtime_checkable
class Backbone(Protocol):
    """Builders of consecutive stages; the first one takes the batch, the last one returns (B·members, out_features).

    Stages are what branches can share: a branch with `shared=2` starts from the first branch's activation
    after two stages. Builders, not modules, so that a shared table is never built twice. A class that inherits from
    this one has one member and supplies all branches unless it says otherwise.
    """

    @property
    def out_features(self) -> int:
        """Width of the last stage's output."""

    @property
    def members(self) -> int:
        """The number of networks that are trained side by side and whose predictions are averaged.

        Of k members, the last stage returns k rows of features for every row of the batch, one after the other.
        """
        return 1

    def stages(self) -> list[Callable[[], nn.Module]]:
        """One builder per stage, each returning a fresh module."""

    def of_branch(self, index: int) -> "Backbone":
        """The backbone that supplies branch `index` of a head: this one, unless it consists of several."""
        return self

    def set_up_output(self, output: nn.Module) -> nn.Module:
        """The new output layer of a branch, after a look at it: one over final features is kept from learning."""
        return output

    def numbers_without_gradient(self, stages: nn.Sequential) -> int:
        """How many numbers its stages have learned otherwise than by gradients, so that they are no parameters."""
        return 0


@dataclass(frozen=True)
class Constant(Backbone):
    """No features at all: every row gets the same outputs, a free constant per raw output.

    The smallest laboratory for a head: what it converges to here is the statistic of y that it estimates.

    >>> model = Model(Constant(), MSE()).prepare(torch.tensor([1.0, 2.0, 6.0]))
    >>> [round(v, 4) for v in model(torch.zeros(2, 1)).tolist()]
    [3.0, 3.0]
    """

    out_features: int = 0

    def stages(self) -> list[Callable[[], nn.Module]]:
        return [_Nothing]


@dataclass
class Span:
    """Where the rows that are being computed are in a batch that ranks share: from `start` on, of `rows` in all.

    In a group of one the rows are the batch, and neither number is looked at.
    """

    group: Group = field(default_factory=Group)
    start: int = 0
    rows: int = 0


@runtime_checkable
class Spanning(Protocol):
    """A part of a network whose training depends on the whole batch, and which must know what of it is here."""

    span: Span


@contextmanager
def spanning(network: nn.Module, group: Group) -> Iterator[Span]:
    """Inside the `with` block, parts of the network that depend on the batch see what is set in the span."""
    span = Span(group)
    # A process that is alone has whole batches, and no part of its network needs to be told.
    parts = [part for part in network.modules() if isinstance(part, Spanning)] if group.size > 1 else []
    for part in parts:
        part.span = span
    try:
        yield span
    finally:
        for part in parts:
            part.span = Span()


class _Nothing(nn.Module):
    def forward(self, batch: Inputs) -> Tensor:
        column = batch if isinstance(batch, Tensor) else next(iter(batch.values()))
        return torch.zeros(column.shape[0], 0, device=column.device)


@dataclass(frozen=True)
class Custom:
    """A user's own module as a single stage: `build()` returns a fresh one that maps a batch to (B, out_features).

    One stage, so a branch shares all of it (`shared=1`) or nothing (`shared=0`). A module with several members returns
    (B·members, out_features), the members of a row one after the other.

    >>> backbone = Custom(lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU()), out_features=8)
    >>> Model(backbone, LogSUN(shared=1))(torch.zeros(3, 4)).shape
    torch.Size([3])
    """

    build: Callable[[], nn.Module]
    out_features: int
    members: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.build, nn.Module):
            raise TypeError("Custom needs a function that builds the module, since each branch may need its own copy")
        require_count("Custom", out_features=self.out_features, members=self.members)

    def stages(self) -> list[Callable[[], nn.Module]]:
        return [self.build]

    def of_branch(self, index: int) -> Backbone:
        return self

    def set_up_output(self, output: nn.Module) -> nn.Module:
        return output

    def numbers_without_gradient(self, stages: nn.Sequential) -> int:
        return 0
