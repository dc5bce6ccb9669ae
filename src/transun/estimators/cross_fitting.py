"""Cross-fitting: predictions of rows by models that were not fitted to them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator, GroupKFold, KFold, check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from transun.estimators.fitting import Fitting
from transun.estimators.target import apply_transform, invert_transform
from transun.transforms import Transform

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Split = tuple[Rows, Rows]
"""The rows that a model is fitted to, and the rows that it predicts."""


def predict_1d(model: Any, X: Any) -> Array:
    """A model's predictions as a finite float64 vector (n,)."""
    pred = np.asarray(model.predict(X), dtype=np.float64)
    if pred.ndim == 2 and pred.shape[1] == 1:
        pred = pred[:, 0]
    if pred.ndim != 1:
        raise ValueError(f"{type(model).__name__} predicts an array of shape {pred.shape}; one number a row is needed")
    wrong = ~np.isfinite(pred)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"{type(model).__name__} predicts {pred[row]} for row {row}: scale its target")
    return pred


def split_rows(cv: Any, X: Any, y: Array, random_state: Any, groups: Any = None) -> list[Split]:
    """Training and held-out rows of every fold.

    A number means that many folds of shuffled rows: tables are often sorted by time or amount, and a fold of
    neighbouring rows would ask its model about a range that it has never seen. None means a single model that predicts
    its own training rows.

    Args:
        cv: the number of folds, a splitter, an iterable of splits, or None.
        X: features.
        y: targets.
        random_state: seed of the shuffling.
        groups: the group of each row, for the splitter. With a number of folds no group is in two of them: rows of one
            customer resemble each other, and a model that has seen some of them is no stranger to the rest.

    >>> [held_out.tolist() for _, held_out in split_rows(None, [[1], [2]], np.array([1.0, 2.0]), None)]
    [[0, 1]]
    >>> sorted(held_out.tolist() for _, held_out in split_rows(2, [[0]] * 4, np.ones(4), 0, groups=[7, 8, 7, 8]))
    [[0, 2], [1, 3]]

    """
    if cv is None:
        all_rows = np.arange(len(y))
        return [(all_rows, all_rows)]
    splitter: BaseCrossValidator = check_cv(cv)
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        by_number = KFold if groups is None else GroupKFold
        splitter = by_number(cv, shuffle=True, random_state=random_state)
    return [(np.asarray(fitted), np.asarray(held_out)) for fitted, held_out in splitter.split(X, y, groups)]


@dataclass(frozen=True)
class OutOfFold:
    """One model per fold, with its predictions of the rows that it was not fitted to.

    Args:
        models: fitted regressors.
        fold_rows: the held-out rows of each model. A row may be held out by several models, or by none.
        fold_predictions: the predictions of each model for its held-out rows.

    """

    models: Sequence[Any]
    fold_rows: Sequence[Rows]
    fold_predictions: Sequence[Array]

    @classmethod
    def fit(cls, fitting: Fitting, X: Any, target: Array, folds: Sequence[Split], n_jobs: int | None) -> "OutOfFold":
        """Fit one model per fold to its training rows and predict the rows held out."""
        work = (delayed(_fit_and_predict)(fitting, X, target, fitted, held_out) for fitted, held_out in folds)
        models, predictions = zip(*Parallel(n_jobs=n_jobs)(work), strict=True)
        return cls(models, [held_out for _, held_out in folds], predictions)

    @property
    def rows(self) -> Rows:
        """All held-out rows in the order of the data: `range(n)` if every row is held out once."""
        return np.concatenate(self.fold_rows)[self._order]

    @property
    def predictions(self) -> Array:
        """The predictions of `rows`."""
        return np.concatenate(self.fold_predictions)[self._order]

    @property
    def _order(self) -> Rows:
        return np.concatenate(self.fold_rows).argsort(kind="stable")

    def shares(self, weight: Array | None = None) -> Array:
        """The share of all held-out rows, or of their weight, that each model predicts; the shares add up to one."""
        sizes = [float(len(rows) if weight is None else weight[rows].sum()) for rows in self.fold_rows]
        return np.asarray(sizes) / sum(sizes)


def _fit_and_predict(fitting: Fitting, X: Any, target: Array, fitted: Rows, held_out: Rows) -> tuple[Any, Array]:
    model = fitting(X, target[fitted], fitted)
    return model, predict_1d(model, _safe_indexing(X, held_out))


@dataclass(frozen=True)
class CrossFit:
    """Rows in folds, on which candidates are compared by out-of-fold predictions; models of T(y) are fitted once.

    Args:
        fitting: how the base regressor is fitted.
        X: features.
        y: targets (n,).
        weight: weights of the rows, or None.
        folds: splits whose held-out rows are a partition of all rows; at least three.
        n_jobs: the number of fits at the same time.

    """

    fitting: Fitting
    X: Any
    y: Array
    weight: Array | None
    folds: Sequence[Split]
    n_jobs: int | None = None
    _points: dict[Transform, Array] = field(default_factory=dict, repr=False)

    @property
    def fold_of_row(self) -> Rows:
        """The fold that holds out each row, (n,)."""
        fold = np.full(len(self.y), -1)
        for index, (_, held_out) in enumerate(self.folds):
            fold[held_out] = index
        return fold

    @property
    def cost(self) -> float:
        """The cost of out-of-fold predictions by one regressor, in fits to all rows: the number of folds less one."""
        return float(sum(len(fitted) for fitted, _ in self.folds) / len(self.y))

    def points_cost(self, transform: Transform) -> float:
        """The cost of `points`, in fits to all rows; zero if they are computed already."""
        count = len(self.folds)
        return 0.0 if transform in self._points else (count - 1) * (count - 2) / 2

    def predict(self, fitting: Fitting) -> Array:
        """Out-of-fold predictions (n,) by a regressor of y."""
        return OutOfFold.fit(fitting, self.X, self.y, self.folds, self.n_jobs).predictions

    def predict_rows(self, model: Any, rows: Rows) -> Array:
        """The predictions of a fitted model for some of the rows."""
        return predict_1d(model, _safe_indexing(self.X, rows))

    def points(self, transform: Transform) -> Array:
        """Points u (n, folds): row i, column k is by a model of T(y) that saw neither the fold of row i nor fold k.

        Such a model serves two purposes. Among the training rows of fold k it gives row i a point that depends neither
        on the target of row i nor on the rows of fold k; for the rows of the fold of i it is one of the models to
        average over. Every pair of folds is left out once: with five folds this takes ten fits to 60 % of the rows,
        for any number of slopes. Column k is NaN for the rows of fold k.
        """
        if transform not in self._points:
            fold, count = self.fold_of_row, len(self.folds)
            pairs = list(combinations(range(count), 2))
            held_out = [(fold == a) | (fold == b) for a, b in pairs]
            splits = [(np.flatnonzero(~rows), np.flatnonzero(rows)) for rows in held_out]
            target = apply_transform(self.y, transform)
            out_of_fold = OutOfFold.fit(self.fitting, self.X, target, splits, self.n_jobs)
            points = np.full((len(self.y), count), np.nan)
            for (a, b), rows, pred in zip(pairs, out_of_fold.fold_rows, out_of_fold.fold_predictions, strict=True):
                points[rows, np.where(fold[rows] == a, b, a)] = pred
            self._points[transform] = points
        return self._points[transform]

    def biased_predictions(self, transform: Transform) -> Array:
        """The mean over models of T⁻¹ of their points, (n,): the out-of-fold predictions of plain T-MSE."""
        points = self.points(transform)
        amounts = np.where(np.isnan(points), np.nan, invert_transform(np.nan_to_num(points), transform))
        return np.asarray(np.nanmean(amounts, axis=1))
