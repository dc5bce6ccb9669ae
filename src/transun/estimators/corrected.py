"""Post-hoc corrections around any regressor, learned out of fold."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from transun.corrections import (
    Correction,
    NormalTheory,
    SecondOrder,
    Smearing,
    SmoothIsotonic,
    TotalRatio,
    TotalShift,
)
from transun.estimators.fitting import pairs
from transun.estimators.target import checked, tensor
from transun.estimators.transformed import Transformed
from transun.transforms import Log1p, Transform

Array = NDArray[np.float64]

#: Corrections by name; the last three names are those of scikit-learn's proposal for `TransformedTargetRegressor`.
NAMED: Mapping[str, Correction] = {
    "smearing": Smearing(),
    "normal": NormalTheory(),
    "isotonic": SmoothIsotonic(),
    "multiplicative": TotalRatio(),
    "additive": TotalShift(),
    "taylor": SecondOrder(),
}


class CorrectedRegressor(Transformed):
    """ŷ(x) = mean over folds k of C(u_k(x)): regressors learn T(y), a correction C learns y from held-out points u.

    What people do today about retransformation bias, done right: the residuals that the correction learns from are of
    rows that the model did not see. On training rows they are too small, and the correction with them. It sees x
    only through u, so where the noise depends on x otherwise it is right in total and wrong by segment;
    `GTSRegressor` is not.

    Args:
        regressor: anything with `fit` and `predict`; histogram gradient boosting by default.
        target_transform: T. `Identity()` with ``cv="prefit"`` for a model that predicts in units of the target.
        bias_correction: "smearing", "normal" (theory), "isotonic", scikit-learn's "multiplicative", "additive" and
            "taylor", or a `Correction` with arguments of its own such as `BinnedSmearing(20)`. None corrects nothing.
        cv: folds, a splitter or an iterable of splits, one fit each. None learns from training rows, as the
            proposal does. "prefit": `regressor` is trained already, on other rows; only the correction is learned.
        n_jobs: folds fitted at the same time.
        random_state: of the shuffling into folds.

    Attributes:
        regressors_: the models of T(y), one per fold.
        shares_: what each of them counts.
        correction_: the fitted correction.
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, eval_set: Any = None, **fit_params: Any) -> Self:
        """Fit the models of T(y), then the correction; the arguments are those of `GTSRegressor.fit`."""
        X, target, weight = self._rows(X, y, sample_weight)
        self.transform_ = self.target_transform.prepare(tensor(target))
        evaluation = [(features, checked(values, self)) for features, values in pairs(eval_set)]
        held = self._points(self._fittings(weight, fit_params)["regressor"], X, target, evaluation)
        self.regressors_, self.shares_ = list(held.models), held.shares(weight)
        rows = held.order
        correction = self._correction().double()
        # An unfitted correction is T⁻¹ alone.
        self.correction_ = correction.on(self.transform_)
        if self.bias_correction is not None:
            self.correction_ = correction.fit(
                tensor(held.point),
                tensor(target[rows]),
                self.transform_,
                None if weight is None else tensor(weight[rows]),
            )
        return self

    def predict(self, X: Any) -> Array:
        """Estimates of E[y|x], (n,)."""
        return self._mean(self._features(X), self._corrected)

    def _corrected(self, point: Array) -> Array:
        with torch.no_grad():
            return np.asarray(self.correction_(tensor(point)).numpy())

    def _correction(self) -> Correction:
        if self.bias_correction is None:
            return TotalRatio()
        if isinstance(self.bias_correction, Correction):
            return self.bias_correction.unfitted()
        if self.bias_correction not in NAMED:
            raise ValueError(
                f"bias_correction is a Correction, None or one of {', '.join(NAMED)}, got {self.bias_correction!r}"
            )
        return NAMED[self.bias_correction].unfitted()
