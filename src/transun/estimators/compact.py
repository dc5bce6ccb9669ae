"""Distillation: one regressor learns the predictions of another estimator, and is measured on rows that neither saw."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from transun.data.frames import pandas_frame
from transun.estimators.balance import Balance, LearnedBalance
from transun.estimators.composition import Composition, WeightedMean
from transun.estimators.cross_fitting import predict_1d
from transun.estimators.exposure import to_amounts
from transun.estimators.fitting import Fitting, add_weights, with_deviance
from transun.metrics import NRMSE, PGR
from transun.models.row_intervals import RowIntervals
from transun.support.arrays import Floats, Integers

# Without noise the loss decides only where a model spends its leaves. Tweedie deviance looks at small and large amounts
# alike, and came nearest to teachers of amounts that span orders of magnitude.
_DEVIANCES = ("tweedie", "poisson")


@dataclass(frozen=True)
class Agreement:
    """How near a compact model comes to its teacher, on rows that neither has seen; prints as two lines.

    It is measured fold by fold: a student learns, from the rows outside the fold, what a teacher that has not seen the
    fold predicts for them, and both predict the rows of the fold. So it is the distance of students and teachers that
    have learned from a little less than all rows.

    Args:
        distance: root mean squared difference to the teacher, divided by the mean prediction of the teacher.
        total: predicted / actual total.
        total_error: the standard error of the total.
        nrmse: root mean squared error against the targets, divided by their mean.
        teacher_nrmse: that of the teacher, on the same rows.

    """

    distance: float
    total: float
    total_error: float
    nrmse: float
    teacher_nrmse: float

    def __str__(self) -> str:
        return (
            f"distance to the teacher {self.distance:.4g} of the mean; NRMSE {self.nrmse:.4g}, of the teacher "
            f"{self.teacher_nrmse:.4g}\npredicted / actual total {self.total:.4f} ± {self.total_error:.4f}"
        )


@dataclass(frozen=True)
class CompactRegressor:
    """ŷ(x) = b·m(x): one fitted regressor m that imitates an estimator, and the factor b that gives it the same total.

    Made by the `compact` of an estimator, such as that of `GTSRegressor` or `UnbiasedRegressor`.

    Args:
        regressor: the fitted regressor.
        balance: the factor, in units of the target; a shift where targets have both signs.
        by_exposure: whether amounts have an exposure.
        agreement: how near it comes to the estimator, its teacher, measured on rows that were not seen.
        intervals: the errors on these rows, for `predict_interval`; per unit of exposure where amounts have one.

    """

    regressor: Any
    balance: LearnedBalance
    by_exposure: bool
    agreement: Agreement
    intervals: RowIntervals

    def predict(self, X: Any, exposure: Any = None) -> Floats:
        """Estimates of E[y|x], (n,), as the `predict` of the teacher."""
        return to_amounts(self._rates(X), exposure, by_exposure=self.by_exposure)

    def predict_interval(self, X: Any, level: float = 0.9, exposure: Any = None) -> Floats:
        """Lower and upper ends (n, 2) between which y of a row lies with at least this probability."""
        ends = self.intervals.interval(self._rates(X), level)
        return np.stack([to_amounts(end, exposure, by_exposure=self.by_exposure) for end in ends.T], axis=1)

    def composition(self) -> Composition:
        """The model and the balance, as those of other estimators."""
        return self.balance.around(
            Composition([self.regressor], WeightedMean([1.0]), per_exposure=self.by_exposure), None
        )

    def _rates(self, X: Any) -> Floats:
        return self.balance.apply(predict_1d(self.regressor, pandas_frame(X)))


@dataclass(frozen=True)
class FoldTeacher:
    """What a teacher that has not seen some rows predicts for all of them.

    Args:
        fitted: the rows that its student learns from.
        held_out: the rows that neither of the two has seen.
        predictions: its predictions of all rows (n,).

    """

    fitted: Integers
    held_out: Integers
    predictions: Floats


@dataclass(frozen=True)
class Distillation:
    """What a compact model is distilled from: rows, and the predictions of the teacher for them.

    Args:
        X: features.
        y: targets (n,), only to be measured against.
        weight: weights of the rows, or None.
        teacher: the predictions of the teacher (n,).
        by_fold: those of teachers that have not seen the rows of a fold, for every fold.

    """

    X: Any
    y: Floats
    weight: Floats | None
    teacher: Floats
    by_fold: Sequence[FoldTeacher]

    def distil(self, regressor: Any, *, by_exposure: bool) -> CompactRegressor:
        """The compact model, with its agreement.

        Args:
            regressor: the regressor that learns.
            by_exposure: whether amounts have an exposure.

        """
        predictions = []
        for fold in self.by_fold:
            model, balance = self._fit_student(regressor, fold.predictions, fold.fitted)
            predictions.append(balance.apply(predict_1d(model, _safe_indexing(self.X, fold.held_out))))
        model, balance = self._fit_student(regressor, self.teacher, np.arange(len(self.y)))
        pred, rows = np.concatenate(predictions), np.concatenate([fold.held_out for fold in self.by_fold])
        agreement = self._agreement(pred, rows)
        return CompactRegressor(model, balance, by_exposure, agreement, RowIntervals.of(pred, self.y[rows]))

    def _fit_student(self, regressor: Any, teacher: Floats, rows: Integers) -> tuple[Any, LearnedBalance]:
        """A model fitted to the teacher's predictions of some rows, and the balance that gives it their total."""
        # Libraries have thresholds in their deviances, hence a mean of 100 where a factor leads back to the units.
        unit = 1.0
        if teacher.min() >= 0.0 < teacher.max():
            by_deviance = (with_deviance(regressor, name) for name in _DEVIANCES)
            regressor = next((changed for changed in by_deviance if changed is not None), regressor)
            unit = float(teacher.mean()) / 100.0
        model = Fitting(regressor, add_weights(regressor, {}, self.weight))(self.X, teacher[rows] / unit, rows)
        pred = predict_1d(model, _safe_indexing(self.X, rows))
        return model, Balance()(pred, teacher[rows], None if self.weight is None else self.weight[rows])

    def _agreement(self, pred: Floats, rows: Integers) -> Agreement:
        """That of predictions of the held-out rows of all folds."""
        teacher = np.concatenate([fold.predictions[fold.held_out] for fold in self.by_fold])
        y, weight = self.y[rows], np.ones(len(rows)) if self.weight is None else self.weight[rows]
        return Agreement(
            NRMSE(pred, teacher, weight),
            PGR(pred, y, weight),
            PGR.standard_error(pred, y, weight),
            NRMSE(pred, y, weight),
            NRMSE(teacher, y, weight),
        )
