"""Fitting somebody else's regressor: weights, fit parameters and evaluation sets find their way to it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params, _num_samples, has_fit_parameter

Array = NDArray[np.float64]
Pairs = Sequence[tuple[Any, Any]]

# How libraries take an evaluation set: the parameters of `fit`, and their values for a list of pairs.
_EVALUATION: Sequence[tuple[tuple[str, ...], Callable[[Pairs], tuple[Any, ...]]]] = (
    (("eval_X", "eval_y"), lambda pairs: (tuple(x for x, _ in pairs), tuple(y for _, y in pairs))),  # LightGBM
    (("eval_set",), lambda pairs: (list(pairs),)),  # XGBoost, CatBoost
    (("X_val", "y_val"), lambda pairs: pairs[-1]),  # scikit-learn's histogram boosting
)


@dataclass(frozen=True)
class Fitting:
    """How to fit clones of a regressor: with which parameters of `fit`, and with which evaluation sets.

    Args:
        regressor: what is cloned.
        params: parameters of its `fit`; those with one value a row are cut to the rows that are fitted.
        evaluation: pairs of features and targets in the regressor's own units, for early stopping.

    """

    regressor: Any
    params: Mapping[str, Any] = field(default_factory=dict)
    evaluation: Pairs = ()

    def __call__(
        self, X: Any, target: Array, rows: NDArray[np.int64] | None = None, emphasis: Array | None = None
    ) -> Any:
        """A clone fitted to these rows of X, which have these targets; None means every row, once.

        `emphasis` multiplies the weight of each of the rows.
        """
        model, params = clone(self.regressor), dict(self.params)
        if rows is not None and not np.array_equal(rows, np.arange(_num_samples(X))):
            X, params = _safe_indexing(X, rows), _check_method_params(X, params, indices=rows)
        if emphasis is not None:
            name = weight_name(self.regressor)
            params[name] = emphasis * params.get(name, 1.0)
        return model.fit(X, target, **params, **self._evaluation())

    def watching(self, evaluation: Pairs) -> "Fitting":
        """The same with other evaluation sets."""
        return replace(self, evaluation=evaluation)

    def _evaluation(self) -> dict[str, Any]:
        if not self.evaluation:
            return {}
        for names, values in _EVALUATION:
            if all(has_fit_parameter(self.regressor, name) for name in names):
                return dict(zip(names, values(self.evaluation), strict=True))
        raise ValueError(f"the fit of {type(self.regressor).__name__} takes no evaluation set; leave out eval_set")


def pairs(eval_set: Any) -> Pairs:
    """The pairs of an `eval_set`: one pair (X, y), or a list of them.

    >>> pairs(([[1.0]], [2.0])), pairs([([[1.0]], [2.0])])
    ([([[1.0]], [2.0])], [([[1.0]], [2.0])])
    """
    if eval_set is None:
        return []
    if isinstance(eval_set, tuple) and len(eval_set) == 2 and not _is_pair(eval_set[0]):
        return [eval_set]
    found = list(eval_set)
    if not all(_is_pair(pair) for pair in found):
        raise ValueError("eval_set is one pair (X, y) or a list of such pairs")
    return found


def weighted(regressor: Any, params: Mapping[str, Any], sample_weight: Any) -> dict[str, Any]:
    """The parameters of a regressor's `fit` with the weights among them, or an error if it takes none."""
    return dict(params) if sample_weight is None else {**params, weight_name(regressor): sample_weight}


def weight_name(regressor: Any) -> str:
    """What a regressor's `fit` calls the weights; a pipeline takes them for its last step.

    >>> from sklearn.linear_model import LinearRegression; from sklearn.pipeline import make_pipeline
    >>> weight_name(LinearRegression()), weight_name(make_pipeline(LinearRegression()))
    ('sample_weight', 'linearregression__sample_weight')
    """
    if has_fit_parameter(regressor, "sample_weight") or get_config()["enable_metadata_routing"]:
        return "sample_weight"
    if hasattr(regressor, "steps"):
        name, last = regressor.steps[-1]
        return f"{name}__{weight_name(last)}"
    raise ValueError(
        f"the fit of {type(regressor).__name__} takes no sample_weight; use a regressor that does, leave the weights "
        "out, or switch on scikit-learn's metadata routing"
    )


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2
