"""A network with any head, as a scikit-learn regressor: frames or arrays in, amounts and quantiles out."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from transun.backbones import Backbone
from transun.data import Dataset, Features
from transun.data.frames import is_frame
from transun.estimators.fitting import evaluation_pairs
from transun.estimators.intervals import IntervalMixin
from transun.estimators.nested_params import ValueParameters
from transun.estimators.rows import TrainingRows, read_features, read_weights, require_credible
from transun.estimators.target import check_target, positive_only
from transun.heads import Head
from transun.models.network import Model
from transun.support.arrays import Floats, refuse_reordered
from transun.tables.model import TableModel, tabm
from transun.tables.plan import make_plan
from transun.tables.training import train_plan
from transun.training.history import History
from transun.training.optimisers import constant
from transun.training.recipe import Recipe, require_recipe
from transun.training.tracking import Tracker

__all__ = ["NetworkRegressor"]


# scikit-learn does not allow a dataclass as the default of a parameter, so None means this value.
_DEFAULT_RECIPE = Recipe()


def _has_quantiles(estimator: "NetworkRegressor") -> bool:
    head = estimator.head
    if head is None or head.distribution is None:
        name = "the recommended head" if head is None else type(head).__name__
        raise AttributeError(f"{name} has no law of y|x; heads such as ZILN() or QuantileMean() do")
    return True


class NetworkRegressor(IntervalMixin, RegressorMixin, ValueParameters):  # type: ignore[misc]
    """A neural network that predicts E[y|x] through any head: `train` in the form of a scikit-learn regressor.

    X is a frame, whose columns are taken for ids, bags, numbers or times as `infer` guesses (`features_` tells), or an
    array of numbers, whose columns become `Number`. Missing values and ids that training did not see are fine.
    Settings and their defaults are those of `Recipe`. Parameters of the recipe, the head and other values are reached
    by name: `recipe__epochs`, `recipe__optimiser__rate`, `head__shared`, `head__scheme__power`.

    Args:
        head: the method; None recommends one by the targets, as `train` does, and balances the total.
        backbone: a function that builds the network from the fitted `Features`. Functions that are named at the top of
            a module, and partials of them, can be pickled.
        features: how to read the columns; None guesses.
        recipe: how to train; None is `Recipe()`.
        base: a trained model without the head's last branches, to start from; see `transun.fit`.
        resume: a file that keeps the state of an interrupted training; see `transun.fit`.
        tracker: gets losses and metrics along `fit`, such as `transun.integrations.tensorboard.TensorBoardTracker`;
            `partial_fit`, whose calls are trainings of their own, does not use it.
        random_state: of the initial weights, the order of rows and the validation rows; None uses the recipe's seed.
        progress: show a progress bar; None shows it on a terminal.

    Attributes:
        model_: the trained `TableModel`, which can be saved and loaded without pickle.
        features_: the `Features` it reads.
        history_: the `History` of the last training.
        n_iter_: epochs trained.
        n_features_in_: columns of X.
        feature_names_in_: their names, if X was a frame with text as names.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 3, (600, 1))
    >>> y = (1.0 + X[:, 0]) * rng.lognormal(0.0, 1.0, 600)
    >>> regressor = NetworkRegressor(recipe=Recipe(epochs=3)).fit(X, y)
    >>> bool(abs(regressor.predict(X).sum() / y.sum() - 1.0) < 0.1)
    True
    >>> NetworkRegressor(LogSUN()).set_params(head__shared=1, recipe__epochs=5).head.shared
    1

    """

    model_: TableModel
    n_iter_: int

    def __init__(
        self,
        head: Head | None = None,
        backbone: Callable[[Features], Backbone] = tabm,
        *,
        features: Features | None = None,
        recipe: Recipe | None = None,
        base: Model | None = None,
        resume: str | Path | None = None,
        tracker: Tracker | None = None,
        random_state: Any = None,
        progress: bool | None = False,
    ) -> None:
        self.head = head
        self.backbone = backbone
        self.features = features
        self.recipe = recipe
        self.base = base
        self.resume = resume
        self.tracker = tracker
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None, eval_set: Any = None) -> Self:
        """Train on the rows of X.

        Args:
            X: a frame of pandas, polars, Arrow, DuckDB or Modin, or an array of numbers (n, d).
            y: targets (n,).
            sample_weight: what each row counts (n,), in the loss and in the constants that a head learns. A row of
                weight 0 is left out altogether. A row of weight 2 is not the same as two rows, as those may be in two
                batches; within a batch the weights are divided by their sum, so give them batches that hold many.
            eval_set: a pair (X, y), or a list of one, of validation rows in place of the recipe's share.

        """
        rows = self._labelled(X, y, sample_weight, reset=True)
        valid = None if eval_set is None else self._validation_pair(eval_set, weighted=rows.weight is not None)
        self._random = None if self.random_state is None else check_random_state(self.random_state)
        return self._train(rows, valid, replace(self._value_of("recipe"), seed=self._seed()), self.tracker)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """One epoch more, on these rows alone; ids that are new get vectors of their own.

        The first call learns the kinds of the columns, their scales and the constants of the head, which stay: give it
        typical rows. There are no validation rows, no balance, and the learning rate does not decay, because the end of
        training is unknown.

        Args:
            X: rows with the columns of the first call.
            y: their targets (n,).
            sample_weight: what each row counts (n,).

        """
        first_call = not hasattr(self, "model_")
        rows = self._labelled(X, y, sample_weight, reset=first_call)
        if first_call:
            self._random = None if self.random_state is None else check_random_state(self.random_state)
        recipe = replace(
            self._value_of("recipe"), epochs=1, decay=constant, valid_share=0.0, balance=False, seed=self._seed()
        )
        if first_call:
            return self._train(rows, None, recipe)
        before = replace(self.model_, weight=rows.weight)
        return self._keep(before.update(rows.table, recipe, progress=self.progress), self.n_iter_ + 1)

    def predict(self, X: Any) -> Floats:
        """Predictions (n,), in units of the target.

        Args:
            X: rows with the columns of training, in the same order.

        """
        check_is_fitted(self)
        return self.model_.predict(read_features(self, X, reset=False)).double().numpy()

    @available_if(_has_quantiles)  # type: ignore[untyped-decorator]
    def predict_quantile(self, X: Any, q: float | Sequence[float]) -> Floats:
        """Quantiles of the law of y|x that the head models; only heads with a law have them.

        They are the law's own also where the estimator is balanced, which corrects the mean alone.

        Args:
            X: rows with the columns of training, in the same order.
            q: one level, which gives (n,), or k of them, which give (n, k); strictly between 0 and 1.

        """
        check_is_fitted(self)
        levels = np.asarray(q, np.float64)
        if levels.ndim > 1 or not ((levels > 0.0) & (levels < 1.0)).all():
            raise ValueError(f"q must be levels strictly between 0 and 1, one or a sequence of them, got {q}")
        x = self.features_.encode(read_features(self, X, reset=False))
        model = self.model_.model
        law: Any = model.head.distribution
        parts = []
        with torch.no_grad():
            for batch in Dataset(x, torch.zeros(len(next(iter(x.values()))))).batches(model.rows_at_once):
                raw = model.raw(batch.x)
                values = [model.over_members(law.quantile(raw, float(level))) for level in levels.flat]
                parts.append(torch.stack(values, -1))
        return torch.cat(parts).double().numpy().reshape(-1, *levels.shape)

    @property
    def features_(self) -> Features:
        """How the columns are read."""
        check_is_fitted(self)
        return self.model_.features

    @property
    def history_(self) -> History:
        """What happened in the last training."""
        check_is_fitted(self)
        return self.model_.history

    def _value_of(self, name: str) -> Any:
        value = getattr(self, name)
        return _DEFAULT_RECIPE if name == "recipe" and value is None else value

    def _labelled(self, X: Any, y: Any, sample_weight: Any, *, reset: bool, weighted: bool = False) -> TrainingRows:
        if self.head is not None and not isinstance(self.head, Head):
            raise TypeError(f"head must be a Head such as LogSUN(), got {self.head!r}")
        require_recipe(self._value_of("recipe"))
        refuse_reordered(X=X, y=y, sample_weight=sample_weight)
        target = check_target(y, self)
        table = read_features(self, X, reset=reset)
        check_consistent_length(table, target)
        if self.head is not None:
            require_credible(target, self.head)
        weight = np.ones(len(target)) if weighted else read_weights(sample_weight, len(target))
        return TrainingRows.of(table, target, weight, named=is_frame(X))

    def _validation_pair(self, eval_set: Any, *, weighted: bool) -> TrainingRows:
        given = evaluation_pairs(eval_set)
        if len(given) != 1:
            raise ValueError(f"eval_set must be one pair (X, y), or a list of one; got {len(given)} pairs")
        return self._labelled(*given[0], None, reset=False, weighted=weighted)

    def _train(
        self, rows: TrainingRows, valid: TrainingRows | None, recipe: Recipe, tracker: Tracker | None = None
    ) -> Self:
        features = rows.guess() if self.features is None else self.features
        plan = make_plan(rows.table, rows.target, head=self.head, features=features, weight=rows.weight, only="network")
        model = train_plan(
            plan,
            rows.table,
            self.backbone(plan.features),
            recipe,
            valid=None if valid is None else valid.table,
            base=self.base,
            resume=self.resume,
            tracker=tracker,
            progress=self.progress,
        )
        return self._keep(model, model.history.rows // model.history.train_rows)

    def _keep(self, model: TableModel, epochs: int) -> Self:
        self.model_, self.n_iter_, self.intervals_ = model, epochs, None
        return self

    def _seed(self) -> int:
        return int(self._value_of("recipe").seed) if self._random is None else int(self._random.randint(2**31 - 1))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.positive_only = self.head is not None and positive_only(self.head.transform)
        return tags
