"""One id a row: looked up in a vocabulary, or hashed into a table of fixed size."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from torch import Tensor

from transun.data.kinds.kind import Inputs, Kind, learned, require_some
from transun.data.lookup import digest, each
from transun.data.table import as_ids, column_array
from transun.data.vocabulary import Vocabulary, frequent

if TYPE_CHECKING:
    import pyarrow as pa


class Coder(Kind):
    """A kind of one id a row, which serves the ids of a `Bag` too: a subclass says which index an id has."""

    @abstractmethod
    def learn(self, name: str, ids: Sequence["pa.Array"]) -> Self:
        """Learn which ids there are."""

    @abstractmethod
    def extend(self, name: str, ids: Sequence["pa.Array"]) -> Self:
        """Learn which further ids there are, without moving the old ones."""

    @abstractmethod
    def index(self, name: str, ids: "pa.Array") -> np.ndarray:
        """The index of each id, int64 (n,)."""

    @abstractmethod
    def size(self, name: str) -> int:
        """How many indices there are."""

    def fit(self, name: str, table: "pa.Table", more: Sequence["pa.Array"] = ()) -> Self:
        require_some(name, self.missing(name, table))
        return self if self.like else self.learn(name, [self.ids(name, table), *more])

    def grow(self, name: str, table: "pa.Table", more: Sequence["pa.Array"] = ()) -> Self:
        return self if self.like else self.extend(name, [self.ids(name, table), *more])

    def encode(self, name: str, table: "pa.Table") -> dict[str, Tensor]:
        return {name: torch.from_numpy(self.index(name, self.ids(name, table)))}

    def inputs(self, name: str) -> Inputs:
        return Inputs(ids={name: self.like or self.size(name)})

    def missing(self, name: str, table: "pa.Table") -> float:
        return float(self.ids(name, table).null_count / len(table))

    def ids(self, name: str, table: "pa.Table") -> "pa.Array":
        return as_ids(f"column {name!r}", column_array(table, name))

    def coder(self, name: str) -> "Coder":
        return self

    def lent(self, coder: "Coder") -> Kind:
        return coder


@dataclass(frozen=True)
class Id(Coder):
    """Ids with a vector each: index = place in the vocabulary of training, 0 for an id that is not in it.

    Missing is an id like any other: it has an index of its own where training rows had it, else 0. Index 0 learns only
    if some training row has it, hence from the ids rarer than `min_count`: with `min_count=1` its vector stays random.

    Args:
        min_count: training rows an id must have for a vector of its own. More of them lose what is special about rare
            ids, and keep the network from learning those by heart.
        like: another column whose vocabulary, and table of vectors, to use: `home` and `away` teams, say. It then
            covers the ids of both.
        vocabulary: learned by `fit`.

    >>> import pyarrow
    >>> item = Id(min_count=2).fit("item", pyarrow.table({"item": ["b", "a", "b", "a", "c"]}))
    >>> item.encode("item", pyarrow.table({"item": ["b", "c", "new", None, "a"]}))["item"]
    tensor([2, 0, 0, 0, 1])

    """

    min_count: int = 1
    like: str | None = None
    vocabulary: Vocabulary | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.min_count < 1:
            raise ValueError(f"Id needs min_count >= 1, got {self.min_count}")

    def learn(self, name: str, ids: Sequence["pa.Array"]) -> Self:
        known = frequent(ids, self.min_count)
        if not len(known):
            raise ValueError(f"column {name!r} has no id in {self.min_count} rows: lower min_count, or leave it out")
        return replace(self, vocabulary=Vocabulary(known))

    def extend(self, name: str, ids: Sequence["pa.Array"]) -> Self:
        """Ids with `min_count` rows of their own in the new table are appended."""
        return replace(self, vocabulary=learned(name, self.vocabulary).grow(frequent(ids, self.min_count)))

    def index(self, name: str, ids: "pa.Array") -> np.ndarray:
        return np.asarray(learned(name, self.vocabulary)(ids))

    def size(self, name: str) -> int:
        return len(learned(name, self.vocabulary))


@dataclass(frozen=True)
class HashedId(Coder):
    """Ids in a table of fixed size: index = 1 + digest(id) mod (rows - 1), 0 for a missing id.

    Nothing is learned, so new ids need no growing and a vocabulary of any size costs no memory; but ids that fall on
    one index share a vector. Of m ids a share of about m / rows meets another. `digest` is the same in every process
    and on every machine, and the same for the integer 12 and the text "12".

    Args:
        rows: indices of the table. The paper's public data sets use 5,000,000.
        like: another hashed column whose table to use.

    >>> import pyarrow
    >>> number, missing = HashedId(1000).encode("item", pyarrow.table({"item": [12, None]}))["item"].tolist()
    >>> text = HashedId(1000).encode("item", pyarrow.table({"item": ["12"]}))["item"].item()
    >>> number == text, missing
    (True, 0)

    """

    rows: int = 5_000_000
    like: str | None = None

    def __post_init__(self) -> None:
        if self.rows < 2:
            raise ValueError(f"HashedId needs rows >= 2, one for missing and one to hash to; got {self.rows}")

    def learn(self, name: str, ids: Sequence["pa.Array"]) -> Self:
        return self

    def extend(self, name: str, ids: Sequence["pa.Array"]) -> Self:
        return self

    def index(self, name: str, ids: "pa.Array") -> np.ndarray:
        index = 1 + (each(digest, ids).view(np.uint64) % np.uint64(self.rows - 1)).astype(np.int64)
        if ids.null_count:
            index[ids.is_null().to_numpy(zero_copy_only=False)] = 0
        return index

    def size(self, name: str) -> int:
        return self.rows
