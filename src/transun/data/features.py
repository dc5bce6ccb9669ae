"""The columns of a table as tensors for a network: declared, fitted to training rows, saved with the model."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from torch import Tensor

from transun.data.dataset import Dataset
from transun.data.exposure import read_exposure, to_rates
from transun.data.kinds import Inputs, Kind
from transun.data.kinds.graph import ColumnGraph, EncodedColumn
from transun.data.logical import LogicalType
from transun.data.saving import from_object, to_object
from transun.data.schema import require_columns
from transun.data.shift import Profile, Shift, TableShift
from transun.data.table import as_numbers, column_array, read_table, targets
from transun.data.vocabulary import IdCounts

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Features"]

_FORMAT, _VERSION = "transun.features", 2


@dataclass(frozen=True)
class Features:
    """Named columns, the kind of each, and what was learned from training rows; `encode` turns a table into tensors.

    Immutable: `fit` and `grow` return a copy, so the features saved with a model cannot drift away from its weights.
    Columns are found by name: their order, further columns, and the width of integers do not matter.

    Args:
        columns: name of a column -> its kind: `Id`, `HashedId`, `Bag`, `Number`, `Buckets`, `Standardised`, `Datetime`.
        why: name -> the reason for its kind, or for leaving it out; shown by `summary`.
        profiles: name -> what its training rows were like, learned by `fit`; new rows are compared to it by `shift`.
        types: column of the table -> its logical type in training, learned by `fit`. New rows are read by it: a CSV
            file cannot say whether "001" is text, and the hour of an instant depends on the time zone.

    >>> from transun.data import Features
    >>> train = {"item": ["a", "b", "a"], "price": [1.0, 2.0, 3.0], "gmv": [5.0, 6.0, 7.0]}
    >>> features = Features({"item": Id(), "price": Standardised()}).fit(train)
    >>> features.encode({"price": [2.0], "item": ["b"]})
    {'item': tensor([2]), 'price': tensor([0.])}
    >>> backbone = EmbeddingMLP(features.ids, features.bags, features.numeric, ranks=features.ranks)
    >>> Model(backbone, LogSUN())(features.encode(train)).shape
    torch.Size([3])

    """

    columns: Mapping[str, Kind]
    why: Mapping[str, str] = field(default_factory=dict)
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    types: Mapping[str, LogicalType] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for part in ("columns", "why", "profiles", "types"):
            object.__setattr__(self, part, MappingProxyType(dict(getattr(self, part))))
        if not self.columns:
            raise ValueError("Features needs at least one column, e.g. Features({'item': Id()})")
        for name, kind in self.columns.items():
            if not isinstance(kind, Kind):
                raise TypeError(f"column {name!r} has kind {kind!r}: give an instance of one, such as Id()")
            if kind.shares_table_with is not None:
                owner_name = require_columns(self.columns, [kind.shares_table_with])[0]
                owner = self.columns[owner_name]
                if owner.shares_table_with is not None:
                    raise ValueError(
                        f"column {name!r} shares the table of {owner_name!r}, which itself shares that of "
                        f"{owner.shares_table_with!r}: name that one"
                    )
                owner.id_encoder(owner_name)  # an error if it has none

    def __reduce__(self) -> tuple[Any, ...]:
        # Read-only views do not pickle.
        return Features, (dict(self.columns), dict(self.why), dict(self.profiles), dict(self.types))

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns of the table that `encode` reads; training needs the target and the weight too."""
        return tuple(dict.fromkeys(s for name, kind in self.columns.items() for s in kind.sources(name)))

    def fit(self, source: Any) -> "Features":
        """A copy with vocabularies, edges and scales learned from training rows; what was learned before is forgotten.

        Args:
            source: what `read_table` takes.

        >>> from transun.data import Features
        >>> Features({"item": Id()}).fit({"item": [7, 3, 7]}).ids  # two items, and the index 0 of unseen ones
        {'item': 3}

        """
        table = read_table(source, self.sources)
        return self.fit_sample(table, self.count_ids(table))

    def count_ids(self, table: "pa.Table") -> dict[str, IdCounts]:
        """How often each id occurs, by the column that owns its vocabulary; counts of two tables add up.

        >>> from transun.data import Features
        >>> features = Features({"home": Id(), "away": Id(shares_table_with="home")})
        >>> features.count_ids(read_table({"home": [1, 2], "away": [2, 3]}))["home"].frequent(2).to_pylist()
        [2]
        """
        ids: dict[str, list[pa.Array]] = {}
        for name, kind in self.columns.items():
            if arrays := kind.ids_to_count(name, table):
                ids.setdefault(kind.shares_table_with or name, []).extend(arrays)
        return {owner: IdCounts.of(arrays) for owner, arrays in ids.items()}

    def fit_sample(self, table: "pa.Table", counts: Mapping[str, IdCounts]) -> "Features":
        """`fit` for more rows than memory holds: numbers are learned from a sample, vocabularies from counts of all.

        The distribution function of a number is then known to ±1.5/√n for n sampled rows, three standard errors: 0.15 %
        for a million. If the sample is all rows, the result is that of `fit`.

        Args:
            table: a random sample of the training rows.
            counts: the sum of `count_ids` over all training rows.

        """
        if len(table) == 0:
            raise ValueError("the table has no rows to learn from")
        columns = {name: kind.fit(name, table, counts.get(name)) for name, kind in self.columns.items()}
        types = {
            source: type_
            for name, kind in self.columns.items()
            for source, type_ in kind.logical_types(name, table).items()
        }
        fitted = replace(self, columns=columns, types=types)
        profiles = {name: kind.profile(name, table) for name, kind in fitted._with_encoders.items()}
        fitted = replace(fitted, profiles=profiles)
        tensors = Counter(key for inputs in fitted._inputs for key in inputs.names)
        duplicates = [name for name, count in tensors.items() if count > 1]
        if duplicates:
            raise ValueError(f"two columns make a tensor {duplicates[0]!r}: rename one of them")
        return fitted

    def grow(self, source: Any) -> "Features":
        """A copy with the new ids of a table appended to the vocabularies; known ids keep their index.

        For training a model further on new data: the vectors of known ids are kept, those of new ids are initialised.

        >>> from transun.data import Features
        >>> Features({"item": Id()}).fit({"item": [7, 3]}).grow({"item": [5, 7]}).encode({"item": [3, 5, 7]})
        {'item': tensor([1, 3, 2])}
        """
        table = self._read(source)
        counts = self.count_ids(table)
        grown = {name: self.columns[name].grow(name, new) for name, new in counts.items()}
        return replace(self, columns={**self.columns, **grown})

    def encode(self, source: Any) -> dict[str, Tensor]:
        """Tensors by name: ids (n,) int64, bags (n, L) int64 padded with -1, numbers and ranks (n,) float32.

        Args:
            source: what `read_table` takes; of a file, only `sources` are read.

        """
        return self._encode(self._read(source))

    def shift(self, source: Any) -> TableShift:
        """How the rows of a table differ from those of training.

        >>> from transun.data import Features
        >>> features = Features({"land": Id()}).fit({"land": ["DE", "IT"]})
        >>> print(*features.shift({"land": ["DE", "de"]}).sentences())
        column 'land': 1 of 2 values (50.0 %) was not seen in training, such as 'de'; 'de' is 'DE' there
        """
        return self._shift(self._read(source))

    def encode_with_shift(self, source: Any) -> tuple[dict[str, Tensor], TableShift]:
        """What `encode` and `shift` return, of a table that is read and converted once: for rows to be predicted.

        >>> from transun.data import Features
        >>> x, shift = Features({"land": Id()}).fit({"land": ["DE", "IT"]}).encode_with_shift({"land": ["IT", "FR"]})
        >>> x["land"].tolist(), shift.columns["land"].unseen
        ([2, 0], 1)
        """
        table = self._read(source)
        return self._encode(table), self._shift(table)

    def _shift(self, table: "pa.Table") -> TableShift:
        kinds = {name: kind for name, kind in self._with_encoders.items() if name in self.profiles}
        if not len(table):
            return TableShift(dict.fromkeys(kinds, Shift()), dict(self.profiles))
        shifts = {name: kind.shift(name, table, self.profiles[name]) for name, kind in kinds.items()}
        return TableShift(shifts, dict(self.profiles))

    def convert(self, table: "pa.Table") -> "pa.Table":
        """The table with the columns that the features know in the types of training, and other columns as they are.

        >>> from transun.data import Features, read_table
        >>> features = Features({"item": Id()}).fit({"item": [7, 3]})
        >>> features.convert(read_table({"item": ["3", "12"]}))["item"].to_pylist()
        [3, 12]
        """
        for index, name in enumerate(table.column_names):
            if name in self.types:
                values = self.types[name].convert(f"column {name!r}", column_array(table, name))
                table = table.set_column(index, name, values)
        return table

    def _read(self, source: Any, further: Iterable[str] = ()) -> "pa.Table":
        names = dict.fromkeys((*self.sources, *further))
        return self.convert(read_table(source, names, verbatim=self.types))

    def _encode(self, table: "pa.Table") -> dict[str, Tensor]:
        tensors: dict[str, Tensor] = {}
        for name, kind in self._with_encoders.items():
            tensors |= kind.encode(name, table)
        return tensors

    def to_dataset(self, source: Any, target: str, weight: str | None = None, exposure: str | None = None) -> Dataset:
        """All rows in memory, with targets and weights from the columns of these names.

        With an exposure the targets are amounts per unit of it, and count by it; see `transun.data.exposure`.

        >>> from transun.data import Features
        >>> table = {"item": [7, 3], "gmv": [1.0, 2.0]}
        >>> Features({"item": Id()}).fit(table).to_dataset(table, "gmv")
        Dataset(2 rows of item)
        """
        if target in self.sources:
            raise ValueError(f"the target {target!r} is among the features: the model would only have to copy it")
        table = self._read(source, [target, *(name for name in (weight, exposure) if name)])
        y = targets(table, target)
        weights = (
            None
            if weight is None
            else as_numbers(f"weight {weight!r}", column_array(table, weight), "name another column")
        )
        if exposure is not None:
            y, weights = to_rates(y, weights, read_exposure(table, exposure))
        return Dataset(self._encode(table), y, weights)

    def graphs(self, *, encoded: bool = False, text: bool = True) -> list[ColumnGraph]:
        """How a graph for serving encodes each column.

        Args:
            encoded: the inputs of the graph are the tensors of `encode`, and not columns.
            text: whether the format of the graph has text; if not, columns of text are encoded before.

        >>> from transun.data import Features
        >>> (graph,) = Features({"item": Id()}).fit({"item": ["a", "b"]}).graphs()
        >>> [(each.name, each.dtype, each.meaning) for each in graph.inputs]
        [('item', 'string', 'an id as text; empty where it is missing')]

        """
        tables = {**self.ids, **self.bags}
        sizes = {name: size for name, size in tables.items() if isinstance(size, int)}
        graphs = []
        for name, kind in self._with_encoders.items():
            graph = EncodedColumn(name, kind, sizes) if encoded else kind.graph(name, self.types, sizes)
            readable = text or all(each.dtype != "string" for each in graph.inputs)
            graphs.append(graph if readable else EncodedColumn(name, kind, sizes))
        return graphs

    @property
    def ids(self) -> dict[str, int | str]:
        """Tensors of ids: name -> number of ids, or the column whose table it shares; an argument of `EmbeddingMLP`."""
        return {key: size for inputs in self._inputs for key, size in inputs.ids.items()}

    @property
    def bags(self) -> dict[str, int | str]:
        """Tensors of multi-valued ids: likewise."""
        return {key: size for inputs in self._inputs for key, size in inputs.bags.items()}

    @property
    def numeric(self) -> tuple[str, ...]:
        """Tensors of numbers."""
        return tuple(key for inputs in self._inputs for key in inputs.numeric)

    @property
    def ranks(self) -> tuple[str, ...]:
        """Tensors of ranks, numbers from 0 to 1."""
        return tuple(key for inputs in self._inputs for key in inputs.ranks)

    @property
    def periods(self) -> dict[str, int]:
        """Tensors of codes of periods: name -> number of codes; likewise."""
        return {key: size for inputs in self._inputs for key, size in inputs.periods.items()}

    @property
    def missing(self) -> dict[str, float]:
        """The share of training rows without a value, of every column."""
        return {name: profile.missing for name, profile in self.profiles.items()}

    @property
    def meanings(self) -> dict[str, str]:
        """What the values of each tensor mean, for whoever encodes rows without this library.

        >>> from transun.data import Features
        >>> Features({"item": Id()}).fit({"item": ["a", None]}).meanings
        {'item': 'codes 0..2: 2 for a missing id, 0 for one that training has not seen'}
        """
        kinds = self._with_encoders
        return {key: text for name, kind in kinds.items() for key, text in kind.meanings(name).items()}

    def summary(self) -> str:
        """One line a column: its kind, the tables of ids or numbers it becomes, the share missing, and why.

        >>> from transun.data import Features
        >>> print(Features({"item": Id()}, why={"item": "declared"}).fit({"item": [7, None, 3, 7]}).summary())
        column  kind  becomes      missing  why
        item    Id()  item: 4 ids  25.0 %   declared
        """
        rows = [("column", "kind", "becomes", "missing", "why")]
        for name, kind in self.columns.items():
            share = f"{100 * self.profiles[name].missing:.1f} %" if name in self.profiles else "not fitted"
            rows.append((name, str(kind), self._tensors_of(name, kind), share, self.why.get(name, "declared")))
        rows += [(name, "left out", "", "", why) for name, why in self.why.items() if name not in self.columns]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        )

    def _tensors_of(self, name: str, kind: Kind) -> str:
        if name not in self.profiles:
            return "not fitted"
        inputs = kind.inputs(name)
        tables = {**inputs.ids, **inputs.bags}
        sized = [f"{key}: as {size}" if isinstance(size, str) else f"{key}: {size} ids" for key, size in tables.items()]
        numbers = [f"{key}: number" for key in inputs.numeric] + [f"{key}: rank" for key in inputs.ranks]
        periods = [f"{key}: {size} periods" for key, size in inputs.periods.items()]
        return ", ".join([*sized, *numbers, *periods])

    def to_dict(self) -> dict[str, Any]:
        """Everything declared and learned, as a plain object for JSON; see `from_dict`.

        >>> from transun.data import Features
        >>> Features({"item": HashedId(10)}).to_dict()["columns"]
        {'item': {'kind': 'HashedId', 'rows': 10, 'shares_table_with': None}}
        """
        parts = {"columns": self.columns, "profiles": self.profiles, "types": self.types}
        objects = {part: {name: to_object(value) for name, value in of.items()} for part, of in parts.items()}
        return {"format": _FORMAT, "version": _VERSION, "why": dict(self.why)} | objects

    @classmethod
    def from_dict(cls, content: Any) -> "Features":
        """The inverse of `to_dict`. Only registered kinds are built, with arguments of their declared types.

        Nothing is executed; a `ValueError` says what `to_dict` cannot have written.

        >>> from transun.data import Features
        >>> Features.from_dict({"columns": {}})
        Traceback (most recent call last):
        ValueError: this is not a features file of transun: its format is not 'transun.features'
        """
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise ValueError(f"this is not a features file of transun: its format is not {_FORMAT!r}")
        if content.get("version") != _VERSION:
            raise ValueError(f"features of version {content.get('version')}; this transun reads version {_VERSION}")
        why, *objects = (content.get(part) for part in ("why", "columns", "profiles", "types"))
        if not (isinstance(why, dict) and all(isinstance(part, dict) for part in objects)):
            raise ValueError("the features file is damaged: columns, why, profiles and types must be objects")
        if not all(isinstance(reason, str) for reason in why.values()):
            raise ValueError("the features file is damaged: a reason in 'why' is not text")
        columns, profiles, types = objects
        return cls(
            _built(columns, Kind, "no kind of column"),
            why,
            _built(profiles, Profile, "no profile"),
            _built(types, LogicalType, "no logical type"),
        )

    def to_json(self) -> str:
        """`to_dict` as JSON text, for a file of its own; see `from_json`."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Features":
        """The inverse of `to_json`, with the checks of `from_dict`.

        >>> from transun.data import Features
        >>> features = Features({"item": Id()}).fit({"item": [7, 3]})
        >>> Features.from_json(features.to_json()) == features
        True
        """
        try:
            content = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"this is not a features file of transun: {str(error)[:100]}") from None
        return cls.from_dict(content)

    @property
    def _inputs(self) -> list[Inputs]:
        return [kind.inputs(name) for name, kind in self.columns.items()]

    @cached_property
    def _with_encoders(self) -> dict[str, Kind]:
        """The kinds as they encode: those that share a table use the encoder of its owner."""
        kinds = dict(self.columns)
        for name, kind in self.columns.items():
            if owner := kind.shares_table_with:
                kinds[name] = kind.with_encoder(self.columns[owner].id_encoder(owner))
        return kinds


def _built(objects: Any, concept: type, otherwise: str) -> dict[str, Any]:
    built = {}
    for name, value in objects.items():
        try:
            built[name] = from_object(value)
        except ValueError as error:
            raise ValueError(f"the features file is damaged at column {name!r}: {error}") from None
        if not isinstance(built[name], concept):
            raise ValueError(f"the features file is damaged at column {name!r}: it is {otherwise}")
    return built
