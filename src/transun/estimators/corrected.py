"""Post-hoc corrections around any regressor, learned out of fold."""

import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from transun.corrections import (
    Correction,
    NormalTheory,
    SecondOrder,
    Smearing,
    SmoothIsotonic,
    TotalRatio,
    TotalShift,
)
from transun.estimators.composition import Composition, CorrectedMean
from transun.estimators.meta_regressor import FitWarning, TransformedTargetBase
from transun.estimators.target import prepare_transform, to_tensor
from transun.models.row_intervals import RowIntervals
from transun.support.arrays import Floats, distinct
from transun.transforms import Log1p, Transform

# The last three names are those of scikit-learn's proposal for `TransformedTargetRegressor`.
CORRECTIONS: Mapping[str, Correction] = {
    "smearing": Smearing(),
    "normal": NormalTheory(),
    "isotonic": SmoothIsotonic(),
    "multiplicative": TotalRatio(),
    "additive": TotalShift(),
    "taylor": SecondOrder(),
}


# By chance alone a total is this many standard errors off in one fit of 400.
_NOTABLE_ERRORS = 3.0
# Amounts without noise are predicted but for the rounding of single precision, which is no sampling error.
_ROUNDING = 1e-5


class TotalWarning(FitWarning):
    """The total of predictions of held-out rows differs from the total of their targets by more than sampling error."""


class CorrectedRegressor(TransformedTargetBase):
    """ŷ(x) = mean over folds k of C(u_k(x)): regressors learn T(y), a correction C learns y from held-out points u.

    The usual remedy for retransformation bias, done right: the correction learns from residuals of rows that the model
    was not fitted to. Residuals of training rows are too small, and so is the correction that they teach. It sees x
    only through u: where the noise depends on x in another way, it is wrong by segment, and smearing and normal theory
    also in total. `fit` adds up the corrected predictions of held-out rows, and warns if their total differs from that
    of the targets by more than three standard errors. `GTSRegressor` and `UnbiasedRegressor` are right there too.

    Args:
        regressor: anything with `fit` and `predict`; histogram gradient boosting by default.
        target_transform: T. `Identity()` with ``cv="prefit"`` for a model that predicts in units of the target.
        bias_correction: "smearing", "normal" (theory), "isotonic", scikit-learn's "multiplicative", "additive" and
            "taylor", or a `Correction` object such as `BinnedSmearing(20)`. None corrects nothing.
        cv: folds, a splitter or an iterable of splits, one fit each. None learns from residuals of training
            rows, which are too small, in one fit. "prefit": `regressor` is trained already, on other rows; only the
            correction is learned.
        n_jobs: the number of folds fitted at the same time.
        random_state: seed of the shuffling into folds.

    Attributes:
        regressors_: the models of T(y), one per fold.
        shares_: the weight of each of them in a prediction.
        correction_: the fitted correction.
        total_: predicted / actual total of the held-out rows; of the training rows with ``cv=None``.
        intervals_: the errors of the corrected held-out rows, for `predict_interval`; None with ``cv=None``.
        transform_: T with its bounds learned from the targets.

    >>> X, y = [[0]] * 4, [1.0, 1.0, 9.0, 9.0]
    >>> from sklearn.dummy import DummyRegressor
    >>> model = CorrectedRegressor(DummyRegressor(), target_transform=Power(0.5), cv=None)
    >>> model.fit(X, y).predict([[0]])  # residuals of the root ±1 around 2: the mean of 1 and 9
    array([5.])

    """

    def __init__(
        self,
        regressor: Any = None,
        *,
        target_transform: Transform = Log1p(),
        bias_correction: Correction | str | None = "smearing",
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.regressor = regressor
        self.target_transform = target_transform
        self.bias_correction = bias_correction
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        eval_set: Any = None,
        groups: Any = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the models of T(y), then the correction; the arguments are those of `GTSRegressor.fit`."""
        X, target, weight = self._check_training_rows(X, y, sample_weight)
        self.transform_ = prepare_transform(self.target_transform, target)
        evaluation = self._check_evaluation(eval_set)
        fitting = self._fittings(weight, fit_params)["regressor"]
        points = self._fit_points(fitting, X, target, evaluation, groups)
        self.regressors_, self.shares_ = list(points.models), points.shares(weight)
        rows = points.rows
        correction = self._correction().double()
        # An unfitted correction predicts T⁻¹(u).
        self.correction_ = correction.on(self.transform_)
        if self.bias_correction is not None:
            self.correction_ = correction.fit(
                to_tensor(points.predictions),
                to_tensor(target[rows]),
                self.transform_,
                None if weight is None else to_tensor(weight[rows]),
            )
        corrected = self._correct(points.predictions)
        # In-sample, a model has seen the rows that it predicts, and its errors say nothing about others.
        self.intervals_ = None if self.cv is None else RowIntervals.of(corrected, target[rows])
        excess = corrected - target[rows]
        counts = np.ones(len(rows)) if weight is None else weight[rows]
        clusters = np.arange(len(rows)) if groups is None else distinct(np.asarray(groups))[1][rows]
        self._check_total(np.asarray(np.bincount(clusters, counts * excess), np.float64), float(counts @ target[rows]))
        return self

    def predict(self, X: Any) -> Floats:
        """Estimates of E[y|x], (n,)."""
        return self._mean_over_models(self._check_features(X), self._correct)

    def composition(self) -> Composition:
        check_is_fitted(self)
        return Composition(self.regressors_, CorrectedMean(self.correction_, self.shares_))

    def _check_total(self, excess: Floats, actual: float) -> None:
        """Store predicted / actual total, and warn if a correction was learned out of fold and leaves it wrong.

        Args:
            excess: predicted less actual amounts, of independent rows or groups of rows.
            actual: the total of the targets.

        """
        error = float(np.linalg.norm(excess))
        self.total_ = 1.0 + float(excess.sum()) / actual if actual else float("nan")
        tolerated = max(_NOTABLE_ERRORS * error, _ROUNDING * abs(actual))
        if self.bias_correction is None or self.cv is None or abs(excess.sum()) <= tolerated:
            return
        warnings.warn(
            f"the corrected predictions of held-out rows add up to {self.total_:.3g} times their targets, "
            f"{abs(excess.sum()) / error:.0f} standard errors off. Use GTSRegressor, UnbiasedRegressor, or "
            'bias_correction="isotonic" or "multiplicative"',
            TotalWarning,
            stacklevel=3,
        )

    def _correct(self, point: Floats) -> Floats:
        with torch.no_grad():
            return np.asarray(self.correction_(to_tensor(point)).numpy())

    def _correction(self) -> Correction:
        if self.bias_correction is None:
            return TotalRatio()
        if isinstance(self.bias_correction, Correction):
            return self.bias_correction.unfitted()
        if self.bias_correction not in CORRECTIONS:
            names = ", ".join(CORRECTIONS)
            raise ValueError(f"bias_correction is a Correction, None or one of {names}, got {self.bias_correction!r}")
        return CORRECTIONS[self.bias_correction].unfitted()
