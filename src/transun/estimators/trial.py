"""A fair trial: candidates judged on rows that nothing in them has seen, with work shared between them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from transun.estimators.fitting import Fitting
from transun.estimators.folds import Split, cross_fit, speak
from transun.estimators.target import restored, tensor, transformed
from transun.transforms import Transform

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Trial:
    """Rows in folds, and out-of-fold predictions of regressors on them.

    Args:
        fitting: how the base regressor is fitted.
        X: features.
        y: targets (n,).
        weight: of the rows, or None.
        folds: splits whose held-out rows are a partition of all rows; three at least.
        n_jobs: fits at the same time.

    """

    fitting: Fitting
    X: Any
    y: Array
    weight: Array | None
    folds: Sequence[Split]
    n_jobs: int | None = None
    _pairs: dict[Transform, Array] = field(default_factory=dict, repr=False)

    @property
    def fold(self) -> NDArray[np.int64]:
        """The fold that holds each row out, (n,)."""
        fold = np.full(len(self.y), -1)
        for index, (_, held) in enumerate(self.folds):
            fold[held] = index
        return fold

    @property
    def cost(self) -> float:
        """What out-of-fold predictions of one regressor cost, in fits to all rows: one less than the folds."""
        return float(sum(len(fitted) for fitted, _ in self.folds) / len(self.y))

    def points_cost(self, transform: Transform) -> float:
        """What `points` still cost, in fits to all rows."""
        count = len(self.folds)
        return 0.0 if transform in self._pairs else (count - 1) * (count - 2) / 2

    def predict(self, fitting: Fitting) -> Array:
        """Out-of-fold predictions (n,) of a regressor of y."""
        return cross_fit(fitting, self.X, self.y, self.folds, self.n_jobs).point

    def held_out(self, model: Any, rows: NDArray[np.int64]) -> Array:
        """What a fitted model says about some of the rows."""
        return speak(model, _safe_indexing(self.X, rows))

    def points(self, transform: Transform) -> Array:
        """Points (n, folds): row i, column k by the model of T(y) that saw neither the fold of i nor fold k.

        Such a model serves two purposes: within the training rows of fold k it gives row i a point that has seen
        neither its target nor the rows on trial, and for the rows on trial it is one of the models to average over.
        Every pair of folds is left out once: with five folds ten fits to 60 % of the rows, for any number of slopes.
        Column k is NaN for the rows of fold k.
        """
        if transform not in self._pairs:
            fold, count = self.fold, len(self.folds)
            left_out = list(combinations(range(count), 2))
            held_out = [(fold == a) | (fold == b) for a, b in left_out]
            splits = [(np.flatnonzero(~rows), np.flatnonzero(rows)) for rows in held_out]
            held = cross_fit(self.fitting, self.X, transformed(self.y, transform), splits, self.n_jobs)
            points = np.full((len(self.y), count), np.nan)
            for (a, b), rows, point in zip(left_out, held.rows, held.points, strict=True):
                points[rows, np.where(fold[rows] == a, b, a)] = point
            self._pairs[transform] = points
        return self._pairs[transform]

    def base(self, transform: Transform) -> Array:
        """The mean over models of T⁻¹ of their points, (n,): what plain T-MSE predicts out of fold."""
        points = self.points(transform)
        amounts = np.where(np.isnan(points), np.nan, restored(np.nan_to_num(points), transform))
        return np.asarray(np.nanmean(amounts, axis=1))


def variance_power(base: Array, y: Array, weight: Array | None = None, bins: int = 20) -> float:
    """The p in Var[y|x] ∝ m(x)^p, from predictions `base` that are right up to a factor; between 0 and 2.

    Rows are put into bins of equal frequency by `base`; the slope of log mean (y - m)² against log m over the bins,
    with m the base times the factor that makes the total right, is the estimate. Means within bins, not logarithms of
    single residuals, since these would follow the small residuals and not the variance.

    >>> base = np.repeat([1.0, 2.0, 4.0, 8.0], 100)
    >>> sign = np.tile([1.0, -1.0], 200)
    >>> round(variance_power(base, base + 0.5 * sign * base**0.75, bins=4), 3)  # an sd like m^0.75
    1.5
    """
    weight = np.ones_like(y) if weight is None else weight
    total, level = float(weight @ y), float(weight @ base)
    usable = (base > 0.0) & (weight > 0.0)
    if total <= 0.0 or level <= 0.0 or usable.sum() < 2:
        return 1.0
    mean, y, weight = (base * total / level)[usable], y[usable], weight[usable]
    edges = np.unique(np.quantile(mean, np.arange(1, bins) / bins))
    place = np.searchsorted(edges, mean, side="right")
    mass = np.bincount(place, weight)
    filled = mass > 0.0
    centre = np.bincount(place, weight * mean)[filled] / mass[filled]
    spread = np.bincount(place, weight * (y - mean) ** 2)[filled] / mass[filled]
    seen = spread > 0.0
    if seen.sum() < 2 or np.ptp(centre[seen]) == 0.0:
        return 1.0
    slope = np.polyfit(np.log(centre[seen]), np.log(spread[seen]), 1, w=np.sqrt(mass[filled][seen]))[0]
    return float(np.clip(slope, 0.0, 2.0))


def prepared(transform: Transform, y: Array) -> Transform:
    """The transform with its bounds learned from the targets."""
    return transform.prepare(tensor(y))
