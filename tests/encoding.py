"""Helpers: fit and encode one column, compare encoded tables."""

from typing import Any

import torch
from torch import Tensor

from transun.data import Features, Kind


def encoded(kind: Kind, train: Any, rows: Any = None) -> Tensor:
    """A column `x` of `rows` (by default those of `train`) as a tensor, after fitting on `train`."""
    fitted = Features({"x": kind}).fit({"x": train})
    return fitted.encode({"x": train if rows is None else rows})["x"]


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    """Whether two tables were encoded into the same tensors, in the same order."""
    return list(first) == list(second) and all(torch.equal(first[name], second[name]) for name in first)
