"""Segments of a column, chosen from a sample and then recognised in every piece of the data."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from transun.diagnosis.moments import Floats
from transun.diagnosis.reading import Rows

__all__ = ["MOST", "Split", "by_number", "by_text", "holm", "quantile_edges"]

Integers = NDArray[np.int64]

# The most values of a column that are shown by themselves; the rest is taken together.
MOST = 20
_BINS = 10
# A text column whose values occur less than twice on average names rows, not segments.
_FEW_ROWS = 2
_FEW_VALUES = 100


class Split(Protocol):
    """How the rows of a column fall into segments; `titles` names them."""

    @property
    def titles(self) -> tuple[str, ...]:
        """Names of the segments."""

    @property
    def how(self) -> str:
        """How they were chosen."""

    def codes(self, rows: Rows, column: str) -> Integers:
        """The place of each row's segment among the titles."""


@dataclass(frozen=True)
class Texts:
    """The largest values, all others, and missing."""

    values: tuple[str, ...]
    titles: tuple[str, ...]
    how: str

    def codes(self, rows: Rows, column: str) -> Integers:
        """By the text of the value."""
        codes: Integers = rows.chunk.codes(column, self.values)[rows.place]
        return codes


@dataclass(frozen=True)
class Ranges:
    """Numbers between edges, and missing."""

    edges: Floats
    titles: tuple[str, ...]
    how: str

    def codes(self, rows: Rows, column: str) -> Integers:
        """By the range that the number is in; a value on an edge belongs above it."""
        numbers = rows.chunk.numbers(column)[rows.place]
        return np.where(np.isnan(numbers), len(self.edges) + 1, np.searchsorted(self.edges, numbers, side="right"))


def by_text(column: str, values: Sequence[str | None]) -> Texts:
    """The `MOST` commonest values of the sample, each its own segment.

    >>> by_text("country", ["IT", "FR", "IT", None]).titles
    ('IT', 'FR', 'all others', 'missing')
    """
    counts = Counter(value for value in values if value is not None)
    if len(counts) > _FEW_VALUES and len(values) < _FEW_ROWS * len(counts):
        raise ValueError(
            f"column {column!r} has {len(counts):,} different values in {len(values):,} rows: these name rows, not "
            "segments; use a coarser column, or join values into groups first"
        )
    # By count, then by name, so that ties do not depend on the order of the rows.
    common = sorted(counts, key=lambda value: (-counts[value], value))[:MOST]
    how = f"{len(counts):,} values" + (f", the {MOST} largest are shown" if len(counts) > MOST else "")
    return Texts(tuple(common), (*common, "all others", "missing"), how)


def by_number(values: Floats) -> Ranges:
    """Ten ranges of about equally many rows.

    >>> by_number(np.arange(100.0)).titles[:2]
    ('below 10', '10 to 20')
    """
    edges = quantile_edges(values[np.isfinite(values)], np.ones(int(np.isfinite(values).sum())), _BINS)
    shown = [f"{edge:.4g}" for edge in edges]
    between = [f"{low} to {high}" for low, high in pairwise(shown)]
    ends = ([f"below {shown[0]}", *between, f"from {shown[-1]}"]) if shown else ["all"]
    return Ranges(edges, (*ends, "missing"), f"numbers, cut into {len(edges) + 1} ranges of about equally many rows")


def quantile_edges(values: Floats, weight: Floats, bins: int) -> Floats:
    """Inner edges (at most bins − 1) of ranges of about equal weight, each edge a value; ties are never split.

    >>> quantile_edges(np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4), 2).tolist()
    [3.0]
    >>> quantile_edges(np.zeros(5), np.ones(5), 10).tolist()
    []
    """
    if not len(values):
        return np.zeros(0)
    order = np.argsort(values, kind="stable")
    running = np.cumsum(weight[order])
    level = np.arange(1, bins) / bins * running[-1]
    edges = np.unique(
        values[order][np.searchsorted(running, level * (1 + 1e-12), side="right").clip(max=len(order) - 1)]
    )
    inner: Floats = edges[edges > values.min()]
    return inner


def holm(chances: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values: below α in any test that is true with probability α at most, however they depend.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(chances, kind="stable")
    adjusted, highest = [1.0] * len(chances), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(chances) - rank) * chances[index]))
        adjusted[index] = highest
    return adjusted
