"""How many threads a training uses, so that it costs its share of a machine that others use too.

torch gives every operation to all threads of the machine and waits for the last of them. Where another process runs on
one of the processors, or a container may use half of one, each of several thousand small operations waits for a turn of
the scheduler. 1,200 rows took 85 s with two threads on two busy processors, and 4 s with one.
"""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from transun.support.processors import processor_quota

__all__ = ["limited_threads", "threads_for"]

# From this many rows a step, a second thread saves more than the wait for it costs. Measured with AutoSUN on layers of
# 128 and 128: a step of 512 rows takes 18 ms with one thread and 23 ms with two, one of 1,024 rows 38 and 26 ms.
_ROWS = 1024


def threads_for(rows: int, available: int, quota: float | None = None) -> int:
    """The threads for steps of so many rows: one for small steps, otherwise those available within the quota.

    The load of the machine does not matter, because the number of threads changes the last bits of the weights: on a
    busy day the same training would end in other weights.

    Args:
        rows: of a step; each member of a backbone adds its own.
        available: threads that torch would use.
        quota: processors that the container may use, or None.

    >>> threads_for(512, 8), threads_for(4096, 8), threads_for(4096, 8, quota=2.5), threads_for(4096, 8, quota=0.5)
    (1, 8, 2, 1)

    """
    if rows < _ROWS:
        return 1
    return available if quota is None else max(1, min(available, math.floor(quota)))


@contextmanager
def limited_threads(rows: int) -> Iterator[None]:
    """Train steps of so many rows with the threads that suit them; afterwards torch has the threads it had before.

    Where OMP_NUM_THREADS is set, nothing is changed.
    """
    if os.environ.get("OMP_NUM_THREADS"):
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(threads_for(rows, before, processor_quota()))
    try:
        yield
    finally:
        torch.set_num_threads(before)
