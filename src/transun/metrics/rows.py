"""Rows: the checked input of every metric, and the only place where input is checked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transun.support.arrays import refuse_reordered, to_floats

__all__ = ["Rows", "Vector", "check"]

Vector: TypeAlias = Tensor | NDArray[np.generic] | Sequence[float]


@dataclass(frozen=True)
class Rows:
    """Predictions, targets and weights of the same rows: three (n,) float64 tensors on the CPU.

    Float64 whatever the model computes in: a sum of 10⁷ float32 values is already wrong in the fourth digit.
    """

    pred: Tensor
    y: Tensor
    weight: Tensor

    def __len__(self) -> int:
        return len(self.y)

    def take(self, index: Tensor) -> "Rows":
        """The rows at a boolean mask or at positions, which may repeat."""
        return Rows(self.pred[index], self.y[index], self.weight[index])

    def with_weight(self) -> "Rows":
        """The rows whose weight is above zero: no other row changes the value of a metric."""
        return self.take(self.weight > 0)

    def clone(self) -> "Rows":
        """A copy that no longer shares memory with the caller's arrays."""
        return Rows(self.pred.clone(), self.y.clone(), self.weight.clone())

    @staticmethod
    def join(parts: "Sequence[Rows]") -> "Rows":
        """All parts in one `Rows`, in order; a single part is not copied."""
        if len(parts) == 1:
            return parts[0]
        return Rows(*(torch.cat([getattr(part, name) for part in parts]) for name in ("pred", "y", "weight")))


def check(pred: Vector, y: Vector, weight: Vector | None = None) -> Rows:
    """The input as `Rows`; a bad one raises a `ValueError` that names the argument, the row and the remedy.

    An empty input passes, because a shard may be empty; a metric of no rows raises when its value is computed.

    >>> check([1, 2], [3.0, 4.0]).weight
    tensor([1., 1.], dtype=torch.float64)
    >>> check([1.0, float("nan")], [3.0, 4.0])
    Traceback (most recent call last):
        ...
    ValueError: `pred` is nan at row 1: metrics need finite numbers; drop or repair such rows first
    """
    refuse_reordered(pred=pred, y=y, weight=weight)
    p, t = _vector(pred, "pred"), _vector(y, "y")
    _require_same_length(p, "pred", t, "y")
    if weight is None:
        return Rows(p, t, torch.ones(1, dtype=t.dtype).expand(len(t)))  # one number, however many rows
    w = _vector(weight, "weight")
    _require_same_length(w, "weight", t, "y")
    if (w < 0).any():
        row = int((w < 0).nonzero()[0])
        raise ValueError(
            f"`weight` is {w[row].item()} at row {row}: weights count repetitions and cannot be negative; "
            "use 0 to leave a row out"
        )
    return Rows(p, t, w)


def _vector(value: Vector, name: str) -> Tensor:
    if isinstance(value, Tensor) and not value.is_complex():
        vector = value.detach().to(device="cpu", dtype=torch.float64)
    else:
        # torch warns about sharing memory it must not write, so a read-only array is copied.
        vector = torch.from_numpy(np.require(to_floats(value, f"`{name}`"), requirements=["C", "W"]))
        vector = vector.reshape(np.shape(value))  # a number would be a vector of one
    if vector.ndim != 1:
        raise ValueError(
            f"`{name}` has shape {tuple(vector.shape)}: metrics need one number per row, shape (n,); "
            "use squeeze(-1), flatten(), or a list of one number"
        )
    # A finite sum has finite terms, and costs a fifth of testing each; an infinite sum may be mere overflow.
    if not torch.isfinite(vector.sum()) and not torch.isfinite(vector).all():
        row = int((~torch.isfinite(vector)).nonzero()[0])
        raise ValueError(
            f"`{name}` is {vector[row].item()} at row {row}: metrics need finite numbers; "
            "drop or repair such rows first"
        )
    return vector


def _require_same_length(a: Tensor, a_name: str, b: Tensor, b_name: str) -> None:
    if len(a) != len(b):
        raise ValueError(
            f"`{a_name}` has {len(a)} rows and `{b_name}` has {len(b)}: "
            f"row {min(len(a), len(b))} has no partner; pass arrays of the same rows"
        )
