"""Strips: the values of one column in a bounded number of intervals, joined where that blurs the fewest pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transun.metrics.inversions import Flags, Floats, Integers, ordered_bits

__all__ = ["Strips", "sums"]

_HEAVY = 3.0  # times the mean: a strip takes no more values then, until the others have caught up


@dataclass(frozen=True)
class Strips:
    """Intervals [low, high], each the hull of the values in it, by ascending low; some may overlap.

    Two values in strips that do not overlap are in known order. Two values in one strip with low = high are equal.
    Of other pairs nothing is known. Strips are only ever joined, never cut, so what was counted in them stays right.
    """

    low: Floats
    high: Floats

    def __len__(self) -> int:
        return len(self.low)

    @staticmethod
    def none() -> Strips:
        """No strip."""
        return Strips(np.empty(0), np.empty(0))

    @property
    def single(self) -> Flags:
        """Flags of the strips of one value."""
        single: Flags = self.low == self.high
        return single

    @property
    def below(self) -> tuple[Integers, Integers]:
        """The strips by ascending high, and for each strip how many of these lie wholly below it."""
        order = np.argsort(self.high, kind="stable")
        return order, np.searchsorted(self.high[order], self.low, side="left")

    @property
    def above(self) -> tuple[Integers, Integers]:
        """The strips by descending low, and for each strip how many of these lie wholly above it."""
        return Strips(-self.high, -self.low).below

    def find(self, x: Floats) -> Integers:
        """Return for each value the strip that holds it, the one that starts last of several; −1 for none."""
        # The strip around each strip, to try next: the last before it that ends later.
        around = np.full(len(self) + 1, -1)
        for i in range(1, len(self)):
            j = i - 1
            while j >= 0 and self.high[j] < self.high[i]:
                j = around[j]
            around[i] = j
        place = np.searchsorted(self.low, x, side="right") - 1
        high = np.append(self.high, np.inf)  # for −1, which holds whatever is left
        while (missed := x > high[place]).any():
            place[missed] = around[place[missed]]
        return place

    def add(self, x: Floats, weight: Floats, mass: Floats, most: int) -> tuple[Strips, Integers, Integers]:
        """Return at most `most` strips that also hold x, and the new places of the old strips and of x.

        A value inside a strip goes there, unless the strip is heavy already. Any other starts as a strip of its own, so
        that a stream that moves on to new values, or dwells on some, finds them cut as finely as the rest.

        >>> strips, _, place = Strips.none().add(np.array([5.0, 1.0, 1.5]), np.ones(3), np.empty(0), most=2)
        >>> strips.low.tolist(), strips.high.tolist(), place.tolist()
        ([1.0, 5.0], [1.5, 5.0], [1, 0, 0])
        """
        place = self.find(x)
        heavy = ~self.single & (mass > _HEAVY * (mass.sum() + weight.sum()) / most)
        new = place < 0
        new[~new] = heavy[place[~new]]
        value, which = np.unique(x[new], return_inverse=True)
        mass = mass + sums(place[~new], weight[~new], len(self))
        joined, old, fresh = self.join(Strips(value, value), mass, sums(which, weight[new], len(value)), most)
        result = np.empty(len(x), dtype=np.int64)
        result[new], result[~new] = fresh[which], old[place[~new]]
        return joined, old, result

    def join(self, other: Strips, mass: Floats, other_mass: Floats, most: int) -> tuple[Strips, Integers, Integers]:
        """Return at most `most` strips over both, and the new places of the strips of either.

        Neighbours are joined, first those that this leaves in doubt about the fewest pairs. They must be
        siblings in the tree of all floats (halved by their bits): strips of two sketches are then nested or
        separate, where any other cut would leave each strip of the one across two of the other.
        """
        low, high = np.concatenate([self.low, other.low]), np.concatenate([self.high, other.high])
        order = np.lexsort((-high, low))
        low, high, mass = low[order], high[order], np.concatenate([mass, other_mass])[order]
        single = low == high
        group = np.arange(len(low))
        # Equal single values first: they are one strip and nothing is lost.
        start = np.ones(len(low), dtype=bool)
        start[1:] = ~(single[1:] & single[:-1] & (low[1:] == low[:-1]))
        while True:
            if not start.all():
                first = np.flatnonzero(start)
                group = (np.cumsum(start) - 1)[group]
                low, high, mass = low[first], np.maximum.reduceat(high, first), np.add.reduceat(mass, first)
            if len(low) <= most:
                break
            start = _starts(low, high, mass, len(low) - most)
        place = np.empty(len(order), dtype=np.int64)
        place[order] = group
        return Strips(low, high), place[: len(self)], place[len(self) :]


def sums(place: Integers, weight: Floats, size: int) -> Floats:
    """Return the weight at each of the places 0..size − 1."""
    return np.bincount(place, weight, minlength=size).astype(np.float64, copy=False)


def _starts(low: Floats, high: Floats, mass: Floats, excess: int) -> Flags:
    """Return flags of where a strip starts after joining some of the cheapest pairs of neighbours."""
    order = np.argsort(high, kind="stable")
    running, running_high = _running(mass), _running(mass[order])

    def reach(low_end: Floats, high_end: Floats) -> Floats:
        """The mass of the strips that overlap an interval."""
        begun = running[np.searchsorted(low, high_end, side="right")]
        return begun - running_high[np.searchsorted(high[order], low_end, side="left")]

    now = mass * (reach(low, high) - np.where(low == high, mass, 0.0))
    cost = (mass[1:] + mass[:-1]) * reach(low[:-1], np.maximum(high[1:], high[:-1])) - now[1:] - now[:-1]
    # Only strips whose common node in the tree of all floats is no larger than that of either with its other neighbour.
    node = _node(low[:-1], np.maximum(high[1:], high[:-1]))
    padded = np.concatenate([[65], node, [65]])
    cost[(node > padded[:-2]) | (node > padded[2:])] = np.inf
    # Some at a time, so that the light ones are joined among themselves before the heavy ones are touched.
    some = min(excess, max(1, int(np.isfinite(cost).sum()) // 2))
    cheap = np.zeros(len(cost), dtype=bool)
    cheap[np.argpartition(cost, some - 1)[:some]] = True
    # Of a run of cheap pairs every second one, for a strip can be joined with one neighbour only.
    place = np.arange(len(cost))
    run = place - np.maximum.accumulate(np.where(cheap, -1, place))
    return np.concatenate([[True], ~(cheap & (run % 2 == 1))])


def _node(low: Floats, high: Floats) -> Integers:
    """Return how many of the last bits of their keys two floats may differ in: the height of their common node."""
    differ = ordered_bits(low) ^ ordered_bits(high)
    return np.frexp(differ.view(np.uint64).astype(np.float64))[1]


def _running(mass: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(mass)])
