"""How a column divides rows into segments: chosen from a sample, then applied to every chunk of the data."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from transun.diagnosis.reading import UsableRows
from transun.support.arrays import Floats, Integers
from transun.support.counting import counted

__all__ = ["MOST", "Segmentation", "by_number", "by_text", "choose_segmentation", "holm", "quantile_edges"]


# The most values of a column that are segments of their own; the others form one segment.
MOST = 20
_BINS = 10
# A text column whose values occur less than twice on average names rows, not segments.
_FEW_ROWS = 2
_FEW_VALUES = 100


class Segmentation(Protocol):
    """A rule that assigns every row of a column to one of the segments named in `titles`."""

    @property
    def titles(self) -> tuple[str, ...]:
        """Names of the segments."""

    @property
    def how(self) -> str:
        """How the segments were chosen, in words."""

    def codes(self, rows: UsableRows, column: str) -> Integers:
        """The index of each row's segment in `titles`."""


@dataclass(frozen=True)
class ByText:
    """A segment for each of the commonest values, one for all others, and one for missing values."""

    values: tuple[str, ...]
    titles: tuple[str, ...]
    how: str

    def codes(self, rows: UsableRows, column: str) -> Integers:
        """The index of each row's value."""
        codes: Integers = rows.chunk.codes(column, self.values)[rows.index]
        return codes


@dataclass(frozen=True)
class ByRange:
    """A segment for each range between edges, and one for missing values."""

    edges: Floats
    titles: tuple[str, ...]
    how: str

    def codes(self, rows: UsableRows, column: str) -> Integers:
        """The index of each row's range; a number on an edge belongs to the range above it."""
        numbers = rows.chunk.numbers(column)[rows.index]
        return np.where(np.isnan(numbers), len(self.edges) + 1, np.searchsorted(self.edges, numbers, side="right"))


def choose_segmentation(column: str, texts: Sequence[str | None], *, numeric: bool) -> Segmentation:
    """Segments of a column of which some values are given as texts: by range if it holds many numbers, else by value.

    >>> choose_segmentation("age", [str(age) for age in range(100)], numeric=True).titles[0]
    'below 10'
    """
    # A few different numbers are names of segments; many are an amount.
    if numeric and len(set(texts)) > MOST:
        return by_number(np.array([np.nan if text is None else float(text) for text in texts]))
    return by_text(column, texts)


def by_text(column: str, values: Sequence[str | None]) -> ByText:
    """Segments by value: each of the `MOST` commonest values of the sample is a segment of its own.

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
    how = counted(len(counts), "value") + (f", the {MOST} largest are shown" if len(counts) > MOST else "")
    return ByText(tuple(common), (*common, "all others", "missing"), how)


def by_number(values: Floats) -> ByRange:
    """Segments by range: ten ranges of about equally many rows.

    >>> by_number(np.arange(100.0)).titles[:2]
    ('below 10', '10 to 20')
    """
    edges = quantile_edges(values[np.isfinite(values)], np.ones(int(np.isfinite(values).sum())), _BINS)
    shown = [f"{edge:.4g}" for edge in edges]
    between = [f"{low} to {high}" for low, high in pairwise(shown)]
    ends = ([f"below {shown[0]}", *between, f"from {shown[-1]}"]) if shown else ["all"]
    return ByRange(edges, (*ends, "missing"), f"numbers, cut into {len(edges) + 1} ranges of about equally many rows")


def quantile_edges(values: Floats, weight: Floats, bins: int) -> Floats:
    """Inner edges (at most bins - 1) of ranges of about equal weight, each edge a value; ties are never split.

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


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values: the probability that any true hypothesis gets one below α is at most α.

    This holds however the tests depend on each other.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    adjusted, highest = [1.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted
