"""Several ids a row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from torch import Tensor, nn

from transun.data.kinds.graph import ColumnGraph, id_input
from transun.data.kinds.ids import GraphCodes, Id, IdEncoder, count_ids
from transun.data.kinds.kind import Inputs, Kind, require_fitted, require_values
from transun.data.kinds.layout import Layout, ListInput, Lists
from transun.data.logical import LogicalType
from transun.data.shift import Profile, Shift
from transun.data.vocabulary import IdCounts

if TYPE_CHECKING:
    import pyarrow as pa

# Shared by all bags, since they are frozen.
_LISTS, _ID = Lists(), Id()


@dataclass(frozen=True)
class Bag(Kind):
    """Several ids a row, as (n, L) indices padded with -1 at the end: the items of an order, the genres of a film.

    Missing values and padding are dropped, so a row without values is all -1; an unseen id has index 0.

    Args:
        layout: where the values are: `Lists()`, `Split("|")` or `Numbered(10)`.
        of: what gives an id its index: `Id(min_count=...)` or `HashedId(rows)`; without effect if the table is shared.
        length: L, the most values kept of a row: its first ones, or its last ones if negative, as in a history that
            ends today. None is the length of the longest training row; every row then takes memory for that many.
        shares_table_with: another column whose vocabulary and embedding table to use, which then cover the ids of
            both.
        width: L, learned by `fit`.

    >>> import pyarrow
    >>> table = pyarrow.table({"bought": [[7, 3], [], [3]]})
    >>> Bag().fit("bought", table).encode("bought", table)["bought"].tolist()
    [[2, 1], [-1, -1], [1, -1]]

    """

    layout: Layout = _LISTS
    of: IdEncoder = _ID
    length: int | None = None
    shares_table_with: str | None = None
    width: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.length == 0:
            raise ValueError("Bag needs a length other than 0: how many values of a row to keep")
        if self.width is not None and self.width < 1:
            raise ValueError(f"Bag learned a width of {self.width}: a row has at least one place")

    def sources(self, name: str) -> tuple[str, ...]:
        return self.layout.sources(name)

    def fit(self, name: str, table: "pa.Table", counts: IdCounts | None = None) -> Self:
        ids, lengths = self.layout.read(name, table)
        require_values(name, 0.0 if len(ids) else 1.0)
        width = int(lengths.max()) if self.length is None else abs(self.length)
        if self.shares_table_with:
            return replace(self, width=width)
        return replace(self, width=width, of=self.of.learn(name, counts or count_ids(self.of.to_count(ids))))

    def grow(self, name: str, counts: IdCounts) -> Self:
        return self if self.shares_table_with else replace(self, of=self.of.extend(name, counts))

    def ids_to_count(self, name: str, table: "pa.Table") -> Sequence["pa.Array"]:
        return self.of.to_count(self.ids(name, table))

    def encode(self, name: str, table: "pa.Table") -> dict[str, Tensor]:
        width = int(require_fitted(name, self.width))
        ids, counts = self.layout.read(name, table)
        starts = np.cumsum(counts) - counts
        # Of a row longer than L, the values to skip at its front: none, or all but the last L.
        skip = np.maximum(counts - width, 0) if (self.length or 0) < 0 else 0
        position = np.arange(len(ids)) - np.repeat(starts + skip, counts)
        kept = (position >= 0) & (position < width)
        matrix = np.full((len(counts), width), -1, np.int64)
        cell = np.repeat(np.arange(len(counts)) * width, counts) + position
        matrix.reshape(-1)[cell[kept]] = self.of.index(name, ids)[kept]
        return {name: torch.from_numpy(matrix)}

    def graph(self, name: str, types: Mapping[str, LogicalType], sizes: Mapping[str, int]) -> ColumnGraph:
        codes = {}
        for each in self.layout.list_inputs(name, types):
            graph = self.of.codes_in_graph(name, text=each.text)
            if graph is None:
                return super().graph(name, types, sizes)
            codes[each] = graph.dropping(each.dropped)
        return _BagGraph(name, self, codes)

    def inputs(self, name: str) -> Inputs:
        return Inputs(bags={name: self.shares_table_with or self.of.size(name)})

    def missing(self, name: str, table: "pa.Table") -> float:
        return float((self.layout.read(name, table).counts == 0).mean())

    def profile(self, name: str, table: "pa.Table") -> Profile:
        return Profile(self.missing(name, table), self.of.share_unseen(name, self.ids(name, table)))

    def shift(self, name: str, table: "pa.Table", training: Profile) -> Shift:
        ids, counts = self.layout.read(name, table)
        return self.of.count(name, ids, len(counts), int((counts == 0).sum()))

    def meanings(self, name: str) -> dict[str, str]:
        return {name: f"{self.of.codes(name)}; missing ones are left out, and -1 pads shorter rows"}

    def ids(self, name: str, table: "pa.Table") -> "pa.Array":
        """The ids of all rows, one after the other."""
        return self.layout.read(name, table).ids

    def id_encoder(self, name: str) -> IdEncoder:
        return self.of

    def with_encoder(self, encoder: IdEncoder) -> Kind:
        return replace(self, of=encoder)


class _BagGraph(ColumnGraph):
    def __init__(self, name: str, kind: Bag, codes: Mapping[ListInput, GraphCodes]) -> None:
        inputs = [
            id_input(each.name, text=each.text, lookup=of.lookup, several=each.several, separator=each.separator)
            for each, of in codes.items()
        ]
        super().__init__(name, kind, inputs)
        self.codes = nn.ModuleList(codes.values())
        self.width, self.last = int(require_fitted(name, kind.width)), (kind.length or 0) < 0

    def forward(self, columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
        parts = [find(columns[each.name]) for each, find in zip(self.inputs, self.codes, strict=True)]
        codes = torch.cat([part if part.ndim == 2 else part.unsqueeze(1) for part in parts], 1)
        kept = codes >= 0
        position = kept.long().cumsum(1) - 1
        if self.last:
            position = position - (kept.sum(1, keepdim=True) - self.width).clamp(min=0)
        # What is not kept goes into one more column, which is cut off.
        position = torch.where(kept & (position >= 0) & (position < self.width), position, self.width)
        empty = torch.full((codes.shape[0], self.width + 1), -1, dtype=torch.int64, device=codes.device)
        return {self.name: empty.scatter(1, position, codes)[:, : self.width]}
