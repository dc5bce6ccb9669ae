"""A sample of bounded size from rows that are read in chunks, in any order and on any number of machines."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from transun.data.encodings import concatenate
from transun.data.hashing import uniform
from transun.support.arrays import Floats
from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["HashSample"]

# Columns of our own, and what stands before the names of the others, which may be called anything.
_NUMBER, _HASH, _OTHERS = "number", "hash", "column "
# Adding a chunk to a table costs as much as it has chunks; from here on they are joined into one.
_MOST_CHUNKS = 256


@dataclass(frozen=True)
class HashSample:
    """The rows whose hash is below a threshold, the largest of 1, ½, ¼, … that at most `capacity` rows are below.

    Whether a row is in the sample depends on its number and on how many rows there are, not on chunks, machines or
    their order: `a + b` is the sample of the rows of both, and the same rows give the same sample. All rows are kept
    while they fit; afterwards between half of `capacity` and all of it.

    Attributes:
        capacity: the most rows to keep.
        stored: the columns of the rows that are kept, their numbers and hashes; see `table`.
        threshold: hashes below it are kept; 1 if no row was left out.

    >>> sample = HashSample.of(4, np.arange(3), {"y": np.array([5.0, 6.0, 7.0])})
    >>> sample["y"].tolist(), sample.whole
    ([5.0, 6.0, 7.0], True)
    >>> sample += HashSample.of(4, np.arange(3, 100), {"y": np.arange(97.0)})
    >>> 0 < len(sample) <= 4, sample.whole
    (True, False)

    """

    capacity: int
    stored: "pa.Table"
    threshold: float = 1.0

    @staticmethod
    def of(capacity: int, numbers: np.ndarray, columns: Mapping[str, Any]) -> "HashSample":
        """The sample of some rows; `numbers` (n,) are theirs in the whole data, no two rows have the same one."""
        hashes = uniform(torch.from_numpy(numbers.astype(np.int64)), 0, "sample").numpy()
        others = {f"{_OTHERS}{name}": values for name, values in columns.items()}
        stored = need("pyarrow").table({_NUMBER: numbers.astype(np.int64), _HASH: hashes, **others})
        return HashSample(capacity, stored)._thinned()

    def __add__(self, other: "HashSample") -> "HashSample":
        threshold = min(self.threshold, other.threshold)
        both = [each._below(threshold) for each in (self, other)]
        stored = concatenate([some for some in both if len(some)] or both[:1])
        if stored[_HASH].num_chunks > _MOST_CHUNKS:
            stored = stored.combine_chunks()
        return HashSample(min(self.capacity, other.capacity), stored, threshold)._thinned()

    def _thinned(self) -> "HashSample":
        sample = self
        while len(sample) > self.capacity:
            threshold = sample.threshold / 2.0
            sample = HashSample(self.capacity, sample._below(threshold), threshold)
        return sample

    def _below(self, threshold: float) -> "pa.Table":
        if threshold == self.threshold:
            return self.stored
        return self.stored.filter(need("pyarrow.compute").less(self.stored[_HASH], threshold))

    def in_order(self) -> "HashSample":
        """The same sample with its rows in the order of their numbers, whichever order they were added in."""
        numbers = self.stored[_NUMBER].to_numpy()
        if (np.diff(numbers) > 0).all():
            return self
        return HashSample(self.capacity, self.stored.take(np.argsort(numbers)), self.threshold)

    @property
    def whole(self) -> bool:
        """Whether no row was left out."""
        return self.threshold == 1.0

    @property
    def hashes(self) -> Floats:
        """A number in (0, threshold) for each row of the sample, independent of the row's values."""
        hashes: Floats = self.stored[_HASH].to_numpy()
        return hashes

    @property
    def table(self) -> "pa.Table":
        """The columns of the rows that are kept, under their own names."""
        others = self.stored.drop_columns([_NUMBER, _HASH])
        return others.rename_columns([name.removeprefix(_OTHERS) for name in others.column_names])

    def __getitem__(self, name: str) -> Any:
        return self.stored[f"{_OTHERS}{name}"].to_numpy().copy()  # a copy, which torch may take for its own

    def __len__(self) -> int:
        return len(self.stored)

    def subset(self, count: int) -> np.ndarray:
        """Indices of at most `count` rows of the sample, chosen by their hash again."""
        hashes = self.hashes
        if len(hashes) <= count:
            return np.arange(len(hashes))
        return np.flatnonzero(hashes <= np.partition(hashes, count - 1)[count - 1])

    def folds(self, count: int, indices: np.ndarray) -> np.ndarray:
        """A fold 0..count-1 for each of these rows, from digits of the hash that the sample does not depend on."""
        digits: np.ndarray = (self.hashes[indices] * 2.0**48).astype(np.int64)
        return digits % count
