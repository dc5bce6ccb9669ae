"""The base classes of estimators around a regressor of another library, and around one that learns T(y)."""

import copy
import warnings
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils import Tags, _safe_indexing, get_tags, indexable
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import _check_method_params, _num_samples, check_is_fitted, validate_data

from transun.data.exposure import to_rates
from transun.data.frames import pandas_frame
from transun.estimators.compact import CompactRegressor, Distillation, FoldTeacher
from transun.estimators.composition import Composition
from transun.estimators.cross_fitting import OutOfFold, predict_1d, split_rows
from transun.estimators.exposure import check_exposure, to_amounts
from transun.estimators.fitting import Fitting, add_weights, evaluation_pairs
from transun.estimators.intervals import IntervalMixin
from transun.estimators.target import apply_transform, check_target, check_weight, positive_only
from transun.estimators.wrapped import transforms_target, without_target_transform
from transun.support.arrays import Floats, refuse_reordered
from transun.transforms import Transform

_PREFIT = "prefit"
# How many times `compact` fits an estimator again unless it is told otherwise: each time to two thirds of the rows.
_AGREEMENT_FOLDS = 3


class FitWarning(UserWarning):
    """A fit ended, and something is to be known about its result; subclasses say what."""


class MetaRegressor(IntervalMixin, MetaEstimatorMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor around the regressor or regressors among its parameters.

    Frames of any library are passed on as pandas frames, anything else unchanged: whether lists, sparse matrices and
    missing values are allowed is decided by the inner regressor.
    """

    regressor: Any
    cv: Any
    random_state: Any
    by_exposure_: bool = False

    # What scikit-learn's own check of parameters allows; `cv` is checked where rows are split.
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "regressor": [HasMethods(["fit", "predict"]), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def _inner_regressors(self) -> dict[str, Any]:
        """The inner regressors by the name of their parameter, with defaults filled in."""
        return {"regressor": self._base_regressor()}

    def composition(self) -> Composition:
        """The fitted models, and how a prediction is made of theirs: what is exported. Per unit of exposure, if any."""
        raise NotImplementedError(f"{type(self).__name__} has no graph")

    def compact(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        exposure: Any = None,
        *,
        regressor: Any = None,
        cv: Any = None,
        fit_params: Mapping[str, Any] | None = None,
    ) -> CompactRegressor:
        """One regressor that imitates this estimator: one model to serve in place of several.

        A regressor, the student, learns the predictions of this estimator, the teacher; they have no noise. It learns
        by Tweedie or Poisson deviance where it can, and is balanced to the same total. How near it comes is measured on
        rows that neither of the two has seen; print `agreement`. Between them, the models of an estimator have seen all
        rows, so for each fold of `cv` the estimator is fitted again to the other rows, and a student learns from that
        fit. `UnbiasedRegressor` has models without each of its folds already, and is not fitted again.

        Args:
            X: the rows that the estimator was fitted to.
            y: their targets.
            sample_weight: their weights.
            exposure: their exposures.
            regressor: the student; by default the regressor of the estimator, without what transforms its target. As it
                learns no noise, more rounds and leaves make it better.
            cv: the folds, or a splitter, on whose rows the agreement is measured. Each costs one fit of the whole
                estimator and one of the student; a last student learns from all rows. None means three folds, and for
                `UnbiasedRegressor` those of its own models.
            fit_params: further parameters of the `fit` of this estimator, such as groups, for the fits without a fold.

        >>> from sklearn.tree import DecisionTreeRegressor
        >>> X, y = [[0], [1]] * 30, [1.0, 100.0] * 15 + [3.0, 300.0] * 15
        >>> model = transun.GTSRegressor(DecisionTreeRegressor(), random_state=0).fit(X, y)
        >>> small = model.compact(X, y)  # a tree of its own knows both values of x, and all that the model says of them
        >>> len(model.composition().models), len(small.composition().models)
        (6, 1)
        >>> bool(np.allclose(small.predict([[0], [1]]), model.predict([[0], [1]])))
        True

        """
        check_is_fitted(self)
        if self.by_exposure_ == (exposure is None):
            raise ValueError(
                "compact needs the exposures of the rows: the fit had some"
                if self.by_exposure_
                else "compact takes no exposure here: the fit had none"
            )
        X, target, weight = self._check_exposed_rows(X, y, sample_weight, exposure, reset=False)
        student = self._untransformed_regressor() if regressor is None else regressor
        params = {"sample_weight": sample_weight, "exposure": exposure, **(fit_params or {})}
        params = {name: value for name, value in params.items() if value is not None}
        by_fold = self._fold_teachers(X, check_target(y, self), params, cv)
        distillation = Distillation(X, target, weight, self._predict_rates(X), by_fold)
        return distillation.distil(student, by_exposure=self.by_exposure_)

    def _fold_teachers(self, X: Any, y: Floats, params: dict[str, Any], cv: Any) -> list[FoldTeacher]:
        """For each fold, what this estimator predicts after a fit to the other rows.

        Args:
            X: features.
            y: targets, in their own units.
            params: parameters of `fit`.
            cv: folds or a splitter; None means the default.

        """
        if not (self.cv is None or isinstance(self.cv, (str, Integral)) or hasattr(self.cv, "split")):
            raise ValueError(
                f"cv of this {type(self).__name__} lists the rows of its splits, and compact fits it again to fewer "
                "rows: give it a number of folds or a splitter"
            )
        teachers = []
        folds = _AGREEMENT_FOLDS if cv is None else cv
        for fitted, held_out in split_rows(folds, X, y, self.random_state, params.get("groups")):
            of_rows = _check_method_params(X, params, indices=fitted)
            # A copy has the same parameters, and a regressor that was trained before stays trained.
            teacher = copy.copy(self)
            with warnings.catch_warnings():
                # The fit to all rows has said what is to be known about the estimator; its copies are thrown away.
                warnings.simplefilter("ignore", FitWarning)
                teacher.fit(_safe_indexing(X, fitted), y[fitted], **of_rows)
            teachers.append(FoldTeacher(fitted, held_out, teacher._predict_rates(X)))
        return teachers

    def _predict_rates(self, X: Any) -> Floats:
        """Predictions (n,), per unit of exposure after a fit with exposures."""
        params = {"exposure": np.ones(_num_samples(X))} if self.by_exposure_ else {}
        return np.asarray(self.predict(X, **params))

    def _untransformed_regressor(self) -> Any:
        """The regressor without what transforms its target, which would make it biased."""
        return without_target_transform(self._base_regressor(), self._default_regressor())

    def _base_regressor(self) -> Any:
        return self._default_regressor() if self.regressor is None else self.regressor

    def _default_regressor(self) -> Any:
        """The regressor that None means."""
        return HistGradientBoostingRegressor()

    def _positive_only(self) -> bool:
        """Whether negative targets are refused."""
        return False

    def _check_training_rows(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True
    ) -> tuple[Any, Floats, Floats | None]:
        """X, targets and weights of one length; names and number of features are stored, or compared if not `reset`."""
        self._require_parameters()
        refuse_reordered(X=X, y=y, sample_weight=sample_weight)
        target, X = check_target(y, self), pandas_frame(X)
        _require_table(X)
        X, target = indexable(X, target)
        validate_data(self, X, reset=reset, skip_check_array=True)
        return X, target, check_weight(sample_weight, len(target))

    def _require_parameters(self) -> None:
        """Refuse a parameter that is no such thing, before any work."""
        self._validate_params()
        for name, regressor in self._inner_regressors().items():
            kind = get_tags(regressor).estimator_type
            if kind not in (None, "regressor"):
                raise ValueError(f"{name} is {type(regressor).__name__}, a {kind}: amounts need a regressor")

    def _check_exposed_rows(
        self, X: Any, y: Any, sample_weight: Any, exposure: Any, *, reset: bool = True
    ) -> tuple[Any, Floats, Floats | None]:
        """The same where y may be an amount over an exposure: the targets are then rates, and exposures weigh them."""
        X, target, weight = self._check_training_rows(X, y, sample_weight, reset=reset)
        self.by_exposure_ = exposure is not None
        if exposure is None:
            return X, target, weight
        return (X, *to_rates(target, weight, check_exposure(exposure, len(target))))

    def _check_evaluation(self, eval_set: Any) -> list[tuple[Any, Floats]]:
        """The pairs of features and targets of an `eval_set`."""
        return [(pandas_frame(X), check_target(y, self)) for X, y in evaluation_pairs(eval_set)]

    def _to_amounts(self, rates: Floats, exposure: Any) -> Floats:
        """Predicted amounts of rows with these exposures."""
        return to_amounts(rates, exposure, by_exposure=self.by_exposure_)

    def _check_features(self, X: Any) -> Any:
        check_is_fitted(self)
        X = pandas_frame(X)
        _require_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return X

    def _fittings(self, sample_weight: Any, params: dict[str, Any]) -> dict[str, Fitting]:
        """How to fit each inner regressor, with the weights and parameters that are routed to it."""
        inner = self._inner_regressors()
        if get_config()["enable_metadata_routing"]:
            metadata = {**params, **({} if sample_weight is None else {"sample_weight": sample_weight})}
            routed = process_routing(self, "fit", **metadata)
            return {name: Fitting(regressor, routed[name].fit) for name, regressor in inner.items()}
        return {
            name: Fitting(regressor, add_weights(regressor, params, sample_weight)) for name, regressor in inner.items()
        }

    def get_metadata_routing(self) -> MetadataRouter:
        """Where weights and other metadata go: to the `fit` of every inner regressor that requests them."""
        router = MetadataRouter(owner=self)
        for name, regressor in self._inner_regressors().items():
            router.add(**{name: regressor}, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        return router

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = [get_tags(regressor) for regressor in self._inner_regressors().values()]
        tags.input_tags.allow_nan = all(each.input_tags.allow_nan for each in inner)
        tags.input_tags.sparse = all(each.input_tags.sparse for each in inner)
        tags.target_tags.positive_only = self._positive_only()
        tags.regressor_tags.poor_score = any(each.regressor_tags.poor_score for each in inner if each.regressor_tags)
        return tags


class TransformedTargetBase(MetaRegressor):
    """A regressor around regressors of T(y) that are cross-fitted, fitted in-sample or trained before, as `cv` says."""

    target_transform: Transform
    transform_: Transform
    n_jobs: int | None
    regressors_: list[Any]
    shares_: Floats

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MetaRegressor._parameter_constraints,
        "target_transform": [Transform],
    }

    def _fit_points(
        self, fitting: Fitting, X: Any, y: Floats, evaluation: list[tuple[Any, Floats]], groups: Any
    ) -> OutOfFold:
        """The models of T(y) with their points u for the rows that they were not fitted to."""
        if isinstance(self.cv, str):
            require_prefit(self.cv, fitting.regressor)
            point = predict_1d(fitting.regressor, X)
            _warn_about_units(point, y, self.transform_)
            return OutOfFold([fitting.regressor], [np.arange(len(y))], [point])
        if transforms_target(fitting.regressor) and not np.array_equal(self._transform(y), y):
            raise ValueError(
                f"{type(fitting.regressor).__name__} transforms its target already: give {type(self).__name__} the "
                "regressor inside it, or target_transform=Identity()"
            )
        fitting = fitting.with_evaluation([(features, self._transform(target)) for features, target in evaluation])
        folds = split_rows(self.cv, X, y, self.random_state, groups)
        return OutOfFold.fit(fitting, X, self._transform(y), folds, self.n_jobs)

    def _mean_over_models(self, X: Any, function: Callable[[Floats], Floats]) -> Floats:
        """The mean over the models of a function of their points, weighted by their shares."""
        pairs = zip(self.regressors_, self.shares_, strict=True)
        return np.asarray(sum(share * function(predict_1d(model, X)) for model, share in pairs))

    def _transform(self, y: Floats) -> Floats:
        return apply_transform(y, self.transform_)

    def _positive_only(self) -> bool:
        return positive_only(self.target_transform)


def require_prefit(cv: str, regressor: Any) -> None:
    """Raise an error if a text is not the one that stands for a trained regressor, or if the regressor is not trained.

    >>> require_prefit("folds", None)
    Traceback (most recent call last):
    ValueError: cv is a number of folds, a splitter, None or 'prefit', got 'folds'
    """
    if cv != _PREFIT:
        raise ValueError(f"cv is a number of folds, a splitter, None or {_PREFIT!r}, got {cv!r}")
    check_is_fitted(regressor)


def _require_table(X: Any) -> None:
    shapeless = isinstance(X, Mapping) and not hasattr(X, "shape")  # some sparse matrices are mappings, too
    if shapeless or getattr(getattr(X, "dtype", None), "names", None):
        raise ValueError(f"X is a {type(X).__name__} of named columns, not a table: pass pandas.DataFrame(X)")
    if len(getattr(X, "shape", (0, 0))) == 1:
        raise ValueError(
            "Expected a 2D array of rows and features, got a 1D array. Reshape your data: X.reshape(-1, 1) for a "
            "single feature, X.reshape(1, -1) for a single row"
        )


def _warn_about_units(point: Floats, y: Floats, transform: Transform) -> None:
    if np.abs(point - apply_transform(y, transform)).mean() > np.abs(point - y).mean():
        warnings.warn(
            f"the trained regressor's predictions are closer to y than to T(y) of {transform!r}: if it predicts in "
            "units of the target, pass target_transform=Identity()",
            stacklevel=4,
        )
