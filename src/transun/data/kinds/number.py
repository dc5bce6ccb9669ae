"""Numbers: cut into buckets of equal frequency, or standardised."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from torch import Tensor

from transun.data.kinds.kind import Inputs, Kind, require_fitted, require_values
from transun.data.table import as_numbers, column_array

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Buckets(Kind):
    """Numbers as ids of buckets of equal frequency: 0 if missing, else 1 + |{edges < v}|.

    The paper's choice: any shape of dependence can be learned, outliers do no harm, and units do not matter; but the
    order of the buckets is lost. Edges are the quantiles k / count of the training values, so about the same number of
    rows falls in each bucket (edge, edge]; where many rows have one value, equal edges merge and its bucket is larger.

    Args:
        count: buckets at most. More are finer, with fewer rows to learn each from.
        edges: learned by `fit`.

    >>> import pyarrow
    >>> price = Buckets(2).fit("price", pyarrow.table({"price": [1.0, 2.0, 3.0, 40.0]}))
    >>> price.edges, price.encode("price", pyarrow.table({"price": [0.0, 2.0, 2.1, 99.0, None]}))["price"].tolist()
    ((2.0,), [1, 1, 2, 2, 0])

    """

    count: int = 32
    edges: tuple[float, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"Buckets needs count >= 1, got {self.count}")
        if self.edges is not None:
            edges = tuple(float(edge) for edge in self.edges)
            if not all(low < high for low, high in pairwise(edges)):
                raise ValueError("the edges of Buckets must ascend")
            object.__setattr__(self, "edges", edges)

    def fit(self, name: str, table: "pa.Table", other_ids: Sequence["pa.Array"] = ()) -> Self:
        v = _numbers(name, table)
        v = v[np.isfinite(v)]  # an infinite edge would separate nothing
        require_values(name, float(len(v) == 0))
        # Edges are training values, not points between two of them: a bucket that ends at such a point could be empty.
        edges = np.unique(np.quantile(v, np.arange(1, self.count) / self.count, method="lower"))
        # No training value lies above the largest: an edge there would make an empty bucket.
        return replace(self, edges=tuple(edges[edges < v.max()].tolist()))

    def encode(self, name: str, table: "pa.Table") -> dict[str, Tensor]:
        edges = np.asarray(require_fitted(name, self.edges), np.float64)
        v = _numbers(name, table)
        return {name: torch.from_numpy(np.where(np.isnan(v), 0, 1 + np.searchsorted(edges, v)))}

    def inputs(self, name: str) -> Inputs:
        return Inputs(ids={name: len(require_fitted(name, self.edges)) + 2})

    def missing(self, name: str, table: "pa.Table") -> float:
        return _missing(_numbers(name, table))


@dataclass(frozen=True)
class Standardised(Kind):
    """Numbers with mean 0 and deviation 1 in training: (v - mean) / sd; 0 if missing, with an indicator.

    Cheap and smooth, and it keeps the order, unlike `Buckets`; but an outlier stays as far out as it was, so give
    amounts as logarithms. Where training rows lack the value, a second tensor `name.missing` is 1 for such rows and 0
    for others.

    Args:
        mean: learned by `fit`.
        sd: learned by `fit`; 1 for a constant column.
        indicator: whether training rows lacked the value; learned by `fit`.

    >>> import pyarrow
    >>> age = Standardised().fit("age", pyarrow.table({"age": [10, 30, None]}))
    >>> age.encode("age", pyarrow.table({"age": [40, None]}))
    {'age': tensor([2., 0.]), 'age.missing': tensor([0., 1.])}

    """

    mean: float | None = field(default=None, repr=False)
    sd: float | None = field(default=None, repr=False)
    indicator: bool | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.sd is not None and not self.sd > 0:
            raise ValueError(f"Standardised needs sd > 0, got {self.sd}")

    def fit(self, name: str, table: "pa.Table", other_ids: Sequence["pa.Array"] = ()) -> Self:
        return self.learn(name, _finite(name, _numbers(name, table)))

    def learn(self, name: str, v: np.ndarray) -> Self:
        """A copy fitted to numbers (n,) with NaN for missing."""
        known = v[~np.isnan(v)]
        require_values(name, float(len(known) == 0))
        mean, sd = float(known.mean()), float(known.std())
        # The deviation of a constant is zero up to rounding; division by it would leave nothing but rounding errors.
        flat = sd <= 1e-12 * max(abs(mean), 1e-300)
        return replace(self, mean=mean, sd=1.0 if flat else sd, indicator=len(known) < len(v))

    def encode(self, name: str, table: "pa.Table") -> dict[str, Tensor]:
        return self.apply(name, _finite(name, _numbers(name, table)))

    def apply(self, name: str, v: np.ndarray) -> dict[str, Tensor]:
        """The tensors of numbers (n,) with NaN for missing."""
        scaled = (v - require_fitted(name, self.mean)) / require_fitted(name, self.sd)
        missing = np.isnan(v)
        tensors = {name: np.where(missing, 0, scaled)} | ({f"{name}.missing": missing} if self.indicator else {})
        return {key: torch.from_numpy(value.astype(np.float32)) for key, value in tensors.items()}

    def inputs(self, name: str) -> Inputs:
        return Inputs(numeric=(name, f"{name}.missing") if require_fitted(name, self.indicator) else (name,))

    def missing(self, name: str, table: "pa.Table") -> float:
        return _missing(_numbers(name, table))


def _numbers(name: str, table: "pa.Table") -> np.ndarray:
    return as_numbers(f"column {name!r}", column_array(table, name))


def _missing(v: np.ndarray) -> float:
    return float(np.isnan(v).mean())


def _finite(name: str, v: np.ndarray) -> np.ndarray:
    infinite = np.flatnonzero(np.isinf(v))
    if len(infinite):
        raise ValueError(
            f"column {name!r}, row {infinite[0]}: an infinite number has no standardised value; "
            "set it to missing, or declare the column as Buckets()"
        )
    return v
