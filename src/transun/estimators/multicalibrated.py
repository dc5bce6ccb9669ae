"""Multicalibration around any regressor: predictions whose totals are right in every segment at once."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from transun.backbones import Trees
from transun.corrections import Multicalibration
from transun.corrections.multicalibration import RatioFit
from transun.data.frames import is_frame
from transun.data.kinds.graph import MISSING
from transun.estimators.composition import Composition, WeightedMean
from transun.estimators.cross_fitting import OutOfFold, predict_1d, split_rows
from transun.estimators.meta_regressor import MetaRegressor, require_prefit
from transun.estimators.rows import TrainingRows, feature_names, read_features
from transun.estimators.target import to_tensor
from transun.support.arguments import listed
from transun.support.arrays import Floats, distinct
from transun.tables.served_model import ServedColumns, WithLookups
from transun.transforms import Identity

if TYPE_CHECKING:
    import pyarrow as pa


class MulticalibratedRegressor(MetaRegressor):
    """ŷ(x) = m(x)·r(x, m(x)): a regressor m, and the ratio r that makes its totals right in every segment at once.

    `BalancedRegressor` makes totals right overall or by the values of one column. Here boosted trees look for
    segments of all columns together, and of the prediction itself, in which out-of-fold predictions add up to another
    total than the targets: r is learned by the deviance of y/m with weights m^(2 - p), and leaves are shrunk by
    their credibility. It is kept only if rows that decided nothing else confirm that deviance and squared error fall,
    or that the first gains more than the second may lose; otherwise r is 1, and `ratio_` says so in words. See
    `transun.corrections.Multicalibration`.

    The best use is around a model that is biased by segment, such as one of ln(1 + y) or one that lacks columns. A
    model that was trained well by Poisson deviance on the same columns mostly stays as it is. The cost is one fit of m
    a fold and one more, and thirty fits of small trees.

    Args:
        regressor: anything with `fit` and `predict`; histogram gradient boosting by default.
        by: columns of X whose values describe segments, by name or position; None takes all columns.
        cv: folds or a splitter for the out-of-fold predictions; each costs one more fit. "prefit": the regressor is
            trained already, on other rows, and only the ratio is learned; with exposures it predicts amounts per unit.
        n_jobs: the number of folds fitted at the same time.
        random_state: seed of the shuffling into folds, and of the trees.

    Attributes:
        regressor_: fitted to all rows.
        correction_: the fitted `Multicalibration`.
        ratio_: what was measured about it; `print(model.ratio_)`.

    >>> from sklearn.dummy import DummyRegressor
    >>> X = np.arange(1000).reshape(-1, 1) % 2
    >>> y = np.where(X[:, 0] == 0, 1.0, 3.0)
    >>> model = MulticalibratedRegressor(DummyRegressor(), random_state=0).fit(X, y)  # the dummy predicts 2
    >>> model.predict([[0], [1]]).round(1)
    array([1., 3.])

    """

    def __init__(
        self,
        regressor: Any = None,
        *,
        by: Sequence[str | int] | None = None,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.regressor = regressor
        self.by = by
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, exposure: Any = None, **fit_params: Any
    ) -> Self:
        """Fit the regressor to all rows, and once per fold for the ratio.

        Args:
            X: features: a frame, or an array of numbers.
            y: targets, not negative.
            sample_weight: weights of the rows, in the fits and in the totals.
            groups: the group of each row; rows of one group are left out together.
            exposure: what each amount was collected over; m then predicts amounts per unit of it.
            fit_params: parameters of the `fit` of the regressor.

        """
        X, target, weight = self._check_exposed_rows(X, y, sample_weight, exposure)
        wrong = np.flatnonzero(target < 0.0)
        if len(wrong):
            raise ValueError(
                f"Negative values in data: y is {target[wrong[0]]:g} in row {wrong[0]}, and {type(self).__name__} is "
                "for amounts; BalancedRegressor takes signed targets"
            )
        fitting = self._fittings(weight, fit_params)["regressor"]
        if isinstance(self.cv, str):
            require_prefit(self.cv, fitting.regressor)
            out_of_fold = OutOfFold([], [np.arange(len(target))], [predict_1d(fitting.regressor, X)])
        else:
            folds = split_rows(self.cv, X, target, self.random_state, groups)
            out_of_fold = OutOfFold.fit(fitting, X, target, folds, self.n_jobs)
        rows, pred = out_of_fold.rows, out_of_fold.predictions
        table = self._segments(X).take(rows)
        training = TrainingRows.of(table, target[rows], None if weight is None else weight[rows], named=is_frame(X))
        counted = np.ones(len(rows), bool) if weight is None else weight[rows] > 0.0
        self._features = training.guess().fit(training.table)
        columns = self._features.ids, self._features.bags, self._features.numeric
        inputs = Trees(*columns) if any(columns) else None
        group = None if groups is None else torch.from_numpy(distinct(np.asarray(groups))[1][rows][counted])
        self.correction_ = Multicalibration(inputs, self._seed()).fit(
            to_tensor(pred[counted]),
            to_tensor(target[rows][counted]),
            Identity(),
            None if weight is None else to_tensor(weight[rows][counted]),
            self._features.encode(training.table),
            group,
        )
        self.ratio_: RatioFit = self.correction_.measured
        self.regressor_ = fitting.regressor if isinstance(self.cv, str) else fitting(X, target)
        self.intervals_ = None  # the ratio has seen every row
        return self

    def predict(self, X: Any, exposure: Any = None) -> Floats:
        """The multicalibrated predictions of the regressor, (n,).

        Args:
            X: features.
            exposure: what the amounts are collected over, where the fit had exposures.

        """
        X = self._check_features(X)
        pred = predict_1d(self.regressor_, X)
        x = self._features.encode(self._segments(X))
        with torch.no_grad():
            corrected = self.correction_(to_tensor(pred), x)
        return self._to_amounts(np.asarray(corrected.numpy()), exposure)

    def composition(self) -> Composition:
        check_is_fitted(self)
        if not self.ratio_.kept:
            return Composition([self.regressor_], WeightedMean([1.0]), per_exposure=self.by_exposure_)
        formula = MulticalibratedFormula(self.correction_, ServedColumns(self._features.graphs(text=False)))
        names = feature_names(self)
        columns = [names.index(each.name) for each in formula.columns]
        return Composition([self.regressor_], formula, columns, per_exposure=self.by_exposure_)

    def _segments(self, X: Any) -> "pa.Table":
        """The columns that describe segments."""
        table = read_features(self, X, reset=False)
        if self.by is None:
            return table
        names = [
            table.column_names[each] if isinstance(each, (int, np.integer)) else each for each in listed("by", self.by)
        ]
        missing = [name for name in names if name not in table.column_names]
        if missing:
            raise ValueError(f"by names {missing[0]!r}, and X has {', '.join(table.column_names)}")
        return table.select(names)

    def _seed(self) -> int:
        # Trees and folds take a number, scikit-learn's users may give a generator.
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.target_tags.positive_only = True
        return tags


class MulticalibratedFormula(nn.Module):
    """m·r from the prediction m (1, n) and, after it, the columns of X that describe segments.

    Args:
        correction: the fitted correction, which reads the encoded columns.
        columns: how the columns are encoded.

    """

    def __init__(self, correction: Multicalibration, columns: ServedColumns) -> None:
        super().__init__()
        self.columns = columns.inputs
        for each in self.columns:
            if each.several or str(each.type) not in ("double", "int64"):
                raise ValueError(f"column {each.name!r} holds no numbers, as a graph needs them: encode it in X first")
        # In a tuple, so that the modules are not registered: in single precision, numbers could change their segment.
        self.parts = (WithLookups(columns.eval()), correction.eval())

    def forward(self, predictions: Tensor) -> Tensor:
        """Predictions (n,)."""
        columns = {}
        for each, values in zip(self.columns, predictions[1:], strict=True):
            columns[each.name] = values.double() if each.dtype == "float64" else _whole_numbers(values)
        encode, correct = self.parts
        return correct(predictions[0], encode(columns))  # type: ignore[no-any-return]


def _whole_numbers(values: Tensor) -> Tensor:
    """Ids that a matrix of floats holds; NaN is a missing one."""
    missing = values.isnan()
    return torch.where(missing, MISSING, torch.where(missing, 0.0, values).long())
