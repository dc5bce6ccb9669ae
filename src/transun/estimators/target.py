"""Targets: checked, named by row when wrong, and taken through a transform and back as numpy arrays."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, column_or_1d
from torch import Tensor

from transun.schemes import Slope
from transun.transforms import Transform

Array = NDArray[np.float64]


def checked(y: Any, owner: Any) -> Array:
    """The targets as a finite float64 vector; an error names the first row that is wrong.

    >>> checked([1.0, float("nan")], None)
    Traceback (most recent call last):
    ValueError: Input y contains NaN. The first one is in row 1: leave it out or fill it in.
    """
    if y is None:
        raise ValueError(f"{type(owner).__name__} requires y to be passed, but the target y is None")
    values = column_or_1d(
        check_array(y, ensure_2d=False, ensure_all_finite=False, dtype=np.float64, input_name="y", estimator=owner),
        warn=True,
    )
    wrong = ~np.isfinite(values)
    if wrong.any():
        row = int(wrong.argmax())
        what = "NaN" if np.isnan(values[row]) else "infinity or a value too large for dtype('float64')"
        raise ValueError(f"Input y contains {what}. The first one is in row {row}: leave it out or fill it in.")
    return np.asarray(values)


def tensor(values: Array) -> Tensor:
    """The values as a tensor; an array that must not be written to is copied."""
    return torch.from_numpy(np.require(values, requirements=["C", "W"]))


def transformed(y: Array, transform: Transform) -> Array:
    """T(y)."""
    return np.asarray(transform(tensor(y)).numpy())


def restored(u: Array, transform: Transform) -> Array:
    """T⁻¹(u), within the transform's credible targets."""
    return np.asarray(transform.inverse(tensor(u)).numpy())


def slope_at(u: Array, slope: Slope, transform: Transform) -> Array:
    """κ(u)."""
    return np.asarray(slope.kappa(tensor(u), transform).numpy())


def positive_only(transform: Transform) -> bool:
    """Whether the transform refuses negative targets."""
    return transform.lower >= 0.0
