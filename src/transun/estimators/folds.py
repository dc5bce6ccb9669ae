"""Cross-fitting: regressors that have not seen the rows they speak about."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator, KFold, check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from transun.estimators.fitting import Fitting

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Split = tuple[Rows, Rows]


@dataclass(frozen=True)
class Held:
    """Regressors, the rows each of them speaks about, and what it says there.

    Args:
        models: fitted regressors.
        rows: for each model the rows that it did not see. A row may be spoken about by several models, or by none.
        points: what each model predicts on its rows.

    """

    models: Sequence[Any]
    rows: Sequence[Rows]
    points: Sequence[Array]

    @property
    def order(self) -> Rows:
        """All rows spoken about, in the order of the data: `range(n)` when each is spoken about once."""
        return np.concatenate(self.rows)[self._sorting]

    @property
    def point(self) -> Array:
        """The predictions in the same order."""
        return np.concatenate(self.points)[self._sorting]

    @property
    def _sorting(self) -> Rows:
        return np.concatenate(self.rows).argsort(kind="stable")

    def shares(self, weight: Array | None = None) -> Array:
        """The share of all rows spoken about, or of their weight, that each model speaks about."""
        sizes = [float(len(rows) if weight is None else weight[rows].sum()) for rows in self.rows]
        return np.asarray(sizes) / sum(sizes)


def splits(cv: Any, X: Any, y: Array, random_state: Any) -> list[Split]:
    """Training and held-out rows of every fold.

    A number means that many folds of shuffled rows: tables are often sorted by time or amount, and folds of
    neighbours would then ask each model about a range it has never seen. None means one fold whose model speaks about
    its own training rows.

    >>> [held.tolist() for _, held in splits(None, [[1], [2]], np.array([1.0, 2.0]), None)]
    [[0, 1]]
    """
    if cv is None:
        everything = np.arange(len(y))
        return [(everything, everything)]
    chosen: BaseCrossValidator = KFold(cv, shuffle=True, random_state=random_state) if _count(cv) else check_cv(cv)
    return [(np.asarray(fitted), np.asarray(held)) for fitted, held in chosen.split(X, y)]


def cross_fit(fitting: Fitting, X: Any, target: Array, folds: Sequence[Split], n_jobs: int | None) -> Held:
    """One model per fold, fitted to its training rows, with its predictions of the rows held out."""
    work = (delayed(_fit_and_predict)(fitting, X, target, fitted, held) for fitted, held in folds)
    models, points = zip(*Parallel(n_jobs=n_jobs)(work), strict=True)
    return Held(models, [held for _, held in folds], points)


def speak(model: Any, X: Any) -> Array:
    """A model's predictions as a float64 vector (n,)."""
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


def _fit_and_predict(fitting: Fitting, X: Any, target: Array, fitted: Rows, held: Rows) -> tuple[Any, Array]:
    model = fitting(X, target[fitted], fitted)
    return model, speak(model, _safe_indexing(X, held))


def _count(cv: Any) -> bool:
    return isinstance(cv, (int, np.integer)) and not isinstance(cv, bool)
