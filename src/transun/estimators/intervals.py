"""Intervals of single rows for every estimator."""

from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from transun.estimators.target import check_target
from transun.models.row_intervals import RowIntervals
from transun.support.arrays import Floats

__all__ = ["IntervalMixin"]


class IntervalMixin:
    """`predict_interval` for a regressor: where y of a single row lies, by conformal prediction at its level.

    Estimators that cross-fit learn the errors in `fit`, from the predictions of models that have not seen the row
    (cross-conformal); their predictions are means over the folds, whose errors are a little smaller, so that intervals
    are a little wide. Others learn them by `calibrate_intervals`, from rows that they have not seen.
    """

    intervals_: RowIntervals | None = None

    def predict_interval(self, X: Any, level: float = 0.9, **params: Any) -> Floats:
        """Lower and upper ends (n, 2) between which y of a row lies with at least this probability.

        Args:
            X: rows with the columns of training.
            level: the probability. It holds on average over rows of each level of the prediction.
            params: further parameters of `predict`, such as `exposure`.

        """
        check_is_fitted(self)
        if self.intervals_ is None:
            raise ValueError(
                f"this {type(self).__name__} has no predictions of rows that it was not fitted to: call "
                "calibrate_intervals(X, y) with such rows first"
            )
        return self.intervals_.interval(self.predict(X, **params), level)  # type: ignore[attr-defined]

    def calibrate_intervals(self, X: Any, y: Any, **params: Any) -> Self:
        """Learn the errors of each level of the prediction from rows that the estimator has not seen.

        Args:
            X: rows.
            y: their targets.
            params: further parameters of `predict`, such as `exposure`.

        """
        check_is_fitted(self)
        self.intervals_ = RowIntervals.of(self.predict(X, **params), check_target(y, self))  # type: ignore[attr-defined]
        return self
