"""Libraries that boost trees: LightGBM where it is installed, else scikit-learn. Both give back plain trees."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transun.backbones.boosting_loss import BoostingLoss
from transun.backbones.trees import Tree
from transun.support.extras import need
from transun.support.progress import Progress

__all__ = ["BoostedRows", "BoostedTrees", "Booster", "Boosting", "BoostingTask", "default_booster"]

Array = NDArray[Any]

# Trees without improvement of the validation rows before boosting stops.
_PATIENCE = 50
# A tree of few leaves is never deeper in practice; a bound keeps `Trees` from meeting a chain.
_DEPTH = 12


@dataclass(frozen=True)
class BoostedRows:
    """Rows for boosting: columns (n, d), what the loss learns (n,), and weights (n,) or None."""

    x: Array
    y: Array
    weight: Array | None


@dataclass(frozen=True)
class Boosting:
    """How an ensemble of trees is boosted.

    Args:
        loss: what trees learn to be close to.
        leaves: of each tree.
        rate: shrinkage of each tree.
        by_means: whether trees see the mean target of every id, beside its code.
        shrinkage: K of the credibility P / (P + K) that a leaf's value is multiplied by; P is the predicted amount of
            its rows in units of the mean target.
        most_trees: how many trees there are at most.
        linear: whether leaves are linear in the numbers that the questions on the way to them ask about.

    """

    loss: BoostingLoss
    leaves: int
    rate: float
    by_means: bool
    shrinkage: float = 1.0
    most_trees: int = 3000
    linear: bool = False


@dataclass(frozen=True)
class BoostingTask:
    """One ensemble of trees that a library is asked for.

    Args:
        rows: training rows.
        valid: validation rows, which stop the boosting; None boosts as many trees as the settings allow.
        codes: columns that hold codes, without an order.
        settings: loss, size and shrinkage of the trees.
        seed: of the rows that each tree is fitted to.
        threads: to compute with.
        seconds: after which no further tree is begun. scikit-learn looks at the clock between groups of trees.
        progress: show a progress bar; None shows it on a terminal.

    """

    rows: BoostedRows
    valid: BoostedRows | None
    codes: Sequence[int]
    settings: Boosting
    seed: int = 0
    threads: int = 1
    seconds: float = math.inf
    progress: bool | None = None


@dataclass(frozen=True)
class BoostedTrees:
    """The ensemble that a library has fitted: one tree for every round of boosting, and amounts (n,) of training rows.

    The amount of a row is the exponential of the sum of its leaves. The library keeps it up to date while it boosts, so
    that no tree has to be evaluated again.
    """

    trees: list[Tree]
    amounts: Array


@dataclass(frozen=True)
class Booster(ABC):
    """A library that fits an ensemble of trees, the sum of whose leaves is the logarithm of an amount."""

    name: str
    most_codes: int
    """Columns with more different codes cannot be asked about by sets."""

    @abstractmethod
    def nearest(self, settings: Boosting) -> Boosting:
        """The nearest settings that the library can do."""

    @abstractmethod
    def fit(self, task: BoostingTask) -> BoostedTrees:
        """The trees up to the least error of the validation rows."""


@dataclass(frozen=True)
class LightGBM(Booster):
    """LightGBM: every loss, linear leaves, sets of codes, rows drawn anew for each tree."""

    name: str = "LightGBM"
    most_codes: int = 4096

    def nearest(self, settings: Boosting) -> Boosting:
        return settings

    def fit(self, task: BoostingTask) -> BoostedTrees:
        rows, valid, codes, settings = task.rows, task.valid, task.codes, task.settings
        lightgbm = need("lightgbm")
        options = {
            **settings.loss.lightgbm,
            "num_leaves": settings.leaves,
            "learning_rate": settings.rate,
            "max_depth": _DEPTH,
            "bagging_fraction": 0.8,
            "bagging_freq": 1,
            "lambda_l2": settings.shrinkage,
            "linear_lambda": settings.shrinkage,
            "seed": task.seed,
            "num_threads": task.threads,
            "deterministic": True,
            "force_row_wise": True,
            "verbose": -1,
        }
        columns = {"linear_tree": settings.linear, "verbose": -1}
        data = {"categorical_feature": list(codes), "free_raw_data": False, "params": columns}
        training = lightgbm.Dataset(rows.x, rows.y, weight=rows.weight, **data)
        judging, callbacks = [], []
        if valid is not None:
            judging.append(lightgbm.Dataset(valid.x, valid.y, weight=valid.weight, reference=training, **data))
            callbacks.append(lightgbm.early_stopping(_PATIENCE, verbose=False))
        deadline = time.perf_counter() + task.seconds
        with Progress("boosting", settings.most_trees, task.progress) as bar:
            errors: list[float] = []

            def after_tree(state: Any) -> None:
                # Without validation rows the last tree is the best.
                judged = state.evaluation_result_list
                errors.append(float(judged[0][2]) if judged else -float(state.iteration))
                bar.advance(len(errors))
                if time.perf_counter() > deadline:
                    best = min(range(len(errors)), key=errors.__getitem__)
                    raise lightgbm.callback.EarlyStopException(best, judged)

            booster = lightgbm.train(
                options,
                training,
                settings.most_trees,
                valid_sets=judging,
                callbacks=[after_tree, *callbacks],
                keep_training_booster=True,
            )
        for _ in range(booster.current_iteration() - (booster.best_iteration or booster.current_iteration())):
            booster.rollback_one_iter()
        predictions: list[Array] = []

        def keep(pred: Array, _: Any) -> tuple[str, float, bool]:
            predictions.append(pred.copy())
            return "kept", 0.0, False

        booster.eval_train(keep)
        trees = [_from_lightgbm(tree["tree_structure"]) for tree in booster.dump_model()["tree_info"]]
        return BoostedTrees(trees, settings.loss.amounts(predictions[0]))


def _from_lightgbm(structure: dict[str, Any]) -> Tree:
    """A tree from LightGBM's own description of it."""
    nodes = _Nodes()

    def visit(node: dict[str, Any]) -> int:
        if "split_feature" not in node:
            return nodes.leaf(
                node.get("leaf_const", node["leaf_value"]),
                dict(zip(node.get("leaf_features", ()), node.get("leaf_coeff", ()), strict=True)),
            )
        if node["decision_type"] == "==":
            question: float | frozenset[int] = frozenset(int(code) for code in node["threshold"].split("||"))
        else:
            question = float(node["threshold"])
        index = nodes.inner(node["split_feature"], question)
        nodes.answers(index, visit(node["left_child"]), visit(node["right_child"]))
        return index

    visit(structure)
    return nodes.tree()


@dataclass(frozen=True)
class ScikitLearn(Booster):
    """scikit-learn's histogram boosting: of deviances Poisson alone, sets of columns with up to 255 codes."""

    name: str = "scikit-learn"
    most_codes: int = 254

    def nearest(self, settings: Boosting) -> Boosting:
        return replace(settings, loss=settings.loss.nearest_in_scikit_learn(), linear=False)

    def fit(self, task: BoostingTask) -> BoostedTrees:
        rows, valid, codes, settings = task.rows, task.valid, task.codes, task.settings
        ensemble = need("sklearn.ensemble")
        model = ensemble.HistGradientBoostingRegressor(
            loss=settings.loss.scikit_learn,
            learning_rate=settings.rate,
            max_leaf_nodes=settings.leaves,
            max_depth=_DEPTH,
            l2_regularization=settings.shrinkage,
            categorical_features=list(codes) or None,
            early_stopping=False,
            warm_start=True,
            max_iter=1,
            random_state=task.seed,
        )
        deadline = time.perf_counter() + task.seconds
        best, best_error, rounds = 1, math.inf, 0
        with (
            Progress("boosting", settings.most_trees, task.progress) as bar,
            need("threadpoolctl").threadpool_limits(task.threads),
        ):
            while not rounds or (
                rounds < settings.most_trees and rounds - best < _PATIENCE and time.perf_counter() < deadline
            ):
                # Each call starts over from the raw rows, and predicts by all trees: so there are few calls.
                more = settings.most_trees if valid is None else max(rounds + _PATIENCE // 2, rounds * 5 // 4)
                before, rounds = rounds, min(more, settings.most_trees)
                model.set_params(max_iter=rounds).fit(rows.x, rows.y, rows.weight)
                bar.advance(rounds)
                if valid is None:
                    best = rounds
                    break
                errors = _errors(model, valid, before, settings.loss)
                if min(errors) < best_error:
                    best, best_error = before + 1 + int(np.argmin(errors)), min(errors)
        # There is no public way to the trees; a test compares them with the model's own predictions.
        start = float(np.ravel(model._baseline_prediction)[0])
        # It numbers columns of codes before the others, and codes by their order among those it has seen.
        order = [*codes, *(column for column in range(rows.x.shape[1]) if column not in codes)]
        values = {column: np.unique(rows.x[:, column]).astype(int) for column in codes}
        first, *others = (_from_scikit_learn(stage[0], order, values) for stage in model._predictors[:best])
        trees = [replace(first, values=[start + value for value in first.values]), *others]
        del model._predictors[best:]
        return BoostedTrees(trees, settings.loss.amounts(model.predict(rows.x)))


def _errors(model: Any, valid: BoostedRows, begin: int, loss: BoostingLoss) -> list[float]:
    """The mean error of the validation rows after each tree from `begin` on."""
    predictions = list(model.staged_predict(valid.x))[begin:]
    return [float(np.average(loss.errors(pred, valid.y), weights=valid.weight)) for pred in predictions]


def _from_scikit_learn(predictor: Any, order: Sequence[int], values: Mapping[int, Array]) -> Tree:
    """A tree from scikit-learn's own description of it.

    Args:
        predictor: the description.
        order: the column that each of its columns is.
        values: of the columns of codes, the code that each of its codes is.

    """
    nodes = _Nodes()
    rows, bitsets = predictor.nodes, predictor.raw_left_cat_bitsets

    def visit(number: int) -> int:
        row = rows[number]
        if row["is_leaf"]:
            return nodes.leaf(float(row["value"]))
        column = order[row["feature_idx"]]
        if row["is_categorical"]:
            words = bitsets[row["bitset_idx"]]
            question: float | frozenset[int] = frozenset(
                int(code) for number, code in enumerate(values[column]) if int(words[number // 32]) >> number % 32 & 1
            )
        else:
            question = float(row["num_threshold"])
        index = nodes.inner(column, question)
        nodes.answers(index, visit(int(row["left"])), visit(int(row["right"])))
        return index

    visit(0)
    return nodes.tree()


@dataclass
class _Nodes:
    """The nodes of a tree under construction."""

    columns: list[int] = field(default_factory=list)
    questions: list[float | frozenset[int]] = field(default_factory=list)
    yes: list[int] = field(default_factory=list)
    no: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    slopes: list[dict[int, float]] = field(default_factory=list)

    def leaf(self, value: float, slopes: dict[int, float] | None = None) -> int:
        self.values.append(value)
        self.slopes.append(slopes or {})
        return -len(self.values)

    def inner(self, column: int, question: float | frozenset[int]) -> int:
        self.columns.append(column)
        self.questions.append(question)
        self.yes.append(0)
        self.no.append(0)
        return len(self.columns) - 1

    def answers(self, index: int, yes: int, no: int) -> None:
        self.yes[index], self.no[index] = yes, no

    def tree(self) -> Tree:
        slopes = self.slopes if any(self.slopes) else ()
        return Tree(self.columns, self.questions, self.yes, self.no, self.values, slopes)


def default_booster() -> Booster:
    """LightGBM where it is installed, else scikit-learn.

    >>> default_booster().name in ("LightGBM", "scikit-learn")
    True
    """
    try:
        need("lightgbm")
    except ModuleNotFoundError:
        need("sklearn")
        return ScikitLearn()
    return LightGBM()
