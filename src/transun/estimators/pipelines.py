"""Pipelines of scikit-learn and of libraries that imitate it: the estimator at their end."""

from typing import Any

from sklearn.base import clone

__all__ = ["final_estimator", "is_pipeline", "with_final_estimator"]


def is_pipeline(model: Any) -> bool:
    """Whether a model consists of named steps, of which the last one predicts."""
    return hasattr(model, "steps")


def final_estimator(model: Any) -> Any:
    """The estimator that predicts: the last step of a pipeline, or the model itself.

    >>> from sklearn.linear_model import LinearRegression; from sklearn.pipeline import make_pipeline
    >>> final_estimator(make_pipeline(LinearRegression())), final_estimator(LinearRegression())
    (LinearRegression(), LinearRegression())
    """
    return model.steps[-1][1] if is_pipeline(model) else model


def with_final_estimator(pipeline: Any, estimator: Any) -> Any:
    """A copy of a pipeline that ends with another estimator."""
    return clone(pipeline).set_params(**{pipeline.steps[-1][0]: estimator})
