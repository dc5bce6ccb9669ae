"""Free constants trained by SGD: every seed and learning rate of an experiment as one batched model.

With a constant input a network is a vector of free outputs, so a whole grid of runs is one (runs, width) tensor per
branch, which a head takes like a batch of rows.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

from transun.heads import Head, Raw
from transun.losses import squared
from transun.training.averaging import Averaging


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch computes on one thread inside the `with` block: on small tensors a second thread mostly waits."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class Trained(NamedTuple):
    """Raw outputs after one epoch, one (seeds·rates, width) tensor per branch, rates varying fastest."""

    average: Raw
    last: Raw


def train_constants(
    head: Head, y: Tensor, start: Raw, rates: Sequence[float], batch: int, averaging: Averaging
) -> Trained:
    """One epoch of SGD from `start`, (width,) per branch, on each row of y (seeds, n), at each learning rate.

    >>> y = torch.tensor([[1.0, 3.0] * 500])
    >>> trained = train_constants(MSE(), y, (torch.zeros(1),), rates=(0.1,), batch=10, averaging=Tail())
    >>> round(trained.average[0].item(), 3)
    2.0
    """
    runs = len(y) * len(rates)
    rate = torch.tensor(rates, dtype=y.dtype).repeat(len(y)).unsqueeze(1)
    outputs = [value.to(y.dtype).repeat(runs, 1).requires_grad_() for value in start]
    average = [output.detach().double() for output in outputs]
    chunks = torch.split(y, batch, dim=1)
    for step, chunk in enumerate(chunks):
        loss = mean_over_rows(head_loss, head, tuple(outputs), chunk)
        # Runs do not touch each other, so the gradient of the sum is the gradient of each run.
        gradients = torch.autograd.grad(loss.sum(), outputs)
        with torch.no_grad():
            for output, gradient, mean in zip(outputs, gradients, average, strict=True):
                output.sub_(rate * gradient)
                mean.lerp_(output.double(), averaging.weight(step, len(chunks)))
    return Trained(tuple(average), tuple(output.detach() for output in outputs))


SampleCost = Callable[[Head, Raw, Tensor], Tensor]
"""A per-sample cost (B,) by which runs are compared."""


def head_loss(head: Head, raw: Raw, y: Tensor) -> Tensor:
    """The sum of the head's loss terms. It compares runs of one branch, not of GTS, whose bias term has units of f."""
    return torch.stack(tuple(head.loss(raw, y).values())).sum(0)


def squared_error(head: Head, raw: Raw, y: Tensor) -> Tensor:
    """(ŷ - y)², which is least in the mean for E[y], whatever loss a method is trained by."""
    return squared(head(raw), y)


def mean_over_rows(cost: SampleCost, head: Head, raw: Raw, y: Tensor) -> Tensor:
    """The mean cost of each run (seeds·rates,) over the targets (seeds, n) of its seed."""
    runs, (seeds, rows) = len(raw[0]), y.shape
    spread = tuple(output.unsqueeze(1).expand(-1, rows, -1).reshape(runs * rows, -1) for output in raw)
    target = y.unsqueeze(1).expand(-1, runs // seeds, -1).reshape(-1)
    return cost(head, spread, target).view(runs, rows).mean(1)


@torch.no_grad()
def best_rate(cost: SampleCost, head: Head, raw: Raw, y: Tensor, rates: Sequence[float], batch: int) -> int:
    """Index of the rate of least cost over all training rows and seeds; never one at which training diverged."""
    raw = tuple(output.to(y.dtype) for output in raw)
    costs = [mean_over_rows(cost, head, raw, chunk).double() * chunk.shape[1] for chunk in torch.split(y, batch, dim=1)]
    by_rate = torch.stack(costs).sum(0).view(len(y), len(rates)).mean(0)
    return int(by_rate.nan_to_num(nan=torch.inf).argmin())
