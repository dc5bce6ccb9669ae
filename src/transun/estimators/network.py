"""A network with any head, as a scikit-learn regressor: frames or arrays in, amounts and quantiles out."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted
from torch import Tensor

from transun.backbones import Backbone
from transun.data import Dataset, Features
from transun.estimators.fitting import pairs
from transun.estimators.nested_params import ValueParameters
from transun.estimators.rows import (
    Labelled,
    as_weighted,
    is_frame,
    read_features,
    read_weights,
    require_credible,
)
from transun.estimators.target import checked, positive_only
from transun.heads import AutoSUN, Head, Raw
from transun.metrics import RMSE
from transun.models.network import Model
from transun.tables.model import Recipe, TableModel, embedding_mlp, steady_batch
from transun.training.averaging import EMA, Averaging
from transun.training.calibration import balance
from transun.training.evaluation import BATCH
from transun.training.history import History
from transun.training.loop import fit
from transun.training.optimisers import Adam, Optimiser, constant, linear

__all__ = ["NetworkRegressor"]

Array = NDArray[np.float64]

# What None stands for. Values, never changed: an estimator that is told otherwise builds its own.
_DEFAULTS = {"backbone": embedding_mlp, "optimiser": Adam(), "averaging": EMA(0.99)}


def _has_law(estimator: "NetworkRegressor") -> bool:
    head = estimator._head()
    if not hasattr(head.distribution, "quantile"):
        raise AttributeError(f"{type(head).__name__} has no law of y|x; heads such as ZILN() or QuantileMean() do")
    return True


class NetworkRegressor(RegressorMixin, ValueParameters):  # type: ignore[misc]
    """A neural network that predicts E[y|x] through any head, by default `AutoSUN`.

    X is a frame, whose columns are taken for ids, bags, numbers or times as `infer` guesses (`features_` tells), or an
    array of numbers, whose columns are cut into buckets. Missing values and ids that training did not see are fine.
    Parameters of the head and of other values are reached by name: `head__shared`, `head__scheme__power`,
    `optimiser__rate`.

    Epochs and patience were chosen with `LogSUN()` on 30,000 rows of KuaiRand, whose ids overfit after four epochs, and
    10,000 orders of Online Retail, which improve for ten to fifteen: no fixed number of epochs suits both. Early
    stopping is within 1 % of the best NRMSE found on either, and averaged weights are no worse than the last ones. The
    price is that it keeps weights from before the learning rate has decayed. On 4,000 simulated rows of 20 items and a
    price the totals came out 2.0 ± 0.1 % lower than those of training, which `balanced` mends, and the distance to the
    true mean was 19 % of it; with `validation_fraction=0, epochs=10` it was 16 %. Prefer that for tables without many
    ids.

    Args:
        head: the method; None is `AutoSUN()`, for targets ≥ 0. Signed targets need `Scaled(TranSUN(Asinh()))` or
            `Scaled(MSE())`. `AutoSUN(shared=1)` is a third as large, `LogSUN()` the paper's own method.
        backbone: a function that builds the network from the fitted `Features`; None is `embedding_mlp`. Functions
            that are named at the top of a module, and partials of them, can be pickled.
        features: how to read the columns; None guesses.
        optimiser: how weights follow gradients; None is `Adam()`.
        epochs: passes over the rows at most.
        batch_size: rows a step; None is 512, or fewer for tables of less than 16,384 rows so that an epoch has 32
            steps, yet not fewer than 16.
        decay: factor of the learning rate as a function of the share of `epochs` done.
        averaging: of the weights along training; None is `EMA(0.99)`, and `EMA(0.0)` keeps those of the last step.
        clip: largest norm of the gradient; None does not clip.
        validation_fraction: share of rows that only decide when to stop and which epoch's weights to keep, by squared
            error. 0 trains on all rows for all epochs; see above.
        patience: epochs without improvement there before training stops; None never stops, but still keeps the best.
        balanced: whether a last factor makes the total of the rows seen right; see `transun.balance`. None does so
            where no head is named: who names one wants to see what it does. `partial_fit` applies none.
        random_state: of the initial weights, the order of rows and the rows held out. None differs in every fit.
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
    >>> regressor = NetworkRegressor(epochs=3, random_state=0).fit(X, y)
    >>> bool(abs(regressor.predict(X).sum() / y.sum() - 1.0) < 0.1)
    True
    >>> NetworkRegressor(LogSUN()).set_params(head__shared=1).head.shared
    1

    """

    model_: TableModel
    n_iter_: int

    def __init__(
        self,
        head: Head | None = None,
        backbone: Callable[[Features], Backbone] | None = None,
        *,
        features: Features | None = None,
        optimiser: Optimiser | None = None,
        epochs: int = 20,
        batch_size: int | None = None,
        decay: Callable[[float], float] = linear,
        averaging: Averaging | None = None,
        clip: float | None = None,
        validation_fraction: float = 0.1,
        patience: int | None = 3,
        balanced: bool | None = None,
        random_state: Any = None,
        progress: bool | None = False,
    ) -> None:
        self.head = head
        self.backbone = backbone
        self.features = features
        self.optimiser = optimiser
        self.epochs = epochs
        self.batch_size = batch_size
        self.decay = decay
        self.averaging = averaging
        self.clip = clip
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.balanced = balanced
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None, eval_set: Any = None) -> Self:
        """Train on the rows of X.

        Args:
            X: a pandas, polars or pyarrow frame, or an array of numbers (n, d).
            y: targets (n,).
            sample_weight: what each row counts (n,), in the loss and in the constants that a head learns. A row of
                weight 0 is left out altogether. A row of weight 2 is not the same as two rows, as those may be in two
                batches; within a batch the weights are divided by their sum, so give them batches that hold many.
            eval_set: a pair (X, y), or a list of one, that decides when to stop, in place of `validation_fraction`.

        """
        if not 0.0 <= self.validation_fraction < 1.0:
            raise ValueError(f"NetworkRegressor needs 0 <= validation_fraction < 1, got {self.validation_fraction}")
        rows = self._labelled(X, y, sample_weight, reset=True)
        self._random = _random(self.random_state)
        seed = self._seed()
        held = None
        if eval_set is not None:
            held = self._one_pair(eval_set)
        elif kept := min(round(self.validation_fraction * len(rows.table)), len(rows.table) - 1):
            order = np.random.default_rng(seed).permutation(len(rows.table))
            held, rows = rows.take(order[:kept]), rows.take(order[kept:])
        return self._begin(rows, held, seed, self.epochs, self.decay)._balance(rows, held)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """One epoch more, on these rows alone; ids that are new get vectors of their own.

        The first call learns the kinds of the columns, their scales and the constants of the head, which stay: give it
        rows enough to be typical. No rows are held out, and the learning rate does not decay, as no end is in sight.

        Args:
            X: rows with the columns of the first call.
            y: their targets (n,).
            sample_weight: what each row counts (n,).

        """
        begins = not hasattr(self, "model_")
        rows = self._labelled(X, y, sample_weight, reset=begins)
        if begins:
            self._random = _random(self.random_state)
            return self._begin(rows, None, self._seed(), 1, constant)
        recipe = Recipe(
            self._stands_for("optimiser"),
            batch_size=self._batch_size(len(rows.table)),
            averaging=self._stands_for("averaging"),
            clip=self.clip,
            seed=self._seed(),
        )
        before = replace(self.model_, weight=rows.weight)
        return self._keep(before.update(rows.table, recipe, self.progress), self.n_iter_ + 1)

    def predict(self, X: Any) -> Array:
        """Predictions (n,), in units of the target.

        Args:
            X: rows with the columns of training, in the same order.

        """
        check_is_fitted(self)
        return self.model_.predict(read_features(self, X, reset=False)).double().numpy()

    @available_if(_has_law)  # type: ignore[untyped-decorator]
    def predict_quantile(self, X: Any, q: float | Sequence[float]) -> Array:
        """Quantiles of the law of y|x that the head assumes: only heads with a law have them.

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
        # A module's attributes are tensors or modules to the type checker.
        quantile: Callable[[Raw, float], Tensor] = cast(Any, model.head.distribution).quantile
        parts = []
        with torch.no_grad():
            for batch in Dataset(x, torch.zeros(len(next(iter(x.values()))))).batches(BATCH):
                raw = model.raw(batch.x)
                parts.append(torch.stack([quantile(raw, float(level)) for level in levels.flat], -1))
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

    def _stands_for(self, name: str) -> Any:
        given = getattr(self, name)
        return _DEFAULTS.get(name) if given is None else given

    def _head(self) -> Any:
        # Not among the defaults that nested names reach into: seven branches deep nobody would look for one.
        return AutoSUN() if self.head is None else self.head

    def _labelled(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Labelled:
        head = self._head()
        if not isinstance(head, Head):
            raise TypeError(f"head must be a Head such as LogSUN(), got {head!r}")
        target = checked(y, self)
        table = read_features(self, X, reset=reset)
        check_consistent_length(table, target)
        require_credible(target, head)
        return Labelled.of(table, target, read_weights(sample_weight, len(target)), named=is_frame(X))

    def _one_pair(self, eval_set: Any) -> Labelled:
        found = pairs(eval_set)
        if len(found) != 1:
            raise ValueError(f"eval_set must be one pair (X, y), or a list of one; got {len(found)} pairs")
        return self._labelled(*found[0], None, reset=False)

    def _begin(
        self, rows: Labelled, held: Labelled | None, seed: int, epochs: int, decay: Callable[[float], float]
    ) -> Self:
        features = rows.guess() if self.features is None else self.features.fit(rows.table)
        model = Model(self._stands_for("backbone")(features), self._head(), seed)
        data = rows.encoded(features)
        if data.weight is not None:
            model.prepare(as_weighted(data.y, data.weight))
        history = fit(
            model,
            data,
            optimiser=self._stands_for("optimiser"),
            epochs=epochs,
            batch_size=self._batch_size(len(data)),
            decay=decay,
            averaging=self._stands_for("averaging"),
            clip=self.clip,
            valid=None if held is None else held.encoded(features),
            # Unlike NRMSE it is finite for targets that are all zero.
            monitor=RMSE,
            patience=None if held is None else self.patience,
            seed=seed,
            progress=self.progress,
        )
        return self._keep(TableModel(features, model, rows.target, rows.weight, history), history.rows // len(data))

    def _balance(self, rows: Labelled, held: Labelled | None) -> Self:
        if self.head is None if self.balanced is None else self.balanced:
            valid = None if held is None else held.encoded(self.features_)
            balanced = balance(self.model_.model, rows.encoded(self.features_), valid)
            self.model_ = replace(self.model_, model=balanced)
        return self

    def _keep(self, model: TableModel, epochs: int) -> Self:
        self.model_, self.n_iter_ = model, epochs
        return self

    def _batch_size(self, rows: int) -> int:
        return self.batch_size or steady_batch(rows)

    def _seed(self) -> int:
        return int(self._random.randint(2**31 - 1))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.positive_only = positive_only(self._head().transform)
        return tags


def _random(random_state: Any) -> np.random.RandomState:
    # scikit-learn would take None for numpy's own generator, and drawing from that moves other people's numbers.
    return np.random.RandomState() if random_state is None else check_random_state(random_state)
