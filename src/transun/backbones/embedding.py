"""Embedding + MLP: ids, multi-valued ids and numbers into a few dense layers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn

from transun.backbones.backbone import Features

# Small enough that the first predictions are those of the output biases.
_TABLE_SPREAD = 0.05


@dataclass(frozen=True)
class EmbeddingMLP:
    """Embeds every id, averages multi-valued ids, appends numbers, then ReLU layers: the paper's network.

    Stages: the embedding, then one per hidden layer; the paper's five sharing schemes are `shared=0..4`.

    Args:
        ids: single-valued columns (B,) of integers, name -> number of ids, or -> name of the column whose table to use.
        bags: multi-valued columns (B, L) padded with -1, likewise; averaged over what is not padding, empty bags are
            zero vectors.
        numeric: columns (B,) of floats, taken as they are: standardise them first.
        dim: width of each embedding.
        hidden: widths of the dense layers.
        dropout: share of activations dropped after each dense layer during training.

    >>> backbone = EmbeddingMLP(ids={"item": 10}, bags={"history": "item"}, numeric=("price",), dim=4)
    >>> batch = {"item": torch.tensor([3]), "history": torch.tensor([[1, -1]]), "price": torch.tensor([0.5])}
    >>> Model(backbone, MSE())(batch).shape
    torch.Size([1])

    """

    ids: Mapping[str, int | str] = field(default_factory=dict)
    bags: Mapping[str, int | str] = field(default_factory=dict)
    numeric: Sequence[str] = ()
    dim: int = 16
    hidden: Sequence[int] = (128, 64, 32)
    dropout: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "numeric", tuple(self.numeric))
        object.__setattr__(self, "hidden", tuple(self.hidden))
        tables = {**self.ids, **self.bags}
        if not tables and not self.numeric:
            raise ValueError("EmbeddingMLP needs at least one column in ids, bags or numeric")
        if len(tables) + len(self.numeric) != len({*self.ids, *self.bags, *self.numeric}):
            raise ValueError("EmbeddingMLP: a column is named twice among ids, bags and numeric")
        for name, size in tables.items():
            if isinstance(size, str) and not isinstance(tables.get(size), int):
                raise ValueError(f"EmbeddingMLP: column {name!r} uses the table of {size!r}, which has none of its own")
            if isinstance(size, int) and size < 1:
                raise ValueError(f"EmbeddingMLP: column {name!r} needs at least one id, got {size}")
        if self.dim < 1 or any(width < 1 for width in self.hidden):
            raise ValueError(f"EmbeddingMLP needs positive widths, got dim={self.dim}, hidden={self.hidden}")
        if not 0.0 <= self.dropout < 1.0:
            raise ValueError(f"EmbeddingMLP needs 0 <= dropout < 1, got {self.dropout}")

    @property
    def out_features(self) -> int:
        """Width of the last dense layer."""
        return (self._embedded, *self.hidden)[-1]

    @property
    def _embedded(self) -> int:
        return self.dim * (len(self.ids) + len(self.bags)) + len(self.numeric)

    def stages(self) -> list[Callable[[], nn.Module]]:
        widths = (self._embedded, *self.hidden)
        layers = [partial(dense, *pair, self.dropout) for pair in pairwise(widths)]
        return [partial(Embedding, self.ids, self.bags, self.numeric, self.dim), *layers]


def dense(in_features: int, out_features: int, dropout: float = 0.0) -> nn.Module:
    """One hidden layer: linear with He initialisation and zero bias, ReLU, dropout."""
    linear = nn.Linear(in_features, out_features)
    nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")
    nn.init.zeros_(linear.bias)
    return nn.Sequential(linear, nn.ReLU(), *([nn.Dropout(dropout)] if dropout else []))


class Embedding(nn.Module):
    """Named columns to one row of features (B, d): looked-up ids, averaged bags, numbers, in that order."""

    def __init__(
        self, ids: Mapping[str, int | str], bags: Mapping[str, int | str], numeric: Sequence[str], dim: int
    ) -> None:
        super().__init__()
        sizes = {**ids, **bags}
        self.ids, self.bags, self.numeric = tuple(ids), tuple(bags), tuple(numeric)
        # A column that names another column uses its table. Module names may not hold dots.
        self.table = {name: _plain(size if isinstance(size, str) else name) for name, size in sizes.items()}
        self.tables = nn.ModuleDict(
            {_plain(name): _new_table(size, dim) for name, size in sizes.items() if isinstance(size, int)}
        )

    def forward(self, batch: Features) -> Tensor:
        if isinstance(batch, Tensor):
            raise TypeError(f"this network eats named columns {self._names()}, not one tensor")
        missing = [name for name in self._names() if name not in batch]
        if missing:
            raise KeyError(f"the batch lacks column {missing[0]!r}; it has {', '.join(batch)}")
        parts = [self._look_up(name, batch[name]) for name in self.ids]
        for name in self.bags:
            present = batch[name] >= 0
            vectors = self._look_up(name, batch[name].clamp(min=0)) * present.unsqueeze(-1)
            parts.append(vectors.sum(1) / present.sum(1, keepdim=True).clamp(min=1))
        parts.extend(batch[name].unsqueeze(-1).float() for name in self.numeric)
        return torch.cat(parts, 1)

    def _names(self) -> tuple[str, ...]:
        return (*self.ids, *self.bags, *self.numeric)

    def _look_up(self, name: str, ids: Tensor) -> Tensor:
        weight = cast(nn.Embedding, self.tables[self.table[name]]).weight
        if torch.compiler.is_compiling():
            return nn.functional.embedding(ids, weight)
        try:
            return nn.functional.embedding(ids, weight)
        except IndexError:
            size = len(weight)
            wrong = ids[(ids < 0) | (ids >= size)][0].item()
            raise IndexError(f"column {name!r} holds id {wrong}, but its table has ids 0..{size - 1}") from None


def _new_table(size: int, dim: int) -> nn.Embedding:
    table = nn.Embedding(size, dim)
    nn.init.normal_(table.weight, std=_TABLE_SPREAD)
    return table


def _plain(name: str) -> str:
    return name.replace(".", "·")
