"""Vocabularies: the known ids of a column and the index of each."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from transun.data.hashing import HashIndex, hash_text, per_distinct
from transun.data.saving import Serialisable
from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["IdCounts", "Vocabulary", "unify"]

_INTEGER = r"^-?\d{1,18}$"
# The text of an integer as Arrow writes it: no leading zero, and ASCII digits.
_INTEGER_TEXT = re.compile(r"0|-?[1-9][0-9]*")
# A dense table may be this many times larger than the vocabulary before hashing is the better use of memory.
_SPARSE = 8
# Ids that are counted at most: 64 MB of integers and their counts.
CAPACITY = 1 << 22
# Entries that may wait to be joined with the counts of other rows, and the most parts that may.
_PENDING, _MOST_PARTS = 1 << 20, 256
# The largest vocabulary in which ids are looked up that differ in case or blanks only.
_HINTED = 1 << 20


@dataclass(frozen=True, eq=False)
class Vocabulary(Serialisable):
    """Known ids in a fixed order: the k-th has index k + 1, and every other id has index 0.

    Index 0, of unseen ids, comes first so that it stays in place when the vocabulary grows. A missing id is an id like
    any other: known if it occurred in training, else index 0.

    Args:
        ids: distinct integers or texts, of which one may be None; an int64 or large_string Arrow array is kept as is.

    >>> import pyarrow
    >>> known = Vocabulary([30, 10, None])
    >>> known(pyarrow.array([10, 20, None, 30])).tolist(), len(known)
    ([2, 0, 3, 1], 4)

    """

    ids: Any

    def __post_init__(self) -> None:
        pa = need("pyarrow")
        ids = self.ids
        if isinstance(ids, (list, tuple)):
            text = any(isinstance(value, str) for value in ids)
            ids = pa.array(ids, pa.large_string() if text else pa.int64())
            if len(ids.unique()) != len(ids):
                raise ValueError("a vocabulary names an id twice")
        if not isinstance(ids, pa.Array):
            raise TypeError(f"a vocabulary is a list of ids, not {type(ids).__name__}")
        object.__setattr__(self, "ids", ids)

    def saved_arguments(self) -> dict[str, Any]:
        return {"ids": self.ids.to_pylist()}

    def __len__(self) -> int:
        return len(self.ids) + 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and bool(self.ids.equals(other.ids))

    def __hash__(self) -> int:
        return hash((len(self.ids), str(self.ids.type)))

    def __call__(self, ids: "pa.Array") -> np.ndarray:
        """The index of each id (n,), int64; integers and the text of their digits are the same id."""
        pa, compute = need("pyarrow"), need("pyarrow.compute")
        missing = ids.is_null() if ids.null_count else None
        if self.ids.type == pa.large_string():
            index = per_distinct(self._index_texts, compute.cast(ids, pa.large_string()))
        else:
            if ids.type == pa.large_string():
                whole = compute.match_substring_regex(ids, _INTEGER)
                ids = compute.cast(compute.if_else(whole, ids, None), pa.int64())
            index = self._index_integers(compute.fill_null(ids, 0).to_numpy())
            if ids.null_count:
                index[ids.is_null().to_numpy(zero_copy_only=False)] = 0
        if missing is not None:
            index[missing.to_numpy(zero_copy_only=False)] = self.missing
        return index

    def codes(self, *, text: bool) -> dict[Any, int]:
        """The index of every known id that is not missing, by its text or by its number.

        Asked for numbers, a vocabulary of texts has those that are the digits of one; others cannot occur.

        >>> Vocabulary(["b", "7", "07", None]).codes(text=False)
        {7: 2}
        """
        index = {value: number for number, value in enumerate(self.ids.to_pylist(), 1) if value is not None}
        if text:
            return {str(value): number for value, number in index.items()}
        return {int(value): number for value, number in index.items() if _INTEGER_TEXT.fullmatch(str(value))}

    def grow(self, ids: "pa.Array") -> "Vocabulary":
        """The vocabulary with new ids appended: known ids keep their index, and so a network keeps their vectors.

        >>> import pyarrow
        >>> Vocabulary([30, 10]).grow(pyarrow.array([20, 10])).ids.to_pylist()
        [30, 10, 20]
        """
        pa, compute = need("pyarrow"), need("pyarrow.compute")
        known, candidates = unify([self.ids, ids])
        new = compute.invert(compute.is_in(candidates, value_set=known))
        return Vocabulary(pa.concat_arrays([known, candidates.filter(new)]))

    def alike(self, ids: "pa.Array") -> dict[str, str]:
        """For texts that are not known but differ from a known one only in case or blanks: which one.

        >>> import pyarrow
        >>> Vocabulary(["DE", "FR"]).alike(pyarrow.array(["de", "DE ", "IT"], pyarrow.large_string()))
        {'de': 'DE', 'DE ': 'DE'}
        """
        pa, compute = need("pyarrow"), need("pyarrow.compute")
        # A hint is not worth a second copy of a large vocabulary.
        if ids.type != pa.large_string() or self.ids.type != pa.large_string() or len(self.ids) > _HINTED:
            return {}
        at = compute.index_in(_plain(ids), value_set=self._plain)
        known = self.ids.take(at)
        pairs = zip(ids.to_pylist(), known.to_pylist(), strict=True)
        return {new: old for new, old in pairs if new is not None and old is not None}

    @cached_property
    def _plain(self) -> "pa.Array":
        return _plain(self.ids)

    @cached_property
    def missing(self) -> int:
        """The index of a missing id, 0 if it is not known."""
        compute = need("pyarrow.compute")
        return int(compute.index(self.ids.is_null(), True).as_py()) + 1

    @cached_property
    def _known(self) -> np.ndarray:
        """The positions of the ids that are not missing."""
        return np.flatnonzero(self.ids.is_valid().to_numpy(zero_copy_only=False))

    @cached_property
    def _hash_index(self) -> tuple[HashIndex, np.ndarray]:
        """The hash index of the ids, and the index in the vocabulary of each of its entries."""
        # A missing id is no key: 0 and the empty text, which would represent it, may be ids themselves.
        pa = need("pyarrow")
        ids = self.ids.drop_null()
        keys = hash_text(ids) if ids.type == pa.large_string() else ids.to_numpy()
        return HashIndex(keys), np.append(self._known + 1, 0)  # -1, for an unknown key, selects the last entry

    @cached_property
    def _dense(self) -> tuple[int, np.ndarray] | None:
        """The first id of a dense table and the table of indices, or None if the ids are too far apart for one."""
        # Ids 0..m, or nearly so, need no hashing: index = table[id - least].
        ids = self.ids.drop_null().to_numpy()
        least, most = (int(ids.min()), int(ids.max())) if len(ids) else (0, 0)
        if most - least > _SPARSE * len(ids) + 65_536:
            return None
        table = np.zeros(most - least + 3, np.int64)  # one more entry at either end, for all ids outside
        table[ids - least + 1] = self._known + 1
        return least - 1, table

    def _index_integers(self, ids: np.ndarray) -> np.ndarray:
        if self._dense is None:
            entry_of, index_of = self._hash_index
            return np.asarray(index_of[entry_of(ids)])
        start, table = self._dense
        return np.asarray(table[np.clip(ids, start, start + len(table) - 1) - start])

    def _index_texts(self, ids: "pa.Array") -> np.ndarray:
        pa, compute = need("pyarrow"), need("pyarrow.compute")
        entry_of, index_of = self._hash_index
        index = index_of[entry_of(hash_text(ids))]
        # Another text may have the hash of a known one, so the texts are compared. Two known texts of one hash, of
        # which the second would be treated as unseen, have probability m²/2⁶⁵: 6e-6 for 15 million.
        known = self.ids.take(pa.array(np.maximum(index - 1, 0)))
        same = compute.fill_null(compute.equal(known, ids), False).to_numpy(zero_copy_only=False)
        return np.where(same, index, 0)


def _plain(ids: "pa.Array") -> "pa.Array":
    """Texts in lower case, without blanks around them."""
    compute = need("pyarrow.compute")
    return compute.utf8_lower(compute.utf8_trim_whitespace(ids))


def unify(arrays: Sequence["pa.Array"]) -> list["pa.Array"]:
    """Arrays of ids in one type: text, if any of them is."""
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    if len({str(array.type) for array in arrays}) == 1:
        return list(arrays)
    return [compute.cast(array, pa.large_string()) for array in arrays]


@dataclass(frozen=True)
class IdCounts:
    """How often each id occurs in some rows; `a + b` counts the rows of both.

    At most `capacity` ids are remembered, the commonest ones (Misra and Gries 1982): where there are more, the count of
    the first one too many is subtracted from all, and ids without a count are forgotten. So a count is never too high,
    and too low by `missed` at the most, which is at most the number of rows over `capacity`, in whatever order and
    grouping counts were added. While the ids fit, counts are exact.

    Attributes:
        parts: pairs of distinct ids and their counts; an id may be in several parts, which are joined now and then.
        capacity: the most ids to remember.
        missed: by how much a count may be too low.

    >>> import pyarrow
    >>> counts = IdCounts.of([pyarrow.array([3, 1, 3])]) + IdCounts.of([pyarrow.array([3, 2, 2])])
    >>> counts.frequent(2).to_pylist(), counts.missed
    ([2, 3], 0)
    >>> few = IdCounts.of([pyarrow.array([3, 1, 3, 3, 2, 2])], capacity=2)
    >>> few.frequent(1).to_pylist(), few.missed
    ([2, 3], 1)

    """

    parts: tuple[tuple["pa.Array", np.ndarray], ...]
    capacity: int = CAPACITY
    missed: int = 0

    @staticmethod
    def of(arrays: Sequence["pa.Array"], capacity: int = CAPACITY) -> "IdCounts":
        """The counts of the ids in some arrays together, at least one."""
        values, counts = need("pyarrow").concat_arrays(unify(arrays)).value_counts().flatten()
        return IdCounts(((values, counts.to_numpy(zero_copy_only=False)),), capacity).joined()

    def __add__(self, other: "IdCounts") -> "IdCounts":
        parts = (*self.parts, *other.parts)
        added = IdCounts(parts, min(self.capacity, other.capacity), self.missed + other.missed)
        # Joined only when there is twice as much to join as the largest part holds: every id is then moved a few times.
        sizes = [len(ids) for ids, _ in parts]
        return added if sum(sizes) < 2 * max(sizes) + _PENDING and len(parts) < _MOST_PARTS else added.joined()

    def frequent(self, min_count: int) -> "pa.Array":
        """The ids that occur at least `min_count` times, in ascending order.

        Ascending, so that indices do not depend on the order of the rows.
        """
        pa, compute = need("pyarrow"), need("pyarrow.compute")
        ((ids, counts),) = self.joined().parts
        ids = ids.filter(pa.array(counts >= min_count))
        return ids.take(compute.sort_indices(ids))

    def joined(self) -> "IdCounts":
        """The same counts in one part, of `capacity` ids at the most."""
        pa = need("pyarrow")
        ids, counts = self.parts[0]
        if len(self.parts) > 1:
            column = pa.concat_arrays(unify([ids for ids, _ in self.parts]))
            table = pa.table({"id": column, "count": np.concatenate([counts for _, counts in self.parts])})
            sums = table.group_by("id").aggregate([("count", "sum")])
            ids, counts = sums["id"].combine_chunks(), sums["count_sum"].to_numpy()
        if len(ids) <= self.capacity:
            return IdCounts(((ids, counts),), self.capacity, self.missed)
        least = int(np.partition(counts, -self.capacity - 1)[-self.capacity - 1])
        known = counts > least
        return IdCounts(((ids.filter(pa.array(known)), counts[known] - least),), self.capacity, self.missed + least)
