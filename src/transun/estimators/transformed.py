"""What estimators around a regressor of T(y) share: T, the folds, and points that have not seen their targets."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from transun.estimators.fitting import Fitting
from transun.estimators.folds import Held, cross_fit, speak, splits
from transun.estimators.target import positive_only, transformed
from transun.estimators.wrapping import Wrapping
from transun.transforms import Transform

Array = NDArray[np.float64]

PREFIT = "prefit"


class Transformed(Wrapping):
    """A regressor whose inner regressor learns T(y), cross-fitted, in-sample or trained before."""

    target_transform: Transform
    transform_: Transform
    cv: Any
    n_jobs: int | None
    random_state: Any
    regressors_: list[Any]
    shares_: Array

    def _points(self, fitting: Fitting, X: Any, y: Array, evaluation: list[tuple[Any, Array]]) -> Held:
        """The models of T(y) and what they say about rows they have not seen, as `cv` asks."""
        if isinstance(self.cv, str):
            if self.cv != PREFIT:
                raise ValueError(f"cv is a number of folds, a splitter, None or {PREFIT!r}, got {self.cv!r}")
            check_is_fitted(fitting.regressor)
            point = speak(fitting.regressor, X)
            _warn_of_units(point, y, self.transform_)
            return Held([fitting.regressor], [np.arange(len(y))], [point])
        watched = [(features, transformed(values, self.transform_)) for features, values in evaluation]
        folds = splits(self.cv, X, y, self.random_state)
        return cross_fit(fitting.watching(watched), X, transformed(y, self.transform_), folds, self.n_jobs)

    def _mean(self, X: Any, meaning: Callable[[Array], Array]) -> Array:
        """The mean over the models of a function of their points, each counted by its share."""
        each = (share * meaning(speak(model, X)) for model, share in zip(self.regressors_, self.shares_, strict=True))
        return np.asarray(sum(each))

    def _positive_only(self) -> bool:
        return positive_only(self.target_transform)


def _warn_of_units(point: Array, y: Array, transform: Transform) -> None:
    if np.abs(point - transformed(y, transform)).mean() > np.abs(point - y).mean():
        warnings.warn(
            f"the trained regressor's predictions are closer to y than to T(y) of {transform!r}: if it predicts in "
            "units of the target, pass target_transform=Identity()",
            stacklevel=4,
        )
