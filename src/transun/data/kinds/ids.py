"""One id a row: its index in a vocabulary, or its hash in a table of fixed size."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from transun.data.hashing import hash_integers, hash_text, per_distinct, unsigned_remainder
from transun.data.kinds.graph import MISSING, ColumnGraph, GraphInput, Lookup, id_input
from transun.data.kinds.kind import Inputs, Kind, require_fitted, require_values
from transun.data.logical import LogicalType
from transun.data.shift import Profile, Shift
from transun.data.table import as_ids, column_array
from transun.data.vocabulary import IdCounts, Vocabulary
from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

# Ids without an index of their own among which examples and hints are looked for.
_LOOKED_AT = 1000


class IdEncoder(Kind):
    """A kind of one id a row, which encodes the ids of a `Bag` too: a subclass says which index an id has."""

    def to_count(self, ids: "pa.Array") -> Sequence["pa.Array"]:
        """Those of the ids that must be counted to learn from them."""
        return (ids,)

    @abstractmethod
    def learn(self, name: str, counts: IdCounts | None) -> Self:
        """A copy that has learned which ids there are; None where none had to be counted."""

    @abstractmethod
    def extend(self, name: str, counts: IdCounts) -> Self:
        """A copy that knows further ids too; known ids keep their index."""

    @abstractmethod
    def index(self, name: str, ids: "pa.Array") -> np.ndarray:
        """The index of each id, int64 (n,)."""

    @abstractmethod
    def size(self, name: str) -> int:
        """How many indices there are."""

    @abstractmethod
    def codes_in_graph(self, name: str, *, text: bool) -> "GraphCodes | None":
        """How a graph finds the codes of ids that are text or whole numbers; None where it cannot."""

    def unseen(self, name: str, ids: "pa.Array") -> "pa.Array":
        """Those of the ids that have no index of their own; none, where every id has one."""
        return ids.slice(0, 0)

    def alike(self, ids: "pa.Array") -> dict[str, str]:
        """For ids that differ from a known one only in case or blanks: which one."""
        return {}

    @abstractmethod
    def codes(self, name: str) -> str:
        """What the indices mean, for whoever encodes ids without this library."""

    def count(self, name: str, ids: "pa.Array", rows: int, missing: int) -> Shift:
        """How ids, several a row in a bag, differ from those of training."""
        unseen = self.unseen(name, ids)
        examples = unseen.slice(0, _LOOKED_AT).unique()
        hints = (f"{new!r} is {known!r}" for new, known in self.alike(examples).items())
        return Shift(
            rows,
            missing,
            values=len(ids) - ids.null_count,
            unseen=len(unseen),
            examples=tuple(str(value) for value in examples.slice(0, 3).to_pylist()),
            hints=tuple(hints)[:3],
        )

    def share_unseen(self, name: str, ids: "pa.Array") -> float:
        """The share of ids that have no index of their own."""
        return float(len(self.unseen(name, ids)) / max(len(ids) - ids.null_count, 1))

    def fit(self, name: str, table: "pa.Table", counts: IdCounts | None = None) -> Self:
        require_values(name, self.missing(name, table))
        if self.shares_table_with:
            return self
        return self.learn(name, counts or count_ids(self.ids_to_count(name, table)))

    def grow(self, name: str, counts: IdCounts) -> Self:
        return self if self.shares_table_with else self.extend(name, counts)

    def ids_to_count(self, name: str, table: "pa.Table") -> Sequence["pa.Array"]:
        return self.to_count(self.ids(name, table))

    def encode(self, name: str, table: "pa.Table") -> dict[str, Tensor]:
        return {name: torch.from_numpy(self.index(name, self.ids(name, table)))}

    def graph(self, name: str, types: Mapping[str, LogicalType], sizes: Mapping[str, int]) -> ColumnGraph:
        text = types[name].is_text
        codes = self.codes_in_graph(name, text=text)
        if codes is None:
            return super().graph(name, types, sizes)
        return _IdGraph(name, self, codes, id_input(name, text=text, lookup=codes.lookup))

    def inputs(self, name: str) -> Inputs:
        return Inputs(ids={name: self.shares_table_with or self.size(name)})

    def missing(self, name: str, table: "pa.Table") -> float:
        return float(self.ids(name, table).null_count / len(table))

    def profile(self, name: str, table: "pa.Table") -> Profile:
        return Profile(self.missing(name, table), self.share_unseen(name, self.ids(name, table)))

    def shift(self, name: str, table: "pa.Table", training: Profile) -> Shift:
        ids = self.ids(name, table)
        return self.count(name, ids, len(ids), ids.null_count)

    def meanings(self, name: str) -> dict[str, str]:
        return {name: self.codes(name)}

    def ids(self, name: str, table: "pa.Table") -> "pa.Array":
        """The id of every row."""
        return as_ids(f"column {name!r}", column_array(table, name))

    def id_encoder(self, name: str) -> "IdEncoder":
        return self

    def with_encoder(self, encoder: "IdEncoder") -> Kind:
        return encoder


@dataclass(frozen=True)
class Id(IdEncoder):
    """Ids with a vector each: index = position in the vocabulary of training, 0 for an id that is not in it.

    A missing id is an id like any other: it has an index of its own if training rows lacked the id, else 0. The vector
    of index 0 is trained only by ids rarer than `min_count`; with `min_count=1` it stays random.

    Args:
        min_count: training rows that an id must have for a vector of its own. A larger number loses what is special
            about rare ids, and keeps the network from memorising them.
        shares_table_with: another column whose vocabulary and embedding table to use, which then cover the ids of
            both: `home` and `away` teams, say.
        vocabulary: learned by `fit`.

    >>> import pyarrow
    >>> item = Id(min_count=2).fit("item", pyarrow.table({"item": ["b", "a", "b", "a", "c"]}))
    >>> item.encode("item", pyarrow.table({"item": ["b", "c", "new", None, "a"]}))["item"]
    tensor([2, 0, 0, 0, 1])

    """

    min_count: int = 1
    shares_table_with: str | None = None
    vocabulary: Vocabulary | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.min_count < 1:
            raise ValueError(f"Id needs min_count >= 1, got {self.min_count}")

    def learn(self, name: str, counts: IdCounts | None) -> Self:
        known = () if counts is None else counts.frequent(self.min_count)
        if len(known) == 0:
            raise ValueError(f"column {name!r} has no id in {self.min_count} rows: lower min_count, or leave it out")
        return replace(self, vocabulary=Vocabulary(known))

    def extend(self, name: str, counts: IdCounts) -> Self:
        """A copy with the new ids appended that have at least `min_count` rows in the new table."""
        return replace(self, vocabulary=require_fitted(name, self.vocabulary).grow(counts.frequent(self.min_count)))

    def index(self, name: str, ids: "pa.Array") -> np.ndarray:
        return np.asarray(require_fitted(name, self.vocabulary)(ids))

    def size(self, name: str) -> int:
        return len(require_fitted(name, self.vocabulary))

    def codes_in_graph(self, name: str, *, text: bool) -> "GraphCodes | None":
        vocabulary: Vocabulary = require_fitted(name, self.vocabulary)
        codes = vocabulary.codes(text=text)
        missing: Any = "" if text else MISSING
        # An id of training that is written like a missing one is meant.
        return LookedUp(
            Lookup(tuple(codes), tuple(codes.values())).replace({missing: codes.get(missing, vocabulary.missing)})
        )

    def unseen(self, name: str, ids: "pa.Array") -> "pa.Array":
        return ids.filter(need("pyarrow").array(self.index(name, ids) == 0)).drop_null()

    def alike(self, ids: "pa.Array") -> dict[str, str]:
        return {} if self.vocabulary is None else self.vocabulary.alike(ids)

    def codes(self, name: str) -> str:
        vocabulary: Vocabulary = require_fitted(name, self.vocabulary)
        last, missing = len(vocabulary) - 1, vocabulary.missing
        if missing:
            return f"codes 0..{last}: {missing} for a missing id, 0 for one that training has not seen"
        return f"codes 0..{last}: 0 for a missing id and for one that training has not seen"


@dataclass(frozen=True)
class HashedId(IdEncoder):
    """Ids in a table of fixed size: index = 1 + hash_text(id) mod (rows - 1), 0 for a missing id.

    Nothing is learned, so new ids need no growing and any number of ids costs no memory for a vocabulary; but ids of
    one index share a vector. Of m ids a share of about m / rows collides with another. `hash_text` is the same in every
    process and on every machine, and the same for the integer 12 and the text "12".

    Args:
        rows: indices of the table. The paper's public data sets use 5,000,000.
        shares_table_with: another hashed column whose table to use.

    >>> import pyarrow
    >>> number, missing = HashedId(1000).encode("item", pyarrow.table({"item": [12, None]}))["item"].tolist()
    >>> text = HashedId(1000).encode("item", pyarrow.table({"item": ["12"]}))["item"].item()
    >>> number == text, missing
    (True, 0)

    """

    rows: int = 5_000_000
    shares_table_with: str | None = None

    def __post_init__(self) -> None:
        if self.rows < 2:
            raise ValueError(f"HashedId needs rows >= 2, one for missing and one to hash to; got {self.rows}")

    def to_count(self, ids: "pa.Array") -> Sequence["pa.Array"]:
        return ()

    def learn(self, name: str, counts: IdCounts | None) -> Self:
        return self

    def extend(self, name: str, counts: IdCounts) -> Self:
        return self

    def index(self, name: str, ids: "pa.Array") -> np.ndarray:
        index = 1 + (per_distinct(hash_text, ids).view(np.uint64) % np.uint64(self.rows - 1)).astype(np.int64)
        if ids.null_count:
            index[ids.is_null().to_numpy(zero_copy_only=False)] = 0
        return index

    def size(self, name: str) -> int:
        return self.rows

    def codes_in_graph(self, name: str, *, text: bool) -> "GraphCodes | None":
        """The hash of whole numbers. That of text needs its bytes, which no operation of ONNX or torch can see."""
        return None if text else Hashed(self.rows)

    def codes(self, name: str) -> str:
        return f"codes 0..{self.rows - 1}: 0 for a missing id, for others a hash"


def count_ids(arrays: Sequence["pa.Array"]) -> IdCounts | None:
    """The counts of the ids in some arrays together; None if there is no array."""
    return IdCounts.of(arrays) if arrays else None


class GraphCodes(nn.Module):
    """How a graph finds the codes of ids: by a lookup before `forward`, or by computing in `forward`."""

    lookup: Lookup | None = None

    @abstractmethod
    def forward(self, ids: Tensor) -> Tensor:
        """The codes of whole numbers, or of what the lookup has made of ids."""
        raise NotImplementedError

    @abstractmethod
    def dropping(self, ids: Sequence[Any]) -> "GraphCodes":
        """The same with the code -1 for these ids."""


class LookedUp(GraphCodes):
    """The lookup finds the codes, and nothing remains to be done."""

    def __init__(self, lookup: Lookup) -> None:
        super().__init__()
        self.lookup = self.known = lookup

    def forward(self, ids: Tensor) -> Tensor:
        return ids

    def dropping(self, ids: Sequence[Any]) -> "LookedUp":
        return LookedUp(self.known.replace(dict.fromkeys(ids, -1)))


class Hashed(GraphCodes):
    """1 + hash mod (rows - 1), 0 for a missing id and -1 for those to drop."""

    def __init__(self, rows: int, dropped: Sequence[int] = ()) -> None:
        super().__init__()
        self.rows, self.dropped = rows, tuple(dropped)

    def forward(self, ids: Tensor) -> Tensor:
        codes = 1 + unsigned_remainder(hash_integers(ids), self.rows - 1)
        codes = torch.where(ids == MISSING, 0, codes)
        for dropped in self.dropped:
            codes = torch.where(ids == dropped, -1, codes)
        return codes

    def dropping(self, ids: Sequence[Any]) -> "Hashed":
        return Hashed(self.rows, ids)


class _IdGraph(ColumnGraph):
    def __init__(self, name: str, kind: IdEncoder, codes: GraphCodes, input_: GraphInput) -> None:
        super().__init__(name, kind, [input_])
        self.codes = codes

    def forward(self, columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {self.name: self.codes(columns[self.name])}
