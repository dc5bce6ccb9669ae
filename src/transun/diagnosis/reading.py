"""Rows that can be judged: numbers in every place, and weights that count; what is left out is remembered."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from transun.data.columns import Chunk, Columns
from transun.diagnosis.moments import Floats
from transun.support.progress import Progress

__all__ = ["Names", "Rows", "rows_of", "skipped_rows"]


@dataclass(frozen=True)
class Names:
    """The columns of the target, the prediction, the weight if there is one, and the segments."""

    target: str
    pred: str
    weight: str | None = None
    by: tuple[str, ...] = ()

    @property
    def numbers(self) -> list[str]:
        """Those that must hold numbers."""
        return [self.target, self.pred, *([self.weight] if self.weight is not None else [])]


@dataclass(frozen=True)
class Rows:
    """Usable rows of a chunk: their numbers in the file, places in the chunk, and values."""

    chunk: Chunk
    number: np.ndarray
    place: np.ndarray
    y: Floats
    pred: Floats
    weight: Floats

    def __len__(self) -> int:
        return len(self.y)


@dataclass
class _Gap:
    count: int = 0
    first: int = 0


@dataclass
class Gaps:
    """Rows left out, by reason."""

    found: dict[str, _Gap] = field(default_factory=dict)

    def add(self, reason: str, numbers: np.ndarray) -> None:
        """Remember these rows."""
        if len(numbers):
            gap = self.found.setdefault(reason, _Gap(0, int(numbers[0])))
            gap.count += len(numbers)


def rows_of(columns: Columns, names: Names, label: str, show: bool | None, gaps: Gaps) -> Iterator[Rows]:
    """The usable rows, piece by piece, under a progress bar."""
    with Progress(label, columns.size, show) as bar:
        for chunk in columns.chunks():
            yield _usable(chunk, names, gaps)
            bar.advance(chunk.done)


def skipped_rows(gaps: Gaps, rows: int) -> tuple[str, ...]:
    """A sentence per reason, or an error where no row is left."""
    told = tuple(
        f"{gap.count:,} of {rows:,} rows left out because {reason}, the first is row {gap.first:,} (counted from 0)"
        for reason, gap in gaps.found.items()
    )
    if sum(gap.count for gap in gaps.found.values()) == rows:
        raise ValueError(f"no row is left to judge: {'; '.join(told)}. Repair the columns, or name others")
    return told


def _usable(chunk: Chunk, names: Names, gaps: Gaps) -> Rows:
    number = np.arange(chunk.first, chunk.first + len(chunk))
    values = [chunk.numbers(name) for name in names.numbers]
    keep = np.ones(len(number), dtype=bool)
    for name, column in zip(names.numbers, values, strict=True):
        for reason, wrong in (("is missing or not a number", np.isnan(column)), ("is infinite", np.isinf(column))):
            gaps.add(f"{name!r} {reason}", number[wrong & keep])
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
        gaps.add(f"the weight {names.weight!r} is 0", number[keep & (weight == 0.0)])
        keep &= weight > 0.0
    place = np.flatnonzero(keep)
    return Rows(chunk, number[place], place, values[0][place], values[1][place], weight[place])
