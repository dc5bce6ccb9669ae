"""A table's columns as a network eats them: declared, learned from training rows, saved with the model."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from torch import Tensor

from transun.data import saving
from transun.data.dataset import Dataset
from transun.data.kinds import Inputs, Kind
from transun.data.schema import require
from transun.data.table import as_numbers, column_array, read_table, targets

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Features:
    """Named columns, the kind of each, and what training rows taught about them: `encode` turns any table to tensors.

    Immutable: `fit` and `grow` return another one, so the features saved with a model cannot drift away from its
    weights. Columns are found by name: their order, further columns, and the width of integers do not matter.

    Args:
        columns: name of a column -> its kind: `Id`, `HashedId`, `Bag`, `Buckets`, `Standardised`, `Datetime`.
        why: name -> the reason for its kind, or for leaving it out; shown by `summary`.
        missing: name -> share of training rows without a value, learned by `fit`.

    >>> from transun.data import Features
    >>> train = {"item": ["a", "b", "a"], "price": [1.0, 2.0, 3.0], "gmv": [5.0, 6.0, 7.0]}
    >>> features = Features({"item": Id(), "price": Standardised()}).fit(train)
    >>> features.encode({"price": [2.0], "item": ["b"]})
    {'item': tensor([2]), 'price': tensor([0.])}
    >>> backbone = EmbeddingMLP(features.ids, features.bags, features.numeric)
    >>> Model(backbone, LogSUN())(features.encode(train)).shape
    torch.Size([3])

    """

    columns: Mapping[str, Kind]
    why: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for part in ("columns", "why", "missing"):
            object.__setattr__(self, part, MappingProxyType(dict(getattr(self, part))))
        if not self.columns:
            raise ValueError("Features needs at least one column, e.g. Features({'item': Id()})")
        for name, kind in self.columns.items():
            if not isinstance(kind, Kind):
                raise TypeError(f"column {name!r} has kind {kind!r}: give an instance of one, such as Id()")
            if kind.like is not None:
                owner = self.columns[require(self.columns, [kind.like])[0]]
                if owner.like is not None:
                    raise ValueError(
                        f"column {name!r} is like {kind.like!r}, which is itself like {owner.like!r}: name that one"
                    )
                owner.coder(kind.like)

    def __reduce__(self) -> tuple[Any, ...]:
        # Read-only views do not pickle.
        return Features, (dict(self.columns), dict(self.why), dict(self.missing))

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns of the table that `encode` reads: all that must be fetched, besides target and weight."""
        return tuple(dict.fromkeys(s for name, kind in self.columns.items() for s in kind.sources(name)))

    def fit(self, source: Any) -> "Features":
        """Learn vocabularies, edges and scales from training rows, forgetting earlier ones.

        Args:
            source: what `read_table` takes.

        >>> from transun.data import Features
        >>> Features({"item": Id()}).fit({"item": [7, 3, 7]}).ids  # two items, and the index 0 of unseen ones
        {'item': 3}

        """
        table = self._read(source)
        if len(table) == 0:
            raise ValueError("the table has no rows to learn from")
        columns = {name: kind.fit(name, table, self._more(name, table)) for name, kind in self.columns.items()}
        missing = {name: kind.missing(name, table) for name, kind in self.columns.items()}
        fitted = replace(self, columns=columns, missing=missing)
        made = Counter(key for inputs in fitted._inputs for key in (*inputs.ids, *inputs.bags, *inputs.numeric))
        twice = [name for name, count in made.items() if count > 1]
        if twice:
            raise ValueError(f"two columns make a tensor {twice[0]!r}: rename one of them")
        return fitted

    def grow(self, source: Any) -> "Features":
        """With the new ids of a table appended to the vocabularies; old ids keep their index, all else stays.

        For going on with yesterday's model: copy the old rows of its tables, the new rows start afresh.

        >>> from transun.data import Features
        >>> Features({"item": Id()}).fit({"item": [7, 3]}).grow({"item": [5, 7]}).encode({"item": [3, 5, 7]})
        {'item': tensor([1, 3, 2])}
        """
        table = self._read(source)
        columns = {name: kind.grow(name, table, self._more(name, table)) for name, kind in self.columns.items()}
        return replace(self, columns=columns)

    def encode(self, source: Any) -> dict[str, Tensor]:
        """Tensors by name: ids (n,) int64, bags (n, L) int64 padded with -1, numbers (n,) float32.

        Args:
            source: what `read_table` takes; of a file, only `sources` are read.

        """
        table = self._read(source)
        tensors: dict[str, Tensor] = {}
        for name, kind in self._ready.items():
            tensors |= kind.encode(name, table)
        return tensors

    def to_dataset(self, source: Any, target: str, weight: str | None = None) -> Dataset:
        """All rows in memory, with targets and weights from the columns of these names.

        >>> from transun.data import Features
        >>> table = {"item": [7, 3], "gmv": [1.0, 2.0]}
        >>> Features({"item": Id()}).fit(table).to_dataset(table, "gmv")
        Dataset(2 rows of item)
        """
        if target in self.sources:
            raise ValueError(f"the target {target!r} is among the features: the model would only have to copy it")
        names = tuple(dict.fromkeys((*self.sources, target, *([weight] if weight else []))))
        table = read_table(source, names)
        y = targets(table, target)
        weights = None if weight is None else as_numbers(f"weight {weight!r}", column_array(table, weight))
        return Dataset(self.encode(table), y, weights)

    @property
    def ids(self) -> dict[str, int | str]:
        """Tensors of ids: name -> number of ids, or the column whose table to use. As `EmbeddingMLP` takes it."""
        return {key: size for inputs in self._inputs for key, size in inputs.ids.items()}

    @property
    def bags(self) -> dict[str, int | str]:
        """Tensors of multi-valued ids: likewise."""
        return {key: size for inputs in self._inputs for key, size in inputs.bags.items()}

    @property
    def numeric(self) -> tuple[str, ...]:
        """Tensors of numbers."""
        return tuple(key for inputs in self._inputs for key in inputs.numeric)

    def summary(self) -> str:
        """One line a column: its kind, the tables of ids or numbers it becomes, the share missing, and why.

        >>> from transun.data import Features
        >>> print(Features({"item": Id()}, why={"item": "declared"}).fit({"item": [7, None, 3, 7]}).summary())
        column  kind  becomes      missing  why
        item    Id()  item: 4 ids  25.0 %   declared
        """
        rows = [("column", "kind", "becomes", "missing", "why")]
        for name, kind in self.columns.items():
            share = f"{100 * self.missing[name]:.1f} %" if name in self.missing else "not fitted"
            rows.append((name, str(kind), self._becomes(name, kind), share, self.why.get(name, "declared")))
        rows += [(name, "left out", "", "", why) for name, why in self.why.items() if name not in self.columns]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        )

    def _becomes(self, name: str, kind: Kind) -> str:
        if name not in self.missing:
            return "not fitted"
        inputs = kind.inputs(name)
        tables = {**inputs.ids, **inputs.bags}
        sized = [f"{key}: as {size}" if isinstance(size, str) else f"{key}: {size} ids" for key, size in tables.items()]
        return ", ".join([*sized, *(f"{key}: number" for key in inputs.numeric)])

    def to_json(self) -> str:
        """Everything learned, as text; see `from_json`."""
        return saving.dumps(self.columns, self.why, self.missing)

    @classmethod
    def from_json(cls, text: str) -> "Features":
        """The inverse of `to_json`. Text is read, never executed; what `to_json` did not write is a ValueError.

        >>> from transun.data import Features
        >>> features = Features({"item": Id()}).fit({"item": [7, 3]})
        >>> Features.from_json(features.to_json()) == features
        True
        """
        return cls(*saving.loads(text))

    def _read(self, source: Any) -> "pa.Table":
        return read_table(source, self.sources)

    def _more(self, owner: str, table: "pa.Table") -> list["pa.Array"]:
        return [kind.ids(name, table) for name, kind in self.columns.items() if kind.like == owner]

    @property
    def _inputs(self) -> list[Inputs]:
        return [kind.inputs(name) for name, kind in self.columns.items()]

    @cached_property
    def _ready(self) -> dict[str, Kind]:
        return {
            name: kind.lent(self.columns[kind.like].coder(kind.like)) if kind.like else kind
            for name, kind in self.columns.items()
        }
