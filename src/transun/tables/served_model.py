"""A table model as one module for serving: raw columns in, predictions out."""

from collections.abc import Collection, Mapping, Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from transun.data.kinds.graph import ColumnGraph, GraphInput, Lookup
from transun.models.inference_layout import MergedModel
from transun.models.network import Model

__all__ = ["IntegerLookup", "ServedColumns", "ServedModel", "WithLookups"]


class ServedColumns(nn.Module):
    """Encodes the columns of a table: the first part of what an exported graph computes.

    Args:
        columns: how each column is encoded.

    """

    def __init__(self, columns: Sequence[ColumnGraph]) -> None:
        super().__init__()
        self.columns = nn.ModuleList(columns)

    @property
    def inputs(self) -> list[GraphInput]:
        """The columns that are read, each once."""
        return list({each.name: each for each in self.coded_inputs.values()}.values())

    @property
    def coded_inputs(self) -> dict[str, GraphInput]:
        """What `forward` reads, by its name there: ids are replaced by their codes before.

        Two columns may read one column of the table, and look its ids up in different vocabularies.
        """
        return {_key(number, each): each for number, column in enumerate(self.graphs) for each in column.inputs}

    @property
    def graphs(self) -> list[ColumnGraph]:
        """How each column is encoded."""
        return [cast(ColumnGraph, column) for column in self.columns]

    def forward(self, columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The encoded columns."""
        x: dict[str, Tensor] = {}
        for number, column in enumerate(self.graphs):
            x |= column({each.name: columns[_key(number, each)] for each in column.inputs})
        return x


class ServedModel(ServedColumns):
    """Encodes the columns, runs the network and reads the head: what an exported graph computes.

    Args:
        model: the network and the head.
        columns: how each column is encoded.
        original: whether to output the prediction before debiasing too.
        levels: of the quantiles to output, for heads that have a law of y|x.
        exposure: the input by which all outputs are multiplied, where the model predicts amounts per unit of it.

    """

    def __init__(
        self,
        model: Model | MergedModel,
        columns: Sequence[ColumnGraph],
        *,
        original: bool = False,
        levels: Sequence[float] = (),
        exposure: GraphInput | None = None,
    ) -> None:
        super().__init__(columns)
        self.model = model
        self.original, self.levels, self.exposure = original, tuple(levels), exposure
        asked = ["prediction", *(["original"] if original else []), *(["quantiles"] if levels else [])]
        columns_read = {each.name for each in self.inputs}
        self.outputs = {kind: _unlike(kind, columns_read) for kind in asked}
        """What is put out, in order, and its name in the graph; a column of the table that is called so keeps it."""

    @property
    def coded_inputs(self) -> dict[str, GraphInput]:
        """What `forward` reads, the exposure among it."""
        columns = super().coded_inputs
        return columns if self.exposure is None else columns | {self.exposure.name: self.exposure}

    def forward(self, columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Predictions (B,), those before debiasing (B,), and quantiles (B, levels), as far as they are asked for."""
        amounts = self.to_amounts(self.read(super().forward(columns)), columns)
        return {self.outputs[kind]: amount for kind, amount in amounts.items()}

    def to_amounts(self, outputs: Mapping[str, Tensor], columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Outputs that are rates times the exposures of the rows; unchanged where there is no exposure."""
        if self.exposure is None:
            return dict(outputs)
        exposure = columns[self.exposure.name]
        return {
            name: rates * exposure.to(rates.dtype).reshape(-1, *[1] * (rates.ndim - 1))
            for name, rates in outputs.items()
        }

    def read(self, x: dict[str, Tensor]) -> dict[str, Tensor]:
        """The outputs for encoded columns, per unit of exposure if there is one."""
        model, head = self.model, self.model.head
        raw = model.raw(x)
        outputs = {"prediction": model.over_members(head(raw))}
        if self.original:
            outputs["original"] = model.over_members(head.undebiased(raw))
        if self.levels and head.distribution is not None:
            # All levels at once, as further rows: the search for a quantile is a long chain of operations.
            count = len(self.levels)
            level = torch.tensor(self.levels, dtype=raw[0].dtype).repeat(raw[0].shape[0])
            values = head.distribution.quantile(tuple(part.repeat_interleave(count, 0) for part in raw), level)
            by_level = values.reshape(-1, count).unbind(1)
            outputs["quantiles"] = torch.stack([model.over_members(each) for each in by_level], 1)
        return outputs


def _unlike(name: str, taken: Collection[str]) -> str:
    """The name itself, or with `model_` before it, as often as it takes to be unlike every name that is taken."""
    return name if name not in taken else _unlike(f"model_{name}", taken)


def _key(number: int, each: GraphInput) -> str:
    """The name by which the column of this number reads an input."""
    return each.name if each.lookup is None else f"{each.name} as codes of column {number}"


class IntegerLookup(nn.Module):
    """The codes of whole numbers, for a format that has no lookup of its own: a binary search among the known ones.

    >>> IntegerLookup(Lookup([30, 10], [1, 2]))(torch.tensor([[10, 11], [30, 40]])).tolist()
    [[2, 0], [1, 0]]
    """

    def __init__(self, lookup: Lookup) -> None:
        super().__init__()
        keys, codes = (np.asarray(values, np.int64) for values in (lookup.keys, lookup.codes))
        self.register_buffer("keys", torch.from_numpy(np.sort(keys)))
        self.register_buffer("codes", torch.from_numpy(codes[np.argsort(keys)]))

    def forward(self, ids: Tensor) -> Tensor:
        keys = self.get_buffer("keys")
        at = torch.searchsorted(keys, ids).clamp(max=len(keys) - 1)
        return torch.where(keys[at] == ids, self.get_buffer("codes")[at], 0)


class WithLookups(nn.Module):
    """Served columns, or a served model, that take whole numbers as ids and look up their codes themselves."""

    def __init__(self, served: ServedColumns) -> None:
        super().__init__()
        self.served = served
        coded = {name: each for name, each in served.coded_inputs.items() if each.lookup is not None}
        # The name of the codes, and that of the column.
        self.names = [(name, each.name) for name, each in coded.items()]
        self.lookups = nn.ModuleList(IntegerLookup(each.lookup) for each in coded.values() if each.lookup is not None)

    def forward(self, columns: dict[str, Tensor]) -> dict[str, Tensor]:
        """What the served columns or the served model give."""
        lookups = zip(self.names, self.lookups, strict=True)
        codes = {name: lookup(columns[source]) for (name, source), lookup in lookups}
        return self.served({**columns, **codes})  # type: ignore[no-any-return]
