"""Regressors that wrap a regressor: whether they transform its target, and what is inside."""

from typing import Any

from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression

from transun.estimators.pipelines import final_estimator, is_pipeline, with_final_estimator

# The names by which estimators of this package take transforms of the target.
_PARAMETERS = {"target_transform", "target_transforms"}


def transforms_target(regressor: Any) -> bool:
    """Whether a regressor, or one inside it, learns a transform of the target.

    >>> from sklearn.pipeline import make_pipeline
    >>> transforms_target(make_pipeline(TransformedTargetRegressor())), transforms_target(LinearRegression())
    (True, False)
    """
    params = regressor.get_params() if hasattr(regressor, "get_params") and not isinstance(regressor, type) else {}
    return any(map(_is_wrapper, (regressor, *params.values())))


def without_target_transform(regressor: Any, default: Any) -> Any:
    """The regressor inside what transforms its target; of a pipeline, the same pipeline with such a last step.

    What learns on a transformed scale is biased on the original one, which is why z and the candidates of the automatic
    choice learn without it. In a search or a vote it cannot be taken off: an error says what to pass instead. Of a
    `FrozenEstimator`, whose `fit` does nothing, it is the regressor inside.

    Args:
        regressor: any regressor.
        default: what an estimator of this package wraps if it was given no regressor.

    >>> without_target_transform(TransformedTargetRegressor(LinearRegression()), None)
    LinearRegression()

    """
    if isinstance(regressor, FrozenEstimator):
        return without_target_transform(regressor.estimator, default)
    if not transforms_target(regressor):
        return regressor
    if _is_wrapper(regressor):
        inside = regressor.regressor
        if inside is None:
            return LinearRegression() if isinstance(regressor, TransformedTargetRegressor) else default
        return without_target_transform(inside, default)
    if is_pipeline(regressor):
        inside = without_target_transform(final_estimator(regressor), default)
        return with_final_estimator(regressor, inside)
    raise ValueError(
        f"{type(regressor).__name__} holds a regressor that transforms its target, whose predictions are biased: pass "
        "one that holds the regressor inside instead"
    )


def _is_wrapper(value: Any) -> bool:
    if isinstance(value, TransformedTargetRegressor):
        return True
    return hasattr(value, "get_params") and not isinstance(value, type) and bool(_PARAMETERS & set(vars(value)))
