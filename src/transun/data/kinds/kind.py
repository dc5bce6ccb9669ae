"""The concept of a kind of column."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Self

from torch import Tensor

from transun.data.kinds.graph import ColumnGraph, EncodedColumn
from transun.data.logical import LogicalType, logical_type
from transun.data.saving import Serialisable
from transun.data.shift import Profile, Shift
from transun.data.table import column_array

if TYPE_CHECKING:
    import pyarrow as pa

    from transun.data.kinds.ids import IdEncoder
    from transun.data.vocabulary import IdCounts

__all__ = ["Inputs", "Kind", "declaration", "require_fitted", "require_values"]


@dataclass(frozen=True)
class Inputs:
    """The tensors that a column becomes, and the sizes of their embedding tables: what a network is built from.

    Args:
        ids: name of a tensor of ids (n,) -> number of ids, or the column whose table it shares.
        bags: name of a tensor of multi-valued ids (n, L) -> likewise.
        numeric: names of tensors of numbers (n,).
        ranks: names of tensors of ranks (n,), numbers from 0 to 1 that a network expands into a piecewise-linear form.
        periods: name of a tensor of codes of periods (n,), such as days -> number of codes. Code 0 is any period that
            training does not know, as the periods of new rows mostly are.

    """

    ids: Mapping[str, int | str] = field(default_factory=dict)
    bags: Mapping[str, int | str] = field(default_factory=dict)
    numeric: tuple[str, ...] = ()
    ranks: tuple[str, ...] = ()
    periods: Mapping[str, int] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tensors."""
        return (*self.ids, *self.bags, *self.numeric, *self.ranks, *self.periods)


class Kind(Serialisable, ABC):
    """How a column of a table becomes tensors: `fit` learns constants from training rows, `encode` applies them.

    A kind is a frozen dataclass. Its first fields are what a person declares; then come those that `fit` learns, which
    are None until then and marked `repr=False`. So a fitted kind needs no other state: it is compared, printed and
    saved by its fields. A new kind is one class with `fit`, `encode`, `inputs` and `missing`; defining it registers it
    for saving and loading. What else a kind can say about its rows has a default; to
    be served from raw columns it also writes `graph`.
    """

    shares_table_with: str | None = None
    """The column whose vocabulary and embedding table this one uses; only kinds of ids can share them."""

    def sources(self, name: str) -> tuple[str, ...]:
        """The columns of the table that are read for the column `name`."""
        return (name,)

    @abstractmethod
    def fit(self, name: str, table: "pa.Table", counts: "IdCounts | None" = None) -> Self:
        """A copy with constants learned from training rows.

        Args:
            name: of the column.
            table: the training rows, or a sample of them; a distribution function is then known to ±1.5/√n.
            counts: of the ids of all training rows, in this column and in those that share its table; None counts the
                ids of this column in the table.

        """

    def grow(self, name: str, counts: "IdCounts") -> Self:
        """A copy that knows new ids too. Scales and edges must not move, because the network has learned with them."""
        return self

    def ids_to_count(self, name: str, table: "pa.Table") -> "Sequence[pa.Array]":
        """The ids that a vocabulary is learned from; none for a kind that has no vocabulary."""
        return ()

    @abstractmethod
    def encode(self, name: str, table: "pa.Table") -> dict[str, Tensor]:
        """The tensors of a table's rows, by name."""

    @abstractmethod
    def inputs(self, name: str) -> Inputs:
        """The names and sizes of these tensors."""

    @abstractmethod
    def missing(self, name: str, table: "pa.Table") -> float:
        """The share of rows without a value."""

    def logical_types(self, name: str, table: "pa.Table") -> dict[str, LogicalType]:
        """The logical type of each of the columns that are read, in which new rows will be read too."""
        return {source: logical_type(column_array(table, source).type) for source in self.sources(name)}

    def profile(self, name: str, table: "pa.Table") -> Profile:
        """What the training rows are like, to which new rows are compared."""
        return Profile(self.missing(name, table))

    def shift(self, name: str, table: "pa.Table", training: Profile) -> Shift:
        """How the rows of a table, at least one, differ from those of training."""
        return Shift(len(table), round(self.missing(name, table) * len(table)))

    def meanings(self, name: str) -> dict[str, str]:
        """What the values of each tensor mean, for whoever encodes rows without this library."""
        inputs = self.inputs(name)
        sizes = {**inputs.ids, **inputs.bags, **inputs.periods}
        return dict.fromkeys(inputs.names, "a number a row") | {key: f"codes of {sizes[key]} ids" for key in sizes}

    def graph(self, name: str, types: Mapping[str, LogicalType], sizes: Mapping[str, int]) -> ColumnGraph:
        """The same encoding inside a graph for serving; by default the graph takes the tensors of `encode`.

        Args:
            name: of the column.
            types: the logical type of each of the columns that are read.
            sizes: the number of ids of every embedding table, by the column that owns it.

        """
        return EncodedColumn(name, self, sizes)

    def id_encoder(self, name: str) -> "IdEncoder":
        """What gives this column's ids their index, for columns that share its table."""
        raise ValueError(f"column {name!r} is {self}: it has no vocabulary to share")

    def with_encoder(self, encoder: "IdEncoder") -> "Kind":
        """A copy that encodes ids by the encoder of the column whose table it shares."""
        raise NotImplementedError(f"{self} has no use for a vocabulary")

    def __str__(self) -> str:
        return declaration(self)


def declaration(value: Any) -> str:
    """The text of a kind or layout as a person would declare it, without defaults and without what was learned.

    >>> declaration(Id(min_count=2))
    'Id(min_count=2)'
    """
    if not is_dataclass(value):
        return repr(value)
    declared = [part for part in fields(value) if part.repr]
    texts = {part.name: (declaration(getattr(value, part.name)), declaration(part.default)) for part in declared}
    shown = ", ".join(f"{name}={text}" for name, (text, default) in texts.items() if text != default)
    return f"{type(value).__name__}({shown})"


def require_fitted(name: str, constant: Any) -> Any:
    """A constant that `fit` learned, or an error if `fit` has not been called.

    >>> require_fitted("item", None)
    Traceback (most recent call last):
    ValueError: column 'item' is not fitted yet: call features.fit(training_table) first
    """
    if constant is None:
        raise ValueError(f"column {name!r} is not fitted yet: call features.fit(training_table) first")
    return constant


def require_values(name: str, missing: float) -> None:
    """Refuse a column that is missing in every row: nothing can be learned from it.

    >>> require_values("colour", 1.0)
    Traceback (most recent call last):
    ValueError: column 'colour' is missing in every row: leave it out
    """
    if missing == 1.0:
        raise ValueError(f"column {name!r} is missing in every row: leave it out")
