"""An optimiser at work on a model: torch's over the dense parameters, rows of tables beside it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from transun.backbones import Inputs
from transun.training.rowwise import Tables

__all__: list[str] = []


class OptimiserStep:
    """What `fit` drives: read a batch, clip the gradients, step, and be saved and restored.

    Args:
        dense: torch's optimiser over every parameter that is no table of `tables`.
        tables: those that are moved row by row; None where every parameter is dense.
        rate: the learning rate of the tables before any decay.

    """

    def __init__(self, dense: torch.optim.Optimizer, tables: Tables | None = None, rate: float = 0.0) -> None:
        self.dense, self.tables, self.rate = dense, tables, rate
        self._rates: list[float] = [group["lr"] for group in dense.param_groups]
        self._parameters: list[nn.Parameter] = [one for group in dense.param_groups for one in group["params"]]
        self._factor = 1.0

    def by_row(self) -> list[nn.Parameter]:
        """The parameters that move a few rows at a time."""
        return [] if self.tables is None else self.tables.parameters()

    def scale_rates(self, factor: float) -> None:
        """Every learning rate is `factor` of what it was built with."""
        self._factor = factor
        for group, rate in zip(self.dense.param_groups, self._rates, strict=True):
            group["lr"] = rate * factor

    @contextmanager
    def reading(self, batch: Inputs) -> Iterator[Inputs]:
        """The batch as the model's forward and backward pass must see it, inside the `with` block."""
        if self.tables is None:
            yield batch
            return
        with self.tables.reading(batch) as renumbered:
            yield renumbered

    def zero_grad(self) -> None:
        """Forget gradients; those of table rows are made anew with every batch."""
        for parameter in self._parameters:  # torch's own loop writes a profile of itself, which costs more than it
            parameter.grad = None

    def clip(self, norm: float) -> None:
        """Scale all gradients so that their common norm is at most this."""
        rows = [] if self.tables is None else self.tables.gathered()
        nn.utils.clip_grad_norm_([*self._parameters, *rows], norm)

    def step(self, before: Callable[[nn.Parameter, Tensor | None], None] | None = None) -> None:
        """One step; `before` is told of every table and the rows of it that are about to move, None for all."""
        self.dense.step()
        if self.tables is not None:
            self.tables.step(self.rate * self._factor, before)

    def state_dict(self) -> dict[str, Any]:
        """Plain values and tensors: torch's own, and the sum of squares of each table."""
        tables = [] if self.tables is None else [table.squares for table in self.tables]
        return {**self.dense.state_dict(), "tables": tables}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        self.dense.load_state_dict({name: value for name, value in state.items() if name != "tables"})
        for table, squares in zip(() if self.tables is None else self.tables, state["tables"], strict=True):
            table.squares.copy_(squares)
