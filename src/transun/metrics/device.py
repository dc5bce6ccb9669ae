"""Pairs counted where the tensors are: with whole-array operations of torch alone, hence on a GPU as well."""

from __future__ import annotations

import torch
from torch import Tensor

from transun.metrics.pairs import Pairs
from transun.metrics.rows import Vector, check

__all__ = ["away", "count_pairs_there", "inversions_there"]


def away(*vectors: Vector | None) -> bool:
    """Whether all of these are tensors on one device other than the CPU.

    >>> away(torch.zeros(2), torch.zeros(2)), away(torch.zeros(2, device="meta"), torch.zeros(2, device="meta"))
    (False, True)
    """
    places = {vector.device if isinstance(vector, Tensor) else torch.device("cpu") for vector in vectors}
    return len(places) == 1 and places.pop().type != "cpu"


def count_pairs_there(pred: Tensor, y: Tensor) -> Pairs:
    """Return what `count_pairs` does for rows of weight 1, without moving them, in O(n) memory.

    Three stable sorts and one pass per bit of the number of rows.

    >>> count_pairs_there(torch.tensor([1.0, 2.0, 2.0]), torch.tensor([1.0, 2.0, 3.0]))
    Pairs(concordant=2.0, tied=1.0, comparable=3.0, total=3.0)
    """
    if pred.ndim != 1 or pred.shape != y.shape or not (torch.isfinite(pred).all() and torch.isfinite(y).all()):
        check(pred, y)  # raises, and says what is wrong
    n = len(y)
    ordered, by_y = torch.sort(y.detach() + 0.0, stable=True)  # −0.0 is 0.0
    new_y = _starts(ordered)
    ordered, by_pred = torch.sort(pred.detach()[by_y] + 0.0, stable=True)
    del by_y
    new_pred = _starts(ordered)
    del ordered
    total = n * (n - 1) // 2
    tied_y = _tied_pairs(new_y)
    if tied_y == 0:
        shuffle, tied_pair = by_pred, 0
    else:
        group = (new_y.cumsum(0, dtype=torch.int32) - 1)[by_pred]
        new_pair = new_pred.clone()
        new_pair[1:] |= group[1:] != group[:-1]
        tied_pair = _tied_pairs(new_pair)
        shuffle = torch.sort(group, stable=True).indices
    comparable = total - tied_y
    tied = _tied_pairs(new_pred) - tied_pair
    del by_pred, new_y, new_pred
    discordant = inversions_there(shuffle)
    return Pairs(float(comparable - tied - discordant), float(tied), float(comparable), float(total))


def inversions_there(order: Tensor) -> int:
    """Return the number of pairs i < j with order[i] > order[j], for a permutation of 0..n−1 with n < 2³¹.

    Values are sorted by one bit after another, the highest first. Then those that agree in the bits above b fill the
    places s..s + 2ᵇ⁺¹ − 1 with s the number those bits make, still in their first order, and a pair of them is an
    inversion that bit b shows if a value with the bit comes before one without. All places before s hold s/2 values
    with the bit, so a running count of the bit, less s/2, says how many come before, and where each value moves next.

    >>> inversions_there(torch.tensor([2, 0, 1]))
    2
    """
    n = len(order)
    value = order.to(torch.int32)
    place = torch.arange(n, dtype=torch.int32, device=order.device)
    count = torch.zeros((), dtype=torch.int64, device=order.device)
    for b in reversed(range(max(1, (n - 1).bit_length()))):
        bit = (value >> b) & 1
        start = (value >> (b + 1)) << (b + 1)
        ones = bit.cumsum(0, dtype=torch.int32) - bit - (start >> 1)
        count += ((1 - bit) * ones).sum(dtype=torch.int64)
        if b > 0:
            target = torch.where(bit == 1, start + (n - start).clamp(max=1 << b) + ones, place - ones)
            value = torch.empty_like(value).scatter_(0, target.long(), value)
    return int(count)


def _starts(ordered: Tensor) -> Tensor:
    new = torch.ones(len(ordered), dtype=torch.bool, device=ordered.device)
    torch.ne(ordered[1:], ordered[:-1], out=new[1:])
    return new


def _tied_pairs(new: Tensor) -> int:
    """The number of pairs within runs, a run beginning at each flag."""
    if bool(new.all()):
        return 0
    start = new.nonzero().squeeze(1)
    size = torch.diff(start, append=start.new_tensor([len(new)]))
    return int((size * (size - 1) // 2).sum())
