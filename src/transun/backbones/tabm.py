"""TabM: several networks in one, which share most of their weights and are trained side by side."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from torch import nn

from transun.backbones.activations import Activation, ReLU
from transun.backbones.dropout import Dropout
from transun.backbones.embedding import EmbeddingMLP
from transun.support.arguments import require_count
from transun.support.extras import need


@dataclass(frozen=True)
class TabM(EmbeddingMLP):
    """`EmbeddingMLP` with k members: layer i of member j is ReLU(sⱼ·(Wᵢ·(rⱼ·x)) + bⱼ), and only Wᵢ is shared by all.

    Member j scales the inputs of a layer by its own vector rⱼ and the outputs by sⱼ (products element by element) and
    adds its own bias. The loss of a row is the mean of the members' losses, the prediction of a row the mean of their
    predictions: an ensemble that errs less than any of its members, for little more memory than one network. The first
    rⱼ are random, one number for all the features of a column, so that members start by weighing columns differently;
    all other scales start at 1. Gorishniy, Kotelnikov and Babenko, "TabM", ICLR 2025; the layers are those of the
    package `tabm`.

    Stages: the embedding, which all members share, then one per hidden layer. The arithmetic of the dense layers and of
    the head is that of k networks; a branch with `shared="all"` adds k small output layers.

    Args:
        ids: single-valued columns (B,) of integers, as in `EmbeddingMLP`.
        bags: multi-valued columns (B, L) that are averaged, as in `EmbeddingMLP`.
        numeric: columns (B,) of floats, taken as they are: standardise them first.
        dim: width of each embedding, or a rule such as `ByCardinality()`.
        hidden: widths of the dense layers, at least one.
        dropout: share of activations dropped after each dense layer during training, in each member others.
        ranks: columns (B,) of floats from 0 to 1, expanded as in `EmbeddingMLP`.
        bins: pieces of the encoding of every rank.
        periods: columns (B,) of codes of periods, as in `EmbeddingMLP`.
        members: k. More members err less, with less and less to gain, and cost k times the arithmetic of one.
        activation: after each dense layer; the statistics of `Dice()` are taken over all members.

    >>> backbone = TabM(numeric=("a", "b"), hidden=(8,), members=4)
    >>> batch = {"a": torch.tensor([0.5, 1.0]), "b": torch.tensor([-1.0, 0.0])}
    >>> model = Model(backbone, MSE()).prepare(torch.tensor([1.0, 3.0]))
    >>> [tuple(raw.shape) for raw in model.raw(batch)]  # four members for each of two rows
    [(8, 1)]
    >>> model(batch).tolist()  # before training the mean of the targets, as in any network
    [2.0, 2.0]

    """

    hidden: Sequence[int] = (128, 128)
    dropout: float = 0.1
    members: int = 8
    activation: Activation = field(default=ReLU())

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.hidden:
            raise ValueError("TabM needs at least one hidden layer: its members differ in their dense layers")
        require_count("TabM", members=self.members)

    def stages(self) -> list[Callable[[], nn.Module]]:
        first, *others = pairwise((self._embedded(), *self.hidden))
        layers = [partial(self._first_layer, *first), *(partial(self._layer, *pair) for pair in others)]
        return [self._embed(), *layers[:-1], lambda: nn.Sequential(layers[-1](), nn.Flatten(0, 1))]

    def _first_layer(self, in_features: int, out_features: int) -> nn.Sequential:
        """Features (B, d) to those of each member, (B, k, out_features)."""
        scales = {"scaling_init": ("normal", "ones"), "first_scaling_init_chunks": self._embedded_widths()}
        view = need("tabm").EnsembleView(k=self.members)
        return nn.Sequential(view, *self._layer(in_features, out_features, **scales))

    def _layer(self, in_features: int, out_features: int, **scales: object) -> nn.Sequential:
        """Features of each member, (B, k, in_features), to those after one dense layer."""
        return nn.Sequential(
            need("tabm").LinearBatchEnsemble(
                in_features, out_features, k=self.members, **{"scaling_init": "ones"} | scales
            ),
            self.activation.build(out_features),
            *([Dropout(self.dropout)] if self.dropout else []),
        )
