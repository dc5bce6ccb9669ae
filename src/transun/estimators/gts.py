"""Generalized TranSUN around any regressor, cross-fitted."""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from transun.estimators.fitting import pairs
from transun.estimators.folds import speak
from transun.estimators.support import Support
from transun.estimators.target import checked, slope_at, tensor
from transun.estimators.transformed import Transformed
from transun.schemes import PowerVariance, Slope
from transun.transforms import Log1p, Transform

Array = NDArray[np.float64]


class AmplificationWarning(UserWarning):
    """Some ratios z / κ lay outside the targets that the training rows showed at their slope."""


class GTSRegressor(Transformed):
    """ŷ(x) = z(x) / κ̄(x): one regressor learns T(y), a second one y·κ(u), and the ratio estimates E[y|x].

    A regressor trained on T(y) and inverted predicts too little (or too much), by Jensen's inequality. Here its
    point u only sets the scale κ(u) on which a second regressor learns y itself, so the noise is tame and the mean is
    kept. u must not have seen the y that it scales: the rows are split into folds, u comes from models of the other
    folds, and a prediction divides by the mean over those models of κ(u_k(x)). In the population that is exactly
    unbiased, because E[y·κ(u_k(x)) | x] = E[y|x]·κ(u_k(x)) for every fold; with u from its own training rows it is
    not.

    Args:
        regressor: anything with `fit` and `predict`; histogram gradient boosting by default.
        bias_regressor: what learns y·κ; a copy of `regressor` by default.
        target_transform: T. `Identity()` with ``cv="prefit"`` for a model that predicts in units of the target.
        slope: κ; `PowerVariance(1.0)` by default. A larger power evens out noise that grows with the amount, and
            amplifies errors of z where u is large: on heavy tails 2 can double the error, 0 is plain least squares.
        emphasis: each row counts κ^-emphasis when z is fitted. 0 is the published method; 1 with a bias regressor of
            Poisson deviance makes it the deviance of y itself with κ as an offset, which keeps totals; 2 with
            squares is plain least squares. Above 0 the bias regressor must take `sample_weight`.
        cv: folds, a splitter or an iterable of splits; one fit of the regressor each, and one of the bias regressor.
            None takes u from the training rows: two fits in all, and biased by what u has memorised.
            "prefit": `regressor` is trained already, on other rows; `fit` only trains the bias regressor.
        n_jobs: folds fitted at the same time.
        random_state: of the shuffling into folds.

    Attributes:
        regressors_: the models of T(y), one per fold.
        shares_: what each of them counts in κ̄.
        bias_regressor_: the model of y·κ.
        transform_: T with its bounds learned from the targets.
        support_: the guard against amplification; see `Support`. Where it steps in, `predict` warns.

    >>> X, y = [[0]] * 4 + [[1]] * 4, [1.0, 1.0, 9.0, 9.0] + [25.0, 25.0, 81.0, 81.0]
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> GTSRegressor(DecisionTreeRegressor(), target_transform=Power(0.5), cv=None).fit(X, y).predict([[0], [1]])
    array([ 5., 53.])

    Without z the same tree would predict the squares of mean roots, 4 and 49.

    """

    def __init__(
        self,
        regressor: Any = None,
        bias_regressor: Any = None,
        *,
        target_transform: Transform = Log1p(),
        slope: Slope | None = None,
        emphasis: float = 0.0,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.regressor = regressor
        self.bias_regressor = bias_regressor
        self.target_transform = target_transform
        self.slope = slope
        self.emphasis = emphasis
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, eval_set: Any = None, **fit_params: Any) -> Self:
        """Fit the models of T(y), then the model of y·κ.

        Args:
            X: features, in any form that the regressors take.
            y: targets, in their own units.
            sample_weight: what each row counts, for both regressors.
            eval_set: a pair (X, y) or a list of pairs in units of y, for regressors that stop early by one. Each
                regressor gets its targets in its own units.
            fit_params: for the `fit` of both regressors, or routed as scikit-learn's metadata routing says.

        """
        X, target, weight = self._rows(X, y, sample_weight)
        self.transform_ = self.target_transform.prepare(tensor(target))
        fittings = self._fittings(weight, fit_params)
        evaluation = [(features, checked(values, self)) for features, values in pairs(eval_set)]
        held = self._points(fittings["regressor"], X, target, evaluation)
        self.regressors_, self.shares_ = list(held.models), held.shares(weight)
        rows, slopes = held.order, self._slope_at(held.point)
        scaled = [(features, values * self._mean(features, self._slope_at)) for features, values in evaluation]
        bias = fittings["bias_regressor"].watching(scaled)
        emphasis = slopes**-self.emphasis if self.emphasis else None
        self.bias_regressor_ = bias(X, target[rows] * slopes, rows, emphasis)
        self.support_ = Support.of(slopes, target[rows], None if weight is None else weight[rows])
        return self

    def predict(self, X: Any) -> Array:
        """Estimates of E[y|x], (n,)."""
        X = self._features(X)
        pred, outside = self.support_(speak(self.bias_regressor_, X), self._mean(X, self._slope_at))
        if outside.any():
            warnings.warn(
                f"{int(outside.sum())} of {len(pred)} ratios z/κ lie outside the training targets seen at their slope; "
                "they are replaced by the mean ratio there. If it is many, use a slope of smaller power, such as "
                "PowerVariance(0.5), or UnbiasedRegressor",
                AmplificationWarning,
                stacklevel=2,
            )
        return pred

    def _slope_at(self, point: Array) -> Array:
        return slope_at(point, PowerVariance(1.0) if self.slope is None else self.slope, self.transform_)

    def _inner(self) -> dict[str, Any]:
        base = self._base()
        return {"regressor": base, "bias_regressor": base if self.bias_regressor is None else self.bias_regressor}
