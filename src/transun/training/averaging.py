"""Averages of the weights along training, around which the weights of the last step are noisy."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["EMA", "Averaging", "Tail"]

# A finite stand-in for ln(0): its exponential is zero, and sums that contain it can still be subtracted.
_LOG_ZERO = -800.0


@dataclass(frozen=True)
class Averaging:
    """How much of the newest weights enters the average: avg ← avg + weight·(w - avg)."""

    def weight(self, step: int, total: int) -> float:
        """The weight of step `step` (from 0) of `total`; 1 discards all steps before it."""
        raise NotImplementedError


@dataclass(frozen=True)
class Tail(Averaging):
    """The plain mean of the weights over the last part of training (Polyak and Ruppert).

    Its error falls to the sampling error of the data, while the last step of SGD keeps a noise set by its rate.

    Args:
        begin: the share of training after which weights enter the mean; earlier ones are too far from the end.

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
    """The exponential moving average over about the last 1/(1 - decay) steps.

    It does not depend on the length of training. Until it has seen that many steps it is the mean of all of them.

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
    """The running average of a module's parameters, which can temporarily replace them.

    Parameters in `by_row` are updated lazily: rows that do not move are not touched in a step. Call `catch_up` before
    some rows move; their average then follows in one step from avg ← w + (avg - w)·Π(1 - weight), which equals
    the result of updating every row in every step, up to rounding.

    Args:
        module: the module whose parameters are averaged.
        by_row: those parameters that move a few rows at a time.

    """

    def __init__(self, module: nn.Module, by_row: Iterable[nn.Parameter] = ()) -> None:
        apart = {id(parameter) for parameter in by_row}
        self.parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
        self._values: list[Tensor] = [parameter.detach().clone() for parameter in self.parameters]
        pairs = list(zip(self.parameters, self._values, strict=True))
        self._dense = [(parameter, value) for parameter, value in pairs if id(parameter) not in apart]
        self._rows = {
            id(parameter): _Rows(parameter, value, torch.zeros(len(parameter), dtype=torch.float64).to(value.device))
            for parameter, value in pairs
            if id(parameter) in apart
        }
        self._log_decay = 0.0  # the sum of ln(1 - weight) over all updates

    @property
    def values(self) -> list[Tensor]:
        """The averages, in the order of the module's parameters."""
        for rows in self._rows.values():
            rows.catch_up(None, self._log_decay)
        return self._values

    @torch.no_grad()
    def update(self, weight: float) -> None:
        """Move the average towards the current weights."""
        values, present = [value for _, value in self._dense], [parameter.detach() for parameter, _ in self._dense]
        if values:
            torch._foreach_lerp_(values, present, weight)
        self._log_decay += math.log1p(-weight) if weight < 1.0 else _LOG_ZERO

    def catch_up(self, parameter: nn.Parameter, rows: Tensor | None) -> None:
        """Update the average of some rows (n,), or None for all, which are about to move."""
        if id(parameter) in self._rows:
            self._rows[id(parameter)].catch_up(rows, self._log_decay)

    def state_dict(self) -> dict[str, Any]:
        """The averages without catching up first: that would round a saved run otherwise than one that went on."""
        return {
            "values": self._values,
            "since": [rows.since for rows in self._rows.values()],
            "log_decay": self._log_decay,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        own = [*self._values, *(rows.since for rows in self._rows.values())]
        for value, saved in zip(own, [*state["values"], *state["since"]], strict=True):
            value.copy_(saved)
        self._log_decay = float(state["log_decay"])

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange the average and the weights of the module."""
        for parameter, value in zip(self.parameters, self.values, strict=True):
            present = parameter.detach().clone()
            parameter.copy_(value)
            value.copy_(present)

    @contextmanager
    def standing_in(self) -> Iterator[None]:
        """Inside the `with` block the module holds the average."""
        self.swap()
        try:
            yield
        finally:
            self.swap()


@dataclass
class _Rows:
    """A parameter, the average of its rows, and the sum of ln(1 - weight) at which each row was last updated."""

    parameter: nn.Parameter
    value: Tensor
    since: Tensor

    @torch.no_grad()
    def catch_up(self, rows: Tensor | None, log_decay: float) -> None:
        if rows is None:
            weight = -torch.expm1(log_decay - self.since).to(self.value.dtype)
            self.value.lerp_(self.parameter.detach(), weight.unsqueeze(1))
            self.since.fill_(log_decay)
            return
        weight = -torch.expm1(log_decay - self.since.index_select(0, rows)).to(self.value.dtype)
        present = self.parameter.detach().index_select(0, rows)
        # A row that occurs twice is written twice, with the same value.
        self.value.index_copy_(0, rows, self.value.index_select(0, rows).lerp_(present, weight.unsqueeze(1)))
        self.since.index_fill_(0, rows, log_decay)
