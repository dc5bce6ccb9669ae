"""What GTS by boosters of any cluster has in common: the folds, the slopes of rows, and the estimator at the end."""

from typing import Any

import numpy as np
import torch

from transun.data import hashing
from transun.estimators import GTSRegressor
from transun.estimators.gts import RatioGuard
from transun.estimators.target import slope_at
from transun.schemes import Slope
from transun.transforms import Transform

__all__ = ["assembled_gts", "fold_of_rows", "require_amounts", "sampled_rows", "slopes_of_rows"]

# Rows of the sample that the guard against amplification is learned from.
_SAMPLE = 1 << 17


def fold_of_rows(numbers: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """The fold 0..folds-1 of each row, by a hash of its number."""
    return (np.asarray(hashing.uniform(torch.tensor(numbers), seed, "gts.fold")) * folds).astype(np.int64)


def sampled_rows(numbers: np.ndarray, rows: int, seed: int) -> np.ndarray:
    """Whether each row is in the sample of at most 131,072 of so many rows, by a hash of its number.

    >>> sampled_rows(np.arange(3), rows=3, seed=0).tolist()
    [True, True, True]
    """
    return np.asarray(hashing.uniform(torch.tensor(numbers), seed, "gts.sample")) < _SAMPLE / rows


def slopes_of_rows(X: np.ndarray, model: Any, slope: Slope, transform: Transform) -> np.ndarray:
    """κ(u) of rows whose points u = T(y) a model predicts."""
    return slope_at(np.asarray(model.predict(X), np.float64), slope, transform)


def require_amounts(lowest: float, highest: float) -> None:
    """Raise if the smallest and the largest target are not those of amounts."""
    if not lowest >= 0.0 or not highest > 0.0:
        raise ValueError(f"targets go from {lowest:g} to {highest:g}: GTS by Poisson deviance is for amounts from 0 on")


def assembled_gts(
    models: list[Any],
    bias_model: Any,
    shares: np.ndarray,
    transform: Transform,
    slope: Slope,
    guard: RatioGuard,
    columns: int,
) -> GTSRegressor:
    """The estimator that `GTSRegressor.fit` would leave behind.

    Args:
        models: of T(y), one for each fold.
        bias_model: of y·κ.
        shares: of the rows, by fold.
        transform: T, prepared.
        slope: κ.
        guard: against amplification where κ is small.
        columns: how many features there are.

    """
    estimator = GTSRegressor(models[0], target_transform=transform, slope=slope, cv=len(models))
    estimator.regressors_, estimator.shares_, estimator.bias_regressor_ = models, shares, bias_model
    estimator.transform_, estimator.guard_, estimator.replaced_ = transform, guard, 0.0
    estimator.n_features_in_, estimator.by_exposure_ = columns, False
    estimator._by_deviance = True
    return estimator
