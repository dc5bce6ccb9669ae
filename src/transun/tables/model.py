"""From a table to a trained model in one call, and back to predictions for other tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transun.backbones import Backbone, Dimension, EmbeddingMLP
from transun.data import Dataset, Features, infer, read_table
from transun.heads import AutoSUN, Head
from transun.metrics import STANDARD, Metric
from transun.models.checkpoint import describe_model, grow, load_model, save_model
from transun.models.network import Model
from transun.training.averaging import Averaging
from transun.training.calibration import balance
from transun.training.evaluation import evaluate, predict
from transun.training.history import History
from transun.training.loop import fit
from transun.training.optimisers import Adam, Optimiser, constant

__all__ = ["Recipe", "TableModel", "embedding_mlp", "train"]


@dataclass(frozen=True)
class Recipe:
    """How to train: the arguments of `fit` that do not depend on the data.

    With a share of validation rows, training looks at them after every epoch, keeps the best weights and stops after
    `patience` looks without improvement.
    """

    optimiser: Optimiser = Adam()
    epochs: int = 1
    batch_size: int = 512
    decay: Callable[[float], float] = constant
    averaging: Averaging | None = None
    clip: float | None = None
    valid_share: float = 0.0
    patience: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.0 <= self.valid_share < 1.0:
            raise ValueError(f"Recipe needs 0 <= valid_share < 1, got {self.valid_share}")
        if self.patience is not None and self.valid_share == 0.0:
            raise ValueError("Recipe: patience looks at validation rows; set valid_share above 0 as well")

    def fit(self, model: Model, data: Dataset, progress: bool | None = None) -> History:
        """Train the model on the rows, some of them kept for validation if so asked."""
        rows, valid = data, None
        if self.valid_share:
            rows, valid = data.split(1.0 - self.valid_share, self.seed)
        return fit(
            model,
            rows,
            optimiser=self.optimiser,
            epochs=self.epochs,
            batch_size=self.batch_size,
            decay=self.decay,
            averaging=self.averaging,
            clip=self.clip,
            valid=valid,
            patience=self.patience,
            seed=self.seed,
            progress=progress,
        )


def steady_batch(rows: int) -> int:
    """Rows a step for a table of so many: 32 steps an epoch, yet batches of at least 16 rows and at most 512.

    >>> steady_batch(100), steady_batch(6_400), steady_batch(1_000_000)
    (16, 200, 512)
    """
    return min(max(rows // 32, 16), 512)


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
    EmbeddingMLP(ids={'item': 3}, bags={}, numeric=(), dim=4, hidden=(8,), dropout=0.0)

    """
    return EmbeddingMLP(features.ids, features.bags, features.numeric, dim, hidden, dropout)


@dataclass(frozen=True)
class TableModel:
    """A model and the features it was trained with: tables in, predictions out.

    Columns are found by name, so their order and further columns do not matter; ids that training did not see share
    one vector. Saved as one folder that holds nothing executable.
    """

    features: Features
    model: Model
    target: str
    weight: str | None = None
    history: History = field(default_factory=History, compare=False, repr=False)

    def predict(self, source: Any) -> Tensor:
        """Predictions (n,) for the rows of a table, which needs no target column."""
        x = self.features.encode(source)
        rows = len(next(iter(x.values())))
        return predict(self.model, Dataset(x, torch.zeros(rows))) if rows else torch.zeros(0)

    def evaluate(self, source: Any, metrics: Iterable[Metric] = STANDARD) -> dict[str, float]:
        """Metrics on the rows of a table with the target column."""
        return evaluate(self.model, self.dataset(source), metrics)

    def dataset(self, source: Any) -> Dataset:
        """The rows of a table, encoded."""
        return self.features.to_dataset(source, self.target, self.weight)

    def update(self, source: Any, recipe: Recipe = Recipe(), progress: bool | None = None) -> "TableModel":
        """Go on training with the rows of another day: new ids get vectors of their own, old ones keep theirs."""
        table = read_table(source)
        features = self.features.grow(table)
        sizes = {name: size for name, size in {**features.ids, **features.bags}.items() if isinstance(size, int)}
        updated = replace(self, features=features, model=grow(self.model, sizes))
        return replace(updated, history=recipe.fit(updated.model, updated.dataset(table), progress))

    def save(self, folder: str | Path) -> None:
        """Write model and features into a folder."""
        extra = {"features": self.features.to_json(), "target": self.target, "weight": self.weight}
        save_model(self.model, folder, extra)

    @classmethod
    def load(cls, folder: str | Path, plugins: Mapping[str, Callable[..., Any]] | None = None) -> "TableModel":
        """Read what `save` wrote; nothing in the folder is executed."""
        extra = describe_model(folder).extra
        missing = {"features", "target", "weight"} - set(extra)
        if missing:
            raise ValueError(f"{folder} holds a model without its features; load it with load_model")
        features = Features.from_json(extra["features"])
        return cls(features, load_model(folder, plugins), extra["target"], extra["weight"])


def train(
    source: Any,
    target: str,
    head: Head | None = None,
    *,
    features: Features | None = None,
    exclude: Iterable[str] = (),
    weight: str | None = None,
    backbone: Callable[[Features], Backbone] = embedding_mlp,
    recipe: Recipe = Recipe(),
    progress: bool | None = None,
) -> TableModel:
    """Train a head on a table: a frame, a CSV or Parquet file, a folder of them.

    Args:
        source: the training rows; what `read_table` takes. Larger than memory: `ParquetStream` and `fit`.
        target: the column to predict.
        head: the method; None is `AutoSUN()`, for targets ≥ 0, and a last factor that makes the total right, see
            `balance`. Who names a head gets that head and nothing else.
        features: how to read the columns, fitted here to these rows; None guesses (see `infer`, and print `summary`).
        exclude: columns that a guess must leave out, above all what is known only after the target.
        weight: the column of sample weights.
        backbone: builds the network from the fitted features.
        recipe: how to train.
        progress: show a progress bar; None shows it on a terminal.

    >>> table = {"item": ["a", "b", "a", "b"], "gmv": [1.0, 10.0, 3.0, 30.0]}
    >>> trained = train(table, "gmv", recipe=Recipe(epochs=50))
    >>> a, b = trained.predict({"item": ["a", "b"]}).tolist()
    >>> a < 8 < b
    True

    """
    table = read_table(source)
    if features is None:
        fitted = infer(table, target, weight=weight, exclude=exclude)
    elif exclude:
        raise ValueError("exclude is for guessed features: leave the columns out of the ones you pass instead")
    else:
        fitted = features.fit(table)
    model = Model(backbone(fitted), AutoSUN() if head is None else head, recipe.seed)
    untrained = TableModel(fitted, model, target, weight)
    rows = untrained.dataset(table)
    history = recipe.fit(model, rows, progress)
    return replace(untrained, model=balance(model, rows) if head is None else model, history=history)
