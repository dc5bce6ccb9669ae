"""Regressors of other libraries: how each takes weights, evaluation sets, early stopping and the name of its loss."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params, _num_samples, has_fit_parameter

from transun.estimators.pipelines import final_estimator, is_pipeline, with_final_estimator
from transun.support.arrays import Floats, Integers

Pairs = Sequence[tuple[Any, Any]]

# How libraries take an evaluation set: the parameters of `fit`, and their values for a list of pairs (X, y).
_EVALUATION: Sequence[tuple[tuple[str, ...], Callable[[Pairs], tuple[Any, ...]]]] = (
    (("eval_X", "eval_y"), lambda pairs: (tuple(x for x, _ in pairs), tuple(y for _, y in pairs))),  # LightGBM
    (("eval_set",), lambda pairs: (list(pairs),)),  # XGBoost, CatBoost
    (("X_val", "y_val"), lambda pairs: pairs[-1]),  # scikit-learn's histogram boosting
)

EVALUATION_PARAMETERS = frozenset(name for names, _ in _EVALUATION for name in names)
"""Every parameter of a `fit` that holds an evaluation set."""

# The weights of the rows of an evaluation set: the parameter of `fit`, and its value. CatBoost takes none.
_EVALUATION_WEIGHTS: Sequence[tuple[str, Callable[[Floats | None], Any]]] = (
    ("eval_sample_weight", lambda weight: [weight]),  # LightGBM
    ("sample_weight_eval_set", lambda weight: [weight]),  # XGBoost
    ("sample_weight_val", lambda weight: weight),  # scikit-learn's histogram boosting
)


@dataclass(frozen=True)
class _Stopping:
    """How a library is told to stop early by an evaluation set.

    Args:
        patience: the parameter that is the number of rounds without improvement.
        settings: other parameters that switch it on.
        unable: values of parameters with which it cannot, or is told not to.
        quiet: parameters of `fit` that keep the library from printing a line per round.

    """

    patience: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    unable: Mapping[str, Any] = field(default_factory=dict)
    quiet: Mapping[str, Any] = field(default_factory=dict)


# By the package of a regressor.
_STOPPING: Mapping[str, _Stopping] = {
    "lightgbm": _Stopping("early_stopping_round", unable={"boosting_type": "dart"}),
    "xgboost": _Stopping("early_stopping_rounds", unable={"booster": "gblinear"}, quiet={"verbose": False}),
    "catboost": _Stopping("early_stopping_rounds"),
    "sklearn": _Stopping("n_iter_no_change", {"early_stopping": True}, {"early_stopping": False}),
}

# By the package of a regressor: the parameters that may name its loss, and its names of the deviances.
_OBJECTIVES: Mapping[str, tuple[Sequence[str], Mapping[str, str]]] = {
    "lightgbm": (("objective",), {"poisson": "poisson", "gamma": "gamma", "tweedie": "tweedie"}),
    "xgboost": (("objective",), {"poisson": "count:poisson", "gamma": "reg:gamma", "tweedie": "reg:tweedie"}),
    "catboost": (("loss_function",), {"poisson": "Poisson", "tweedie": "Tweedie:variance_power=1.5"}),
    "sklearn": (("loss", "criterion"), {"poisson": "poisson", "gamma": "gamma"}),
}


@dataclass(frozen=True)
class Fitting:
    """How to fit clones of a regressor: with which parameters of `fit`, and with which evaluation sets.

    Args:
        regressor: the regressor that is cloned.
        params: parameters of its `fit`; those with one value per row are reduced to the rows that are fitted.
        evaluation: pairs of features and targets in the units that the regressor learns, for early stopping.
        evaluation_weight: the weights of the rows of a single evaluation set.

    """

    regressor: Any
    params: Mapping[str, Any] = field(default_factory=dict)
    evaluation: Pairs = ()
    evaluation_weight: Floats | None = None

    def __call__(self, X: Any, target: Floats, rows: Integers | None = None, emphasis: Floats | None = None) -> Any:
        """Fit a clone.

        Args:
            X: features of all rows.
            target: targets of the rows that are fitted.
            rows: the rows of X that are fitted; None fits every row once.
            emphasis: a factor of the weight of each of the fitted rows.

        """
        model, params = clone(self.regressor), dict(self.params)
        if rows is not None and not np.array_equal(rows, np.arange(_num_samples(X))):
            X, params = _safe_indexing(X, rows), _check_method_params(X, params, indices=rows)
        if emphasis is not None:
            name = weight_parameter(self.regressor)
            params[name] = emphasis * params.get(name, 1.0)
        return model.fit(X, target, **params, **self._evaluation_params())

    def with_evaluation(self, evaluation: Pairs) -> "Fitting":
        """The same with other evaluation sets."""
        return replace(self, evaluation=evaluation)

    def stopped_early(
        self, patience: int | None, X: Any, target: Floats, rows: Integers, emphasis: Floats | None = None
    ) -> "Fitting":
        """The same with early stopping by some of the rows, or unchanged if the regressor cannot stop early by them.

        Args:
            patience: the number of boosting rounds without improvement; None changes nothing.
            X: features of all rows.
            target: targets of all rows.
            rows: the rows to stop by.
            emphasis: a factor of the weight of each row, of all rows.

        """
        factors = [each[rows] for each in (self.params.get("sample_weight"), emphasis) if each is not None]
        stopping = _STOPPING.get(_package(self.regressor))
        if patience is None or stopping is None or not _takes_evaluation(self.regressor, weighted=bool(factors)):
            return self
        chosen = self.regressor.get_params()
        if any(chosen.get(name) == value for name, value in stopping.unable.items()):
            return self
        return replace(
            self,
            regressor=clone(self.regressor).set_params(**{stopping.patience: patience, **stopping.settings}),
            params={**stopping.quiet, **self.params},
            evaluation=[(_safe_indexing(X, rows), target[rows])],
            evaluation_weight=np.prod(factors, axis=0) if factors else None,
        )

    def _evaluation_params(self) -> dict[str, Any]:
        if not self.evaluation:
            return {}
        weight = self.evaluation_weight
        weights = {name: value(weight) for name, value in _EVALUATION_WEIGHTS if _takes(self.regressor, [name])}
        for names, values in _EVALUATION:
            if _takes(self.regressor, names):
                pairs = dict(zip(names, values(self.evaluation), strict=True))
                return pairs if weight is None else pairs | weights
        raise ValueError(f"the fit of {type(self.regressor).__name__} takes no evaluation set; leave out eval_set")


def evaluation_pairs(eval_set: Any) -> Pairs:
    """The pairs of an `eval_set`: one pair (X, y), or a list of them.

    >>> evaluation_pairs(([[1.0]], [2.0])), evaluation_pairs([([[1.0]], [2.0])])
    ([([[1.0]], [2.0])], [([[1.0]], [2.0])])
    """
    if eval_set is None:
        return []
    if isinstance(eval_set, tuple) and len(eval_set) == 2 and not _is_pair(eval_set[0]):
        return [eval_set]
    pairs = list(eval_set) if isinstance(eval_set, Sequence) else []
    if not pairs or not all(map(_is_pair, pairs)):
        raise ValueError("eval_set is one pair (X, y) or a list of such pairs")
    return pairs


def add_weights(regressor: Any, params: Mapping[str, Any], sample_weight: Any) -> dict[str, Any]:
    """The parameters of a regressor's `fit` together with the weights; an error if it takes no weights."""
    return dict(params) if sample_weight is None else {**params, weight_parameter(regressor): sample_weight}


def weight_parameter(regressor: Any) -> str:
    """The name of the weights in a regressor's `fit`; a pipeline passes them to its last step.

    >>> from sklearn.linear_model import LinearRegression; from sklearn.pipeline import make_pipeline
    >>> weight_parameter(LinearRegression()), weight_parameter(make_pipeline(LinearRegression()))
    ('sample_weight', 'linearregression__sample_weight')
    """
    if has_fit_parameter(regressor, "sample_weight") or get_config()["enable_metadata_routing"]:
        return "sample_weight"
    if is_pipeline(regressor):
        return f"{regressor.steps[-1][0]}__{weight_parameter(final_estimator(regressor))}"
    raise ValueError(
        f"the fit of {type(regressor).__name__} takes no sample_weight; use a regressor that does, leave the weights "
        "out, or switch on scikit-learn's metadata routing"
    )


def takes_weights(regressor: Any) -> bool:
    """Whether the `fit` of a regressor, or of a pipeline's last step, takes weights of the rows.

    >>> from sklearn.linear_model import LinearRegression; from sklearn.neighbors import KNeighborsRegressor
    >>> takes_weights(LinearRegression()), takes_weights(KNeighborsRegressor())
    (True, False)
    """
    return bool(has_fit_parameter(final_estimator(regressor), "sample_weight"))


def with_deviance(regressor: Any, deviance: str) -> Any | None:
    """A copy of the regressor that minimises the deviance, or None if it cannot; of a pipeline, the last step does.

    A regressor can if it has one of the parameters that its library names the loss by, and accepts the name.

    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from sklearn.linear_model import LinearRegression
    >>> with_deviance(HistGradientBoostingRegressor(), "poisson")
    HistGradientBoostingRegressor(loss='poisson')
    >>> with_deviance(LinearRegression(), "poisson") is None
    True
    """
    if is_pipeline(regressor):
        changed = with_deviance(final_estimator(regressor), deviance)
        return None if changed is None else with_final_estimator(regressor, changed)
    parameters, objectives = _OBJECTIVES.get(_package(regressor), ((), {}))
    params = regressor.get_params() if deviance in objectives else {}
    for parameter in parameters:
        if parameter in params and _is_allowed(regressor, parameter, objectives[deviance]):
            return clone(regressor).set_params(**{parameter: objectives[deviance]})
    return None


def _is_allowed(regressor: Any, parameter: str, value: str) -> bool:
    """Whether scikit-learn's constraints on a parameter allow the value; other libraries have no such constraints."""
    constraints = getattr(regressor, "_parameter_constraints", {}).get(parameter)
    return constraints is None or any(
        constraint.is_satisfied_by(value) for constraint in constraints if hasattr(constraint, "is_satisfied_by")
    )


def _package(regressor: Any) -> str:
    return type(regressor).__module__.partition(".")[0]


def _takes(regressor: Any, names: Sequence[str]) -> bool:
    return all(has_fit_parameter(regressor, name) for name in names)


def _takes_evaluation(regressor: Any, *, weighted: bool) -> bool:
    """Whether the `fit` of a regressor takes an evaluation set, with weights if need be."""
    if not any(_takes(regressor, names) for names, _ in _EVALUATION):
        return False
    return not weighted or any(_takes(regressor, [name]) for name, _ in _EVALUATION_WEIGHTS)


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2
