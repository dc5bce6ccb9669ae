"""A run: one method trained once on one data set; its report is a function of its text alone."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from transun import training
from transun.backbones import Backbone, EmbeddingMLP
from transun.corrections import Correction
from transun.heads import Head
from transun.metrics import NRMSE
from transun.models.network import Model
from transun.models.spec import dumps, loads
from transun.training.averaging import EMA
from transun.training.batches import BatchSource
from transun.training.history import History, Step
from transun.training.loop import fit
from transun.training.recipe import Recipe, plain_recipe
from transun_paper.lab.encoded_dataset import EncodedDataset


def lab_recipe(**changes: Any) -> Recipe:
    """The recipe of every run: a constant learning rate, averaged weights, and early stopping after two checks.

    The rate is constant because training that stops early would otherwise depend on how long it was allowed to be.

    Args:
        **changes: settings of `Recipe` that differ.

    """
    return plain_recipe(**{"averaging": EMA(), "monitor": NRMSE, "patience": 2} | changes)


def fit_run(
    model: Model,
    rows: BatchSource,
    recipe: Recipe,
    valid: BatchSource | None = None,
    on_step: Callable[[Step], None] | None = None,
) -> History:
    """Train a model by a recipe with the model's own seed."""
    return fit(model, rows, replace(recipe, seed=model.seed), valid=valid, on_step=on_step, progress=False)


@dataclass(frozen=True)
class MLP:
    """The paper's network over the columns of whatever data it is built for."""

    dim: int = 16
    hidden: tuple[int, ...] = (128, 64, 32)
    dropout: float = 0.0

    def build(self, data: EncodedDataset) -> Backbone:
        """The network for these columns."""
        return EmbeddingMLP(data.ids, data.bags, data.numeric, self.dim, self.hidden, self.dropout)


# What a text may name besides transun's heads, backbones and corrections: settings of training and its monitor. A
# network of another kind is added here, with a `build`.
NAMES: dict[str, Callable[..., Any]] = {
    "MLP": MLP,
    type(NRMSE).__name__: type(NRMSE),
    **{name: getattr(training, name) for name in training.__all__},
}


@dataclass(frozen=True)
class Run:
    """One method on one data set with one seed; equal runs have equal texts, by which results are found.

    Args:
        dataset: the key of an encoded data set, as `encode_dataset` returns it; it names the file in the cache.
        head: the method.
        training: how to train.
        backbone: has `build(data)`, which returns the network.
        correction: learned from the validation rows after training, and applied to every prediction.
        balanced: whether a factor then makes the total of training and validation rows right; see `balance`.
        seed: of the initial weights and of the order of rows.
        fused: whether the base is predicted where validation rows find its order better; see `fuse`.

    >>> run = Run("globo-1a2b3c4d", LogMSE())
    >>> Run.parse(run.text).text == run.text
    True

    """

    dataset: str
    head: Head
    training: Recipe = lab_recipe()
    backbone: Any = MLP()
    correction: Correction | None = None
    balanced: bool = False
    seed: int = 0
    fused: bool = False

    @property
    def spec(self) -> dict[str, Any]:
        """The run as plain values, its objects as texts."""
        # A default is left out of the cache key, so that results from before the argument existed are still found.
        options = {name: True for name in ("balanced", "fused") if getattr(self, name)}
        return options | {
            "dataset": self.dataset,
            "head": dumps(self.head),
            "training": dumps(self.training),
            "backbone": dumps(self.backbone),
            "correction": dumps(self.correction),
            "seed": self.seed,
        }

    @property
    def text(self) -> str:
        """One line of JSON: the cache key of the report, and what a worker reads."""
        return json.dumps(self.spec, ensure_ascii=False)

    @property
    def trained(self) -> tuple[str, ...]:
        """What decides the weights: runs that agree in it share one trained model."""
        return tuple(str(self.spec[name]) for name in ("dataset", "head", "training", "backbone", "seed"))

    @classmethod
    def parse(cls, text: str) -> "Run":
        """The inverse of `text`; read, never executed."""
        return cls.from_spec(json.loads(text))

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> "Run":
        """The inverse of `spec`."""
        objects = {name: loads(spec[name], NAMES) for name in ("head", "training", "backbone", "correction")}
        balanced, fused = (bool(spec.get(name, False)) for name in ("balanced", "fused"))
        return cls(dataset=spec["dataset"], balanced=balanced, seed=int(spec["seed"]), fused=fused, **objects)

    def with_seed(self, seed: int) -> "Run":
        """The same run with another seed."""
        return replace(self, seed=seed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)
