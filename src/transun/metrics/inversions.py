"""Orders and inversions in O(n log n) with numpy alone: what XAUC is counted from.

`np.sort` of integers is vectorised and about ten times as fast as `np.argsort`, so everything here is packed into one
integer a row and sorted. Measured on 10⁷ rows: a stable order 0.3 s, the inversions 1 s.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["group_order", "inversions", "smaller_before", "stable_order"]

Integers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]

_SMALL = 4  # blocks of 2⁴ are compared pair by pair, where sorting would be all overhead
# Chunk by chunk where possible, so that the work stays in the cache: fresh memory costs more than the arithmetic.
_CHUNK = 16
_CHUNK_SIZE = 1 << _CHUNK
_WIDTH = 256
_LINE = np.stack([np.arange(_WIDTH), np.ones(_WIDTH)], 1).astype(np.float32)


def stable_order(x: Floats, of: Integers | None = None) -> tuple[Integers, Flags]:
    """Return the order that sorts x, or x[of], equal values by position, and flags of where a new value starts in it.

    >>> order, new = stable_order(np.array([2.0, 1.0, 2.0]))
    >>> order.tolist(), new.tolist()
    ([1, 0, 2], [True, True, False])
    """
    n = len(x) if of is None else len(of)
    bits = _bits(n)
    position = (1 << bits) - 1
    packed = np.empty(n, dtype=np.int64)
    for part in _chunks(n):
        key = ordered_bits(x[part] if of is None else x.take(of[part]))
        # The position takes the place of the last bits of the value.
        packed[part] = (key & ~position) | np.arange(part.start, part.stop)
    packed.sort()
    new = np.ones(n, dtype=bool)
    for part in _chunks(n):
        key = packed[max(part.start - 1, 0) : part.stop] >> bits
        np.not_equal(key[1:], key[:-1], out=new[part.stop - len(key) + 1 : part.stop])
    # Values that agree in all bits but the last may be in the wrong order: sort those few again, by full value.
    close = ~new
    close[:-1] |= close[1:]
    rows = np.flatnonzero(close)
    key = packed[rows] >> bits
    order = packed
    order &= position
    place = order[rows]
    value = x[place if of is None else of[place]]
    if (value[1:] < value[:-1]).any():
        again = np.lexsort((value, key))
        order[rows], value = place[again], value[again]
    new[rows] = _starts(value)
    return order, new


def ordered_bits(x: Floats) -> Integers:
    """Return integers in the order of the floats, equal ones for equal floats.

    >>> ordered_bits(np.array([0.0, -0.0])).tolist(), bool(np.diff(ordered_bits(np.array([-2.0, -1.0, 3.0]))).min() > 0)
    ([0, 0], True)
    """
    key = (x + 0.0).view(np.int64)  # + 0.0, because −0.0 equals 0.0 but has other bits
    # The bits of a float, read as an integer, sort like the float once those of negative numbers are turned over.
    key ^= (key >> 63) & np.iinfo(np.int64).max
    return key


def group_order(group: NDArray[np.int32]) -> Integers:
    """Return the order that sorts non-negative integers, equal ones by position.

    >>> group_order(np.array([1, 0, 1], dtype=np.int32)).tolist()
    [1, 0, 2]
    """
    packed = np.empty(len(group), dtype=np.int64)
    for part in _chunks(len(group)):
        packed[part] = (group[part].astype(np.int64) << 32) | np.arange(part.start, part.stop)
    packed.sort()
    packed &= 0xFFFFFFFF
    return packed


def inversions(order: Integers) -> int:
    """Return the number of pairs i < j with order[i] > order[j], for a permutation of 0..n−1.

    A merge sort whose merges are sorts of tagged integers. A block holds its left and right half's values, each
    with its half in a tag bit. Once sorted, the right half's R values stand at places k; each is preceded by k − j left
    values (j right ones being smaller), so the L left values exceed it in L − k + j cases, and the block adds
    R·L + R(R−1)/2 − Σk. No value needs to be followed, only the sum of the places of tagged values.

    >>> inversions(np.array([2, 0, 1]))
    2
    """
    n = len(order)
    bits = _bits(n)
    keys: NDArray[Any] = order.astype(np.uint32 if bits <= 28 else np.uint64)
    spare = keys.dtype.itemsize * 8 - bits
    count = 0
    for part in _chunks(n):
        count += _small_blocks(keys[part]) + _merge(keys[part], spare, _SMALL, min(_CHUNK, bits))
    return count + _merge(keys, spare, _CHUNK, bits)


def smaller_before(order: Integers, weight: Floats) -> Floats:
    """Return for each i the weight of all j < i with order[j] < order[i], for a permutation of 0..n−1.

    The same merge sort, following every value: slower than `inversions` by about five, and all that weights and
    standard errors need.

    >>> smaller_before(np.array([1, 0, 2]), np.array([1.0, 10.0, 100.0])).tolist()
    [0.0, 0.0, 11.0]
    """
    n = len(order)
    below = np.zeros(n)
    keys = order << 32
    for part in _chunks(n):
        keys[part] |= np.arange(part.stop - part.start)
        _follow_small_blocks(keys[part], weight[part], below[part])
        _follow(keys[part], weight[part], below[part], _SMALL, min(_CHUNK, _bits(n)))
        keys[part] += part.start
    _follow(keys, weight, below, _CHUNK, _bits(n))
    return below


def _chunks(n: int) -> list[slice]:
    return [slice(start, min(start + _CHUNK_SIZE, n)) for start in range(0, n, _CHUNK_SIZE)]


def _bits(n: int) -> int:
    return max(1, (n - 1).bit_length())


def _starts(x: NDArray[Any]) -> Flags:
    new = np.ones(len(x), dtype=bool)
    np.not_equal(x[1:], x[:-1], out=new[1:])
    return new


def _blocks(x: NDArray[Any], width: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return views of x as rows of `width`, and of what is left over as one shorter row."""
    full = len(x) // width * width
    return x[:full].reshape(-1, width), x[full:].reshape(1, -1)


def _small_blocks(keys: NDArray[Any]) -> int:
    """Count the inversions within blocks of 2⁴ and sort each block."""
    count = 0
    for block in _blocks(keys, 1 << _SMALL):
        columns = np.ascontiguousarray(block.T)
        for shift in range(1, len(columns)):
            count += int(np.count_nonzero(columns[:-shift] > columns[shift:]))
        block.sort(axis=1)
    return count


def _merge(keys: NDArray[Any], spare: int, low: int, high: int) -> int:
    """Count the inversions between the sorted blocks of 2^low that share a block of 2^high, and sort those."""
    n = len(keys)
    count = 0
    for level in range(low, high):
        tag = (level - low) % spare
        if tag == 0:
            # The number of the block of 2^level gives the tags of this and the next levels, as many as fit.
            for part in _chunks(n):
                value = keys[part] >> (spare if level > low else 0)
                block_number = np.arange(part.start, part.stop, dtype=keys.dtype) >> level
                keys[part] = (value << spare) | (block_number & ((1 << spare) - 1))
        half = 1 << level
        for block in _blocks(keys, 2 * half):
            block.sort(axis=1)
        blocks, rest = divmod(n, 2 * half)
        left = min(rest, half)
        right = rest - left
        starts = half * (2 * half) * (blocks * (blocks - 1) // 2) + right * (n - rest)
        count += blocks * (half * half + half * (half - 1) // 2) + right * left + right * (right - 1) // 2
        count -= _places(keys, 1 << tag) - starts
    if high > low:
        keys >>= spare
    return count


def _follow_small_blocks(keys: Integers, weight: Floats, below: Floats) -> None:
    """Add to `below` the weight of what is smaller and comes earlier within each block of 2⁴, and sort the blocks."""
    width = 1 << _SMALL
    for block, block_weight, out in zip(*(_blocks(x, width) for x in (keys, weight, below)), strict=True):
        key, w = np.ascontiguousarray(block.T), np.ascontiguousarray(block_weight.T)
        smaller = np.zeros_like(w)
        for shift in range(1, len(key)):
            smaller[shift:] += w[:-shift] * (key[:-shift] < key[shift:])
        out += smaller.T
        block.sort(axis=1)


def _follow(keys: Integers, weight: Floats, below: Floats, low: int, high: int) -> None:
    """Add to `below` what the left half of each block weighs below each value of its right half; sort the blocks."""
    for level in range(low, high):
        for block in _blocks(keys, 2 << level):
            block.sort(axis=1)
            index = block & 0xFFFFFFFF
            right = np.flatnonzero((index >> level) & 1)
            left_weight = weight.take(index)
            left_weight.put(right, 0.0)
            np.cumsum(left_weight, axis=1, out=left_weight)
            below[index.take(right)] += left_weight.take(right)


def _places(keys: NDArray[Any], tag: int) -> int:
    """Return the sum of the places of the keys that carry the tag."""
    total = 0
    for part in _chunks(len(keys)):
        tagged = (keys[part] & tag).astype(np.float32)
        for block in _blocks(tagged, _WIDTH):
            # Places within a line of 256 and their number. Exact in float32: integers below 2²⁴, times the tag.
            within, number = (block @ _LINE[: block.shape[1]]).astype(np.float64).T / tag
            line = _WIDTH * np.arange(len(block), dtype=np.float64)
            first = part.start if block.shape[1] == _WIDTH else part.stop - block.shape[1]
            total += int(within.sum() + line @ number) + first * int(number.sum())
    return total
