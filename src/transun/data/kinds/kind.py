"""The concept of a kind of column."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Self

from torch import Tensor

if TYPE_CHECKING:
    import pyarrow as pa

    from transun.data.kinds.ids import Coder


@dataclass(frozen=True)
class Inputs:
    """What a network needs to know of a column: the tensors it becomes, and the sizes of their tables.

    Args:
        ids: name of a tensor of ids (n,) -> number of ids, or the column whose table it uses.
        bags: name of a tensor of multi-valued ids (n, L) -> likewise.
        numeric: names of tensors of numbers (n,).

    """

    ids: Mapping[str, int | str] = field(default_factory=dict)
    bags: Mapping[str, int | str] = field(default_factory=dict)
    numeric: tuple[str, ...] = ()


class Kind(ABC):
    """How a column of a table becomes tensors: `fit` learns constants from training rows, `encode` applies them.

    A kind is a frozen dataclass whose fields are what a person declares, followed by what `fit` learned, None until
    then; the latter are marked `repr=False`. So a fitted kind is its own record: it compares, prints and is saved by
    its fields. A new kind is one class with `fit`, `encode`, `inputs` and `missing`.
    """

    like: str | None = None
    """The column whose vocabulary this one uses; only kinds of ids have any to share."""

    def sources(self, name: str) -> tuple[str, ...]:
        """The columns of the table that are read for the column `name`."""
        return (name,)

    @abstractmethod
    def fit(self, name: str, table: "pa.Table", more: Sequence["pa.Array"] = ()) -> Self:
        """Learn from training rows; `more` are the ids of the columns that are `like` this one."""

    def grow(self, name: str, table: "pa.Table", more: Sequence["pa.Array"] = ()) -> Self:
        """Learn new ids and nothing else: scales and edges must stay where the network learned them."""
        return self

    @abstractmethod
    def encode(self, name: str, table: "pa.Table") -> dict[str, Tensor]:
        """The tensors of a table's rows, by name."""

    @abstractmethod
    def inputs(self, name: str) -> Inputs:
        """The names and sizes of these tensors."""

    @abstractmethod
    def missing(self, name: str, table: "pa.Table") -> float:
        """The share of rows without a value."""

    def ids(self, name: str, table: "pa.Table") -> "pa.Array":
        """All ids of the column, for another one's vocabulary."""
        raise NotImplementedError(f"column {name!r} is {self}: it has no ids")

    def coder(self, name: str) -> "Coder":
        """What gives this column's ids their index, for another column to use."""
        raise ValueError(f"column {name!r} is {self}: it has no vocabulary to share")

    def lent(self, coder: "Coder") -> "Kind":
        """Itself with the coder of the column it is `like`."""
        raise NotImplementedError(f"{self} has no use for a vocabulary")

    def __str__(self) -> str:
        return short(self)


def short(value: Any) -> str:
    """The text of a kind or layout as a person would declare it: no defaults, nothing learned.

    >>> short(Id(min_count=2))
    'Id(min_count=2)'
    """
    if not is_dataclass(value):
        return repr(value)
    shown = ((part.name, short(getattr(value, part.name)), short(part.default)) for part in fields(value) if part.repr)
    return f"{type(value).__name__}({', '.join(f'{name}={text}' for name, text, default in shown if text != default)})"


def learned(name: str, constant: Any) -> Any:
    """A constant that `fit` learned, or an error that it has not yet.

    >>> learned("item", None)
    Traceback (most recent call last):
    ValueError: column 'item' is not fitted yet: call features.fit(training_table) first
    """
    if constant is None:
        raise ValueError(f"column {name!r} is not fitted yet: call features.fit(training_table) first")
    return constant


def require_some(name: str, missing: float) -> None:
    """Refuse a column without a single value: there is nothing to learn from it.

    >>> require_some("colour", 1.0)
    Traceback (most recent call last):
    ValueError: column 'colour' is missing in every row: leave it out
    """
    if missing == 1.0:
        raise ValueError(f"column {name!r} is missing in every row: leave it out")
