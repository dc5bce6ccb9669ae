"""DuckDB relations: a query is read batch by batch, so that neither its tables nor its result need fit in memory."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Self

from transun.engines.rows import EngineRows, Summarise, pickled_summary, with_prediction
from transun.support.extras import need
from transun.tables.model import TableModel

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DuckdbRows"]

_BATCH_ROWS = 1 << 16


class DuckdbRows(EngineRows):
    """The rows of a DuckDB relation, such as `duckdb.sql("SELECT * FROM 'orders/*.parquet'")`, in its order.

    DuckDB joins, filters and reads in parallel; the sums are made in this process. A query whose order changes from one
    run to the next needs an ORDER BY.

    `DuckdbRows(relation).diagnose("gmv", "predicted")` is a diagnosis.
    """

    @property
    def schema(self) -> "pa.Schema":
        """Names and Arrow types of the columns."""
        return self.frame.limit(0).to_arrow_table().schema

    def select(self, columns: Sequence[str]) -> Self:
        """These columns alone."""
        quoted = ('"' + name.replace('"', '""') + '"' for name in columns)
        return type(self)(self.frame.project(", ".join(quoted)))

    def summaries(self, summarise: Summarise) -> Iterator[bytes]:
        """One summary of all rows."""
        return pickled_summary(self._tables(), 0, summarise)

    def predict(self, model: TableModel, name: str = "prediction") -> "pa.RecordBatchReader":
        """The rows with a further column, the model's prediction, as a reader that DuckDB queries by its variable name.

        Nothing is computed before it is read, and it can be read once: `COPY (SELECT * FROM predictions) TO ...`.
        """
        self._require_new(name)
        pa = need("pyarrow")
        schema = self.schema.append(pa.field(name, pa.float64()))
        tables = (with_prediction(table, model, name) for table in self._tables())
        return pa.RecordBatchReader.from_batches(schema, (batch for table in tables for batch in table.to_batches()))

    def _tables(self) -> "Iterator[pa.Table]":
        for batch in self.frame.to_arrow_reader(_BATCH_ROWS):
            yield need("pyarrow").Table.from_batches([batch])
