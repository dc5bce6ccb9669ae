"""GTS by boosters that train in a Dask cluster: the fits are theirs, and between them is arithmetic on blocks."""

from typing import Any

import numpy as np
import torch

from transun.data import hashing
from transun.estimators import GTSRegressor
from transun.estimators.fitting import with_deviance
from transun.estimators.gts import RatioGuard
from transun.estimators.target import apply_transform, prepare_transform, slope_at
from transun.schemes import PowerVariance, Slope
from transun.support.extras import need
from transun.transforms import Log1p, Transform

__all__ = ["fit_gts"]

# Rows of the sample that the guard against amplification is learned from.
_SAMPLE = 1 << 17


def fit_gts(
    regressor: Any,
    X: Any,
    y: Any,
    *,
    target_transform: Transform = Log1p(),
    slope: Slope = PowerVariance(1.0),
    folds: int = 5,
    seed: int = 0,
) -> GTSRegressor:
    """`GTSRegressor` fitted to rows of a Dask cluster, by its workers; the result is of one process and predicts alone.

    A booster of T(y) for each fold, which is trained on the rows of the others and predicts κ(u) for its own; one
    booster of y·κ by Poisson deviance with the weights 1/κ; the ratio estimates E[y|x]. Rows are in folds by a hash of
    their number. Only `folds` + 1 boosters and a sample of 131,072 rows come to this process.

    Args:
        regressor: `lightgbm.DaskLGBMRegressor` or `xgboost.dask.DaskXGBRegressor`; it trains by the current client.
        X: a Dask array of features, or a Dask frame of numbers.
        y: a Dask array or series of targets, none below 0, in the partitions of `X`.
        target_transform: T.
        slope: κ.
        folds: models of T(y), each of which costs a fit.
        seed: of the folds.

    """
    if regressor.get_params().get("client") is not None:
        raise ValueError("copies of the booster are trained, and a client cannot be copied: leave out `client`")
    bias = with_deviance(regressor, "poisson")
    if bias is None or "dask" not in type(regressor).__module__:
        raise ValueError(
            f"{type(regressor).__name__} does not train in a Dask cluster by Poisson deviance: give "
            "DaskLGBMRegressor() or DaskXGBRegressor()"
        )
    dask, array = need("dask"), need("dask.array")
    X, y = (_as_array(each) for each in (X, y))
    if X.chunks[0] != y.chunks[0]:
        raise ValueError(
            f"X has partitions of {X.chunks[0]} rows and y of {y.chunks[0]}: repartition one like the other"
        )
    numbers = array.arange(len(y), chunks=y.chunks, dtype=np.int64)
    fold = numbers.map_blocks(_fold, folds, seed, dtype=np.int64)
    chosen = (numbers.map_blocks(_uniform, seed, dtype=np.float64) < _SAMPLE / len(y)).persist()
    lowest, highest, sample = dask.compute(y.min(), y.max(), y[chosen])
    if not lowest >= 0.0 or not highest > 0.0:
        raise ValueError(f"targets go from {lowest:g} to {highest:g}: GTS by Poisson deviance is for amounts from 0 on")
    transform = prepare_transform(target_transform, np.append(sample, [lowest, highest]))
    points = y.map_blocks(apply_transform, transform, dtype=np.float64)
    models, slopes = [], array.zeros_like(y, dtype=np.float64)
    for number in range(folds):
        others = fold != number
        model = _local(_fitted(regressor, X[others], points[others]))
        kappa = X.map_blocks(_kappa, model, slope, transform, drop_axis=1, dtype=np.float64)
        slopes = array.where(others, slopes, kappa)
        models.append(model)
    slopes = slopes.persist()
    bias_model = _local(bias.fit(X, y * slopes, sample_weight=1.0 / slopes))
    sizes = dask.compute(*((fold == number).sum() for number in range(folds)))
    guard = RatioGuard.learn(*dask.compute(slopes[chosen], y[chosen], 1.0 / slopes[chosen]))
    return _assembled(models, bias_model, np.array(sizes) / len(y), transform, slope, guard, X.shape[1])


def _assembled(
    models: list[Any],
    bias_model: Any,
    shares: np.ndarray,
    transform: Transform,
    slope: Slope,
    guard: RatioGuard,
    columns: int,
) -> GTSRegressor:
    """The estimator that `GTSRegressor.fit` would leave behind."""
    estimator = GTSRegressor(models[0], target_transform=transform, slope=slope, cv=len(models))
    estimator.regressors_, estimator.shares_, estimator.bias_regressor_ = models, shares, bias_model
    estimator.transform_, estimator.guard_, estimator.replaced_ = transform, guard, 0.0
    estimator.n_features_in_, estimator.by_exposure_ = columns, False
    estimator._by_deviance = True
    return estimator


def _as_array(rows: Any) -> Any:
    known = rows.to_dask_array(lengths=True) if hasattr(rows, "to_dask_array") else rows
    return known.rechunk({1: -1}) if known.ndim == 2 else known


def _fitted(regressor: Any, X: Any, y: Any) -> Any:
    # The booster has to know how many rows the blocks have that a mask leaves over.
    return need("sklearn.base").clone(regressor).fit(X.compute_chunk_sizes(), y.compute_chunk_sizes())


def _local(model: Any) -> Any:
    """The regressor of one process with the trees of one of a cluster."""
    if hasattr(model, "to_local"):
        return model.to_local()
    local = need("xgboost").XGBRegressor(**model.get_xgb_params())
    local.load_model(model.get_booster().save_raw())
    return local


def _uniform(numbers: np.ndarray, seed: int) -> np.ndarray:
    return np.asarray(hashing.uniform(torch.from_numpy(numbers), seed, "gts.sample"))


def _fold(numbers: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """The fold of each row, by a hash of its number."""
    return (np.asarray(hashing.uniform(torch.from_numpy(numbers), seed, "gts.fold")) * folds).astype(np.int64)


def _kappa(X: np.ndarray, model: Any, slope: Slope, transform: Transform) -> np.ndarray:
    return slope_at(np.asarray(model.predict(X), np.float64), slope, transform)
