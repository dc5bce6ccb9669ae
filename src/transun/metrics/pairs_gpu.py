"""Pairs counted on the GPU that holds the tensors, with whole-array operations of torch alone."""

import torch
from torch import Tensor

from transun.metrics.pairs import Pairs
from transun.metrics.rows import Vector, check

__all__ = ["all_on_gpu", "count_inversions_gpu", "count_pairs_gpu"]


def all_on_gpu(*vectors: Vector) -> bool:
    """Whether all vectors are tensors on one and the same device, which is not the CPU.

    >>> here, there = torch.zeros(2), torch.zeros(2, device="meta")
    >>> all_on_gpu(here, here), all_on_gpu(here, there), all_on_gpu(there, there)
    (False, False, True)
    """
    devices = {vector.device if isinstance(vector, Tensor) else torch.device("cpu") for vector in vectors}
    return len(devices) == 1 and devices.pop().type != "cpu"


def count_pairs_gpu(pred: Tensor, y: Tensor) -> Pairs:
    """The pairs of `count_pairs` for rows of weight 1, counted without moving the rows, in O(n) memory.

    It takes three stable sorts and one pass per bit of the number of rows.

    >>> count_pairs_gpu(torch.tensor([1.0, 2.0, 2.0]), torch.tensor([1.0, 2.0, 3.0]))
    Pairs(concordant=2.0, tied=1.0, comparable=3.0, total=3.0)
    """
    if pred.ndim != 1 or pred.shape != y.shape or not (torch.isfinite(pred).all() and torch.isfinite(y).all()):
        check(pred, y)  # raises the error that names the row and the remedy
    n = len(y)
    sorted_y, by_y = torch.sort(y.detach() + 0.0, stable=True)  # -0.0 becomes 0.0
    new_y = _run_starts(sorted_y)
    del sorted_y  # here and below: a GPU has little memory, and each of these is as large as the data
    sorted_pred, by_pred = torch.sort(pred.detach()[by_y] + 0.0, stable=True)
    del by_y
    new_pred = _run_starts(sorted_pred)
    del sorted_pred
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
    discordant = count_inversions_gpu(shuffle)
    return Pairs(float(comparable - tied - discordant), float(tied), float(comparable), float(total))


def count_inversions_gpu(order: Tensor) -> int:
    """The number of pairs i < j with order[i] > order[j], for a permutation of 0..n-1 with n < 2³¹.

    The values are sorted by one bit after another, the highest first (a radix sort). Before the pass of bit b, values
    that agree in all bits above b stand side by side, in their original order: they fill the positions s to
    s + 2ᵇ⁺¹ - 1, where s is the number that the bits above b make. A pair of such values is an inversion decided by
    bit b if the value with the bit comes first. Of the positions before s exactly s/2 hold a value with bit b, so the
    running count of the bit, less s/2, is the number of such values that come before a value within its group. The
    sum over values without the bit counts the pass's inversions, and the same number gives each value's next position.

    >>> count_inversions_gpu(torch.tensor([2, 0, 1]))
    2
    """
    n = len(order)
    value = order.to(torch.int32)
    position = torch.arange(n, dtype=torch.int32, device=order.device)
    count = torch.zeros((), dtype=torch.int64, device=order.device)
    for b in reversed(range(max(1, (n - 1).bit_length()))):
        bit = (value >> b) & 1
        start = (value >> (b + 1)) << (b + 1)
        ones = bit.cumsum(0, dtype=torch.int32) - bit - (start >> 1)
        count += ((1 - bit) * ones).sum(dtype=torch.int64)
        if b > 0:
            target = torch.where(bit == 1, start + (n - start).clamp(max=1 << b) + ones, position - ones)
            value = torch.empty_like(value).scatter_(0, target.long(), value)
    return int(count)


def _run_starts(ordered: Tensor) -> Tensor:
    """Flags of where a new value starts."""
    new = torch.ones(len(ordered), dtype=torch.bool, device=ordered.device)
    torch.ne(ordered[1:], ordered[:-1], out=new[1:])
    return new


def _tied_pairs(new: Tensor) -> int:
    """The number of pairs within runs; a run begins at each flag."""
    if bool(new.all()):
        return 0
    start = new.nonzero().squeeze(1)
    size = torch.diff(start, append=start.new_tensor([len(new)]))
    return int((size * (size - 1) // 2).sum())
