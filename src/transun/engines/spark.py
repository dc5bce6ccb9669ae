"""Spark frames: chunks are summarised and predicted by `mapInArrow`, in Spark's Python workers."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

from transun.engines.rows import EngineRows, Summarise, first_rows, pickled_summary, with_prediction
from transun.support.extras import need
from transun.tables.model import TableModel

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SparkRows", "with_row_numbers"]


class SparkRows(EngineRows):
    """The rows of a Spark frame; the workers need transun installed.

    The rows are numbered by their order in the partitions, which takes a job that counts them. Spark packs small files
    into partitions by size, so that this order is not always that of the files' names.

    `SparkRows(frame).diagnose("gmv", "predicted", by=["country"])` is a diagnosis, and
    `SparkRows(frame).predict(load("model"))` a Spark frame.
    """

    @property
    def schema(self) -> "pa.Schema":
        """Names and Arrow types of the columns."""
        return need("pyspark.sql.pandas.types").to_arrow_schema(self.frame.schema)

    def select(self, columns: Sequence[str]) -> Self:
        """These columns alone."""
        # Backticks, because a point in a name would otherwise mean a field of a struct.
        return type(self)(self.frame.select(*(f"`{name}`" for name in columns)))

    def summaries(self, summarise: Summarise) -> list[bytes]:
        """One summary of every partition that has rows."""
        firsts = _first_rows(self.frame)

        def work(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
            pa = need("pyarrow")
            first = firsts.get(_partition(), 0)
            tables = (pa.Table.from_batches([batch]) for batch in batches)
            for summary in pickled_summary(tables, first, summarise):
                yield pa.RecordBatch.from_pydict({"summary": pa.array([summary], pa.binary())})

        return [bytes(row.summary) for row in self.frame.mapInArrow(work, "summary binary").collect()]

    def predict(self, model: TableModel, name: str = "prediction") -> Any:
        """The Spark frame with a further column, the model's prediction of every row; nothing is computed yet."""
        self._require_new(name)
        types = need("pyspark.sql.types")
        schema = types.StructType([*self.frame.schema.fields, types.StructField(name, types.DoubleType())])

        def work(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
            for batch in batches:
                yield from with_prediction(need("pyarrow").Table.from_batches([batch]), model, name).to_batches()

        return self.frame.mapInArrow(work, schema)


def with_row_numbers(frame: Any, name: str) -> Any:
    """The frame with a further column, the number of each row by its order in the partitions; counts the rows first."""
    firsts = _first_rows(frame)
    types = need("pyspark.sql.types")
    schema = types.StructType([*frame.schema.fields, types.StructField(name, types.LongType())])

    def work(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        pa = need("pyarrow")
        first = firsts.get(_partition(), 0)
        for batch in batches:
            numbers = pa.array(range(first, first + batch.num_rows), pa.int64())
            yield pa.RecordBatch.from_arrays([*batch.columns, numbers], [*batch.schema.names, name])
            first += batch.num_rows

    return frame.mapInArrow(work, schema)


def _first_rows(frame: Any) -> dict[int, int]:
    """The number of the first row of every partition; takes a job that counts them."""
    counts = {row.partition: row.rows for row in frame.mapInArrow(_count, "partition int, rows long").collect()}
    partitions = range(max(counts, default=-1) + 1)
    return dict(zip(partitions, first_rows([counts.get(number, 0) for number in partitions]), strict=True))


def _count(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    pa = need("pyarrow")
    rows = sum(batch.num_rows for batch in batches)
    types = pa.schema([("partition", pa.int32()), ("rows", pa.int64())])
    yield pa.RecordBatch.from_pydict({"partition": [_partition()], "rows": [rows]}, types)


def _partition() -> int:
    number: int = need("pyspark").TaskContext.get().partitionId()
    return number
