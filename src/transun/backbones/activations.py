"""Activations as values: what a dense layer ends with, built for its width when a network is."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from transun.backbones.dice import DiceLayer


class Activation(ABC):
    """The non-linearity of a layer: `build` is all that a subclass writes.

    The built module maps (..., width) to the same shape and may overwrite its input, which a layer has just computed:
    a pass over fresh memory costs more than the arithmetic. A second argument, `present` (..., 1), is zero where a
    position is padding: the values of such a position must not influence any other.
    """

    @abstractmethod
    def build(self, width: int) -> nn.Module:
        """A fresh module for layers of this width."""


@dataclass(frozen=True)
class ReLU(Activation):
    """max(x, 0).

    >>> ReLU().build(2)(torch.tensor([[-1.0, 2.0]])).tolist()
    [[0.0, 2.0]]
    """

    def build(self, width: int) -> nn.Module:
        return Pointwise(torch.relu_)


@dataclass(frozen=True)
class Sigmoid(Activation):
    """1 / (1 + e⁻ˣ): what the released code of DIN uses in its activation unit. Flat far from zero.

    >>> Sigmoid().build(1)(torch.zeros(1, 1)).item()
    0.5
    """

    def build(self, width: int) -> nn.Module:
        return Pointwise(torch.sigmoid_)


@dataclass(frozen=True)
class PReLU(Activation):
    """x for x > 0, else α·x with one learned slope α a unit.

    Args:
        slope: α before training; 0 starts as `ReLU`, 1 starts linear.

    >>> PReLU(0.25).build(2)(torch.tensor([[-4.0, 2.0]])).tolist()
    [[-1.0, 2.0]]

    """

    slope: float = 0.25

    def build(self, width: int) -> nn.Module:
        return _PReLU(width, self.slope)


@dataclass(frozen=True)
class Dice(Activation):
    """p·x + α·(1 - p)·x with p = sigmoid(β·(x - mean) / std): a PReLU whose bend sits where the data is.

    α and β are learned, one a unit; mean and std are those of the batch in training and running ones in evaluation, so
    a row's prediction does not depend on its neighbours. Positions that are padding are left out of both. A batch of
    one row has no std: it is normalised by the running ones and leaves them alone.

    Args:
        beta: β before training. 0 starts linear, as the released code does (it learns β); 1 is the paper's fixed one.

    >>> Dice(beta=1.0).build(1).eval()(torch.zeros(1, 1)).item()
    0.0
    >>> Dice().build(1)(torch.tensor([[-4.0], [2.0]])).tolist()  # β = 0: p = ½ everywhere
    [[-2.0], [1.0]]

    """

    beta: float = 0.0

    def build(self, width: int) -> nn.Module:
        return DiceLayer(width, self.beta)


class Pointwise(nn.Module):
    """The same function of every number, without parameters."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, present: Tensor | None = None) -> Tensor:
        return self.function(x)


class _PReLU(nn.Module):
    def __init__(self, width: int, slope: float) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.full((width,), slope))

    def forward(self, x: Tensor, present: Tensor | None = None) -> Tensor:
        return torch.where(x > 0.0, x, self.slope * x)
