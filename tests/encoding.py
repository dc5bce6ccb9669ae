"""Short ways to say what a column becomes."""

from typing import Any

import torch
from torch import Tensor

from transun.data import Features, Kind


def one(kind: Kind, train: Any, rows: Any = None) -> Tensor:
    """The tensor that a column `x` of `rows` becomes after fitting on `train`, by default the same rows."""
    fitted = Features({"x": kind}).fit({"x": train})
    return fitted.encode({"x": train if rows is None else rows})["x"]


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return list(first) == list(second) and all(torch.equal(first[name], second[name]) for name in first)
