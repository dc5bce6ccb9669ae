"""Rows that can be assessed: finite numbers in every column and a positive weight; the others are counted by reason."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from transun.data.columns import Chunk, Rows, S, is_numeric, open_columns
from transun.data.magnitude import require_squarable
from transun.diagnosis.moments import RatioMoments
from transun.support.arrays import Floats, Integers
from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "ArrayRows",
    "ColumnNames",
    "ColumnRows",
    "RowSource",
    "SkippedRows",
    "UsableRows",
    "usable_rows",
]


@dataclass(frozen=True)
class ColumnNames:
    """The columns of the target, the prediction, the weight and the exposure if there are any, and the segments.

    With an exposure, rows are assessed as amounts per unit of it, which count by it; totals are those of the amounts.
    """

    target: str
    pred: str
    weight: str | None = None
    by: tuple[str, ...] = ()
    exposure: str | None = None

    @property
    def numbers(self) -> list[str]:
        """The columns that must hold numbers."""
        return [self.target, self.pred, *(name for name in (self.weight, self.exposure) if name is not None)]


@dataclass(frozen=True)
class SkippedRows:
    """How many rows were left out, and the number of the first, by reason; those of two chunks add up.

    >>> some = SkippedRows().and_rows("'gmv' is infinite", np.array([7, 9]))
    >>> (some + SkippedRows().and_rows("'gmv' is infinite", np.array([3]))).counts
    {"'gmv' is infinite": (3, 3)}
    """

    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def and_rows(self, reason: str, numbers: np.ndarray) -> "SkippedRows":
        """The rows of these numbers counted too."""
        return self + SkippedRows({reason: (len(numbers), int(numbers[0]))}) if len(numbers) else self

    def __add__(self, other: "SkippedRows") -> "SkippedRows":
        counts = dict(self.counts)
        for reason, (rows, first) in other.counts.items():
            known, earlier = counts.get(reason, (0, first))
            counts[reason] = (known + rows, min(first, earlier))
        return SkippedRows(counts)

    def sentences(self, rows: int) -> tuple[str, ...]:
        """A sentence on each reason, for a source of so many rows; an error where no row is left."""
        sentences = tuple(
            f"{count:,} of {rows:,} rows left out because {reason}, the first is row {first:,} (counted from 0)"
            for reason, (count, first) in sorted(self.counts.items(), key=lambda item: (item[1][1], item[0]))
        )
        if sum(count for count, _ in self.counts.values()) == rows:
            raise ValueError(f"no row is left to judge: {'; '.join(sentences)}. Repair the columns, or name others")
        return sentences


@dataclass(frozen=True)
class UsableRows:
    """Usable rows of a chunk: their numbers in the source, their indices in the chunk, and their values.

    `skipped` counts the other rows of the chunk. `unit` (n,) is the index of the customer or household that each row
    belongs to, or None where every row is a unit of its own; units are known only of rows in memory, as the rows of one
    may be in several chunks.
    """

    chunk: Chunk
    number: np.ndarray
    index: np.ndarray
    y: Floats
    pred: Floats
    weight: Floats
    skipped: SkippedRows = SkippedRows()
    unit: Integers | None = None

    def __post_init__(self) -> None:
        require_squarable(self.number, target=self.y, prediction=self.pred, weight=self.weight)

    def __len__(self) -> int:
        return len(self.y)

    def moments(self, group: Integers, groups: int, y: Floats | None = None) -> RatioMoments:
        """The sums of these rows by group, with other targets if they are given."""
        return RatioMoments.of(self.y if y is None else y, self.pred, self.weight, group, groups, self.unit)


class RowSource(Protocol):
    """Rows to be assessed, which can be read several times."""

    @property
    def by(self) -> tuple[str, ...]:
        """The columns of segments."""

    def is_numeric(self, column: str) -> bool:
        """Whether a column of segments holds numbers."""

    def total(self, summarise: Callable[[UsableRows], S], label: str) -> S:
        """The sum of `summarise(rows)` over the usable rows of all chunks; see `transun.data.columns.Rows.total`."""


@dataclass(frozen=True)
class ColumnRows:
    """The rows of some columns, wherever they are: a file, a folder, a table, or a frame of another engine."""

    columns: Rows
    names: ColumnNames
    show: bool | None = None

    @property
    def by(self) -> tuple[str, ...]:
        """The columns of segments."""
        return self.names.by

    def is_numeric(self, column: str) -> bool:
        """Whether a column of segments holds numbers."""
        return is_numeric(self.columns, column)

    def total(self, summarise: Callable[[UsableRows], S], label: str) -> S:
        """The sum of `summarise(rows)` over the usable rows of all chunks."""
        return self.columns.total(partial(_summarise_usable, self.names, summarise), label, self.show)


@dataclass(frozen=True)
class ArrayRows:
    """Finite numbers (n,) in memory, a table of n rows with the columns of segments, or None, and units, or None."""

    y: Floats
    pred: Floats
    weight: Floats
    segments: "pa.Table | None" = None
    unit: Integers | None = None

    @property
    def by(self) -> tuple[str, ...]:
        """The columns of segments."""
        return () if self.segments is None else tuple(self.segments.column_names)

    def is_numeric(self, column: str) -> bool:
        """Whether a column of segments holds numbers."""
        return is_numeric(open_columns(self.segments, [], [column]), column)

    def total(self, summarise: Callable[[UsableRows], S], label: str) -> S:
        """`summarise` of all rows of positive weight, in one chunk."""
        return summarise(self.rows())

    def rows(self) -> UsableRows:
        """All rows of positive weight."""
        table = need("pyarrow").table({"target": self.y}) if self.segments is None else self.segments
        number = np.arange(len(self.y))
        skipped = SkippedRows().and_rows("their weight is 0", number[self.weight == 0.0])
        index = np.flatnonzero(self.weight > 0.0)
        chunk = Chunk(0, table, len(table))
        values = (self.y[index], self.pred[index], self.weight[index])
        return UsableRows(
            chunk, number[index], index, *values, skipped, None if self.unit is None else self.unit[index]
        )


def _summarise_usable(names: ColumnNames, summarise: Callable[[UsableRows], S], chunk: Chunk) -> S:
    return summarise(usable_rows(chunk, names))


def usable_rows(chunk: Chunk, names: ColumnNames) -> UsableRows:
    """The rows of a chunk that can be assessed.

    >>> (chunk,) = open_columns({"gmv": [1.0, None], "p": [2.0, 2.0]}, ["gmv", "p"]).chunks()
    >>> rows = usable_rows(chunk, ColumnNames("gmv", "p"))
    >>> rows.y.tolist(), dict(rows.skipped.counts)
    ([1.0], {"'gmv' is missing or not a number": (1, 1)})
    """
    skipped = SkippedRows()
    number = np.arange(chunk.first, chunk.first + len(chunk))
    values = [chunk.numbers(name) for name in names.numbers]
    keep = np.ones(len(number), dtype=bool)
    for name, column in zip(names.numbers, values, strict=True):
        for reason, wrong in (("is missing or not a number", np.isnan(column)), ("is infinite", np.isinf(column))):
            skipped = skipped.and_rows(f"{name!r} {reason}", number[wrong & keep])
            keep &= ~wrong
    if names.weight is None:
        weight = np.ones(len(number))
    else:
        weight = values[2]
        negative = keep & (weight < 0.0)
        if negative.any():
            row = int(np.flatnonzero(negative)[0])
            raise ValueError(
                f"column {names.weight!r} is {weight[row]:g} in row {number[row]}: a weight says how often a row "
                "counts and cannot be negative; use 0 to leave a row out"
            )
        skipped = skipped.and_rows(f"the weight {names.weight!r} is 0", number[keep & (weight == 0.0)])
        keep &= weight > 0.0
    y, pred = values[:2]
    if names.exposure is not None:
        exposure = values[-1]
        skipped = skipped.and_rows(f"the exposure {names.exposure!r} is not above 0", number[keep & (exposure <= 0.0)])
        keep &= exposure > 0.0
        exposure = np.where(keep, exposure, 1.0)
        y, pred, weight = y / exposure, pred / exposure, weight * exposure
    index = np.flatnonzero(keep)
    return UsableRows(chunk, number[index], index, y[index], pred[index], weight[index], skipped)
