"""Optimisers as values: printable, comparable, and built for a model when training starts."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from transun.backbones.sharded import shards_in
from transun.support.group import Group
from transun.training.engine import Eager, Engine
from transun.training.rowwise import OptimiserStep, RowwiseAdagrad

__all__ = ["SGD", "Adagrad", "AdagradDecay", "Adam", "AdamW", "Optimiser", "RowWise", "constant", "cosine", "linear"]


@dataclass(frozen=True)
class Optimiser:
    """How weights follow gradients. `rate` is the learning rate before any decay."""

    rate: float = 1e-3

    def __post_init__(self) -> None:
        if not 0.0 < self.rate < math.inf:
            raise ValueError(f"{type(self).__name__} needs a finite rate > 0, got {self.rate}")

    def build(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """The torch optimiser over these parameters."""
        raise NotImplementedError

    def on(self, model: nn.Module, engine: Engine = Eager(), group: Group = Group()) -> OptimiserStep:
        """The optimiser of a model's parameters, as `fit` steps it on every rank of a group."""
        if group.size > 1 and shards_in(model):
            raise ValueError(f"{type(self).__name__} cannot train tables that are sharded over ranks: use RowWise")
        return OptimiserStep(self.build(model.parameters()), group=group)


@dataclass(frozen=True)
class SGD(Optimiser):
    """w ← w - rate·g, with optional momentum and weight decay. What the paper names for its public data."""

    rate: float = 1e-2
    momentum: float = 0.0
    weight_decay: float = 0.0

    def build(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.SGD(
            parameters, self.rate, momentum=self.momentum, weight_decay=self.weight_decay, fused=True
        )


@dataclass(frozen=True)
class Adagrad(Optimiser):
    """w ← w - rate·g / √Σg²: steps shrink where gradients were frequent, which suits id embeddings."""

    rate: float = 1e-2
    weight_decay: float = 0.0

    def build(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        listed = list(parameters)
        # Torch has one pass over everything for Adagrad on a CPU, and not on a GPU.
        fused = all(parameter.device.type == "cpu" for parameter in listed)
        return torch.optim.Adagrad(listed, self.rate, weight_decay=self.weight_decay, fused=fused)


@dataclass(frozen=True)
class Adam(Optimiser):
    """Adam; weight decay is the L2 penalty in the gradient."""

    weight_decay: float = 0.0

    def build(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.Adam(parameters, self.rate, weight_decay=self.weight_decay, fused=True)


@dataclass(frozen=True)
class AdamW(Optimiser):
    """Adam with decoupled weight decay."""

    weight_decay: float = 1e-2

    def build(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.AdamW(parameters, self.rate, weight_decay=self.weight_decay, fused=True)


@dataclass(frozen=True)
class AdagradDecay(Optimiser):
    """Adagrad whose sum of squares is multiplied by `decay` every `period` steps, never below `floor`.

    Lets a model that trains for months keep moving; the paper's optimiser on its industrial data.
    """

    rate: float = 1e-2
    decay: float = 0.9
    period: int = 100_000
    floor: float = 0.1

    def build(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return _AdagradDecay(parameters, self.rate, self.decay, self.period, self.floor)


class _AdagradDecay(torch.optim.Optimizer):
    def __init__(
        self, parameters: Iterable[nn.Parameter], rate: float, decay: float, period: int, floor: float
    ) -> None:
        if not 0.0 < decay <= 1.0 or period < 1 or not floor > 0.0:
            raise ValueError(
                f"AdagradDecay needs 0 < decay <= 1, period >= 1, floor > 0; got {decay}, {period}, {floor}"
            )
        super().__init__(parameters, {"lr": rate, "decay": decay, "period": period, "floor": floor})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One step over every parameter that has a gradient."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state: dict[str, Any] = self.state[parameter]
                if not state:
                    state["step"] = 0
                    state["squares"] = torch.full_like(parameter, group["floor"])
                state["step"] += 1
                squares: Tensor = state["squares"]
                if state["step"] % group["period"] == 0:
                    squares.mul_(group["decay"]).clamp_(min=group["floor"])
                squares.addcmul_(parameter.grad, parameter.grad)
                parameter.addcdiv_(parameter.grad, squares.sqrt(), value=-group["lr"])


@dataclass(frozen=True)
class RowWise(Optimiser):
    """Row-wise Adagrad for tables, s_r ← s_r + mean(g_r²), w_r ← w_r - rate·g_r / √s_r; `dense` for all else.

    The cost of a step depends on the look-ups of its batch and not on the size of the tables: no gradient, moment or
    update of a whole table exists. The state is one number a row. Rows whose ids are not in the batch stay as they are,
    as with Adagrad and unlike with Adam and its momentum. On a GPU the last bits depend on the order of its threads; on
    a CPU the same seed gives the same bits.

    Args:
        rate: of the tables. As for `Adagrad`, larger than Adam's: the first step of a row has about this length in
            each coordinate.
        dense: how all other parameters move, with its own rate; a decay of `fit` applies to both.

    >>> RowWise(0.05, dense=AdamW()).dense.rate
    0.001

    """

    rate: float = 1e-2
    dense: Optimiser = Adam()

    def build(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        raise ValueError("RowWise must know which columns read which table: use it with `fit`, not with parameters")

    def on(self, model: nn.Module, engine: Engine = Eager(), group: Group = Group()) -> OptimiserStep:
        tables = RowwiseAdagrad(model, engine, group)
        apart = {id(weight) for weight in tables.parameters()}
        dense = self.dense.build(p for p in model.parameters() if id(p) not in apart)
        return OptimiserStep(dense, tables, self.rate, group)


def constant(progress: float) -> float:
    """The learning rate stays as it is.

    >>> constant(0.7)
    1.0
    """
    return 1.0


def linear(progress: float) -> float:
    """The learning rate falls in a straight line to zero.

    >>> linear(0.75)
    0.25
    """
    return 1.0 - progress


def cosine(progress: float) -> float:
    """The learning rate falls along half a cosine: slowly, then fast, then slowly.

    >>> cosine(0.5)
    0.5
    """
    return 0.5 * (1.0 + math.cos(math.pi * progress))
