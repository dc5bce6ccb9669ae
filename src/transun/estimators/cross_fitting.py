"""Cross-fitting: predictions of rows by models that were not fitted to them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator, GroupKFold, KFold, check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from transun.data.magnitude import require_squarable
from transun.estimators.fitting import Fitting
from transun.estimators.target import apply_transform
from transun.support.arrays import Floats, Integers, distinct, to_floats
from transun.transforms import Transform

Split = tuple[Integers, Integers]
"""The rows that a model is fitted to, and the rows that it predicts."""


def predict_1d(model: Any, X: Any) -> Floats:
    """A model's predictions as a vector (n,) of numbers that can be squared."""
    name = type(model).__name__
    pred = to_floats(model.predict(X), f"the prediction of {name}")
    if pred.ndim == 2 and pred.shape[1] == 1:
        pred = pred[:, 0]
    rows = _num_samples(X)
    if pred.shape != (rows,):
        raise ValueError(f"{name} predicts an array of shape {pred.shape} for {rows} rows; one number a row is needed")
    wrong = ~np.isfinite(pred)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"{name} predicts {pred[row]} for row {row}, which is no amount: look for what it cannot handle in X, or "
            "scale its target"
        )
    require_squarable(np.arange(rows), **{f"prediction of {name}": pred})
    return pred


def split_rows(cv: Any, X: Any, y: Floats, random_state: Any, groups: Any = None) -> list[Split]:
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
    groups = _check_groups(groups, len(y))
    splitter: BaseCrossValidator = check_cv(cv)
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        by_number = KFold if groups is None else GroupKFold
        splitter = by_number(cv, shuffle=True, random_state=random_state)
    folds = [(np.asarray(fitted), np.asarray(held_out)) for fitted, held_out in splitter.split(X, y, groups)]
    if not folds or not all(len(fitted) and len(held_out) for fitted, held_out in folds):
        raise ValueError("cv must have splits, each with rows to fit and rows to hold out: give a number of folds")
    return folds


def _check_groups(groups: Any, rows: int) -> NDArray[Any] | None:
    """The group of each row (n,), which must not be missing; numbers in place of groups that cannot be sorted."""
    if groups is None:
        return None
    values = np.asarray(groups)
    if values.shape != (rows,):
        raise ValueError(f"groups has the shape {values.shape}, and there are {rows} rows: give one group for each")
    names, codes = distinct(values)
    if None in names:
        row = int((codes == names.index(None)).argmax())
        raise ValueError(f"groups is missing in row {row}: name the group, or leave the row out")
    return codes if values.dtype.kind == "O" else values


def shares_of(fold_rows: Sequence[Integers], weight: Floats | None = None) -> Floats:
    """The share of each fold in all held-out rows, or in their weight.

    >>> shares_of([np.array([0]), np.array([1, 2])], np.array([2.0, 1.0, 1.0])).tolist()
    [0.5, 0.5]
    """
    sizes = [float(len(rows) if weight is None else weight[rows].sum()) for rows in fold_rows]
    return np.asarray(sizes) / sum(sizes)


@dataclass(frozen=True)
class OutOfFold:
    """One model per fold, with its predictions of the rows that it was not fitted to.

    Args:
        models: fitted regressors.
        fold_rows: the held-out rows of each model. A row may be held out by several models, or by none.
        fold_predictions: the predictions of each model for its held-out rows.

    """

    models: Sequence[Any]
    fold_rows: Sequence[Integers]
    fold_predictions: Sequence[Floats]

    @classmethod
    def fit(
        cls,
        fitting: Fitting,
        X: Any,
        target: Floats,
        folds: Sequence[Split],
        n_jobs: int | None,
        emphasis: Floats | None = None,
        patience: int | None = None,
    ) -> "OutOfFold":
        """Fit one model per fold to its training rows and predict the rows held out.

        Args:
            fitting: how the regressor is fitted.
            X: features of all rows.
            target: targets of all rows, in the units that the regressor learns.
            folds: training and held-out rows.
            n_jobs: the number of folds at the same time.
            emphasis: a factor of the weight of each row.
            patience: boosters stop after this many rounds without improvement on the rows held out; None: they do not.

        """
        work = (delayed(_fit_and_predict)(fitting, X, target, fold, emphasis, patience) for fold in folds)
        models, predictions = zip(*Parallel(n_jobs=n_jobs)(work), strict=True)
        return cls(models, [held_out for _, held_out in folds], predictions)

    @property
    def rows(self) -> Integers:
        """All held-out rows in the order of the data: `range(n)` if every row is held out once."""
        return np.concatenate(self.fold_rows)[self._order]

    @property
    def predictions(self) -> Floats:
        """The predictions of `rows`."""
        return np.concatenate(self.fold_predictions)[self._order]

    @property
    def _order(self) -> Integers:
        return np.concatenate(self.fold_rows).argsort(kind="stable")

    def shares(self, weight: Floats | None = None) -> Floats:
        """The share of all held-out rows, or of their weight, that each model predicts; the shares add up to one."""
        return shares_of(self.fold_rows, weight)


def _fit_and_predict(
    fitting: Fitting, X: Any, target: Floats, fold: Split, emphasis: Floats | None, patience: int | None
) -> tuple[Any, Floats]:
    fitted, held_out = fold
    fitting = fitting.stopped_early(patience, X, target, held_out, emphasis)
    try:
        model = fitting(X, target[fitted], fitted, None if emphasis is None else emphasis[fitted])
        return model, predict_1d(model, _safe_indexing(X, held_out))
    except Exception as error:
        # The other folds may be fine, and the regressor knows nothing of folds.
        error.add_note(
            f"in the fold that is fitted to {len(fitted):,} rows, the first is row {fitted[0]}, and holds out "
            f"{len(held_out):,}"
        )
        raise


@dataclass(frozen=True)
class CrossFit:
    """Rows in folds, on which candidates are fitted and compared; the models of T(y) are fitted once for all of them.

    Args:
        fitting: how the base regressor is fitted.
        X: features.
        y: targets (n,).
        weight: weights of the rows, or None.
        folds: splits whose held-out rows are a partition of all rows.
        patience: rounds without improvement on the held-out rows after which boosters stop; None: they do not stop.
        n_jobs: the number of fits at the same time.

    """

    fitting: Fitting
    X: Any
    y: Floats
    weight: Floats | None
    folds: Sequence[Split]
    patience: int | None = None
    n_jobs: int | None = None
    _points: dict[Transform, OutOfFold] = field(default_factory=dict, repr=False)
    _ensembles: list[OutOfFold] = field(default_factory=list, repr=False)

    @property
    def cost(self) -> int:
        """The number of fits so far."""
        return sum(len(ensemble.models) for ensemble in self._ensembles)

    def fit(self, regressor: Any, target: Floats, emphasis: Floats | None = None) -> OutOfFold:
        """One model per fold, which learns the targets (n,), with factors (n,) of the weights of the rows."""
        fitting = replace(self.fitting, regressor=regressor)
        ensemble = OutOfFold.fit(fitting, self.X, target, self.folds, self.n_jobs, emphasis, self.patience)
        self._ensembles.append(ensemble)
        return ensemble

    def points(self, transform: Transform) -> OutOfFold:
        """The models of T(y), fitted at the first call, with the points u of the rows that they have not seen."""
        if transform not in self._points:
            self._points[transform] = self.fit(self.fitting.regressor, apply_transform(self.y, transform))
        return self._points[transform]

    def points_cost(self, transform: Transform) -> int:
        """The number of fits that `points` takes; zero if they were made already."""
        return 0 if transform in self._points else len(self.folds)

    @property
    def shares(self) -> Floats:
        """The share of the rows, or of their weight, that each fold holds out; the shares add up to one."""
        return shares_of([held_out for _, held_out in self.folds], self.weight)

    def weights_of(self, rows: Integers) -> Floats | None:
        """The weights of some rows."""
        return None if self.weight is None else self.weight[rows]


class NewRows:
    """Rows to predict, and the predictions of each ensemble for them, made once.

    Candidates share ensembles: without this, the models of T(y) would predict once for each of them.
    """

    def __init__(self, X: Any) -> None:
        self.X = X
        self._predictions: dict[int, Floats] = {}

    def predict(self, ensemble: Sequence[Any]) -> Floats:
        """The predictions (models, n) of an ensemble, which is the list of models of one `OutOfFold`."""
        if id(ensemble) not in self._predictions:
            self._predictions[id(ensemble)] = np.stack([predict_1d(model, self.X) for model in ensemble])
        return self._predictions[id(ensemble)]
