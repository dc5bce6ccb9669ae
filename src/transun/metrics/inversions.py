"""Orders and inversions in O(n log n) with numpy alone: the counting behind XAUC.

`np.sort` of integers is vectorised and about ten times as fast as `np.argsort`, so everything here is packed into one
integer a row and sorted. Measured on 10⁷ rows: a stable order 0.3 s, the inversions 1 s.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transun.support.arrays import Flags, Floats, Integers

__all__ = [
    "Flags",
    "Floats",
    "Integers",
    "count_inversions",
    "group_order",
    "ordered_bits",
    "smaller_before",
    "stable_order",
]


_SMALL = 4  # blocks of 2⁴ are compared pair by pair, where sorting would be all overhead
# Chunk by chunk where possible, so that the work stays in the cache: fresh memory costs more than the arithmetic.
_CHUNK = 16
_CHUNK_SIZE = 1 << _CHUNK
_LINE_WIDTH = 256
# The matrix that gives, of a line of flags, the sum of the flagged positions and the number of flags.
_LINE = np.stack([np.arange(_LINE_WIDTH), np.ones(_LINE_WIDTH)], 1).astype(np.float32)


def stable_order(x: Floats, subset: Integers | None = None) -> tuple[Integers, Flags]:
    """The order that sorts x, or x[subset], equal values by position; and flags of where a new value starts in it.

    The value's bits and the position are packed into one integer, the position in place of the value's last bits. After
    the sort the few values that agree in all other bits are sorted again, by their full value.

    >>> order, new = stable_order(np.array([2.0, 1.0, 2.0]))
    >>> order.tolist(), new.tolist()
    ([1, 0, 2], [True, True, False])
    """
    n = len(x) if subset is None else len(subset)
    bits = _bits(n)
    position_mask = (1 << bits) - 1
    packed = np.empty(n, dtype=np.int64)
    for chunk in _chunks(n):
        key = ordered_bits(x[chunk] if subset is None else x.take(subset[chunk]))
        packed[chunk] = (key & ~position_mask) | np.arange(chunk.start, chunk.stop)
    packed.sort()
    new = np.ones(n, dtype=bool)
    for chunk in _chunks(n):
        key = packed[max(chunk.start - 1, 0) : chunk.stop] >> bits
        np.not_equal(key[1:], key[:-1], out=new[chunk.stop - len(key) + 1 : chunk.stop])
    close = ~new
    close[:-1] |= close[1:]
    close_at = np.flatnonzero(close)
    key = packed[close_at] >> bits
    order = packed
    order &= position_mask
    position = order[close_at]
    value = x[position if subset is None else subset[position]]
    if (value[1:] < value[:-1]).any():
        again = np.lexsort((value, key))
        order[close_at], value = position[again], value[again]
    new[close_at] = _run_starts(value)
    return order, new


def ordered_bits(x: Floats) -> Integers:
    """Integers in the order of the floats, equal ones for equal floats.

    >>> ordered_bits(np.array([0.0, -0.0])).tolist(), bool(np.diff(ordered_bits(np.array([-2.0, -1.0, 3.0]))).min() > 0)
    ([0, 0], True)
    """
    key = (x + 0.0).view(np.int64)  # + 0.0, because -0.0 equals 0.0 but has other bits
    # The bits of a float, read as an integer, sort like the float once those of negative numbers are inverted.
    key ^= (key >> 63) & np.iinfo(np.int64).max
    return key


def group_order(group: NDArray[np.int32]) -> Integers:
    """The order that sorts non-negative integers, equal ones by position.

    >>> group_order(np.array([1, 0, 1], dtype=np.int32)).tolist()
    [1, 0, 2]
    """
    packed = np.empty(len(group), dtype=np.int64)
    for chunk in _chunks(len(group)):
        packed[chunk] = (group[chunk].astype(np.int64) << 32) | np.arange(chunk.start, chunk.stop)
    packed.sort()
    packed &= 0xFFFFFFFF
    return packed


def count_inversions(order: Integers) -> int:
    """The number of pairs i < j with order[i] > order[j], for a permutation of 0..n-1.

    A merge sort, in which blocks of 2⁴ are counted pair by pair and every later merge by `_merge`. Chunks of 2¹⁶ are
    sorted one after the other, each as far as it goes within the cache, and then merged over the whole array.

    >>> count_inversions(np.array([2, 0, 1]))
    2
    """
    n = len(order)
    bits = _bits(n)
    keys: NDArray[Any] = order.astype(np.uint32 if bits <= 28 else np.uint64)
    spare_bits = keys.dtype.itemsize * 8 - bits
    count = 0
    for chunk in _chunks(n):
        count += _small_blocks(keys[chunk]) + _merge(keys[chunk], spare_bits, _SMALL, min(_CHUNK, bits))
    return count + _merge(keys, spare_bits, _CHUNK, bits)


def smaller_before(order: Integers, weight: Floats) -> Floats:
    """For each i the weight of all j < i with order[j] < order[i], for a permutation of 0..n-1.

    The same merge sort, but each key carries its row, so that a sum is kept for every row: about five times as slow as
    `count_inversions`, and needed only for weights and standard errors.

    >>> smaller_before(np.array([1, 0, 2]), np.array([1.0, 10.0, 100.0])).tolist()
    [0.0, 0.0, 11.0]
    """
    n = len(order)
    below = np.zeros(n)
    keys = order << 32
    for chunk in _chunks(n):
        # Within a chunk a key carries the row's place in the chunk, afterwards its place in the whole array.
        keys[chunk] |= np.arange(chunk.stop - chunk.start)
        _sum_small_blocks(keys[chunk], weight[chunk], below[chunk])
        _merge_sums(keys[chunk], weight[chunk], below[chunk], _SMALL, min(_CHUNK, _bits(n)))
        keys[chunk] += chunk.start
    _merge_sums(keys, weight, below, _CHUNK, _bits(n))
    return below


def _chunks(n: int) -> list[slice]:
    return [slice(start, min(start + _CHUNK_SIZE, n)) for start in range(0, n, _CHUNK_SIZE)]


def _bits(n: int) -> int:
    return max(1, (n - 1).bit_length())


def _run_starts(x: NDArray[Any]) -> Flags:
    new = np.ones(len(x), dtype=bool)
    np.not_equal(x[1:], x[:-1], out=new[1:])
    return new


def _blocks(x: NDArray[Any], width: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Views of x as rows of `width`, and of the remainder as one shorter row."""
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


def _merge(keys: NDArray[Any], spare_bits: int, low: int, high: int) -> int:
    """Count the inversions between the sorted blocks of 2^low that share a block of 2^high, and sort the latter.

    One level merges blocks of H = 2^level in pairs, a left and a right half, into blocks of 2H. Both halves are sorted
    already, so every inversion of the level is a left value that exceeds a right value, and no pass over pairs is
    needed to count them, only the positions of the right values after the merge:

    - Number the positions within the block from 0, and let the right half's R values end at positions k₀ < k₁ < ...
      The value at kⱼ is preceded by j right values, hence by kⱼ - j left values. Of the L left values the other
      L - kⱼ + j are larger, and each is an inversion.
    - The sum over j = 0..R-1 is R·L + R(R - 1)/2 - Σkⱼ. So a block needs one number, the sum of the positions of its
      right values, and all blocks of a level together need one sum over the array.

    To know a right value after the sort, each key carries a tag: the value is shifted left by `spare_bits`, and the
    freed low bits hold the number of the block of 2^level that the key comes from. The lowest bit of that number says
    whether the block is a right half; sorting is not disturbed, because values are distinct and stand above the tag.
    At the next level the same tag serves once more: its next bit says which half a block of twice the size is. Only
    after `spare_bits` levels is the tag used up and written anew from the positions, which then are those of blocks.

    `_position_sum` adds up positions in the whole array, while the k above count from the start of a block. The
    difference is every right value's block start, 2H·b for block b: for the `blocks` full ones H·2H·Σb, and for an
    incomplete last block, which starts at n - rest, R·(n - rest).
    """
    n = len(keys)
    count = 0
    for level in range(low, high):
        tag_bit = (level - low) % spare_bits
        if tag_bit == 0:
            for chunk in _chunks(n):
                value = keys[chunk] >> (spare_bits if level > low else 0)
                block_number = np.arange(chunk.start, chunk.stop, dtype=keys.dtype) >> level
                keys[chunk] = (value << spare_bits) | (block_number & ((1 << spare_bits) - 1))
        half = 1 << level
        for block in _blocks(keys, 2 * half):
            block.sort(axis=1)
        # Full blocks have H left and H right values; the last, incomplete one has its own numbers of both.
        blocks, rest = divmod(n, 2 * half)
        left = min(rest, half)
        right = rest - left
        block_starts = half * (2 * half) * (blocks * (blocks - 1) // 2) + right * (n - rest)
        count += blocks * (half * half + half * (half - 1) // 2) + right * left + right * (right - 1) // 2
        count -= _position_sum(keys, 1 << tag_bit) - block_starts
    if high > low:
        keys >>= spare_bits
    return count


def _position_sum(keys: NDArray[Any], tag: int) -> int:
    """The sum of the positions of the keys in which the bit `tag` is set."""
    total = 0
    for chunk in _chunks(len(keys)):
        tagged = (keys[chunk] & tag).astype(np.float32)
        for lines in _blocks(tagged, _LINE_WIDTH):
            # Positions within a line of 256 and their number. Exact in float32: integers below 2²⁴, times the tag.
            within, number = (lines @ _LINE[: lines.shape[1]]).astype(np.float64).T / tag
            line_start = _LINE_WIDTH * np.arange(len(lines), dtype=np.float64)
            first = chunk.start if lines.shape[1] == _LINE_WIDTH else chunk.stop - lines.shape[1]
            total += int(within.sum() + line_start @ number) + first * int(number.sum())
    return total


def _sum_small_blocks(keys: Integers, weight: Floats, below: Floats) -> None:
    """Add to `below` the weight of smaller, earlier values within each block of 2⁴, and sort the blocks."""
    width = 1 << _SMALL
    for block, block_weight, out in zip(*(_blocks(x, width) for x in (keys, weight, below)), strict=True):
        key, w = np.ascontiguousarray(block.T), np.ascontiguousarray(block_weight.T)
        smaller = np.zeros_like(w)
        for shift in range(1, len(key)):
            smaller[shift:] += w[:-shift] * (key[:-shift] < key[shift:])
        out += smaller.T
        block.sort(axis=1)


def _merge_sums(keys: Integers, weight: Floats, below: Floats, low: int, high: int) -> None:
    """Add to `below` the weight of the left half of each block below each value of its right half; sort the blocks.

    The low 32 bits of a key are the row's position before any sorting, and bit `level` of it says which half the row
    comes from. In a sorted block the running sum of the left half's weights is, at a right value, what is smaller.
    """
    for level in range(low, high):
        for block in _blocks(keys, 2 << level):
            block.sort(axis=1)
            position = block & 0xFFFFFFFF
            right = np.flatnonzero((position >> level) & 1)
            left_weight = weight.take(position)
            left_weight.put(right, 0.0)
            np.cumsum(left_weight, axis=1, out=left_weight)
            below[position.take(right)] += left_weight.take(right)
