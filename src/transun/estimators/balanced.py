"""Any regressor, with totals made right."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from transun.estimators.balance import Balance
from transun.estimators.folds import cross_fit, speak, splits
from transun.estimators.wrapping import Wrapping

Array = NDArray[np.float64]


class BalancedRegressor(Wrapping):
    """ŷ(x) = b·m(x): a regressor m fitted to all rows, and the factor b that makes its out-of-fold total exact.

    The last step for any model whose sums people will add up; see `Balance` for segments and shrinkage. The model's
    own training total is of no use: a model that overfits has it right and is wrong elsewhere.

    Args:
        regressor: anything with `fit` and `predict`; histogram gradient boosting by default.
        balance: what is learned from the out-of-fold predictions.
        cv: folds or a splitter; each costs one more fit.
        n_jobs: folds fitted at the same time.
        random_state: of the shuffling into folds.

    Attributes:
        regressor_: fitted to all rows.
        balanced_: the factors.

    >>> from sklearn.dummy import DummyRegressor
    >>> X, y = [[0]] * 3, [0.0, 0.0, 6.0]
    >>> BalancedRegressor(DummyRegressor(strategy="constant", constant=1.0), cv=3).fit(X, y).predict([[0]])
    array([2.])

    """

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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit the regressor to all rows, and once per fold for the factors."""
        X, target, weight = self._rows(X, y, sample_weight)
        fitting = self._fittings(weight, fit_params)["regressor"]
        held = cross_fit(fitting, X, target, splits(self.cv, X, target, self.random_state), self.n_jobs)
        rows = held.order
        segment = segments(X, self.balance)
        self.balanced_ = self.balance(
            held.point,
            target[rows],
            None if weight is None else weight[rows],
            None if segment is None else segment[rows],
        )
        self.regressor_ = fitting(X, target)
        return self

    def predict(self, X: Any) -> Array:
        """The regressor's predictions, balanced, (n,)."""
        X = self._features(X)
        return self.balanced_(speak(self.regressor_, X), segments(X, self.balance))


def segments(X: Any, balance: Balance | None) -> NDArray[Any] | None:
    """The column of X that a balance names, or None where it names none."""
    if balance is None or balance.by is None:
        return None
    try:
        return np.asarray(_safe_indexing(X, balance.by, axis=1))
    except (KeyError, ValueError, IndexError) as error:
        raise ValueError(f"Balance: X has no column {balance.by!r} to take the segments from") from error
