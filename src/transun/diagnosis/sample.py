"""A sample of bounded size from rows that are read in chunks."""

from collections.abc import Mapping

import numpy as np
import torch

from transun.data.hashing import uniform
from transun.diagnosis.moments import Floats

__all__ = ["HashSample"]


class HashSample:
    """The rows whose hash is below a threshold, which halves whenever there are more than `capacity` of them.

    Whether a row is in the sample depends on its number alone, not on chunks or on earlier rows, so the same file
    gives the same sample. All rows are kept while they fit; afterwards between half of `capacity` and all of it.

    >>> sample = HashSample(capacity=4)
    >>> sample.add(np.arange(3), {"y": np.array([5.0, 6.0, 7.0])})
    >>> sample["y"].tolist(), sample.whole
    ([5.0, 6.0, 7.0], True)
    >>> sample.add(np.arange(3, 100), {"y": np.arange(97.0)})
    >>> 0 < len(sample) <= 4, sample.whole
    (True, False)
    """

    def __init__(self, capacity: int) -> None:
        self.capacity, self.threshold = capacity, 1.0
        self._parts: dict[str, list[Floats]] = {}
        self._hashes: list[Floats] = []
        self._held = 0

    def add(self, rows: np.ndarray, columns: Mapping[str, Floats]) -> None:
        """Offer some rows; `rows` (n,) holds their numbers."""
        hashes = _hash(rows)
        chosen = hashes < self.threshold
        self._hashes.append(hashes[chosen])
        for name, values in columns.items():
            self._parts.setdefault(name, []).append(values[chosen])
        self._held += int(chosen.sum())
        while self._held > self.capacity:
            self.threshold /= 2.0
            keep = self.hashes < self.threshold
            for name in self._parts:
                self._parts[name] = [self[name][keep]]
            self._hashes = [self.hashes[keep]]
            self._held = int(keep.sum())

    def wants(self, rows: np.ndarray) -> np.ndarray:
        """A mask of the rows that `add` would keep, so that the others need not be prepared."""
        return np.asarray(_hash(rows) < self.threshold)

    @property
    def whole(self) -> bool:
        """Whether no row was left out."""
        return self.threshold == 1.0

    @property
    def hashes(self) -> Floats:
        """A number in (0, threshold) for each row of the sample, independent of the row's values."""
        self._hashes = [np.concatenate(self._hashes)] if self._hashes else [np.zeros(0)]
        return self._hashes[0]

    def __getitem__(self, name: str) -> Floats:
        self._parts[name] = [np.concatenate(self._parts[name])]
        return self._parts[name][0]

    def __len__(self) -> int:
        return self._held

    def subset(self, count: int) -> np.ndarray:
        """Indices of at most `count` rows of the sample, chosen by their hash again, in the order of the file."""
        hashes = self.hashes
        if len(hashes) <= count:
            return np.arange(len(hashes))
        return np.flatnonzero(hashes <= np.partition(hashes, count - 1)[count - 1])

    def folds(self, count: int, indices: np.ndarray) -> np.ndarray:
        """A fold 0..count-1 for each of these rows, from digits of the hash that the sample does not depend on."""
        digits: np.ndarray = (self.hashes[indices] * 2.0**48).astype(np.int64)
        return digits % count


def _hash(rows: np.ndarray) -> Floats:
    return uniform(torch.from_numpy(rows.astype(np.int64)), 0, "diagnosis.sample").numpy()
