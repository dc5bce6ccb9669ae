"""Which rows of a table belong to a part of it, decided row by row, so that a table of any size is split as it is read.

A rule sees some rows and their numbers in the whole table, and nothing else: it gives the same answer in every pass, in
every order and on every machine.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from transun.data import hashing
from transun.data.split import hash_rows, moments
from transun.data.table import as_numbers, column_array

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AllOf", "Finite", "FromMoment", "HashedGroups", "HashedRows", "Not", "RowRule"]


class RowRule(ABC):
    """A condition on a row."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that decide."""
        return ()

    @abstractmethod
    def holds(self, table: "pa.Table", numbers: np.ndarray) -> np.ndarray:
        """A mask (n,) of the rows that it holds for; `numbers` (n,) are theirs in the whole table."""


@dataclass(frozen=True)
class HashedRows(RowRule):
    """Holds for about `share` of the rows, by a hash of the row number and the seed.

    >>> 1900 < int(HashedRows(0.2, seed=0).holds(None, np.arange(10_000)).sum()) < 2100
    True
    """

    share: float
    seed: int
    stream: str = "split"

    def holds(self, table: Any, numbers: np.ndarray) -> np.ndarray:
        # As in `by_row`: the rows held out are those of large hashes.
        return np.asarray(hashing.uniform(torch.from_numpy(numbers), self.seed, self.stream) >= 1.0 - self.share)


@dataclass(frozen=True)
class HashedGroups(RowRule):
    """Holds for all rows of about `share` of the values of a column, by a hash of the value and the seed."""

    column: str
    share: float
    seed: int

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def holds(self, table: "pa.Table", numbers: np.ndarray) -> np.ndarray:
        return np.asarray(hash_rows(table, self.column, self.seed) >= 1.0 - self.share)


@dataclass(frozen=True)
class FromMoment(RowRule):
    """Holds for rows from a moment on, by a column of times, or of numbers that ascend with time.

    Args:
        column: of times or numbers.
        moment: as `transun.data.split.moments` has it: a number, or microseconds since 1970.

    """

    column: str
    moment: float

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def holds(self, table: "pa.Table", numbers: np.ndarray) -> np.ndarray:
        return np.asarray(moments(table, self.column) >= self.moment)


@dataclass(frozen=True)
class Finite(RowRule):
    """Holds for rows with a finite number in a column."""

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def holds(self, table: "pa.Table", numbers: np.ndarray) -> np.ndarray:
        values = as_numbers(f"column {self.column!r}", column_array(table, self.column), "name another column")
        return np.asarray(np.isfinite(values))


@dataclass(frozen=True)
class Not(RowRule):
    """Holds for the rows that another rule does not hold for."""

    rule: RowRule

    @property
    def columns(self) -> tuple[str, ...]:
        return self.rule.columns

    def holds(self, table: "pa.Table", numbers: np.ndarray) -> np.ndarray:
        return np.asarray(~self.rule.holds(table, numbers))


@dataclass(frozen=True)
class AllOf(RowRule):
    """Holds for the rows that all of some rules hold for.

    >>> both = AllOf((HashedRows(0.5, seed=0), Not(HashedRows(0.5, seed=0))))
    >>> bool(both.holds(None, np.arange(100)).any())
    False
    """

    rules: tuple[RowRule, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(column for rule in self.rules for column in rule.columns))

    def holds(self, table: "pa.Table", numbers: np.ndarray) -> np.ndarray:
        mask = np.ones(len(numbers), dtype=bool)
        for rule in self.rules:
            mask &= rule.holds(table, numbers)
        return mask
