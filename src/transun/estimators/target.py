"""Targets as numpy arrays: checked, and passed through transforms and slopes, which compute with tensors."""

from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_array, column_or_1d
from torch import Tensor

from transun.data.magnitude import refuse_vanishing, require_squarable
from transun.schemes import Slope
from transun.support.arrays import Floats, to_floats
from transun.transforms import Transform


def check_target(y: Any, estimator: Any) -> Floats:
    """The targets as a vector of numbers that can be squared; an error names the first row with a wrong value.

    >>> check_target([1.0, float("nan")], None)
    Traceback (most recent call last):
    ValueError: Input y contains NaN. The first one is in row 1: leave it out or fill it in.
    """
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    values = column_or_1d(
        check_array(to_floats(y, "y"), ensure_2d=False, ensure_all_finite=False, input_name="y", estimator=estimator),
        warn=True,
    )
    wrong = ~np.isfinite(values)
    if wrong.any():
        row = int(wrong.argmax())
        kind = "NaN" if np.isnan(values[row]) else "infinity or a value too large for dtype('float64')"
        raise ValueError(f"Input y contains {kind}. The first one is in row {row}: leave it out or fill it in.")
    require_squarable(np.arange(len(values)), target=values)
    refuse_vanishing(target=values)
    return np.asarray(values)


def check_weight(sample_weight: Any, rows: int) -> Floats | None:
    """Weights (n,), finite, not negative and not all zero; one number stands for all rows, None for no weights.

    >>> check_weight([1.0, -1.0], 2)
    Traceback (most recent call last):
    ValueError: Negative values in data passed to sample_weight: it is -1 in row 1. Use 0 to leave a row out.
    """
    if sample_weight is None:
        return None
    values = to_floats(sample_weight, "sample_weight")
    values = np.full(rows, values) if values.ndim == 0 else values
    if values.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got sample_weight of shape {values.shape}")
    if values.shape != (rows,):
        raise ValueError(f"sample_weight.shape == {values.shape}, expected {(rows,)}!")
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        row = wrong[0]
        raise ValueError(f"Input sample_weight contains {values[row]}. The first one is in row {row}: correct it.")
    negative = np.flatnonzero(values < 0.0)
    if len(negative):
        row = negative[0]
        raise ValueError(
            f"Negative values in data passed to sample_weight: it is {values[row]:g} in row {row}. Use 0 to leave a "
            "row out."
        )
    if not values.any():
        raise ValueError("all values of sample_weight are zero: there is nothing to learn from")
    require_squarable(np.arange(rows), sample_weight=values)
    refuse_vanishing(sample_weight=values)
    return values


def to_tensor(values: Floats) -> Tensor:
    """The values as a tensor; a read-only array is copied."""
    return torch.from_numpy(np.require(values, requirements=["C", "W"]))


def prepare_transform(transform: Transform, y: Floats) -> Transform:
    """The transform with its bounds learned from the targets."""
    return transform.prepare(to_tensor(y))


def apply_transform(y: Floats, transform: Transform) -> Floats:
    """T(y)."""
    return np.asarray(transform(to_tensor(y)).numpy())


def invert_transform(u: Floats, transform: Transform) -> Floats:
    """T⁻¹(u), within the transform's credible targets."""
    return np.asarray(transform.inverse(to_tensor(u)).numpy())


def slope_at(u: Floats, slope: Slope, transform: Transform) -> Floats:
    """κ(u)."""
    return np.asarray(slope.kappa(to_tensor(u), transform).numpy())


def positive_only(transform: Transform) -> bool:
    """Whether the transform refuses negative targets."""
    return transform.lower >= 0.0
