"""Rows that can be assessed: finite numbers in every column and a positive weight; the others are counted by reason."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from transun.data.columns import Chunk, Columns, is_numeric, open_columns
from transun.diagnosis.moments import Floats
from transun.support.extras import need
from transun.support.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ArrayRows", "ColumnNames", "ColumnRows", "RowSource", "SkippedRows", "UsableRows", "require_squarable"]

_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class ColumnNames:
    """The columns of the target, the prediction, the weight if there is one, and the segments."""

    target: str
    pred: str
    weight: str | None = None
    by: tuple[str, ...] = ()

    @property
    def numbers(self) -> list[str]:
        """The columns that must hold numbers."""
        return [self.target, self.pred, *([self.weight] if self.weight is not None else [])]


def require_squarable(number: np.ndarray, **contents: Floats) -> None:
    """Refuse values beyond those of float32: fourth powers of others, of which intervals are made, are finite.

    Args:
        number: of each row (n,), for the message.
        **contents: what the values are -> the values (n,).

    >>> require_squarable(np.array([7]), target=np.array([1e300]))
    Traceback (most recent call last):
    ValueError: the target of row 7 is 1e+300, too large to be squared: give it in a larger unit, or correct it

    """
    for content, values in contents.items():
        too_large = np.flatnonzero(np.abs(values) > _LARGEST)
        if len(too_large):
            first = too_large[0]
            raise ValueError(
                f"the {content} of row {number[first]} is {values[first]:g}, too large to be squared: "
                "give it in a larger unit, or correct it"
            )


@dataclass(frozen=True)
class UsableRows:
    """Usable rows of a chunk: their numbers in the source, their indices in the chunk, and their values."""

    chunk: Chunk
    number: np.ndarray
    index: np.ndarray
    y: Floats
    pred: Floats
    weight: Floats

    def __post_init__(self) -> None:
        require_squarable(self.number, target=self.y, prediction=self.pred, weight=self.weight)

    def __len__(self) -> int:
        return len(self.y)


@dataclass
class _Count:
    rows: int
    first: int


@dataclass
class SkippedRows:
    """How many rows were left out by reason, and the first of each."""

    counts: dict[str, _Count] = field(default_factory=dict)

    def add(self, reason: str, numbers: np.ndarray) -> None:
        """Count the rows of these numbers."""
        if len(numbers):
            self.counts.setdefault(reason, _Count(0, int(numbers[0]))).rows += len(numbers)

    def sentences(self, rows: int) -> tuple[str, ...]:
        """A sentence on each reason, for a source of so many rows; an error where no row is left."""
        sentences = tuple(
            f"{count.rows:,} of {rows:,} rows left out because {reason}, the first is row {count.first:,} "
            "(counted from 0)"
            for reason, count in self.counts.items()
        )
        if sum(count.rows for count in self.counts.values()) == rows:
            raise ValueError(f"no row is left to judge: {'; '.join(sentences)}. Repair the columns, or name others")
        return sentences


class RowSource(Protocol):
    """Rows that can be read several times, each time in the same order."""

    @property
    def by(self) -> tuple[str, ...]:
        """The columns of segments."""

    def is_numeric(self, column: str) -> bool:
        """Whether a column of segments holds numbers."""

    def read(self, label: str, skipped: SkippedRows) -> Iterator[UsableRows]:
        """The usable rows, chunk by chunk, under a progress bar of this label; the others are added to `skipped`."""


@dataclass(frozen=True)
class ColumnRows:
    """The rows of some columns of a file, a folder or a table; they are streamed."""

    columns: Columns
    names: ColumnNames
    show: bool | None = None

    @property
    def by(self) -> tuple[str, ...]:
        """The columns of segments."""
        return self.names.by

    def is_numeric(self, column: str) -> bool:
        """Whether a column of segments holds numbers."""
        return is_numeric(self.columns, column)

    def read(self, label: str, skipped: SkippedRows) -> Iterator[UsableRows]:
        """The usable rows, chunk by chunk, under a progress bar of this label; the others are added to `skipped`."""
        with Progress(label, self.columns.size, self.show) as bar:
            for chunk in self.columns.chunks():
                yield _usable(chunk, self.names, skipped)
                bar.advance(chunk.done)


@dataclass(frozen=True)
class ArrayRows:
    """Finite numbers (n,) in memory, and a table of n rows with the columns of segments, or None."""

    y: Floats
    pred: Floats
    weight: Floats
    segments: "pa.Table | None" = None

    @property
    def by(self) -> tuple[str, ...]:
        """The columns of segments."""
        return () if self.segments is None else tuple(self.segments.column_names)

    def is_numeric(self, column: str) -> bool:
        """Whether a column of segments holds numbers."""
        return is_numeric(open_columns(self.segments, [], [column]), column)

    def read(self, label: str, skipped: SkippedRows) -> Iterator[UsableRows]:
        """All rows of positive weight, in one chunk."""
        table = need("pyarrow").table({"target": self.y}) if self.segments is None else self.segments
        number = np.arange(len(self.y))
        skipped.add("their weight is 0", number[self.weight == 0.0])
        index = np.flatnonzero(self.weight > 0.0)
        chunk = Chunk(0, table, len(table))
        yield UsableRows(chunk, number[index], index, self.y[index], self.pred[index], self.weight[index])


def _usable(chunk: Chunk, names: ColumnNames, skipped: SkippedRows) -> UsableRows:
    number = np.arange(chunk.first, chunk.first + len(chunk))
    values = [chunk.numbers(name) for name in names.numbers]
    keep = np.ones(len(number), dtype=bool)
    for name, column in zip(names.numbers, values, strict=True):
        for reason, wrong in (("is missing or not a number", np.isnan(column)), ("is infinite", np.isinf(column))):
            skipped.add(f"{name!r} {reason}", number[wrong & keep])
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
        skipped.add(f"the weight {names.weight!r} is 0", number[keep & (weight == 0.0)])
        keep &= weight > 0.0
    index = np.flatnonzero(keep)
    return UsableRows(chunk, number[index], index, values[0][index], values[1][index], weight[index])
