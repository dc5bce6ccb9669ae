"""A regressor fitted to all rows, with the factor that makes its out-of-fold total exact."""

from typing import Any, ClassVar, Self

from sklearn.utils.validation import check_is_fitted

from transun.estimators.balance import Balance
from transun.estimators.composition import Composition, WeightedMean
from transun.estimators.cross_fitting import OutOfFold, predict_1d, split_rows
from transun.estimators.meta_regressor import MetaRegressor
from transun.models.row_intervals import RowIntervals
from transun.support.arrays import Floats


class BalancedRegressor(MetaRegressor):
    """ŷ(x) = b·m(x): a regressor m fitted to all rows, and the factor b that makes its out-of-fold total exact.

    The last step for any model whose sums people will add up; see `Balance` for segments and shrinkage. The total of
    the training rows is of no use: a model that overfits has it right and is wrong elsewhere.

    Args:
        regressor: anything with `fit` and `predict`; histogram gradient boosting by default.
        balance: whether to balance overall or by segment.
        cv: folds or a splitter; each costs one more fit.
        n_jobs: the number of folds fitted at the same time.
        random_state: seed of the shuffling into folds.

    Attributes:
        regressor_: fitted to all rows.
        balance_: the learned factors.
        intervals_: the errors of the balanced out-of-fold predictions, for `predict_interval`.

    >>> from sklearn.dummy import DummyRegressor
    >>> X, y = [[0]] * 3, [0.0, 0.0, 6.0]
    >>> BalancedRegressor(DummyRegressor(strategy="constant", constant=1.0), cv=3).fit(X, y).predict([[0]])
    array([2.])

    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MetaRegressor._parameter_constraints,
        "balance": [Balance],
    }

    def __init__(
        self,
        regressor: Any = None,
        *,
        balance: Balance = Balance(),
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.regressor = regressor
        self.balance = balance
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, **fit_params: Any) -> Self:
        """Fit the regressor to all rows, and once per fold for the factors.

        Args:
            X: features, in any form that the regressor takes.
            y: targets.
            sample_weight: weights of the rows, in the fits and in the totals.
            groups: the group of each row, for the splitter; with a number of folds no group is in two of them.
            fit_params: parameters of the `fit` of the regressor.

        """
        X, target, weight = self._check_training_rows(X, y, sample_weight)
        fitting = self._fittings(weight, fit_params)["regressor"]
        folds = split_rows(self.cv, X, target, self.random_state, groups)
        out_of_fold = OutOfFold.fit(fitting, X, target, folds, self.n_jobs)
        rows = out_of_fold.rows
        segment = self.balance.segments(X)
        self.balance_ = self.balance(
            out_of_fold.predictions,
            target[rows],
            None if weight is None else weight[rows],
            None if segment is None else segment[rows],
        )
        balanced = self.balance_.apply(out_of_fold.predictions, None if segment is None else segment[rows])
        self.intervals_ = RowIntervals.of(balanced, target[rows])
        self.regressor_ = fitting(X, target)
        return self

    def predict(self, X: Any) -> Floats:
        """The balanced predictions of the regressor, (n,)."""
        X = self._check_features(X)
        return self.balance_.apply(predict_1d(self.regressor_, X), self.balance.segments(X))

    def composition(self) -> Composition:
        check_is_fitted(self)
        return self.balance_.around(Composition([self.regressor_], WeightedMean([1.0])), self.balance.by)
