"""A simulated order log as rows to train on, made when they are asked for."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from transun.data import hashing
from transun.data.dataset import Batch
from transun.data.simulated import OrderLog, block_size

# Targets that a head looks at to learn its constants: the error of a mean is a thousandth of a deviation.
_TARGETS = 1 << 20

# The product of two smaller numbers fits in int64.
_ROWS = 1 << 31


class OrderStream:
    """Rows start..stop-1 of an order log in batches, made on a device as they are needed and never stored.

    The rows are those of `OrderLog.chunk`. On a GPU nothing is read or moved, so that a training measures its own
    speed: 132,657,136 orders cost the memory of one block of 2²⁰.

    Args:
        log: the orders.
        device: where the batches are made.
        start: number of the first row.
        stop: number after the last; None is the end of the log.

    >>> log = OrderLog(orders=10, history=0)
    >>> [len(batch.y) for batch in OrderStream(log).batches(4)]
    [4, 4, 2]
    >>> shuffled = torch.cat([batch.y for batch in OrderStream(log).batches(4, seed=1)])
    >>> torch.equal(shuffled.sort().values, log.dataset().y.sort().values)
    True

    """

    def __init__(
        self, log: OrderLog, device: torch.device | str = "cpu", start: int = 0, stop: int | None = None
    ) -> None:
        stop = len(log) if stop is None else stop
        log.require_part(start, stop)
        if stop - start >= _ROWS:
            raise ValueError(f"{stop - start} rows cannot be shuffled; a stream has fewer than {_ROWS}")
        self.log, self.device, self.start, self.stop = log, torch.device(device), start, stop

    def __len__(self) -> int:
        return self.stop - self.start

    def __repr__(self) -> str:
        return f"OrderStream({len(self)} rows of {self.log} on {self.device})"

    def targets(self) -> Tensor:
        """The targets of the first rows, at most 1,048,576: a sample, since rows are independent of their numbers."""
        return self.log.chunk(self.start, min(self.stop, self.start + _TARGETS), self.device)[1]

    def batches(self, size: int, *, seed: int | None = None) -> Iterator[Batch]:
        """Every row once, `size` rows at a time; the last batch has the rest.

        Args:
            size: rows of a batch.
            seed: None keeps the order. A number visits row (i·stride + offset) mod n in the i-th place, both drawn from
                it: no shuffle of a real log, but rows of this one do not depend on their neighbours.

        """
        if size < 1:
            raise ValueError(f"batch size {size}: a batch has at least one row")
        return self._batches(size, seed)

    def _batches(self, size: int, seed: int | None) -> Iterator[Batch]:
        stride, offset = (1, 0) if seed is None else self._walk(seed)
        block = max(block_size(self.device) // size, 1) * size
        for first in range(0, len(self), block):
            places = torch.arange(first, min(first + block, len(self)), device=self.device)
            x, y, _ = self.log.rows(places.mul_(stride).add_(offset).remainder_(len(self)).add_(self.start))
            for cut in range(0, len(y), size):
                yield Batch({name: column[cut : cut + size] for name, column in x.items()}, y[cut : cut + size])

    def _walk(self, seed: int) -> tuple[int, int]:
        drawn = hashing.uniform(torch.arange(2), seed, "orders.walk") * len(self)
        stride, offset = int(drawn[0]), int(drawn[1])
        while math.gcd(stride, len(self)) != 1:
            stride += 1
        return stride, offset
