"""Which regressors can minimise a deviance instead of squares, and how they are told so."""

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.base import clone

# By the package that a regressor comes from: the parameters that may name its loss, and the names.
_SPOKEN: Mapping[str, tuple[Sequence[str], Mapping[str, str]]] = {
    "lightgbm": (("objective",), {"poisson": "poisson", "gamma": "gamma", "tweedie": "tweedie"}),
    "xgboost": (("objective",), {"poisson": "count:poisson", "gamma": "reg:gamma", "tweedie": "reg:tweedie"}),
    "catboost": (("loss_function",), {"poisson": "Poisson", "tweedie": "Tweedie:variance_power=1.5"}),
    "sklearn": (("loss", "criterion"), {"poisson": "poisson", "gamma": "gamma"}),
}


def with_deviance(regressor: Any, deviance: str) -> Any | None:
    """A copy of the regressor that minimises the deviance, or None where it cannot; a pipeline asks its last step.

    Asked by setting the parameter: a regressor without it, or that does not know the name, cannot.

    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from sklearn.linear_model import LinearRegression
    >>> with_deviance(HistGradientBoostingRegressor(), "poisson")
    HistGradientBoostingRegressor(loss='poisson')
    >>> with_deviance(LinearRegression(), "poisson") is None
    True
    """
    if hasattr(regressor, "steps"):
        name, last = regressor.steps[-1]
        changed = with_deviance(last, deviance)
        return None if changed is None else clone(regressor).set_params(**{name: changed})
    parameters, names = _SPOKEN.get(type(regressor).__module__.partition(".")[0], ((), {}))
    known = regressor.get_params() if deviance in names else {}
    for parameter in parameters:
        if parameter in known and _allowed(regressor, parameter, names[deviance]):
            return clone(regressor).set_params(**{parameter: names[deviance]})
    return None


def _allowed(regressor: Any, parameter: str, value: str) -> bool:
    """Whether scikit-learn's own constraints, where a regressor has them, allow the value."""
    constraints = getattr(regressor, "_parameter_constraints", {}).get(parameter)
    return constraints is None or any(
        each.is_satisfied_by(value) for each in constraints if hasattr(each, "is_satisfied_by")
    )
