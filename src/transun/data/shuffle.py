"""The order in which a large table is read: row groups permuted and dealt to workers, rows cut into buffers."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch

from transun.data import hashing


class Segment(NamedTuple):
    """Rows start..stop-1 of one row group."""

    group: int
    start: int
    stop: int


def cuts(total: int, parts: int) -> list[int]:
    """Where to cut `total` rows into `parts` that differ by one row at most: ⌊total·i / parts⌋, i = 0..parts.

    Shares nest: shard 0 of 2, cut in 2 again, is shards 0 and 1 of 4.

    >>> cuts(10, 3)
    [0, 3, 6, 10]
    """
    return [total * part // parts for part in range(parts + 1)]


def segments(groups: Sequence[int], seed: int | None, index: int = 0, count: int = 1) -> list[Segment]:
    """What worker `index` of `count` reads: its even share of the rows of all row groups, one after the other.

    Args:
        groups: rows of each row group.
        seed: None keeps the groups in their order; a number permutes them, the same way for every worker, so that
            their shares are a partition, another one for every seed.
        index: which worker.
        count: how many workers.

    >>> segments([4, 4], seed=None, index=0, count=2), segments([4, 4], seed=None, index=1, count=4)
    ([Segment(group=0, start=0, stop=4)], [Segment(group=0, start=2, stop=4)])

    """
    order = list(range(len(groups)))
    if seed is not None:
        order = hashing.bits(torch.arange(len(groups)), seed, "parquet.groups").argsort().tolist()
    first, last = cuts(sum(groups), count)[index : index + 2]
    chosen, place = [], 0
    for group in order:
        start, stop = max(first - place, 0), min(last - place, groups[group])
        if start < stop:
            chosen.append(Segment(group, start, stop))
        place += groups[group]
    return chosen


def buffers(rows: int, capacity: int) -> list[int]:
    """Rows of each buffer: as few buffers of at most `capacity` as there can be, filled alike.

    Alike, because a last buffer of a few rows would be hardly shuffled.

    >>> buffers(10, 4)
    [3, 3, 4]
    """
    return [stop - start for start, stop in pairwise(cuts(rows, -(-rows // capacity)))] if rows else []
