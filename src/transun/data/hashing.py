"""Stateless random numbers: a value is a function of (seed, stream, id), never of what was drawn before."""

from functools import cache
from hashlib import blake2b

import torch
from torch import Tensor

# SplitMix64 (Steele, Lea, Flood 2014), its unsigned constants written as the signed numbers torch has.
_GAMMA = 0x9E3779B97F4A7C15 - 2**64
_MULTIPLY_1 = 0xBF58476D1CE4E5B9 - 2**64
_MULTIPLY_2 = 0x94D049BB133111EB - 2**64


@cache
def _key(seed: int, stream: str) -> int:
    # A cryptographic digest, so that neighbouring seeds and similar stream names start far apart.
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
    state = (ids * _GAMMA).add_(_key(seed, stream))
    _shift_xor(state, 30).mul_(_MULTIPLY_1)
    _shift_xor(state, 27).mul_(_MULTIPLY_2)
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
