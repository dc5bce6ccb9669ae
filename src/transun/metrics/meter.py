"""Meter: several metrics accumulated over batches and shards."""

from collections.abc import Hashable

from transun.metrics.metric import Metric, Summary, filled
from transun.metrics.rows import Vector, check

__all__ = ["Meter"]


class Meter:
    """Several metrics accumulated over batches: `update` with rows, `merge` another meter, `compute` the values.

    Any split of the rows into batches and shards, in any order, gives the value over all rows, because a meter
    adds sums and keeps rows but never averages values. All sample metrics (rankings) share one copy of the rows.

    >>> from transun.metrics import PGR, TRE
    >>> meter, shard = Meter(TRE, PGR), Meter(TRE, PGR)
    >>> meter.update([1.0, 1.0], [2.0, 4.0])
    >>> shard.update([2.0], [2.0])
    >>> meter.merge(shard)
    >>> meter.compute()
    {'TRE': 1.0, 'PGR': 0.5}
    """

    def __init__(self, *metrics: Metric) -> None:
        names = [metric.name for metric in metrics]
        repeated = {name for name in names if names.count(name) > 1}
        if repeated or not metrics:
            raise ValueError(
                f"`metrics` repeats {sorted(repeated)}" if repeated else "`metrics` is empty: name at least one"
            )
        self.metrics = metrics
        self._summaries: dict[Hashable, Summary] = {}

    def update(self, pred: Vector, y: Vector, weight: Vector | None = None) -> None:
        """Add some rows, possibly none."""
        # Copied, because the caller may reuse the buffer for the next batch.
        rows = check(pred, y, weight).clone()
        self._add({metric.key: metric.summarise(rows) for metric in self.metrics})

    def merge(self, other: "Meter") -> None:
        """Add the rows of another meter of the same metrics; the other meter is not changed."""
        if {metric.key for metric in self.metrics} != {metric.key for metric in other.metrics}:
            raise ValueError(
                f"cannot merge a meter of {other._names()} into one of {self._names()}: use the same metrics"
            )
        self._add(other._summaries)

    def __add__(self, other: "Meter") -> "Meter":
        """A new meter with the rows of both."""
        total = Meter(*self.metrics)
        total.merge(self)
        total.merge(other)
        return total

    def compute(self) -> dict[str, float]:
        """Every metric's value over all rows so far, by name."""
        return {metric.name: metric.compute(self._summary(metric)) for metric in self.metrics}

    def standard_errors(self) -> dict[str, float]:
        """Every metric's standard error, by name; metrics without a formula use the bootstrap, which takes time."""
        return {metric.name: metric.compute_error(self._summary(metric)) for metric in self.metrics}

    def bounds(self) -> dict[str, float]:
        """How far every value may be from the value over all rows, by name: 0 for all metrics but sketches."""
        return {metric.name: metric.compute_bound(self._summary(metric)) for metric in self.metrics}

    def _summary(self, metric: Metric) -> Summary:
        return filled(self._summaries[metric.key] if self._summaries else metric.summarise(check([], [])))

    def _add(self, summaries: dict[Hashable, Summary]) -> None:
        old = self._summaries
        self._summaries = old | {key: old[key] + new if key in old else new for key, new in summaries.items()}

    def _names(self) -> str:
        return ", ".join(metric.name for metric in self.metrics)
