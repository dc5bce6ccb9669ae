"""A column inside a graph for serving: its inputs, and the module that encodes them as `Kind.encode` does.

A model is served by programs that have never heard of this library, so the encoding of raw columns is part of the
exported graph. It is written once, as a torch module that is exported together with the network. Only text is beyond
torch: a `Lookup` tells a format that has text, such as ONNX, the code of every known one.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

    from transun.data.kinds.kind import Kind

__all__ = [
    "MISSING",
    "ColumnGraph",
    "EncodedColumn",
    "GraphInput",
    "Lookup",
    "count",
    "double",
    "exposure_input",
    "id_input",
    "number_input",
    "time_input",
]

MISSING = -(2**63)
"""The whole number that means a missing id or time: the smallest of int64, which is also numpy's NaT."""

# Numbers, ids and a length that test a graph, beside values like those of training.
_EXTREME_NUMBERS = (0.0, -1.0, 1e-12, 1e12, -1e12)
_UNSEEN = {False: (-7, 123_456_789, 2**40 + 1), True: ("a stranger ", "É", "-7")}
_LENGTH = 4


@dataclass(frozen=True, eq=False)
class Lookup:
    """The code of every known id; any other id has the code 0.

    Args:
        keys: distinct texts, or whole numbers.
        codes: the code of each key.

    """

    keys: Sequence[Any]
    codes: Sequence[int]

    def replace(self, codes: Mapping[Any, int]) -> "Lookup":
        """The same with other codes for some keys, known or not.

        >>> changed = Lookup(["a", "b"], [1, 2]).replace({"b": -1, "": -1})
        >>> changed.keys, changed.codes
        (('a', 'b', ''), (1, -1, -1))
        """
        merged = dict(zip(self.keys, self.codes, strict=True)) | dict(codes)
        return Lookup(tuple(merged), tuple(merged.values()))


@dataclass(frozen=True, eq=False)
class GraphInput:
    """An input of a graph, mostly a column of a table as it is: its name, its type, and how values are written.

    Args:
        name: that of the column.
        dtype: "string", "int64", "float64" or "float32".
        meaning: how values are written, and how a missing one.
        values: values by which a graph is tested: known, unknown, missing and extreme ones.
        missing: what is written for a missing value.
        type: the Arrow type of a value in a table; None for a tensor that is encoded before.
        several: whether a row has several values, (batch, length).
        separator: between the ids of one text; blanks around an id do not count.
        lookup: the codes by which ids are replaced before the encoding.

    """

    name: str
    dtype: str
    meaning: str
    values: np.ndarray
    missing: Any = None
    type: "pa.DataType | None" = None
    several: bool = False
    separator: str | None = None
    lookup: Lookup | None = None

    @property
    def shape(self) -> tuple[str, ...]:
        """The names of its dimensions."""
        return ("batch", "length") if self.several else ("batch",)

    def draw(self, rows: int, rng: np.random.Generator) -> np.ndarray:
        """Random values for some rows."""
        if self.separator is not None:
            lists = rng.choice(self.values, (rows, _LENGTH)).tolist()
            joined = [
                self.separator.join(ids[:count]) for ids, count in zip(lists, rng.integers(0, 5, rows), strict=True)
            ]
            return np.array(joined, object)
        return rng.choice(self.values, (rows, _LENGTH) if self.several else rows)

    def to_arrow(self, values: np.ndarray) -> "pa.Array":
        """The column of a table that holds these values."""
        pa = need("pyarrow")
        if not self.several:
            return pa.array([self._present(value) for value in values.tolist()], self.type)
        return pa.array([[self._present(value) for value in row] for row in values.tolist()], pa.list_(self.type))

    def _present(self, value: Any) -> Any:
        return None if value == self.missing or value != value else value


def number_input(name: str, seen: Sequence[float] = (0.0, 1.0)) -> GraphInput:
    """One number a row.

    Args:
        name: of the column.
        seen: some numbers like those of training.

    >>> number_input("price").dtype
    'float64'

    """
    between = np.linspace(min(seen), max(seen), 7)
    values = np.array([*_EXTREME_NUMBERS, *seen, *between, np.nan])
    meaning = "a number; NaN where it is missing"
    return GraphInput(name, "float64", meaning, values, missing=np.nan, type=need("pyarrow").float64())


def exposure_input(name: str) -> GraphInput:
    """The exposure of each row, by which predicted rates become amounts.

    >>> exposure_input("years").meaning
    'the exposure, a number above 0: outputs are amounts over this much of it, for 1 those per unit'
    """
    values = np.array([1e-3, 0.5, 1.0, 2.0, 1e6])
    meaning = "the exposure, a number above 0: outputs are amounts over this much of it, for 1 those per unit"
    return GraphInput(name, "float64", meaning, values, type=need("pyarrow").float64())


def time_input(name: str, zone: str | None, seen: tuple[float, float]) -> GraphInput:
    """One time a row, in microseconds since 1970.

    Args:
        name: of the column.
        zone: the time zone of training; None where times are those of a clock whose zone is not known.
        seen: two times, between which and around which those of training lie.

    """
    clock = "in UTC" if zone is not None else "by the clock of the training rows, whatever its zone"
    low, high = (int(np.clip(time, -6e16, 6e16)) for time in seen)
    reach = high - low + 86_400_000_000
    values = np.array([*np.linspace(low - reach, high + reach, 97).astype(np.int64), -1, 0, MISSING])
    meaning = f"a time in microseconds since 1970 {clock}; {MISSING} (NaT) where it is missing"
    return GraphInput(name, "int64", meaning, values, missing=MISSING, type=need("pyarrow").timestamp("us", zone))


def id_input(
    name: str, *, text: bool, lookup: Lookup | None = None, several: bool = False, separator: str | None = None
) -> GraphInput:
    """Ids, one per row or several, as whole numbers or as text.

    Args:
        name: of the column.
        text: whether they are text.
        lookup: the codes of known ids; None where codes are computed from whole numbers.
        several: whether a row has several.
        separator: between the ids of one text.

    >>> id_input("item", text=True).meaning
    'an id as text; empty where it is missing'

    """
    pa = need("pyarrow")
    missing: Any = "" if text else MISSING
    written = "empty text" if text else str(MISSING)
    form = "as text" if text else "as whole numbers" if several else "as a whole number"
    meaning = f"an id {form}; {'empty' if text else written} where it is missing"
    if several:
        meaning = f"several ids {form}; shorter rows are filled up with {written}, which is left out"
    if separator is not None:
        meaning = f"several ids in one text, between them {separator!r}; empty where there are none"
    known = () if lookup is None else lookup.keys
    values = np.array([*known, *_UNSEEN[text], missing], object if text else np.int64)
    type_ = pa.large_string() if text else pa.int64()
    dtype = "string" if text else "int64"
    return GraphInput(name, dtype, meaning, values, missing, type_, several, separator, lookup)


class ColumnGraph(nn.Module):
    """What a graph does with the inputs of one column: `forward` is `Kind.encode` in operations of torch.

    Args:
        name: of the column.
        kind: of the column, fitted.
        inputs: what the graph reads. Those with a lookup arrive as codes, int64.

    """

    def __init__(self, name: str, kind: "Kind", inputs: Sequence[GraphInput]) -> None:
        super().__init__()
        self.name, self.kind, self.inputs = name, kind, tuple(inputs)

    @abstractmethod
    def forward(self, columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The tensors that the kind makes of the inputs, by name."""
        raise NotImplementedError

    @property
    def encoded(self) -> bool:
        """Whether the inputs are tensors that have to be encoded before."""
        return any(each.type is None for each in self.inputs)

    def expected(self, values: Mapping[str, np.ndarray]) -> dict[str, Tensor]:
        """The tensors that the kind itself makes of the values of the inputs."""
        table = need("pyarrow").table({each.name: each.to_arrow(values[each.name]) for each in self.inputs})
        return self.kind.encode(self.name, table)


class EncodedColumn(ColumnGraph):
    """A column that is encoded before: the inputs of the graph are the tensors of `Kind.encode`.

    For kinds that no graph can compute, and for programs that keep codes of ids instead of ids.

    Args:
        name: of the column.
        kind: of the column, fitted.
        sizes: the number of ids of every table, by the tensor that owns it.

    """

    def __init__(self, name: str, kind: "Kind", sizes: Mapping[str, int]) -> None:
        inputs, meanings = kind.inputs(name), kind.meanings(name)

        def tensor(key: str, values: np.ndarray, *, several: bool = False) -> GraphInput:
            return GraphInput(key, str(values.dtype), f"encoded: {meanings[key]}", values, several=several)

        def codes(table: int | str) -> int:
            return sizes[table] if isinstance(table, str) else table

        ids = [tensor(key, np.arange(codes(table))) for key, table in inputs.ids.items()]
        bags = [tensor(key, np.arange(-1, codes(table)), several=True) for key, table in inputs.bags.items()]
        numbers = [tensor(key, np.linspace(-2, 2, 41, dtype=np.float32)) for key in inputs.numeric]
        ranks = [tensor(key, np.linspace(0, 1, 41, dtype=np.float32)) for key in inputs.ranks]
        periods = [tensor(key, np.arange(size)) for key, size in inputs.periods.items()]
        super().__init__(name, kind, [*ids, *bags, *numbers, *ranks, *periods])

    def forward(self, columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {each.name: columns[each.name] for each in self.inputs}

    def expected(self, values: Mapping[str, np.ndarray]) -> dict[str, Tensor]:
        return {each.name: torch.from_numpy(values[each.name]) for each in self.inputs}


def double(value: float) -> Tensor:
    """A constant of a graph in double precision; torch would write a plain number in single precision."""
    return torch.tensor(value, dtype=torch.float64)


def count(conditions: Tensor) -> Tensor:
    """How many of the conditions in the last dimension hold; runtimes add up floats several times faster than int64.

    >>> count(torch.tensor([[True, False, True]])).tolist()
    [2]
    """
    return conditions.float().sum(-1).long()
