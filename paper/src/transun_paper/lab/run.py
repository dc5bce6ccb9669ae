"""A run: one method trained once on one data set, a pure function of its text."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from transun import training
from transun.backbones import Backbone, EmbeddingMLP
from transun.corrections import Correction
from transun.data import Dataset
from transun.heads import Head
from transun.models.network import Model
from transun.models.spec import dumps, loads
from transun.training.averaging import EMA, Averaging
from transun.training.history import History, Step
from transun.training.loop import fit
from transun.training.optimisers import Adam, Optimiser, constant
from transun_paper.lab.encoded_dataset import Frozen


@dataclass(frozen=True)
class Training:
    """How a run is trained: up to `epochs` epochs, the best look at the validation rows is kept.

    Args:
        optimiser: how weights follow gradients.
        epochs: at most so many.
        batch_size: rows a step.
        decay: factor of the learning rate by the share of training done. `constant` by default: training that stops
            early would otherwise depend on how long it was allowed to be.
        averaging: of the weights; what is looked at and kept is the average.
        patience: looks without improvement of the validation NRMSE before training stops; None never stops.
        looks: looks at the validation rows an epoch.

    """

    optimiser: Optimiser = Adam()
    epochs: int = 1
    batch_size: int = 512
    decay: Callable[[float], float] = constant
    averaging: Averaging | None = EMA()
    patience: int | None = 2
    looks: int = 1

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "looks"):
            if getattr(self, name) < 1:
                raise ValueError(f"Training needs {name} >= 1, got {getattr(self, name)}")

    def fit(
        self, model: Model, rows: Dataset, valid: Dataset | None = None, on_step: Callable[[Step], None] | None = None
    ) -> History:
        """Train a model so, with its own seed; without validation rows to the last epoch."""
        watched = valid is not None
        return fit(
            model,
            rows,
            optimiser=self.optimiser,
            epochs=self.epochs,
            batch_size=self.batch_size,
            decay=self.decay,
            averaging=self.averaging,
            valid=valid,
            check_every=math.ceil(math.ceil(len(rows) / self.batch_size) / self.looks) if watched else None,
            patience=self.patience if watched else None,
            seed=model.seed,
            on_step=on_step,
            progress=False,
        )


@dataclass(frozen=True)
class MLP:
    """The paper's network over the columns of whatever data it is built for."""

    dim: int = 16
    hidden: tuple[int, ...] = (128, 64, 32)
    dropout: float = 0.0

    def build(self, data: Frozen) -> Backbone:
        """The network for these columns."""
        return EmbeddingMLP(data.ids, data.bags, data.numeric, self.dim, self.hidden, self.dropout)


# What a text may name besides transun's own concepts. A network of another kind is added here, with a `build`.
NAMES: dict[str, Callable[..., Any]] = {"MLP": MLP, "Training": Training} | {
    name: getattr(training, name) for name in training.__all__
}


@dataclass(frozen=True)
class Run:
    """One method on one data set with one seed; equal runs have equal texts, and the text finds the result.

    Args:
        dataset: the key of frozen data, as `freeze` returns it; it names the file in the cache.
        head: the method.
        training: how to train.
        backbone: has `build(frozen)`, which returns the network.
        correction: learned from the validation rows after training, and applied to every prediction.
        balanced: whether a factor then makes the total of training and validation rows right; see `balance`.
        seed: of the initial weights and of the order of rows.

    >>> run = Run("globo-1a2b3c4d", LogMSE())
    >>> Run.parse(run.text).text == run.text
    True

    """

    dataset: str
    head: Head
    training: Training = Training()
    backbone: Any = MLP()
    correction: Correction | None = None
    balanced: bool = False
    seed: int = 0

    @property
    def spec(self) -> dict[str, Any]:
        """The run as plain values, its objects as texts."""
        # Said only where it is so: what most runs do not have is not part of their address.
        balanced = {"balanced": True} if self.balanced else {}
        return balanced | {
            "dataset": self.dataset,
            "head": dumps(self.head),
            "training": dumps(self.training),
            "backbone": dumps(self.backbone),
            "correction": dumps(self.correction),
            "seed": self.seed,
        }

    @property
    def text(self) -> str:
        """One line of JSON: what a store keeps the report under and a worker reads."""
        return json.dumps(self.spec, ensure_ascii=False)

    @property
    def trained(self) -> tuple[str, ...]:
        """What decides the weights except the seed: runs that agree in it can be trained together."""
        return tuple(self.spec[name] for name in ("dataset", "head", "training", "backbone"))

    @property
    def reading(self) -> str:
        """What is read from the trained model."""
        return f"{dumps(self.correction)}{', balanced' if self.balanced else ''}"

    @classmethod
    def parse(cls, text: str) -> "Run":
        """The inverse of `text`; read, never executed."""
        return cls.from_spec(json.loads(text))

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> "Run":
        """The inverse of `spec`."""
        objects = {name: loads(spec[name], NAMES) for name in ("head", "training", "backbone", "correction")}
        balanced = bool(spec.get("balanced", False))
        return cls(dataset=spec["dataset"], balanced=balanced, seed=int(spec["seed"]), **objects)

    def with_seed(self, seed: int) -> "Run":
        """The same run with another seed."""
        return replace(self, seed=seed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)
