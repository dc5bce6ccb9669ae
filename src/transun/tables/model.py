"""A trained model with the features it reads: tables in, predictions out."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from transun.backbones import Activation, Dimension, EmbeddingMLP, ReLU, TabM, Trees
from transun.data import Dataset, Features, drop_missing, read_table
from transun.data.exposure import read_exposure
from transun.data.schema import given_names
from transun.data.seen_rows import SeenRows, row_hashes
from transun.metrics import STANDARD, Metric
from transun.models.checkpoint import grow, load_model, save_model, writes_model
from transun.models.description import describe_model
from transun.models.interval_file import read_intervals, save_intervals
from transun.models.network import Model
from transun.models.row_intervals import RowIntervals
from transun.training.evaluation import evaluate, predict
from transun.training.history import History
from transun.training.recipe import Recipe, require_recipe
from transun.training.tracking import Tracker
from transun.training.validated import fit_with_validation

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TableModel", "embedding_mlp", "load", "tabm", "tree_inputs"]


def embedding_mlp(
    features: Features,
    *,
    dim: int | Dimension = 16,
    hidden: Sequence[int] = (128, 64, 32),
    dropout: float = 0.0,
) -> EmbeddingMLP:
    """The paper's network over a table's columns; `partial(embedding_mlp, hidden=(64,))` is another one.

    Args:
        features: fitted to the table.
        dim: width of each embedding, or a rule such as `ByCardinality()`.
        hidden: widths of the dense layers.
        dropout: share of activations dropped after each dense layer during training.

    >>> embedding_mlp(Features({"item": Id()}).fit({"item": [7, 3]}), dim=4, hidden=(8,))
    EmbeddingMLP(ids={'item': 3}, bags={}, numeric=(), dim=4, hidden=(8,), dropout=0.0, ranks=(), bins=32, periods={})

    """
    return EmbeddingMLP(
        features.ids,
        features.bags,
        features.numeric,
        dim,
        hidden,
        dropout,
        features.ranks,
        periods=features.periods,
    )


def tabm(
    features: Features,
    *,
    dim: int | Dimension = 16,
    hidden: Sequence[int] = (128, 128),
    dropout: float = 0.1,
    bins: int = 32,
    members: int = 8,
    activation: Activation = ReLU(),
) -> TabM:
    """TabM over a table's columns: `train(..., backbone=tabm)`, or `backbone=partial(tabm, members=16)`.

    Args:
        features: fitted to the table.
        dim: width of each embedding, or a rule such as `ByCardinality()`.
        hidden: widths of the dense layers.
        dropout: share of activations dropped after each dense layer during training.
        bins: pieces of the encoding of every rank.
        members: networks that are trained side by side.
        activation: after each dense layer.

    >>> backbone = tabm(Features({"item": Id()}).fit({"item": [7, 3]}), members=4)
    >>> backbone.ids, backbone.hidden, backbone.members
    ({'item': 3}, (128, 128), 4)

    """
    return TabM(
        features.ids,
        features.bags,
        features.numeric,
        dim,
        hidden,
        dropout,
        features.ranks,
        bins,
        features.periods,
        members,
        activation,
    )


def tree_inputs(features: Features) -> Trees:
    """The columns of a table as boosted trees see them.

    Args:
        features: fitted to the table.

    """
    return Trees(features.ids, features.bags, features.numeric)


@dataclass(frozen=True)
class TableModel:
    """A model and the features it was trained with.

    Columns are found by name, so their order and further columns do not matter; ids that training did not see share
    one vector. It is saved as one folder that holds nothing executable.
    """

    features: Features
    model: Model
    target: str
    weight: str | None = None
    history: History = field(default_factory=History, compare=False, repr=False)
    seen: SeenRows | None = field(default=None, compare=False, repr=False)
    """What it remembers of its training rows; None if they are not known."""
    exposure: str | None = None
    """The column that amounts were collected over: the network predicts amounts per unit of it."""

    intervals: RowIntervals | None = field(default=None, compare=False, repr=False)
    """The errors of rows that it has not seen, for `predict_interval`; None where they were not learned."""

    @property
    def sources(self) -> list[str]:
        """The columns that a prediction needs."""
        return given_names(*self.features.sources, self.exposure)

    def predict(self, source: Any) -> Tensor:
        """Predictions (n,) for the rows of a table, which needs no target column; amounts, if there is an exposure."""
        if self.exposure is not None:
            source = read_table(source, verbatim=self.features.types)
        x = self.features.encode(source)
        rows = len(next(iter(x.values())))
        pred = predict(self.model, Dataset(x, torch.zeros(rows))) if rows else torch.zeros(0)
        return pred if self.exposure is None else self.to_amounts(pred, source)

    def to_amounts(self, rates: Tensor, table: "pa.Table") -> Tensor:
        """Predicted rates times the exposures of the rows of a table; the rates themselves if there is no exposure."""
        if self.exposure is None:
            return rates
        return rates * torch.from_numpy(read_exposure(table, self.exposure)).to(rates.dtype)

    def predict_interval(self, source: Any, level: float = 0.9) -> Tensor:
        """Lower and upper ends (n, 2) between which the target of a row lies with at least this probability.

        It holds for every head, on average over rows of each level of the prediction, for rows like those that
        `with_intervals` was given; `transun fit` gives it the rows that it holds out.
        """
        table = read_table(source, verbatim=self.features.types)
        rates = replace(self, exposure=None).predict(table).double()
        return torch.stack([self.to_amounts(end, table) for end in self.intervals_of(rates, level).unbind(1)], 1)

    def with_intervals(self, source: Any) -> "TableModel":
        """The same model with intervals of single rows, learned from labelled rows that it was not trained on.

        >>> rows = {"item": ["a", "b"] * 50, "gmv": [1.0, 10.0, 3.0, 30.0] * 25}
        >>> other = {"item": ["a"] * 99, "gmv": [i / 10 for i in range(1, 100)]}
        >>> model = train(rows, "gmv", MSE()).with_intervals(other)
        >>> [[round(end, 2) for end in ends] for ends in model.predict_interval({"item": ["a"]}).tolist()]
        [[0.5, 9.5]]
        """
        table, _ = drop_missing(read_table(source, verbatim=self.features.types), self.target)
        if self.seen_share(table):
            raise ValueError("intervals are learned from rows that the model has not seen, and these are training rows")
        rows = self.dataset(table)
        return replace(self, intervals=RowIntervals.of(predict(self.model, rows).double().numpy(), rows.y.numpy()))

    def intervals_of(self, rates: Tensor, level: float) -> Tensor:
        """Lower and upper ends (n, 2) of rows with these predictions (n,), per unit of the exposure if there is one."""
        if self.intervals is None:
            raise ValueError(
                "the model has no intervals of rows yet: with_intervals(rows) learns them from labelled rows that it "
                "has not seen"
            )
        return torch.from_numpy(self.intervals.interval(rates.double().numpy(), level))

    def evaluate(self, source: Any, metrics: Iterable[Metric] = STANDARD) -> dict[str, float]:
        """Metrics on the rows of a table with the target column; per unit of the exposure, if there is one."""
        return evaluate(self.model, self.dataset(source), metrics)

    def dataset(self, source: Any) -> Dataset:
        """The rows of a table, encoded."""
        return self.features.to_dataset(source, self.target, self.weight, self.exposure)

    def seen_share(self, source: Any) -> float:
        """The estimated share of the rows of a table that were training rows; 0 if there is no evidence of any.

        On training rows a model looks better than it is, so its totals are to be judged by other rows.
        """
        if self.seen is None:
            return 0.0
        rows = self.dataset(source)
        return self.seen.share(row_hashes(rows.x, rows.y))

    def update(
        self,
        source: Any,
        recipe: Recipe = Recipe(),
        *,
        tracker: Tracker | None = None,
        progress: bool | None = None,
    ) -> "TableModel":
        """Continue training with the rows of another day: new ids get vectors of their own, old ones keep theirs.

        Only the network learns. Trees stay as they are, about which there is a warning; a model of trees alone cannot
        be updated.
        """
        require_recipe(recipe)
        if not any(parameter.requires_grad for parameter in self.model.parameters()):
            raise ValueError(
                "this model consists of trees alone, which stay as they are: train anew on old and new rows"
            )
        if self.model.network.numbers_without_gradient():
            warnings.warn(
                "the trees of this model stay as they are, and only its network learns from these rows, so that "
                "predictions follow them in part: train anew on old and new rows; a model that was trained with "
                "only='network' is updated as a whole",
                stacklevel=2,
            )
        table = read_table(source, verbatim=self.features.types)
        features = self.features.grow(table)
        sizes = {name: size for name, size in {**features.ids, **features.bags}.items() if isinstance(size, int)}
        grown = replace(self, features=features, model=grow(self.model, sizes))
        rows = grown.dataset(table)
        model, history = fit_with_validation(grown.model, rows, recipe, tracker=tracker, progress=progress)
        seen = SeenRows.of(rows).joined(self.seen)
        return replace(grown, model=model, history=history, seen=seen, intervals=None)

    def save(self, folder: str | Path) -> None:
        """Write model, features and intervals into a folder; see `save_model` for a model whose tables are sharded."""
        extra = {
            "features": self.features.to_dict(),
            "target": self.target,
            "weight": self.weight,
            "exposure": self.exposure,
            "seen": None if self.seen is None else self.seen.to_dict(),
        }
        save_model(self.model, folder, extra)
        if writes_model(self.model):
            save_intervals(self.intervals, folder)


def load(folder: str | Path, plugins: Mapping[str, Callable[..., Any]] | None = None) -> TableModel:
    """The model that `TableModel.save` or `transun fit` wrote; nothing in the folder is executed.

    Args:
        folder: the folder of the saved model.
        plugins: classes and functions of your own that the model is made of, by name.

    """
    extra = describe_model(folder).extra
    missing = {"features", "target", "weight"} - set(extra)
    if missing:
        raise ValueError(f"{folder} holds a model without its features; load it with load_model")
    columns = [extra[name] for name in ("target", "weight", "exposure") if extra.get(name) is not None]
    if extra["target"] is None or not all(isinstance(name, str) for name in columns):
        raise ValueError(f"{folder} names no columns of its target, weight and exposure: copy it again, or train anew")
    features = Features.from_dict(extra["features"])
    seen = None if extra.get("seen") is None else SeenRows.from_dict(extra["seen"])
    return TableModel(
        features,
        load_model(folder, plugins),
        extra["target"],
        extra["weight"],
        seen=seen,
        exposure=extra.get("exposure"),
        intervals=read_intervals(folder),
    )
