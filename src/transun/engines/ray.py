"""Ray datasets: blocks are summarised by Ray tasks and predicted by `map_batches`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from transun.engines.rows import EngineRows, Summarise, first_rows, pickled_summary, with_prediction
from transun.support.extras import need
from transun.tables.model import TableModel

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["RayRows"]


class RayRows(EngineRows):
    """The rows of a `ray.data.Dataset`, numbered by their order in the blocks; the workers need transun installed.

    The columns that are looked at are held in Ray's object store meanwhile, which spills to disk what is too much.

    `RayRows(data).diagnose("gmv", "predicted")` is a diagnosis, `RayRows(data).predict(load("model"))` a Ray dataset.
    """

    @property
    def schema(self) -> "pa.Schema":
        """Names and Arrow types of the columns."""
        schema = self.frame.schema()
        return need("pyarrow").schema(list(zip(schema.names, schema.types, strict=True)))

    def select(self, columns: Sequence[str]) -> Self:
        """These columns alone."""
        return type(self)(self.frame.select_columns(list(columns)))

    def summaries(self, summarise: Summarise) -> list[bytes]:
        """One summary of every block that has rows."""
        ray = need("ray")
        self.frame.context.execution_options.preserve_order = True
        blocks = self.frame.materialize().to_arrow_refs()
        count, work, shared = ray.remote(_count), ray.remote(_summary), ray.put(summarise)
        counts = ray.get([count.remote(block) for block in blocks])
        tasks = [work.remote(block, first, shared) for block, first in zip(blocks, first_rows(counts), strict=True)]
        return [summary for of_block in ray.get(tasks) for summary in of_block]

    def predict(self, model: TableModel, name: str = "prediction") -> Any:
        """The Ray dataset with a further column, the model's prediction of every row; nothing is computed yet."""
        self._require_new(name)
        arguments = {"model": model, "name": name}
        return self.frame.map_batches(with_prediction, batch_format="pyarrow", fn_kwargs=arguments)


def _count(block: "pa.Table") -> int:
    return len(block)


def _summary(block: "pa.Table", first: int, summarise: Summarise) -> list[bytes]:
    return list(pickled_summary([block], first, summarise))
