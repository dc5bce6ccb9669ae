"""Boosted trees of several libraries, with early stopping by the validation rows, and a baseline without features."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np

from transun.data.table import as_numbers, column_array
from transun.estimators import GTSRegressor, UnbiasedRegressor
from transun.support.arrays import Floats
from transun.support.extras import need
from transun_paper.board.frames import Frames
from transun_paper.board.method import NOTHING, BoardMethod, FitResult, Stopwatch
from transun_paper.board.tables import TableSplit
from transun_paper.lab.boosters import quiet

# One setting for all libraries: small steps, as many as the validation rows allow.
RATE, TREES, PATIENCE = 0.05, 3_000, 50
# scikit-learn's trees take at most so many categories in a column.
_MOST_CATEGORIES = 255


def rmse(pred: Floats, y: Floats) -> float:
    """The root mean squared error, by which every library stops and every choice is made.

    >>> rmse(np.array([0.0, 4.0]), np.array([2.0, 2.0]))
    2.0
    """
    return float(np.sqrt(np.mean(np.square(pred - y))))


@dataclass(frozen=True)
class ConstantRate(BoardMethod):
    """ŷ = exposure · Σy / Σexposure, the mean where there is no exposure: no method should be worse than this.

    Where features say almost nothing, as in many tables of claims, doing no harm is the task.
    """

    deterministic: ClassVar[bool] = True
    cost: ClassVar[float] = 0.01

    def fit_predict(self, data: TableSplit, seed: int, given: Mapping[str, Any] = NOTHING) -> FitResult:
        watch = Stopwatch()
        with watch.running():
            rate = data.y_train.sum() / _exposure(data, data.train).sum()
        valid, test = (rate * _exposure(data, part) for part in (data.valid, data.test))
        return FitResult(valid, test, watch.seconds, {"rate": float(rate)})


def _exposure(data: TableSplit, part: Any) -> Floats:
    if data.exposure is None:
        return np.ones(len(part))
    return as_numbers(f"column {data.exposure!r}", column_array(part, data.exposure))


@dataclass(frozen=True)
class FrameMethod(BoardMethod):
    """A method that takes pandas frames: `learn` returns the function that predicts a frame, and what it chose."""

    deterministic: ClassVar[bool] = True

    @abstractmethod
    def learn(self, frames: Frames, data: TableSplit, seed: int) -> tuple[Callable[[Any], Floats], dict[str, Any]]:
        """Learn from the training frame, choose by the validation frame."""

    def prepare(self, frames: Frames) -> Frames:
        """The frames as the library wants them."""
        return frames

    def fit_predict(self, data: TableSplit, seed: int, given: Mapping[str, Any] = NOTHING) -> FitResult:
        watch = Stopwatch()
        frames = self.prepare(Frames.of(data))
        with quiet():
            with watch.running():
                predict, details = self.learn(frames, data, seed)
            valid, test = (np.asarray(predict(part), np.float64) for part in (frames.valid, frames.test))
        return FitResult(valid, test, watch.seconds, details)


def boost(frames: Frames, data: TableSplit, seed: int, **parameters: Any) -> Any:
    """A LightGBM booster that stops when the RMSE of the validation rows has not improved for 50 trees."""
    lightgbm = need("lightgbm")
    train = lightgbm.Dataset(frames.train, data.y_train)
    return lightgbm.train(
        _lightgbm_settings(seed, parameters),
        train,
        TREES,
        valid_sets=[lightgbm.Dataset(frames.valid, data.y_valid, reference=train)],
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )


def boost_again(frames: Frames, data: TableSplit, seed: int, trees: int, **parameters: Any) -> Any:
    """A LightGBM booster of so many trees, of training and validation rows together, as the default refits its own."""
    lightgbm, both = need("lightgbm"), need("pandas").concat([frames.train, frames.valid])
    rows = lightgbm.Dataset(both, np.concatenate([data.y_train, data.y_valid]))
    return lightgbm.train(_lightgbm_settings(seed, parameters), rows, trees)


def _lightgbm_settings(seed: int, parameters: Mapping[str, Any]) -> dict[str, Any]:
    settings = {"objective": "poisson", "learning_rate": RATE, "metric": "rmse"}
    return {**settings, "num_threads": 1, "seed": seed, "verbosity": -1, **parameters}


@dataclass(frozen=True)
class LightGBM(FrameMethod):
    """LightGBM with an objective and early stopping.

    Args:
        name: of the method.
        objective: of LightGBM.
        refit: whether as many trees are boosted again on training and validation rows together.

    """

    libraries: ClassVar[tuple[str, ...]] = ("lightgbm", "pandas")
    objective: str = "poisson"
    refit: bool = False

    def learn(self, frames: Frames, data: TableSplit, seed: int) -> tuple[Callable[[Any], Floats], dict[str, Any]]:
        booster = boost(frames, data, seed, objective=self.objective)
        trees = booster.best_iteration
        if self.refit:
            booster = boost_again(frames, data, seed, trees, objective=self.objective)
        return booster.predict, {"trees": trees}


@dataclass(frozen=True)
class DefaultLightGBM(FrameMethod):
    """`LGBMRegressor()` as a person writes it first: squares, 100 trees, the validation rows unused."""

    libraries: ClassVar[tuple[str, ...]] = ("lightgbm", "pandas")

    def learn(self, frames: Frames, data: TableSplit, seed: int) -> tuple[Callable[[Any], Floats], dict[str, Any]]:
        return _default_lightgbm(seed).fit(frames.train, data.y_train).predict, {}


def _default_lightgbm(seed: int) -> Any:
    return need("lightgbm").LGBMRegressor(n_jobs=1, verbose=-1, random_state=seed)


class Boosted(NamedTuple):
    """An ensemble that was stopped by the validation rows."""

    predict: Callable[[Any], Floats]
    trees: int


@dataclass(frozen=True)
class RandomSearch(FrameMethod):
    """Random search over a library's settings: the best of `trials` by the RMSE of the validation rows.

    The first trial has the settings of the untuned Poisson booster.

    Args:
        name: of the method.
        trials: how many settings are tried at most.
        seconds: after which no trial begins.

    """

    deterministic: ClassVar[bool] = False
    cost: ClassVar[float] = 30.0
    trials: int = 30
    seconds: float = 120.0

    @abstractmethod
    def random_settings(self, draw: np.random.Generator) -> dict[str, Any]:
        """Settings drawn from the ranges that users of the library search."""

    @abstractmethod
    def boost_with(self, settings: Mapping[str, Any], frames: Frames, data: TableSplit, seed: int) -> Boosted:
        """An ensemble with these settings; none are those of the untuned Poisson booster."""

    def finish(
        self, best: Boosted, settings: Mapping[str, Any], frames: Frames, data: TableSplit, seed: int
    ) -> Boosted:
        """What is done with the best ensemble in the end."""
        return best

    def learn(self, frames: Frames, data: TableSplit, seed: int) -> tuple[Callable[[Any], Floats], dict[str, Any]]:
        draw, watch = np.random.default_rng(seed), Stopwatch()
        best, least, done = None, np.inf, 0
        chosen: dict[str, Any] = {}
        while done < self.trials and watch.seconds < self.seconds:
            parameters = self.random_settings(draw) if done else {}
            with watch.running():
                boosted = self.boost_with(parameters, frames, data, seed)
            error = rmse(boosted.predict(frames.valid), data.y_valid)
            if best is None or error < least:
                best, least, chosen = boosted, error, parameters
            done += 1
        assert best is not None  # there is at least one trial
        predict = self.finish(best, chosen, frames, data, seed).predict
        return predict, {"trials": done, "trees": best.trees, "chosen": chosen}


@dataclass(frozen=True)
class TunedLightGBM(RandomSearch):
    """Random search over LightGBM's settings.

    Args:
        name: of the method.
        trials: how many settings are tried at most.
        seconds: after which no trial begins.
        refit: whether the best ensemble is boosted again on training and validation rows together.

    """

    libraries: ClassVar[tuple[str, ...]] = ("lightgbm", "pandas")
    refit: bool = False

    def random_settings(self, draw: np.random.Generator) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "objective": str(draw.choice(["poisson", "tweedie", "regression"])),
            "learning_rate": _log_uniform(draw, 0.01, 0.2),
            "num_leaves": round(_log_uniform(draw, 4, 256)),
            "min_data_in_leaf": round(_log_uniform(draw, 3, 300)),
            "lambda_l2": _log_uniform(draw, 1e-3, 30.0),
            "feature_fraction": draw.uniform(0.4, 1.0),
            "bagging_fraction": draw.uniform(0.5, 1.0),
            "bagging_freq": 1,
            "cat_smooth": _log_uniform(draw, 1.0, 200.0),
        }
        if parameters["objective"] == "tweedie":
            parameters["tweedie_variance_power"] = draw.uniform(1.05, 1.95)
        return parameters

    def boost_with(self, settings: Mapping[str, Any], frames: Frames, data: TableSplit, seed: int) -> Boosted:
        booster = boost(frames, data, seed, **settings)
        return Boosted(booster.predict, booster.best_iteration)

    def finish(
        self, best: Boosted, settings: Mapping[str, Any], frames: Frames, data: TableSplit, seed: int
    ) -> Boosted:
        if not self.refit:
            return best
        again = boost_again(frames, data, seed, best.trees, **settings)
        return Boosted(again.predict, best.trees)


def _log_uniform(draw: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(draw.uniform(np.log(low), np.log(high))))


def boost_xgboost(frames: Frames, data: TableSplit, seed: int, **parameters: Any) -> Boosted:
    """XGBoost that stops by the RMSE of the validation rows; targets in units of their mean, where it regularises."""
    unit = data.y_train.mean()
    settings = {"objective": "count:poisson", "learning_rate": RATE, **parameters}
    model = need("xgboost").XGBRegressor(
        eval_metric="rmse",
        n_estimators=TREES,
        early_stopping_rounds=PATIENCE,
        enable_categorical=True,
        tree_method="hist",
        n_jobs=1,
        random_state=seed,
        **settings,
    )
    model.fit(frames.train, data.y_train / unit, eval_set=[(frames.valid, data.y_valid / unit)], verbose=False)
    return Boosted(lambda frame: unit * model.predict(frame), int(model.best_iteration) + 1)


@dataclass(frozen=True)
class XGBoost(FrameMethod):
    """XGBoost with an objective and early stopping."""

    libraries: ClassVar[tuple[str, ...]] = ("xgboost", "pandas")
    objective: str = "count:poisson"

    def learn(self, frames: Frames, data: TableSplit, seed: int) -> tuple[Callable[[Any], Floats], dict[str, Any]]:
        boosted = boost_xgboost(frames, data, seed, objective=self.objective)
        return boosted.predict, {"trees": boosted.trees}


@dataclass(frozen=True)
class TunedXGBoost(RandomSearch):
    """Random search over XGBoost's settings."""

    libraries: ClassVar[tuple[str, ...]] = ("xgboost", "pandas")

    def random_settings(self, draw: np.random.Generator) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "objective": str(draw.choice(["count:poisson", "reg:tweedie", "reg:squarederror"])),
            "learning_rate": _log_uniform(draw, 0.01, 0.2),
            "max_depth": round(_log_uniform(draw, 3, 12)),
            "min_child_weight": _log_uniform(draw, 1e-2, 30.0),
            "reg_lambda": _log_uniform(draw, 1e-3, 30.0),
            "subsample": draw.uniform(0.5, 1.0),
            "colsample_bytree": draw.uniform(0.4, 1.0),
            # A leaf may move the logarithm of a count by 0.7 at most, which is little on a wide range.
            "max_delta_step": float(draw.choice([0.7, 3.0, 10.0])),
        }
        if parameters["objective"] == "reg:tweedie":
            parameters["tweedie_variance_power"] = draw.uniform(1.05, 1.95)
        return parameters

    def boost_with(self, settings: Mapping[str, Any], frames: Frames, data: TableSplit, seed: int) -> Boosted:
        return boost_xgboost(frames, data, seed, **settings)


def _as_text(frames: Frames) -> Frames:
    """Categories as CatBoost wants them."""
    names = frames.categorical
    return frames.map(lambda frame: frame.assign(**{n: frame[n].astype(object).fillna("missing") for n in names}))


def boost_catboost(frames: Frames, data: TableSplit, seed: int, **parameters: Any) -> Boosted:
    """CatBoost that stops by its own loss of the validation rows; targets in units of their mean.

    Its RMSE would be that of the logarithm of the prediction.
    """
    unit = data.y_train.mean()
    settings = {"loss_function": "Poisson", "learning_rate": RATE, **parameters}
    model = need("catboost").CatBoostRegressor(
        iterations=TREES,
        early_stopping_rounds=PATIENCE,
        thread_count=1,
        random_seed=seed,
        allow_writing_files=False,
        verbose=False,
        **settings,
    )
    text = [str(name) for name in frames.train.select_dtypes(object).columns]
    model.fit(frames.train, data.y_train / unit, cat_features=text, eval_set=(frames.valid, data.y_valid / unit))
    kind = "RawFormulaVal" if settings["loss_function"] == "RMSE" else "Exponent"
    return Boosted(lambda frame: unit * model.predict(frame, prediction_type=kind), int(model.tree_count_))


@dataclass(frozen=True)
class CatBoost(FrameMethod):
    """CatBoost with a loss and early stopping by that loss."""

    deterministic: ClassVar[bool] = False
    libraries: ClassVar[tuple[str, ...]] = ("catboost", "pandas")
    cost: ClassVar[float] = 5.0
    loss: str = "Poisson"

    def prepare(self, frames: Frames) -> Frames:
        return _as_text(frames)

    def learn(self, frames: Frames, data: TableSplit, seed: int) -> tuple[Callable[[Any], Floats], dict[str, Any]]:
        boosted = boost_catboost(frames, data, seed, loss_function=self.loss)
        return boosted.predict, {"trees": boosted.trees}


@dataclass(frozen=True)
class TunedCatBoost(RandomSearch):
    """Random search over CatBoost's settings."""

    libraries: ClassVar[tuple[str, ...]] = ("catboost", "pandas")

    def prepare(self, frames: Frames) -> Frames:
        return _as_text(frames)

    def random_settings(self, draw: np.random.Generator) -> dict[str, Any]:
        tweedie = f"Tweedie:variance_power={draw.uniform(1.05, 1.95):.3f}"
        return {
            "loss_function": str(draw.choice(["Poisson", tweedie, "RMSE"])),
            "learning_rate": _log_uniform(draw, 0.02, 0.2),
            "depth": round(_log_uniform(draw, 3, 9)),
            "l2_leaf_reg": _log_uniform(draw, 0.3, 30.0),
            "random_strength": _log_uniform(draw, 0.1, 10.0),
            "bagging_temperature": draw.uniform(0.0, 1.0),
        }

    def boost_with(self, settings: Mapping[str, Any], frames: Frames, data: TableSplit, seed: int) -> Boosted:
        return boost_catboost(frames, data, seed, **settings)


@dataclass(frozen=True)
class HistGradientBoosting(FrameMethod):
    """scikit-learn's boosted trees by Poisson deviance with early stopping.

    It keeps the trees that it built while it waited for an improvement; predictions here leave them out, as the other
    libraries do. Columns of more than 255 categories become numbers, which it cannot take otherwise.
    """

    libraries: ClassVar[tuple[str, ...]] = ("sklearn.ensemble", "pandas")
    cost: ClassVar[float] = 2.0
    loss: str = "poisson"

    def prepare(self, frames: Frames) -> Frames:
        many = [name for name in frames.categorical if len(frames.train[name].cat.categories) > _MOST_CATEGORIES]
        return frames.map(lambda frame: frame.assign(**{name: _codes(frame[name]) for name in many}))

    def learn(self, frames: Frames, data: TableSplit, seed: int) -> tuple[Callable[[Any], Floats], dict[str, Any]]:
        model = need("sklearn.ensemble").HistGradientBoostingRegressor(
            loss=self.loss,
            learning_rate=RATE,
            max_iter=TREES,
            early_stopping=True,
            n_iter_no_change=PATIENCE,
            scoring="neg_root_mean_squared_error",
            random_state=seed,
        )
        model.fit(frames.train, data.y_train, X_val=frames.valid, y_val=data.y_valid)
        # The first score is that of the mean, before any tree.
        trees = max(int(np.argmax(model.validation_score_)), 1)
        return lambda frame: next(islice(model.staged_predict(frame), trees - 1, None)), {"trees": trees}


def _codes(column: Any) -> Any:
    codes = column.cat.codes.astype(np.float64)
    return codes.where(codes >= 0.0)


@dataclass(frozen=True)
class WrappedLightGBM(FrameMethod):
    """An estimator of transun around `LGBMRegressor()` with its defaults; it makes its own folds of the training rows.

    Args:
        name: of the method.
        estimator: a name in `WRAPPERS`.
        options: further arguments of the estimator.

    """

    deterministic: ClassVar[bool] = False
    libraries: ClassVar[tuple[str, ...]] = ("lightgbm", "pandas")
    cost: ClassVar[float] = 20.0
    estimator: str = "UnbiasedRegressor"
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def learn(self, frames: Frames, data: TableSplit, seed: int) -> tuple[Callable[[Any], Floats], dict[str, Any]]:
        model = WRAPPERS[self.estimator](_default_lightgbm(seed), random_state=seed, **self.options)
        return model.fit(frames.train, data.y_train).predict, {}


#: Estimators of transun that wrap a regressor.
WRAPPERS: Mapping[str, Callable[..., Any]] = {"UnbiasedRegressor": UnbiasedRegressor, "GTSRegressor": GTSRegressor}
