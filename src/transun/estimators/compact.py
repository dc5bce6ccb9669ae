"""Distillation: one regressor learns the predictions of a mixture, and is measured on rows that neither has seen."""

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
# alike, and came nearest to mixtures of amounts that span orders of magnitude.
_DEVIANCES = ("tweedie", "poisson")


@dataclass(frozen=True)
class Agreement:
    """How near a compact model comes to the mixture, on rows that neither has seen; prints as two lines.

    Args:
        distance: root mean squared difference to the mixture, divided by the mean prediction of the mixture.
        total: predicted / actual total.
        total_error: the standard error of the total.
        nrmse: root mean squared error against the targets, divided by their mean.
        mixture_nrmse: that of the mixture.

    """

    distance: float
    total: float
    total_error: float
    nrmse: float
    mixture_nrmse: float

    def __str__(self) -> str:
        return (
            f"distance to the mixture {self.distance:.4g} of the mean; NRMSE {self.nrmse:.4g}, of the mixture "
            f"{self.mixture_nrmse:.4g}\npredicted / actual total {self.total:.4f} ± {self.total_error:.4f}"
        )


@dataclass(frozen=True)
class CompactRegressor:
    """ŷ(x) = b·m(x): one fitted regressor m that imitates a mixture, and the factor b that gives it the same total.

    Made by `UnbiasedRegressor.compact`.

    Args:
        regressor: the fitted regressor.
        balance: the factor, in units of the target; a shift where targets have both signs.
        by_exposure: whether amounts have an exposure.
        agreement: how near it comes to the mixture, measured on rows that were not seen.
        intervals: the errors on these rows, for `predict_interval`; per unit of exposure where amounts have one.

    """

    regressor: Any
    balance: LearnedBalance
    by_exposure: bool
    agreement: Agreement
    intervals: RowIntervals

    def predict(self, X: Any, exposure: Any = None) -> Floats:
        """Estimates of E[y|x], (n,), as the `predict` of the mixture."""
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
class Distillation:
    """What a compact model is distilled from: rows, and the predictions of the mixture, its teacher, for them.

    Args:
        X: features.
        y: targets (n,), only to be measured against.
        weight: weights of the rows, or None.
        teacher: the predictions of the mixture (n,).
        teacher_by_fold: for each fold the predictions (n,) of the models that have not seen its rows.
        fold_rows: the rows of each fold.

    """

    X: Any
    y: Floats
    weight: Floats | None
    teacher: Floats
    teacher_by_fold: Sequence[Floats]
    fold_rows: Sequence[Integers]

    def distil(self, regressor: Any, held_out: Floats, *, by_exposure: bool) -> CompactRegressor:
        """The compact model, with its agreement.

        A model for each fold learns, from the rows of the other folds, what the models that have not seen the fold say
        about them, and predicts the rows of the fold. So a target reaches its own prediction only through what is
        common to all rows: the weights of the candidates, their calibration and the balance.

        Args:
            regressor: the regressor that learns.
            held_out: the out-of-fold predictions of the mixture (n,).
            by_exposure: whether amounts have an exposure.

        """
        pred, teacher = np.empty_like(self.y), np.empty_like(self.y)
        for rows, by_models in zip(self.fold_rows, self.teacher_by_fold, strict=True):
            others = np.setdiff1d(np.arange(len(self.y)), rows)
            model, balance = self._fit_student(regressor, by_models, others)
            pred[rows] = balance.apply(predict_1d(model, _safe_indexing(self.X, rows)))
            teacher[rows] = by_models[rows]
        model, balance = self._fit_student(regressor, self.teacher, np.arange(len(self.y)))
        agreement = self._agreement(pred, teacher, held_out)
        return CompactRegressor(model, balance, by_exposure, agreement, RowIntervals.of(pred, self.y))

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

    def _agreement(self, pred: Floats, teacher: Floats, held_out: Floats) -> Agreement:
        weight = np.ones_like(self.y) if self.weight is None else self.weight
        return Agreement(
            NRMSE(pred, teacher, weight),
            PGR(pred, self.y, weight),
            PGR.standard_error(pred, self.y, weight),
            NRMSE(pred, self.y, weight),
            NRMSE(held_out, self.y, weight),
        )
