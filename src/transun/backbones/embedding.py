"""Embedding + MLP: ids, multi-valued ids, numbers and ranks into a few dense layers."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import Self, cast

import torch
from torch import Tensor, nn

from transun.backbones.activations import Activation, ReLU
from transun.backbones.backbone import Backbone, Inputs
from transun.backbones.dropout import Dropout
from transun.backbones.sharded import TABLE_SPREAD, ShardedTable, new_table
from transun.support.arguments import listed, require_count

# The share of rows whose period is hidden in training. A tenth is too little for rows to come, and a half costs nothing
# where the period is known.
_UNKNOWN = 0.5


class Dimension(ABC):
    """How wide the vectors of a table are: `__call__` is all that a subclass writes."""

    @abstractmethod
    def __call__(self, name: str, size: int) -> int:
        """The width for the table of column `name` with `size` ids."""


@dataclass(frozen=True)
class ByCardinality(Dimension):
    """round(factor · size^power), between `least` and `most`: few ids need few numbers to distinguish them.

    Saves memory where one width for all would give a flag of two values as many numbers as a million users; the
    defaults are the rule of thumb 6·⁴√size.

    Args:
        factor: width of a table with one id, before the bounds.
        power: how fast widths grow with the number of ids; 0 is one width for all.
        least: the narrowest.
        most: the widest; what bounds the memory of the largest tables.

    >>> [ByCardinality()("column", size) for size in (2, 16, 10_000, 10**9)]
    [7, 12, 60, 64]

    """

    factor: float = 6.0
    power: float = 0.25
    least: int = 1
    most: int = 64

    def __post_init__(self) -> None:
        if not 0.0 < self.factor < math.inf or not 0.0 <= self.power <= 1.0:
            raise ValueError(f"ByCardinality needs factor > 0 and 0 <= power <= 1, got {self.factor}, {self.power}")
        if not 1 <= self.least <= self.most:
            raise ValueError(f"ByCardinality needs 1 <= least <= most, got {self.least}, {self.most}")

    def __call__(self, name: str, size: int) -> int:
        return min(max(round(self.factor * math.pow(size, self.power)), self.least), self.most)


@dataclass(frozen=True)
class ByTable(Dimension):
    """One chosen width for each table, by the name of its column.

    A network whose tables grow keeps its widths this way: more ids, the same vectors.

    >>> ByTable({"user": 16, "weekday": 2})("weekday", 7)
    2
    """

    widths: Mapping[str, int]

    def __call__(self, name: str, size: int) -> int:
        if name not in self.widths:
            raise ValueError(f"ByTable has no width for {name!r}; it has {', '.join(self.widths)}")
        return self.widths[name]


@dataclass(frozen=True)
class EmbeddingMLP(Backbone):
    """Embeds every id, averages multi-valued ids, appends numbers and ranks, then ReLU layers: the paper's network.

    A rank r in [0, 1] becomes its piecewise-linear encoding: component t of `bins` = T is clamp(r·T - t, 0, 1), less
    1 - (t + ½) / T, its mean over equally frequent ranks. A linear layer over it is any function of r that is linear
    between the multiples of 1 / T, so that the network sees steep places without having to make them.

    A period, such as a day, has a vector as an id has. But rows to come are from periods that training does not know,
    whose vector is zero, and a network that relies on these vectors is lost there. So half of the rows of every batch
    are trained as if their period were not known.

    Stages: the embedding, then one per hidden layer; the paper's five sharing schemes are `shared=0..4`.

    Args:
        ids: single-valued columns (B,) of integers, name -> number of ids, or -> name of the column whose table to use.
        bags: multi-valued columns (B, L) padded with -1, likewise; averaged over what is not padding, empty bags are
            zero vectors.
        numeric: columns (B,) of floats, taken as they are: standardise them first.
        dim: width of each embedding, or a rule such as `ByCardinality()`.
        hidden: widths of the dense layers.
        dropout: share of activations dropped after each dense layer during training.
        ranks: columns (B,) of floats from 0 to 1, such as those of `Number`.
        bins: pieces of the encoding of every rank. More are finer, with fewer rows to learn each from.
        periods: columns (B,) of codes of periods, name -> number of codes; 0 is a period that training does not know.

    >>> backbone = EmbeddingMLP(ids={"item": 10}, bags={"history": "item"}, numeric=("price",), dim=4)
    >>> batch = {"item": torch.tensor([3]), "history": torch.tensor([[1, -1]]), "price": torch.tensor([0.5])}
    >>> Model(backbone, MSE())(batch).shape
    torch.Size([1])

    """

    ids: Mapping[str, int | str] = field(default_factory=dict)
    bags: Mapping[str, int | str] = field(default_factory=dict)
    numeric: Sequence[str] = ()
    dim: int | Dimension = 16
    hidden: Sequence[int] = (128, 64, 32)
    dropout: float = 0.0
    ranks: Sequence[str] = ()
    bins: int = 32
    periods: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "numeric", tuple(listed("numeric", self.numeric)))
        object.__setattr__(self, "ranks", tuple(listed("ranks", self.ranks)))
        object.__setattr__(self, "hidden", tuple(self.hidden))
        kind = type(self).__name__
        columns = self._columns()
        if not columns:
            raise ValueError(f"{kind} needs at least one column in ids, bags, numeric, ranks or periods")
        if len(columns) != len(set(columns)):
            raise ValueError(f"{kind}: a column is named twice among {', '.join(columns)}")
        tables = {**self.ids, **self.bags}
        for name, size in tables.items():
            if isinstance(size, str):
                if not isinstance(tables.get(size), int):
                    raise ValueError(f"{kind}: column {name!r} uses the table of {size!r}, which has none of its own")
            elif not isinstance(size, int) or size < 1:
                raise ValueError(f"{kind}: column {name!r} needs at least one id, a whole number, got {size}")
        require_count(kind, **{f"periods of {name!r}": size for name, size in self.periods.items()})
        tables |= self.periods
        if any(width < 1 for width in (*column_widths(tables, self.dim).values(), *self.hidden)):
            raise ValueError(f"{kind} needs positive widths, got dim={self.dim}, hidden={self.hidden}")
        require_count(kind, bins=self.bins)
        if not 0.0 <= self.dropout < 1.0:
            raise ValueError(f"{kind} needs 0 <= dropout < 1, got {self.dropout}")

    @property
    def out_features(self) -> int:
        """Width of the last dense layer."""
        return (self._embedded(), *self.hidden)[-1]

    def stages(self) -> list[Callable[[], nn.Module]]:
        widths = (self._embedded(), *self.hidden)
        return [self._embed(), *(partial(dense, *pair, self.dropout) for pair in pairwise(widths))]

    def grow(self, sizes: Mapping[str, int]) -> Self:
        """The same network with room for more ids, every width kept.

        Args:
            sizes: the new number of ids for some columns that have a table of their own.

        >>> EmbeddingMLP({"user": 10, "item": 20}).grow({"item": 25}).ids
        {'user': 10, 'item': 25}

        """
        tables = {name: size for name, size in {**self.ids, **self.bags}.items() if isinstance(size, int)}
        for name, size in sizes.items():
            if name not in tables:
                raise ValueError(f"there is no table {name!r} to grow; there are {', '.join(tables)}")
            if size < tables[name]:
                raise ValueError(f"the table {name!r} has {tables[name]} ids and cannot shrink to {size}")
        # A rule that looks at sizes would widen the old vectors.
        widths = column_widths(tables | dict(self.periods), self.dim)
        dim = self.dim if isinstance(self.dim, int) else ByTable(widths)
        ids, bags = ({name: sizes.get(name, size) for name, size in group.items()} for group in (self.ids, self.bags))
        return replace(self, ids=ids, bags=bags, dim=dim)

    def _embed(self) -> "Callable[[], Embedding]":
        return partial(Embedding, self.ids, self.bags, self.numeric, self.dim, self.ranks, self.bins, self.periods)

    def _columns(self) -> tuple[str, ...]:
        return (*self.ids, *self.bags, *self.periods, *self.numeric, *self.ranks)

    def _embedded(self) -> int:
        return sum(self._embedded_widths())

    def _embedded_widths(self) -> list[int]:
        """The number of features that the embedding makes of each column, in order."""
        vectors = column_widths({**self.ids, **self.bags, **self.periods}, self.dim).values()
        return [*vectors, *(1 for _ in self.numeric), *(self.bins for _ in self.ranks)]


class Dense(nn.Sequential):
    """One hidden layer: a linear part, an activation, dropout where there is any, in this order."""


def dense(in_features: int, out_features: int, dropout: float = 0.0, activation: Activation = ReLU()) -> Dense:
    """One hidden layer with He initialisation and zero bias."""
    return Dense(
        linear_layer(in_features, out_features),
        activation.build(out_features),
        *([Dropout(dropout)] if dropout else []),
    )


def linear_layer(in_features: int, out_features: int) -> nn.Linear:
    """A linear layer with He initialisation and zero bias."""
    layer = nn.Linear(in_features, out_features)
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    nn.init.zeros_(layer.bias)
    return layer


def column_widths(sizes: Mapping[str, int | str], dim: int | Dimension) -> dict[str, int]:
    """The width of every column's vectors: that of its own table, or of the one it names.

    >>> column_widths({"item": 16, "history": "item"}, ByCardinality())
    {'item': 12, 'history': 12}
    """
    table_widths = {
        name: dim if isinstance(dim, int) else dim(name, size) for name, size in sizes.items() if isinstance(size, int)
    }
    return {name: table_widths[size if isinstance(size, str) else name] for name, size in sizes.items()}


class Embedding(nn.Module):
    """Named columns to one row of features (B, d): looked-up ids, averaged bags, periods, numbers, expanded ranks."""

    def __init__(
        self,
        ids: Mapping[str, int | str],
        bags: Mapping[str, int | str],
        numeric: Sequence[str],
        dim: int | Dimension,
        ranks: Sequence[str] = (),
        bins: int = 32,
        periods: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        super().__init__()
        sizes = {**ids, **bags}
        self.ids, self.bags, self.numeric, self.ranks = tuple(ids), tuple(bags), tuple(numeric), tuple(ranks)
        self.columns = (*self.ids, *self.bags, *periods, *self.numeric, *self.ranks)
        self.bins = bins
        self.widths = column_widths(sizes, dim)
        # A column that names another column uses its table.
        self.table = {name: _plain(size if isinstance(size, str) else name) for name, size in sizes.items()}
        self.tables = nn.ModuleDict(
            {_plain(name): new_table(size, self.widths[name]) for name, size in sizes.items() if isinstance(size, int)}
        )

        of_periods = column_widths(periods, dim)
        self.periods = tuple(periods)
        # By number: a period may have the name of a method. They are few, so that no row-wise optimiser moves them.
        self.period_tables = nn.ModuleList(_period_table(periods[name], of_periods[name]) for name in periods)
        self.unknown = Dropout(_UNKNOWN)

    def lookups(self) -> list[tuple[nn.Embedding | ShardedTable, tuple[str, ...]]]:
        """Every table with the columns whose ids pick its rows: a batch needs, and moves, no other rows."""
        readers = {table: tuple(name for name in self.table if self.table[name] == table) for table in self.tables}
        return [(cast(nn.Embedding | ShardedTable, self.tables[table]), columns) for table, columns in readers.items()]

    def forward(self, batch: Inputs) -> Tensor:
        columns = named_columns(batch, self.columns)
        parts = [self._look_up(name, columns[name]) for name in self.ids]
        for name in self.bags:
            vectors, present = self._look_up_bag(name, columns[name])
            parts.append(vectors.sum(1) / present.sum(1).clamp(min=1))
        for name, table in zip(self.periods, self.period_tables, strict=True):
            known = self.unknown(torch.ones_like(columns[name], dtype=torch.float32)) > 0.0
            parts.append(_read(cast(nn.Embedding, table), name, columns[name] * known))
        parts.extend(columns[name].unsqueeze(-1).float() for name in self.numeric)
        if self.ranks:
            parts.append(piecewise_linear(torch.stack([columns[name].float() for name in self.ranks], 1), self.bins))
        return torch.cat(parts, 1)

    def _look_up_bag(self, name: str, ids: Tensor) -> tuple[Tensor, Tensor]:
        """The vectors (B, L, d), zero at padding, and what is not padding (B, L, 1)."""
        if ids.ndim != 2:
            raise ValueError(f"column {name!r} holds several ids a row: give it shape (B, L), not {tuple(ids.shape)}")
        present = (ids >= 0).unsqueeze(-1)
        # Padding has to read some row: -1 reads row 0. A caller may write -1 - r instead, which reads row r, so that on
        # a GPU the (zero) gradients of all padding do not wait for each other at one row.
        return self._look_up(name, torch.maximum(ids, -1 - ids)) * present, present

    def _look_up(self, name: str, ids: Tensor) -> Tensor:
        return _read(cast(nn.Embedding | ShardedTable, self.tables[self.table[name]]), name, ids)


def _read(table: nn.Embedding | ShardedTable, name: str, ids: Tensor) -> Tensor:
    """The rows of a table with these ids, which are of column `name`."""
    if torch.compiler.is_compiling():
        return cast(Tensor, table(ids))
    try:
        return cast(Tensor, table(ids))
    except IndexError:
        size = table.num_embeddings
        wrong = ids[(ids < 0) | (ids >= size)][0].item()
        raise IndexError(f"column {name!r} holds id {wrong}, but its table has ids 0..{size - 1}") from None


def _period_table(size: int, dim: int) -> nn.Embedding:
    """A table with random rows, but for row 0, which stays zero."""
    table = nn.Embedding(size, dim, padding_idx=0)
    with torch.no_grad():
        nn.init.normal_(table.weight, std=TABLE_SPREAD)[0] = 0.0
    return table


def named_columns(batch: Inputs, names: Sequence[str]) -> Mapping[str, Tensor]:
    """The columns of a batch, which must have these names among others."""
    if isinstance(batch, Tensor):
        raise TypeError(f"this network eats named columns {tuple(names)}, not one tensor")
    missing = [name for name in names if name not in batch]
    if missing:
        raise ValueError(f"the batch lacks column {missing[0]!r}; it has {', '.join(batch)}")
    return batch


def piecewise_linear(ranks: Tensor, bins: int) -> Tensor:
    """Ranks (B, R) in [0, 1] as (B, R·bins): clamp(r·bins - t, 0, 1) for t = 0, 1, …, centred.

    If ranks are equally frequent, the mean of component t is 1 - (t + ½) / bins, which is subtracted.

    >>> piecewise_linear(torch.tensor([[0.0], [0.25], [1.0]]), 2)  # (0, 0), (½, 0) and (1, 1), less (¾, ¼)
    tensor([[-0.7500, -0.2500],
            [-0.2500, -0.2500],
            [ 0.2500,  0.7500]])
    """
    t = torch.arange(bins, dtype=ranks.dtype, device=ranks.device)
    components = (ranks.unsqueeze(-1) * bins - t).clamp(0.0, 1.0) - (1.0 - (t + 0.5) / bins)
    return components.flatten(1)


def _plain(name: str) -> str:
    """A name for a module: not empty, without dots, and none of a dictionary's own, such as `items`."""
    plain = name.replace(".", "·")
    return plain if plain and not hasattr(nn.ModuleDict(), plain) else f"·{plain}"
