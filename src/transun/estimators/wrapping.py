"""What estimators around a regressor share: its tags, its checks of X and y, and where its fit parameters go."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils import Tags, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from transun.estimators.fitting import Fitting, weighted
from transun.estimators.target import checked

Array = NDArray[np.float64]


class Wrapping(MetaEstimatorMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor around the regressor(s) named in its parameters.

    X is handed on as it is: frames, lists, sparse matrices and missing values are the inner regressor's business.
    """

    regressor: Any

    def _inner(self) -> dict[str, Any]:
        """The regressors by the name of their parameter, defaults filled in."""
        return {"regressor": self._base()}

    def _base(self) -> Any:
        return HistGradientBoostingRegressor() if self.regressor is None else self.regressor

    def _positive_only(self) -> bool:
        """Whether negative targets are refused."""
        return False

    def _rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array | None]:
        """X, targets and weights of one length, with the names and number of features remembered."""
        target = checked(y, self)
        _require_table(X)
        X, target = indexable(X, target)
        validate_data(self, X, skip_check_array=True)
        if sample_weight is None:
            return X, target, None
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return X, target, weight

    def _features(self, X: Any) -> Any:
        check_is_fitted(self)
        _require_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return X

    def _fittings(self, sample_weight: Any, params: dict[str, Any]) -> dict[str, Fitting]:
        """How to fit each inner regressor, with the weights and parameters that are meant for it."""
        inner = self._inner()
        if get_config()["enable_metadata_routing"]:
            given = {**params, **({} if sample_weight is None else {"sample_weight": sample_weight})}
            routed = process_routing(self, "fit", **given)
            return {name: Fitting(regressor, routed[name].fit) for name, regressor in inner.items()}
        return {name: Fitting(each, weighted(each, params, sample_weight)) for name, each in inner.items()}

    def get_metadata_routing(self) -> MetadataRouter:
        """Where weights and other metadata go: to the `fit` of every inner regressor that requests them."""
        router = MetadataRouter(owner=self)
        for name, regressor in self._inner().items():
            router.add(**{name: regressor}, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        return router

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = [get_tags(regressor) for regressor in self._inner().values()]
        tags.input_tags.allow_nan = all(each.input_tags.allow_nan for each in inner)
        tags.input_tags.sparse = all(each.input_tags.sparse for each in inner)
        tags.target_tags.positive_only = self._positive_only()
        tags.regressor_tags.poor_score = any(each.regressor_tags.poor_score for each in inner if each.regressor_tags)
        return tags


def _require_table(X: Any) -> None:
    if len(getattr(X, "shape", (0, 0))) == 1:
        raise ValueError(
            "Expected a 2D array of rows and features, got a 1D array. Reshape your data: X.reshape(-1, 1) for a "
            "single feature, X.reshape(1, -1) for a single row"
        )
