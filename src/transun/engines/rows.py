"""What all engines have in common: a frame of which chunks are summarised, or predicted, where they are."""

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import accumulate
from operator import add
from typing import TYPE_CHECKING, Any, Self

from transun.data.columns import Chunk, S
from transun.data.schema import given_names, require_columns
from transun.diagnosis import Diagnosis, diagnose_rows
from transun.diagnosis.evaluation import Evaluation, evaluate_rows
from transun.support.arguments import listed
from transun.support.extras import need
from transun.tables.model import TableModel

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["EngineRows", "first_rows", "pickled_summary", "with_prediction"]

Summarise = Callable[[Chunk], Any]


class EngineRows(ABC):
    """The rows of a frame of another engine.

    Nothing is collected but summaries of a few megabytes; every number that follows from them is the one that
    `transun diagnose` or `transun evaluate` gets from the same rows in the same order, but for the rounding of sums.
    The engine must give the same rows in the same partitions each time that the frame is computed: cache a frame that
    is shuffled or sampled.

    A subclass is an adapter to one engine. It says what the columns are, selects some of them, and applies a function
    to every partition.

    Args:
        frame: the engine's own.

    """

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @property
    @abstractmethod
    def schema(self) -> "pa.Schema":
        """Names and Arrow types of the columns."""

    @abstractmethod
    def select(self, columns: Sequence[str]) -> Self:
        """These columns alone, so that no other is read."""

    @abstractmethod
    def summaries(self, summarise: Summarise) -> Iterable[bytes]:
        """The pickled sum of `summarise(chunk)` of every partition, made by the workers; see `pickled_summary`."""

    @abstractmethod
    def predict(self, model: TableModel, name: str = "prediction") -> Any:
        """The engine's frame with a further column, the model's prediction of every row; nothing is computed yet."""

    def total(self, summarise: Callable[[Chunk], S], label: str = "reading", show: bool | None = None) -> S:
        """The sum of `summarise(chunk)` over all chunks; the engine shows its own progress."""
        summaries: list[S] = [pickle.loads(summary) for summary in self.summaries(summarise)]
        if not summaries:
            raise ValueError("the frame has no rows: there is nothing to look at")
        return reduce(add, summaries)

    def diagnose(
        self, target: str, pred: str, by: Sequence[str] = (), weight: str | None = None, *, name: str = "data"
    ) -> Diagnosis:
        """Find out whether the total of predictions is biased, where, why, and what would help.

        Args:
            target: column of actual values.
            pred: column of predictions.
            by: columns of segments: text by its values, numbers by ranges.
            weight: column of importance weights.
            name: of the data, in reports.

        """
        return diagnose_rows(self._only(target, pred, *listed("by", by), weight), target, pred, by, weight, name=name)

    def evaluate(self, model: TableModel, by: Sequence[str] = ()) -> Evaluation:
        """Predict the rows and assess the predictions against the model's target column.

        Args:
            model: it travels to the workers, which need transun installed.
            by: columns of segments.

        """
        return evaluate_rows(model, self._only(*model.sources, model.target, *listed("by", by), model.weight), by)

    def _only(self, *columns: str | None) -> Self:
        return self.select(require_columns(self.schema.names, given_names(*columns)))

    def _require_new(self, name: str) -> None:
        if name in self.schema.names:
            raise ValueError(f"the frame has a column {name!r} already: give the prediction another name")


def first_rows(counts: Sequence[int]) -> list[int]:
    """The number of the first row of every partition, from the numbers of rows of all partitions.

    >>> first_rows([3, 0, 2])
    [0, 3, 3]
    """
    return list(accumulate(counts, initial=0))[:-1]


def pickled_summary(tables: Iterable["pa.Table"], first: int, summarise: Summarise) -> Iterator[bytes]:
    """The pickled sum of `summarise` over consecutive tables; nothing, if there is no row.

    Args:
        tables: the rows of a partition.
        first: the number of its first row.
        summarise: a function of a chunk.

    """
    total = None
    for table in tables:
        if len(table):
            summary = summarise(Chunk(first, table, first + len(table)))
            total = summary if total is None else total + summary
            first += len(table)
    if total is not None:
        yield pickle.dumps(total)


def with_prediction(table: "pa.Table", model: TableModel, name: str) -> "pa.Table":
    """The table with a further column of predictions, as float64."""
    return table.append_column(name, need("pyarrow").array(model.predict(table).double().numpy()))
