"""Pairs of rows by kind (ordered alike, tied, not comparable): every XAUC is a ratio of these counts."""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from transun.metrics.inversions import (
    Flags,
    Floats,
    Integers,
    count_inversions,
    group_order,
    smaller_before,
    stable_order,
)
from transun.metrics.rows import Rows

__all__ = ["Pairs", "Quantity", "count_pairs", "count_pairs_by_row"]


Quantity: TypeAlias = float | Floats


@dataclass(frozen=True)
class Pairs:
    """Weights of pairs, a pair weighing wᵢ·wⱼ: of all pairs (numbers), or of the pairs of each row ((n,) arrays).

    Attributes:
        concordant: pairs whose targets and predictions both differ, in the same direction.
        tied: pairs whose targets differ and whose predictions are equal.
        comparable: pairs whose targets differ.
        total: all pairs, including the pair of copies that a row of weight 2 stands for.

    """

    concordant: Quantity
    tied: Quantity
    comparable: Quantity
    total: Quantity


def count_pairs(rows: Rows) -> Pairs:
    """The weights of all pairs, in O(n log n).

    >>> from transun.metrics.rows import check
    >>> count_pairs(check([1.0, 2.0, 2.0], [1.0, 2.0, 3.0]))
    Pairs(concordant=2.0, tied=1.0, comparable=3.0, total=3.0)
    """
    if not bool((rows.weight == 1).all()):
        by_row, weight = count_pairs_by_row(rows), rows.weight.numpy()
        # Halved, because both rows of a pair count it.
        return Pairs(*(weight @ x / 2 for x in (by_row.concordant, by_row.tied, by_row.comparable, by_row.total)))
    both = _Sorted(rows)
    total = len(rows) * (len(rows) - 1) // 2
    comparable = total - _tied_pairs(both.new_y)
    tied = _tied_pairs(both.new_pred) - _tied_pairs(both.new_pair)
    discordant = count_inversions(both.shuffle)
    return Pairs(float(comparable - tied - discordant), float(tied), float(comparable), float(total))


def count_pairs_by_row(rows: Rows) -> Pairs:
    """For each row the weight of its partners, in O(n log n): the row's part in every XAUC."""
    n, both = len(rows), _Sorted(rows)
    shuffle = both.order
    weight = rows.weight.numpy()[both.rows]
    running, running_y = _running(weight), _running(weight[shuffle])
    whole = running[-1]
    below, before_y, first_y, last_y = np.empty((4, n))
    below[shuffle] = smaller_before(shuffle, weight[shuffle])
    before_y[shuffle] = running_y[:-1]
    first_y[shuffle], last_y[shuffle] = _ends(both.new_y, running_y)
    first_pred, last_pred = _ends(both.new_pred, running)
    first_pair, last_pair = _ends(both.new_pair, running)
    # `below` is the weight of the rows that come before in both orders. Each order breaks its ties by the other value,
    # so such a row has both values smaller, or one equal and one smaller, or both equal.
    both_smaller = below - (first_pair - first_pred) - (before_y - first_y)
    none_larger = below - (running[:-1] - first_pair) + (last_pair - first_pair)
    both_larger = whole - last_pred - last_y + none_larger
    result = np.empty((4, n))
    result[:, both.rows] = (
        both_smaller + both_larger,
        (last_pred - first_pred) - (last_pair - first_pair),
        whole - (last_y - first_y),
        np.full(n, whole - 1),
    )
    return Pairs(*result)


class _Sorted:
    """Rows sorted by target and by prediction; `new_*` flag where a new target, prediction or pair of both starts."""

    def __init__(self, rows: Rows) -> None:
        self.by_y, self.new_y = stable_order(rows.y.numpy())
        # The rows are sorted by target already, so the targets of equal predictions ascend.
        self.by_pred, self.new_pred = stable_order(rows.pred.numpy(), self.by_y)

    @cached_property
    def rows(self) -> Integers:
        """The rows by prediction, then target."""
        return self.by_y[self.by_pred]

    @cached_property
    def group(self) -> NDArray[np.int32]:
        """The number of each target among the distinct ones, by prediction."""
        return np.cumsum(self.new_y, dtype=np.int32).take(self.by_pred)

    @cached_property
    def order(self) -> Integers:
        """The positions in `rows` by target, then prediction."""
        return group_order(self.group)

    @property
    def shuffle(self) -> Integers:
        """A permutation with as many inversions as `order`: its inverse, known already, if no targets are tied."""
        return self.by_pred if self.new_y.all() else self.order

    @property
    def new_pair(self) -> Flags:
        """Flags of where a new pair of prediction and target starts in `rows`."""
        if self.new_y.all():
            return self.new_y
        new = self.new_pred.copy()
        new[1:] |= self.group[1:] != self.group[:-1]
        return new


def _tied_pairs(new: Flags) -> int:
    # Only rows that repeat the row before are visited: there are few or none in data without ties.
    repeat = np.flatnonzero(~new)
    first = np.flatnonzero(np.diff(repeat, prepend=-1) > 1)
    more = np.diff(first, append=len(repeat))
    return int((more * (more + 1) // 2).sum())


def _ends(new: Flags, running: Floats) -> tuple[Floats, Floats]:
    """The running weight at the start and at the end of the run that each position is in."""
    start = np.flatnonzero(new)
    run = np.cumsum(new) - 1
    return running[start][run], running[np.append(start[1:], len(new))][run]


def _running(weight: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(weight)])
