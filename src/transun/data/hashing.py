"""Hashing: random numbers as a function of (seed, stream, id), 64-bit hashes of text, and a hash index of keys.

Nothing here depends on what was drawn before, on the process or on the machine.
"""

from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["HashIndex", "bits", "hash_integers", "hash_text", "per_distinct", "uniform", "unsigned_remainder"]

# SplitMix64 (Steele, Lea, Flood 2014): γ, 2⁶⁴ divided by the golden ratio, and the multipliers of its mixing function.
_GAMMA, _MULTIPLY_1, _MULTIPLY_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
# Rows that `per_distinct` looks at to see whether texts repeat.
_SAMPLE_ROWS = 4096


@cache
def _key(seed: int, stream: str) -> int:
    # A cryptographic hash, so that neighbouring seeds and similar stream names start far apart.
    digest = blake2b(f"{stream}\0{seed}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _shift_xor(state: Tensor, places: int) -> Tensor:
    # int64 shifts are arithmetic: the mask drops the copies of the sign bit.
    return state.bitwise_xor_((state >> places).bitwise_and_((1 << (64 - places)) - 1))


def bits(ids: Tensor, seed: int, stream: str) -> Tensor:
    """Hash int64 ids to 64 random bits: splitmix64(key(seed, stream) + id·γ), as int64.

    Integer arithmetic modulo 2⁶⁴ is the same on a CPU and a GPU, so a row of a simulated log has the same ids
    wherever and in whatever chunks it is made. Give every attribute its own `stream`: two attributes on one stream
    are equal, not merely correlated.

    >>> ids = torch.arange(4)
    >>> torch.equal(bits(ids, 0, "colour")[2:], bits(ids[2:], 0, "colour"))  # nothing depends on the neighbours
    True
    >>> torch.equal(bits(ids, 0, "colour"), bits(ids, 0, "size"))
    False
    """
    # torch has signed integers only; modulo 2⁶⁴ the products are the same.
    return _mix_tensor((ids * (_GAMMA - 2**64)).add_(_key(seed, stream)))


def _mix_tensor(state: Tensor) -> Tensor:
    """SplitMix64's mixing function; changes the tensor."""
    _shift_xor(state, 30).mul_(_MULTIPLY_1 - 2**64)
    _shift_xor(state, 27).mul_(_MULTIPLY_2 - 2**64)
    return _shift_xor(state, 31)


def uniform(ids: Tensor, seed: int, stream: str) -> Tensor:
    """Hash int64 ids to float64 numbers in the open interval: (⌊bits / 2¹²⌋ + ½) · 2⁻⁵².

    Open at both ends, so that a quantile function of it is finite. 52 bits and not 53: adding ½ stays exact.

    >>> share = uniform(torch.arange(1000), 0, "coin")
    >>> 0 < float(share.min()) and float(share.max()) < 1 and 0.45 < float(share.mean()) < 0.55
    True
    """
    top = (bits(ids, seed, stream) >> 12).bitwise_and_((1 << 52) - 1)
    return top.to(torch.float64).add_(0.5).mul_(2.0**-52)


def hash_text(ids: "pa.Array") -> np.ndarray:
    """A 64-bit hash of each id's UTF-8 text, as int64: h ← mix((h ⊕ word) + γ) over its little-endian 8-byte words.

    h starts as the number of bytes, and `mix` is SplitMix64's. The same on every machine and in every process, unlike
    Python's `hash`; the integer 12 and the text "12" agree, so it does not matter which of them a CSV reader saw.
    A missing id has the hash of empty text; callers tell the two apart.

    >>> import pyarrow
    >>> bool(hash_text(pyarrow.array([12]))[0] == hash_text(pyarrow.array(["12"], pyarrow.large_string()))[0])
    True
    """
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    text = compute.fill_null(compute.cast(ids, pa.large_string()), "")
    if len(text) == 0:
        return np.empty(0, np.int64)
    _, ends, data = text.buffers()
    bounds = np.frombuffer(ends, "<i8")[text.offset : text.offset + len(text) + 1]
    # Eight bytes more, so that the last word of the last text can be read whole.
    content = np.zeros(int(bounds[-1] - bounds[0]) + 8, np.uint8)
    if data is not None:
        content[:-8] = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
    words = np.ndarray(len(content) - 7, "<u8", content, strides=(1,))  # word i begins at byte i
    starts, lengths = bounds[:-1] - bounds[0], np.diff(bounds)
    state = lengths.astype(np.uint64)
    for done in range(0, int(lengths.max()), 8):
        rows = np.flatnonzero(lengths > done)
        spare = 8 * np.maximum(done + 8 - lengths[rows], 0).astype(np.uint64)  # bits that belong to the next text
        word = words[starts[rows] + done].astype(np.uint64)
        state[rows] = _mix((state[rows] ^ ((word << spare) >> spare)) + np.uint64(_GAMMA))
    return state.view(np.int64)


def hash_integers(ids: Tensor) -> Tensor:
    """`hash_text` of the digits of int64 numbers, in operations of torch alone, so that a graph can hold it.

    >>> import pyarrow
    >>> ids = [0, -12, 123456789012, 2**63 - 1]
    >>> hash_integers(torch.tensor(ids)).tolist() == hash_text(pyarrow.array(ids)).tolist()
    True
    """
    size, negative = ids.abs(), (ids < 0).long()
    powers = torch.tensor([10**exponent for exponent in range(19)], device=ids.device)
    digits = (size.unsqueeze(-1) >= powers[1:]).sum(-1) + 1
    length = digits + negative
    # The text has 20 characters at most: three words.
    position = torch.arange(24, device=ids.device) - negative.unsqueeze(-1)
    power = powers[(digits.unsqueeze(-1) - 1 - position).clamp(0, 18)]
    characters = torch.where(position < 0, ord("-"), size.unsqueeze(-1) // power % 10 + ord("0"))
    characters = torch.where(position < digits.unsqueeze(-1), characters, 0)
    # In two halves, because some runtimes add up int64 in floating point, which is exact up to 2⁵³.
    bytes_ = torch.tensor([256**byte for byte in range(4)], device=ids.device)
    low, high = (characters.reshape(*ids.shape, 3, 2, 4) * bytes_).sum(-1).unbind(-1)
    words = low + high * 2**32
    state = length
    for number, word in enumerate(words.unbind(-1)):
        mixed = _mix_tensor(torch.bitwise_xor(state, word) + (_GAMMA - 2**64))
        state = torch.where(length > 8 * number, mixed, state)
    return state


def unsigned_remainder(values: Tensor, divisor: int) -> Tensor:
    """The remainder of int64 numbers that are read as unsigned ones.

    >>> unsigned_remainder(torch.tensor([12, -1]), 10).tolist(), (2**64 - 1) % 10
    ([2, 5], 5)
    """
    signed = torch.remainder(values, divisor) + torch.where(values < 0, 2**64 % divisor, 0)
    return torch.remainder(signed, divisor)


def _mix(state: np.ndarray) -> np.ndarray:
    # As in `bits`, but by numpy: a prefetching thread must not wait for torch's threads, which are training.
    state ^= state >> np.uint64(30)
    state *= np.uint64(_MULTIPLY_1)
    state ^= state >> np.uint64(27)
    state *= np.uint64(_MULTIPLY_2)
    state ^= state >> np.uint64(31)
    return state


def per_distinct(function: Callable[["pa.Array"], np.ndarray], ids: "pa.Array") -> np.ndarray:
    """function(ids), computed once for every distinct text if the first rows show that texts repeat.

    >>> import pyarrow
    >>> texts = pyarrow.array(["a", "bcd"] * 3000)
    >>> per_distinct(lambda texts: np.array([len(text) for text in texts.to_pylist()]), texts)[:3]
    array([1, 3, 1])
    """
    integers = need("pyarrow").types.is_integer(ids.type)
    if integers or len(ids) <= _SAMPLE_ROWS or len(ids.slice(0, _SAMPLE_ROWS).unique()) > _SAMPLE_ROWS // 4:
        return function(ids)
    coded = ids.dictionary_encode(null_encoding="encode")
    return np.asarray(function(coded.dictionary)[coded.indices.to_numpy()])


class HashIndex:
    """Index of each key in `keys`, or -1: open addressing with linear probing, slot = (key·γ mod 2⁶⁴) / 2^(64-b).

    It is built once and queried many times. Arrow's `index_in` would build its table anew for every batch, and a
    binary search misses the cache at every step (10 million keys: 3.5 s for a million queries, here 0.3 s).

    Args:
        keys: distinct int64 numbers (m,). Of equal keys one wins.

    >>> HashIndex(np.array([70, -5]))(np.array([-5, 1, 70, 70])).tolist()
    [1, -1, 0, 0]

    """

    def __init__(self, keys: np.ndarray) -> None:
        # At most half full: an expected 1.5 probes find a key, and 2.5 show that a key is missing.
        log_slots = max(1, (2 * len(keys) - 1).bit_length())
        self._shift, self._mask = np.uint64(64 - log_slots), (1 << log_slots) - 1
        self._keys = np.zeros(1 << log_slots, np.int64)
        self._index = np.full(1 << log_slots, -1, np.int32)
        left, slot = np.arange(len(keys), dtype=np.int32), self._slot(keys)
        while len(left):
            free = self._index[slot] < 0
            # Where several keys want one free slot, the last one written gets it, and the others try the next slot.
            self._index[slot[free]] = left[free]
            lost = self._index[slot] != left
            self._keys[slot[~lost]] = keys[left[~lost]]
            left, slot = left[lost], (slot[lost] + 1) & self._mask

    def _slot(self, keys: np.ndarray) -> np.ndarray:
        return ((keys.view(np.uint64) * np.uint64(_GAMMA)) >> self._shift).view(np.int64)

    def __call__(self, keys: np.ndarray) -> np.ndarray:
        slot = self._slot(keys)
        index = self._index[slot]
        left = np.flatnonzero((self._keys[slot] != keys) & (index >= 0))
        slot = slot[left]
        while len(left):
            slot = (slot + 1) & self._mask
            candidate = self._index[slot]
            index[left] = candidate
            occupied = (self._keys[slot] != keys[left]) & (candidate >= 0)  # by another key: probe the next slot
            left, slot = left[occupied], slot[occupied]
        return np.asarray(index)
