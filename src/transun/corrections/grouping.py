"""Rows in groups: totals by group, and groups of equal frequency that never split a tie."""

import torch
from torch import Tensor


def total(values: Tensor, group: Tensor, groups: int) -> Tensor:
    """Sums (groups,) of the values (n,) by group index.

    >>> total(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0, 2, 0]), 3).tolist()
    [5.0, 0.0, 2.0]
    """
    return values.new_zeros(groups).index_add(0, group, values)


def equal_frequency(values: Tensor, weight: Tensor, bins: int) -> Tensor:
    """Indices (n,) of at most `bins` consecutive groups, ascending with the values and of about equal weight.

    Equal values stay together: a model that predicts one number for many rows has said that it cannot tell them
    apart. A value that is heavier than a bin takes the places of its neighbours, so that fewer bins remain.

    >>> equal_frequency(torch.tensor([3.0, 1.0, 2.0, 4.0]), torch.ones(4), 2).tolist()
    [1, 0, 0, 1]
    >>> equal_frequency(torch.tensor([5.0, 5.0, 5.0]), torch.ones(3), 2).tolist()
    [0, 0, 0]

    """
    distinct, row = torch.unique(values, return_inverse=True)
    mass = total(weight, row, len(distinct))
    level = (mass.cumsum(0) - 0.5 * mass) / mass.sum()
    places = (level * bins).long().clamp(max=bins - 1)
    group: Tensor = torch.unique(places, return_inverse=True)[1]  # no place stays empty
    return group[row]


def padded(values: Tensor, size: int) -> Tensor:
    """The values (k,) followed by copies of the last one, (size,): the shape that a buffer keeps."""
    return torch.cat((values, values[-1:].expand(size - len(values))))
