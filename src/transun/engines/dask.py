"""Dask frames: partitions are summarised and predicted by the cluster's workers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from transun.data.table import read_table
from transun.engines.rows import EngineRows, Summarise, first_rows, pickled_summary
from transun.support.extras import need
from transun.tables.model import TableModel

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DaskRows"]


class DaskRows(EngineRows):
    """The rows of a `dask.dataframe`, numbered by their order in the partitions; the workers need transun installed.

    `DaskRows(frame).diagnose("gmv", "predicted")` is a diagnosis, and `DaskRows(frame).predict(load("model"))` a Dask
    frame.
    """

    @property
    def schema(self) -> "pa.Schema":
        """Names and Arrow types of the columns, those of the first row."""
        return read_table(self.frame.head(1, npartitions=-1)).schema

    def select(self, columns: Sequence[str]) -> Self:
        """These columns alone."""
        return type(self)(self.frame[list(columns)])

    def summaries(self, summarise: Summarise) -> list[bytes]:
        """One summary of every partition that has rows."""
        dask = need("dask")
        parts = self.frame.to_delayed()
        counts = dask.compute(*(dask.delayed(len)(part) for part in parts))
        work = dask.delayed(_summary)
        summaries = dask.compute(
            *(work(part, first, summarise) for part, first in zip(parts, first_rows(counts), strict=True))
        )
        return [summary for of_partition in summaries for summary in of_partition]

    def predict(self, model: TableModel, name: str = "prediction") -> Any:
        """The Dask frame with a further column, the model's prediction of every row; nothing is computed yet."""
        self._require_new(name)
        return self.frame.map_partitions(_predicted, model, name, meta=self.frame.assign(**{name: 0.0}))


def _summary(part: Any, first: int, summarise: Summarise) -> list[bytes]:
    return list(pickled_summary([read_table(part)], first, summarise)) if len(part) else []


def _predicted(part: Any, model: TableModel, name: str) -> Any:
    return part.assign(**{name: model.predict(part).double().numpy()})
