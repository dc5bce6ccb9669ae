"""Boosted trees of several libraries, with early stopping by the validation rows, and a baseline without features."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, ClassVar

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
    return {"learning_rate": RATE, "metric": "rmse", "num_threads": 1, "seed": seed, "verbosity": -1, **parameters}


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


@dataclass(frozen=True)
class TunedLightGBM(FrameMethod):
    """Random search over LightGBM's settings: the best of `trials` by the RMSE of the validation rows.

    The first trial is the untuned Poisson booster. No trial begins after `seconds`.
    """

    deterministic: ClassVar[bool] = False
    libraries: ClassVar[tuple[str, ...]] = ("lightgbm", "pandas")
    cost: ClassVar[float] = 30.0
    trials: int = 30
    seconds: float = 120.0
    refit: bool = False

    def learn(self, frames: Frames, data: TableSplit, seed: int) -> tuple[Callable[[Any], Floats], dict[str, Any]]:
        draw, watch = np.random.default_rng(seed), Stopwatch()
        best, least, done = None, np.inf, 0
        chosen: dict[str, Any] = {}
        while done < self.trials and watch.seconds < self.seconds:
            parameters = {"objective": "poisson"} if done == 0 else random_parameters(draw)
            with watch.running():
                booster = boost(frames, data, seed, **parameters)
            error = rmse(booster.predict(frames.valid), data.y_valid)
            if best is None or error < least:
                best, least, chosen = booster, error, parameters
            done += 1
        assert best is not None  # there is at least one trial
        trees = best.best_iteration
        if self.refit:
            best = boost_again(frames, data, seed, trees, **chosen)
        return best.predict, {"trials": done, "trees": trees, "chosen": chosen}


def random_parameters(draw: "np.random.Generator") -> dict[str, Any]:
    """Settings of LightGBM, drawn from the ranges that its users search."""
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


def _log_uniform(draw: "np.random.Generator", low: float, high: float) -> float:
    return float(np.exp(draw.uniform(np.log(low), np.log(high))))


@dataclass(frozen=True)
class XGBoost(FrameMethod):
    """XGBoost with an objective and early stopping; targets in units of their mean, where its regularisation acts."""

    libraries: ClassVar[tuple[str, ...]] = ("xgboost", "pandas")
    objective: str = "count:poisson"

    def learn(self, frames: Frames, data: TableSplit, seed: int) -> tuple[Callable[[Any], Floats], dict[str, Any]]:
        unit = data.y_train.mean()
        model = need("xgboost").XGBRegressor(
            objective=self.objective,
            eval_metric="rmse",
            learning_rate=RATE,
            n_estimators=TREES,
            early_stopping_rounds=PATIENCE,
            enable_categorical=True,
            tree_method="hist",
            n_jobs=1,
            random_state=seed,
        )
        valid = [(frames.valid, data.y_valid / unit)]
        model.fit(frames.train, data.y_train / unit, eval_set=valid, verbose=False)
        return lambda frame: unit * model.predict(frame), {"trees": int(model.best_iteration) + 1}


@dataclass(frozen=True)
class CatBoost(FrameMethod):
    """CatBoost with a loss and early stopping by that loss; targets in units of their mean.

    Its RMSE would be that of the logarithm of the prediction, so that it stops by its own loss instead.
    """

    deterministic: ClassVar[bool] = False
    libraries: ClassVar[tuple[str, ...]] = ("catboost", "pandas")
    cost: ClassVar[float] = 5.0
    loss: str = "Poisson"

    def prepare(self, frames: Frames) -> Frames:
        names = frames.categorical
        return frames.map(lambda frame: frame.assign(**{n: frame[n].astype(object).fillna("missing") for n in names}))

    def learn(self, frames: Frames, data: TableSplit, seed: int) -> tuple[Callable[[Any], Floats], dict[str, Any]]:
        unit = data.y_train.mean()
        model = need("catboost").CatBoostRegressor(
            loss_function=self.loss,
            learning_rate=RATE,
            iterations=TREES,
            early_stopping_rounds=PATIENCE,
            thread_count=1,
            random_seed=seed,
            allow_writing_files=False,
            verbose=False,
        )
        valid = (frames.valid, data.y_valid / unit)
        text = [str(name) for name in frames.train.select_dtypes(object).columns]
        model.fit(frames.train, data.y_train / unit, cat_features=text, eval_set=valid)
        predict = partial(model.predict, prediction_type="Exponent")
        return lambda frame: unit * predict(frame), {"trees": int(model.tree_count_)}


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
