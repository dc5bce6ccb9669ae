"""GTS by boosters that train in a Dask cluster: the fits are theirs, and between them is arithmetic on blocks."""

from typing import Any

import numpy as np

from transun.engines.boosters import assembled_gts, fold_of_rows, require_amounts, sampled_rows, slopes_of_rows
from transun.estimators import GTSRegressor
from transun.estimators.fitting import with_deviance
from transun.estimators.gts import RatioGuard
from transun.estimators.target import apply_transform, prepare_transform
from transun.schemes import PowerVariance, Slope
from transun.support.extras import need
from transun.transforms import Log1p, Transform

__all__ = ["fit_gts"]


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
    fold = numbers.map_blocks(fold_of_rows, folds, seed, dtype=np.int64)
    chosen = numbers.map_blocks(sampled_rows, len(y), seed, dtype=bool).persist()
    lowest, highest, sample = dask.compute(y.min(), y.max(), y[chosen])
    require_amounts(lowest, highest)
    transform = prepare_transform(target_transform, np.append(sample, [lowest, highest]))
    points = y.map_blocks(apply_transform, transform, dtype=np.float64)
    models, slopes = [], array.zeros_like(y, dtype=np.float64)
    for number in range(folds):
        others = fold != number
        model = _local(_fitted(regressor, X[others], points[others]))
        kappa = X.map_blocks(slopes_of_rows, model, slope, transform, drop_axis=1, dtype=np.float64)
        slopes = array.where(others, slopes, kappa)
        models.append(model)
    slopes = slopes.persist()
    bias_model = _local(bias.fit(X, y * slopes, sample_weight=1.0 / slopes))
    sizes = dask.compute(*((fold == number).sum() for number in range(folds)))
    guard = RatioGuard.learn(*dask.compute(slopes[chosen], y[chosen], 1.0 / slopes[chosen]))
    return assembled_gts(models, bias_model, np.array(sizes) / len(y), transform, slope, guard, X.shape[1])


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
