"""What a model remembers of the rows it was trained on, so that nobody proves it on them by mistake."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transun.data import hashing
from transun.data.dataset import Dataset

__all__ = ["SeenMatches", "SeenRows", "row_hashes"]

# Hashes kept: all for small tables, and for larger ones a sample that takes 87 kB as text.
_KEPT = 8192
# Fewer training rows than this share change no metric by an amount that anyone reads.
_FEW = 0.01
_DOUBT = 0.01

Hashes = NDArray[np.float64]


def row_hashes(x: Mapping[str, Tensor] | Tensor, y: Tensor) -> Hashes:
    """A number in (0, 1) for each row (n,), a hash of its encoded columns and its target.

    Encoded columns are the same for the same rows in any file format, and in any order of the columns.

    >>> same = row_hashes({"a": torch.tensor([1, 2]), "b": torch.tensor([0.5, 0.5])}, torch.tensor([3.0, 3.0]))
    >>> bool(same[0] == row_hashes({"b": torch.tensor([0.5]), "a": torch.tensor([1])}, torch.tensor([3.0]))[0])
    True
    >>> bool(same[0] == same[1])
    False
    """
    columns = dict(x) if isinstance(x, Mapping) else {str(index): column for index, column in enumerate(x.unbind(1))}
    state = _integers(y)
    for name in sorted(columns):
        column = columns[name].cpu()
        # The values of a list: -1 pads, and how much depends on the longest list around.
        values = column if column.ndim == 2 else column[:, None]
        for index, value in enumerate(values.unbind(1)):
            mixed = hashing.bits(state ^ _integers(value), index, f"seen.{name}")
            state = torch.where(value == -1, state, mixed) if column.ndim == 2 else mixed
    return np.asarray(hashing.uniform(state, 0, "seen"))


@dataclass(frozen=True)
class SeenRows:
    """A sample of the hashes of training rows, by which the share of training rows in another table is estimated.

    Only rows that no other training row equals are kept. Where columns have few values, new rows equal old ones by
    chance: by Good and Turing, the share of new rows that equal a row seen once is 2 n₂ / n, with n₂ the number of
    different rows seen twice. Only more matches than that are evidence. The sample consists of the smallest hashes, so
    that the same rows of both tables are in it.

    Args:
        rows: n, the training rows.
        once: n₁, the different rows seen once.
        twice: n₂, the different rows seen twice.
        reach: hashes up to this one are in the sample; 1 if all are.
        hashes: of the sample, ascending.

    >>> data = Dataset({"a": torch.arange(100)}, torch.arange(100.0))
    >>> seen = SeenRows.of(data)
    >>> seen.share(row_hashes(data.x, data.y)), seen.share(row_hashes(data.x, data.y + 1.0))
    (1.0, 0.0)

    """

    rows: int
    once: float
    twice: float
    reach: float
    hashes: Hashes

    @classmethod
    def of(cls, data: Dataset) -> Self:
        """What to remember of training rows."""
        distinct, counts = np.unique(row_hashes(data.x, data.y), return_counts=True)
        single = distinct[counts == 1]
        return cls(len(data), len(single), int((counts == 2).sum()), 1.0, single)._sampled()

    @classmethod
    def of_sample(cls, data: Dataset, rows: int) -> Self:
        """What to remember of so many training rows, from a random sample of them.

        n₁ counts the remembered rows only, since no other row can be recognised. n₂ is scaled to all rows, so that
        2 n₂ / n is the share of new rows that equal a remembered one by chance, as the sample gives it.

        >>> data = Dataset({"a": torch.arange(100)}, torch.arange(100.0))
        >>> seen = SeenRows.of_sample(data.take(torch.arange(0, 100, 2)), rows=100)
        >>> seen.share(row_hashes(data.x, data.y))
        1.0
        """
        seen = cls.of(data)
        return cls(rows, seen.once, seen.twice * rows / len(data), seen.reach, seen.hashes)

    def joined(self, other: "SeenRows | None") -> "SeenRows":
        """What to remember of these rows and of those of an earlier training, which may be the same rows."""
        if other is None:
            return self
        reach = min(self.reach, other.reach)
        first, second = (hashes[hashes <= reach] for hashes in (self.hashes, other.hashes))
        both = len(np.intersect1d(first, second)) / reach
        rows, once, twice = self.rows + other.rows, self.once + other.once, self.twice + other.twice
        if other._share(both * reach, self.rows * reach):  # the same rows, seen by both
            hashes, rows, once = np.union1d(first, second), rows - round(both), once - both
        else:  # rows that are alike by chance
            hashes, once, twice = np.setxor1d(first, second), once - 2.0 * both, twice + both
        return SeenRows(rows, max(once, 0.0), twice, reach, hashes)._sampled()

    def share(self, hashes: Hashes) -> float:
        """The share of the rows with these `row_hashes` that were training rows; 0 where chance may explain it."""
        return self.share_of(self.matches(hashes))

    def matches(self, hashes: Hashes) -> "SeenMatches":
        """Which of the remembered rows are among rows with these `row_hashes`; those of two chunks add up."""
        return SeenMatches(len(hashes), np.intersect1d(hashes[hashes <= self.reach], self.hashes))

    def share_of(self, matches: "SeenMatches") -> float:
        """The share of rows that were training rows, from their matches."""
        return self._share(len(matches.hashes), matches.rows * self.reach)

    def _share(self, matches: float, tried: float) -> float:
        # n₂ is a count itself: three standard errors more, and at least three rows.
        by_chance = tried * (2.0 * self.twice + 6.0 * max(self.twice, 0.25) ** 0.5) / self.rows
        at_most = tried * self.once / self.rows
        if matches == 0 or at_most <= by_chance:
            return 0.0
        count, mean = (torch.tensor(value, dtype=torch.float64) for value in (float(matches), by_chance))
        if torch.special.gammainc(count, mean) > _DOUBT:  # P(Poisson(mean) ≥ count)
            return 0.0
        share = min((matches - by_chance) / (at_most - by_chance), 1.0)
        return share if share > _FEW else 0.0

    def to_dict(self) -> dict[str, Any]:
        """A plain object for JSON; see `from_dict`."""
        text = base64.b64encode(self.hashes.astype("<f8").tobytes()).decode()
        return {"rows": self.rows, "once": self.once, "twice": self.twice, "reach": self.reach, "hashes": text}

    @classmethod
    def from_dict(cls, content: Any) -> Self:
        """The inverse of `to_dict`; a `ValueError` for what it cannot have written."""
        try:
            hashes = np.frombuffer(base64.b64decode(content["hashes"], validate=True), "<f8").astype(np.float64)
            once, twice, reach = (float(content[name]) for name in ("once", "twice", "reach"))
            rows = int(content["rows"])
            counts = rows > 0 and once >= 0.0 and twice >= 0.0 and 0.0 < reach <= 1.0
            valid = counts and bool((np.diff(hashes) > 0.0).all())
        except (KeyError, TypeError, ValueError, OverflowError):
            valid = False
        if not valid:
            raise ValueError("what the model remembers of its training rows is damaged: save the model anew")
        return cls(rows, once, twice, reach, hashes)

    def _sampled(self) -> Self:
        if len(self.hashes) <= _KEPT:
            return self
        hashes = self.hashes[:_KEPT]
        return type(self)(self.rows, self.once, self.twice, float(hashes[-1]), hashes)


@dataclass(frozen=True)
class SeenMatches:
    """How many rows were looked at, and which of the remembered hashes are theirs, ascending.

    >>> SeenMatches(2, np.array([0.5])) + SeenMatches(1, np.array([0.25, 0.5]))
    SeenMatches(rows=3, hashes=array([0.25, 0.5 ]))
    """

    rows: int
    hashes: Hashes

    def __add__(self, other: "SeenMatches") -> "SeenMatches":
        return SeenMatches(self.rows + other.rows, np.union1d(self.hashes, other.hashes))


def _integers(values: Tensor) -> Tensor:
    """int64 that are equal where the values are; numbers as float32, with one zero."""
    values = values.detach().cpu()
    if values.is_floating_point():
        return (values.to(torch.float32) + 0.0).view(torch.int32).to(torch.int64)
    return values.to(torch.int64)
