"""Deep Interest Network: a history pooled by how much each of its entries has to do with the target item."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear as affine

from transun.backbones.activations import Activation, Dice, Sigmoid
from transun.backbones.backbone import Inputs
from transun.backbones.embedding import (
    Dimension,
    Embedding,
    EmbeddingMLP,
    column_widths,
    dense,
    linear_layer,
    named_columns,
)


@dataclass(frozen=True)
class DIN(EmbeddingMLP):
    """`EmbeddingMLP` plus histories pooled as Σ w_t·k_t, w = softmax(a / √d), a_t = MLP([q, k_t, q - k_t, q·k_t]).

    q is the target (say item and category), k_t the t-th entry of the history, d their width. An average forgets which
    past orders are related to this item; the activation unit weighs them. An empty history is a zero vector.

    Stages: embedding with attention, then one per hidden layer; `shared=1`, the paper's choice on its industrial data,
    shares the tables and the activation unit. A row costs L passes through the unit, most of the arithmetic for long
    histories.

    Args:
        ids: single-valued columns (B,), targets among them, name -> number of ids, or -> column whose table to use.
        bags: multi-valued columns (B, L) that are averaged, as in `EmbeddingMLP`.
        numeric: columns (B,) of floats, taken as they are: standardise them first.
        dim: width of each embedding, or a rule such as `ByCardinality()`.
        hidden: widths of the dense layers.
        dropout: share of activations dropped after each dense layer during training.
        ranks: columns (B,) of floats from 0 to 1, expanded as in `EmbeddingMLP`.
        bins: pieces of the encoding of every rank.
        periods: columns (B,) of codes of periods, as in `EmbeddingMLP`.
        history: multi-valued columns (B, L) padded with -1, name -> the column of `ids` that its entries are compared
            with and whose table they use. Several columns describe the same entries, position by position; an entry
            that is -1 in all of them is padding.
        unit: widths of the activation unit's hidden layers.
        unit_activation: between them.
        activation: after each dense layer; `Dice()` keeps running statistics, which weight averaging does not average.
        normalise: divide by √d and take the softmax, as the released code does. False sums a_t·k_t, as the DIN paper
            does: a long history of interest then weighs more than a short one.

    >>> backbone = DIN({"user": 5, "item": 9}, history={"clicks": "item"}, dim=4, hidden=(8,))
    >>> batch = {"user": torch.tensor([1]), "item": torch.tensor([2]), "clicks": torch.tensor([[2, 7, -1]])}
    >>> backbone.stages()[0]()(batch).shape  # user, item, pooled clicks: 4 each
    torch.Size([1, 12])

    """

    hidden: Sequence[int] = (1024, 512, 256)
    history: Mapping[str, str] = field(default_factory=dict)
    unit: Sequence[int] = (80, 40)
    unit_activation: Activation = field(default=Sigmoid())
    activation: Activation = field(default=Dice())
    normalise: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", tuple(self.unit))
        if not self.history:
            raise ValueError("DIN needs a history column and its target, such as history={'clicks': 'item'}")
        super().__post_init__()
        for name, target in self.history.items():
            if target not in self.ids:
                raise ValueError(f"DIN: history {name!r} is compared with {target!r}, which is no column of ids")
        if any(width < 1 for width in self.unit):
            raise ValueError(f"DIN needs positive widths, got unit={self.unit}")

    def stages(self) -> list[Callable[[], nn.Module]]:
        widths = (self._embedded(), *self.hidden)
        columns = self.ids, self.bags, self.numeric, self.dim, self.ranks, self.bins
        embed = partial(Interest, *columns, self.periods, self.history, self._unit(), self.normalise)
        return [embed, *(partial(dense, *pair, self.dropout, self.activation) for pair in pairwise(widths))]

    def _unit(self) -> "Callable[[], ActivationUnit]":
        return partial(ActivationUnit, self._compared(), self.unit, self.unit_activation)

    def _columns(self) -> tuple[str, ...]:
        return (*super()._columns(), *self.history)

    def _embedded(self) -> int:
        return super()._embedded() + self._compared()

    def _compared(self) -> int:
        widths = column_widths({**self.ids, **self.bags}, self.dim)
        return sum(widths[target] for target in self.history.values())


class Interest(Embedding):
    """An embedding that also pools histories by their relation to the target: features (B, d), pooled last."""

    def __init__(
        self,
        ids: Mapping[str, int | str],
        bags: Mapping[str, int | str],
        numeric: Sequence[str],
        dim: int | Dimension,
        ranks: Sequence[str],
        bins: int,
        periods: Mapping[str, int],
        history: Mapping[str, str],
        unit: Callable[[], "ActivationUnit"],
        normalise: bool,
    ) -> None:
        super().__init__(ids, bags, numeric, dim, ranks, bins, periods)
        self.history, self.normalise = dict(history), normalise
        self.columns = (*self.columns, *history)
        self.table |= {name: self.table[target] for name, target in history.items()}
        self.unit = unit()

    def forward(self, batch: Inputs) -> Tensor:
        columns = named_columns(batch, self.columns)
        features = super().forward(columns)
        # Taken from the features and not looked up again: every look-up has a gradient as large as its table.
        vectors = dict(zip(self.ids, torch.split(features, self._spans(features), 1), strict=False))
        q = torch.cat([vectors[target] for target in self.history.values()], 1)
        k, present = self._entries(columns)
        weight = self.unit(q, k, present)
        if self.normalise:
            # The lowest finite number instead of -∞: a row without any entry would be 0/0.
            lowest = torch.finfo(weight.dtype).min
            weight = (weight / q.shape[1] ** 0.5).masked_fill(~present, lowest).softmax(1)
        # Padding has a weight too, and a zero vector: it adds nothing.
        return torch.cat([features, (weight * k).sum(1)], 1)

    def _spans(self, features: Tensor) -> list[int]:
        widths = [self.widths[name] for name in self.ids]
        return [*widths, features.shape[1] - sum(widths)]

    def _entries(self, columns: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Vectors of the entries (B, L, d) and which of them are not padding (B, L, 1)."""
        lengths = {name: columns[name].shape[-1] for name in self.history}
        # Pair by pair: the lengths of an exported graph may be symbols, which no set can hold.
        if any(length != other for length, other in pairwise(lengths.values())):
            raise ValueError(f"columns of one history need one length, got {lengths}; pad them with -1")
        vectors, present = zip(*(self._look_up_bag(name, columns[name]) for name in self.history), strict=True)
        return torch.cat(vectors, -1), torch.stack(present).any(0)


class ActivationUnit(nn.Module):
    """a_t = MLP([q, k_t, q - k_t, q·k_t]), (B, L, 1), from q (B, d) and k (B, L, d)."""

    def __init__(self, width: int, hidden: Sequence[int], activation: Activation) -> None:
        super().__init__()
        self.layers = nn.ModuleList(linear_layer(*pair) for pair in pairwise((4 * width, *hidden, 1)))
        self.activations = nn.ModuleList(activation.build(units) for units in hidden)

    def forward(self, q: Tensor, k: Tensor, present: Tensor) -> Tensor:
        first, *others = cast(Iterable[nn.Linear], self.layers)
        of_q, of_k, of_difference, of_product = first.weight.chunk(4, 1)
        # The first layer is linear in its four parts, and the difference is no part of its own: (B, L, 3d) instead of
        # (B, L, 4d), the largest tensor of the network. One product a layer: a sum of several would pass over the
        # units' outputs, which are wider still, once for each.
        weight = torch.cat([of_q + of_difference, of_k - of_difference, of_product], 1)
        q = q.unsqueeze(1)
        x = affine(torch.cat([q.expand_as(k), k, q * k], -1), weight, first.bias)
        for activation, layer in zip(self.activations, others, strict=True):
            x = layer(activation(x, present))
        return x
