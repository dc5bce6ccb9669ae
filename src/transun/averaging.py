"""Averages of the weights along training: the last step is noise around them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

__all__ = ["EMA", "Averaging", "Tail"]


@dataclass(frozen=True)
class Averaging:
    """How much of the newest weights enters the average: avg ← avg + weight·(w - avg)."""

    def weight(self, step: int, total: int) -> float:
        """The share of step `step` (from 0) of `total`; 1 forgets everything before."""
        raise NotImplementedError


@dataclass(frozen=True)
class Tail(Averaging):
    """The plain mean of the weights over the last part of training (Polyak and Ruppert).

    Reaches the sampling error of the data itself, where the last step of SGD keeps a noise that its rate decides.

    Args:
        begin: share of training after which weights count; earlier ones are still on their way.

    >>> [Tail(0.5).weight(step, 4) for step in range(4)]
    [1.0, 1.0, 1.0, 0.5]

    """

    begin: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 <= self.begin < 1.0:
            raise ValueError(f"Tail needs 0 <= begin < 1, got {self.begin}")

    def weight(self, step: int, total: int) -> float:
        return 1.0 / (1 + max(0, step - int(self.begin * total)))


@dataclass(frozen=True)
class EMA(Averaging):
    """The exponential moving average: weights of the last 1/(1 - decay) steps or so.

    Needs no end of training in sight; a mean of all steps until it has seen that many.

    >>> EMA(0.75).weight(0, 100), EMA(0.75).weight(50, 100)
    (1.0, 0.25)
    """

    decay: float = 0.99

    def __post_init__(self) -> None:
        if not 0.0 <= self.decay < 1.0:
            raise ValueError(f"EMA needs 0 <= decay < 1, got {self.decay}")

    def weight(self, step: int, total: int) -> float:
        return max(1.0 - self.decay, 1.0 / (step + 1))


class Average:
    """The running average of a module's parameters, which can stand in for them."""

    def __init__(self, module: nn.Module) -> None:
        self.parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
        self.values: list[Tensor] = [parameter.detach().clone() for parameter in self.parameters]

    @torch.no_grad()
    def update(self, weight: float) -> None:
        """Move the average towards the present weights."""
        torch._foreach_lerp_(self.values, [parameter.detach() for parameter in self.parameters], weight)

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange the average and the weights of the module."""
        for parameter, value in zip(self.parameters, self.values, strict=True):
            present = parameter.detach().clone()
            parameter.copy_(value)
            value.copy_(present)

    @contextmanager
    def standing_in(self) -> Iterator[None]:
        """The module holds the average inside the `with` block."""
        self.swap()
        try:
            yield
        finally:
            self.swap()
