"""XAUC of a stream in a fixed amount of memory: a grid of counts, and a sample for what the grid leaves undecided."""

import hashlib
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transun.metrics.metric import Better, Interval, Merging, Metric, Sample
from transun.metrics.pair_grid import PairGrid
from transun.metrics.pairs import count_pairs
from transun.metrics.ranking import XAUC, TieAware
from transun.metrics.rows import Rows
from transun.support.arrays import Flags, Integers

__all__ = ["PairSample", "PairSketch", "XAUCSketch"]

_BUFFERED, _SAMPLED, _CELL = 24, 32, 8  # bytes of a buffered row, of a sampled row, of a cell of the grid
_STEP = 0.9  # the sampling rate falls in such steps, so that it is one of few and depends on no order of the rows


@dataclass(frozen=True)
class PairSample:
    """A random sample: rows, their draws u/w with u uniform on (0, 1), and their intervals of prediction and target."""

    rows: Rows
    draw: NDArray[np.float32]
    index: NDArray[np.int16]
    index_y: NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.draw)

    @staticmethod
    def empty() -> "PairSample":
        """A sample of no rows."""
        rows = Rows(*(torch.empty(0, dtype=torch.float64) for _ in range(3)))
        index = np.empty(0, dtype=np.int16)
        return PairSample(rows, np.empty(0, dtype=np.float32), index, index)

    def moved(self, index: Integers, index_y: Integers) -> "PairSample":
        """The sample after the intervals were renumbered."""
        new_index, new_index_y = index[self.index].astype(np.int16), index_y[self.index_y].astype(np.int16)
        return PairSample(self.rows, self.draw, new_index, new_index_y)

    def take(self, kept: Flags) -> "PairSample":
        """The rows that are flagged."""
        rows = self.rows.take(torch.from_numpy(kept))
        return PairSample(rows, self.draw[kept], self.index[kept], self.index_y[kept])

    def join(self, other: "PairSample") -> "PairSample":
        """Both samples as one."""
        return PairSample(
            Rows.join([self.rows, other.rows]),
            np.concatenate([self.draw, other.draw]),
            np.concatenate([self.index, other.index]),
            np.concatenate([self.index_y, other.index_y]),
        )


@dataclass(frozen=True)
class PairSketch:
    """The summary of a stream: a buffer of rows not counted yet, a grid of counts, and a sample drawn at `rate`.

    A row of weight w is in the sample with probability π = min(1, w·rate), independently of the others. `seed` is a
    hash of all rows counted so far, empty before the first; it seeds the next draws.
    """

    size: int
    count: int
    total_weight: float
    buffer: tuple[Rows, ...]
    grid: PairGrid
    sample: PairSample
    rate: float
    seed: bytes

    merging: ClassVar[Merging] = "cat"

    @staticmethod
    def of(rows: Rows, size: int) -> "PairSketch":
        """A sketch of some rows that may use `size` bytes."""
        weight = rows.weight.sum().item()
        sketch = PairSketch(size, len(rows), weight, (rows,), PairGrid.empty(), PairSample.empty(), math.inf, seed=b"")
        # Rows that fit stay in the buffer until this sketch is added to another one, whose intervals resolve them
        # better than intervals made of these rows alone would.
        return sketch if _BUFFERED * len(rows) <= size else sketch.flushed

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers kept, at most `size`."""
        return self.grid.nbytes + _SAMPLED * len(self.sample) + _BUFFERED * sum(map(len, self.buffer))

    def __add__(self, other: "PairSketch") -> "PairSketch":
        if not other.seed:
            return self._with_buffer(other.buffer)
        if not self.seed:
            return other._with_buffer(self.buffer)
        grid, (a, a_y, b, b_y) = self.grid.join(other.grid, self._max_intervals)
        sample = self.sample.moved(a, a_y).join(other.sample.moved(b, b_y))
        sample, rate = self._thinned(sample, min(self.rate, other.rate))
        seed = hashlib.blake2b(self.seed + other.seed, digest_size=8).digest()
        count, weight = self.count + other.count, self.total_weight + other.total_weight
        joined = replace(self, count=count, total_weight=weight, grid=grid, sample=sample, rate=rate, seed=seed)
        return replace(joined, buffer=(*self.buffer, *other.buffer))._flushed_if_full()

    def tensors(self) -> dict[str, Tensor]:
        """An error: what a sketch keeps of rows depends on all that it has seen, and is merged by `+` alone."""
        raise TypeError("a sketch cannot be merged as tensors: use XAUC, which keeps all rows, or a Meter")

    @classmethod
    def of_tensors(cls, tensors: Mapping[str, Tensor]) -> "PairSketch":
        """No sketch is made of tensors."""
        raise TypeError("a sketch cannot be merged as tensors: use XAUC, which keeps all rows, or a Meter")

    @cached_property
    def flushed(self) -> "PairSketch":
        """The sketch with every row of the buffer counted."""
        if not self.buffer:
            return self
        rows = Rows.join(self.buffer).with_weight()
        result = replace(self, buffer=())
        # In parts, because many rows may come at once.
        for start in range(0, len(rows), self._buffer_rows):
            stop = min(start + self._buffer_rows, len(rows))
            result = result._count_rows(rows.take(torch.arange(start, stop)))
        return result

    def _with_buffer(self, more: tuple[Rows, ...]) -> "PairSketch":
        count = self.count + sum(map(len, more))
        weight = self.total_weight + sum(rows.weight.sum().item() for rows in more)
        buffer = (*self.buffer, *(rows for rows in more if len(rows)))
        return replace(self, count=count, total_weight=weight, buffer=buffer)._flushed_if_full()

    def _flushed_if_full(self) -> "PairSketch":
        return self.flushed if sum(map(len, self.buffer)) > self._buffer_rows else self

    def _count_rows(self, rows: Rows) -> "PairSketch":
        # + 0.0 makes -0.0 and 0.0 one value.
        pred, y, weight = rows.pred.numpy() + 0.0, rows.y.numpy() + 0.0, rows.weight.numpy()
        # The draws depend on all rows before, so that a stream that repeats itself is drawn differently each time.
        content = self.seed + pred.tobytes() + y.tobytes() + weight.tobytes()
        seed = hashlib.blake2b(content, digest_size=8).digest()
        uniform = np.random.default_rng(int.from_bytes(seed, "little")).random(len(y))
        draw = (uniform / weight).astype(np.float32)
        grid, (old, old_y, index, index_y) = self.grid.add(pred, y, weight, self._max_intervals)
        new = PairSample(rows, draw, index.astype(np.int16), index_y.astype(np.int16)).take(draw < self.rate)
        sample, rate = self._thinned(self.sample.moved(old, old_y).join(new), self.rate)
        return replace(self, grid=grid, sample=sample, rate=rate, seed=seed)

    def _thinned(self, sample: PairSample, rate: float) -> tuple[PairSample, float]:
        """At most as many rows as fit, and the largest rate that allows it."""
        sample = sample.take(sample.draw < rate)
        most = self.size * 3 // 8 // _SAMPLED
        while len(sample) > most:
            limit = float(np.partition(sample.draw, most)[most])
            rate = min(_STEP ** math.ceil(math.log(limit, _STEP)), rate * _STEP)
            sample = sample.take(sample.draw < rate)
        return sample, rate

    @property
    def _max_intervals(self) -> int:
        return math.isqrt(self.size // 2 // _CELL) - 3  # three lines of cells pay for the ends of the intervals

    @property
    def _buffer_rows(self) -> int:
        return self.size // 8 // _BUFFERED


@dataclass(frozen=True)
class XAUCSketch(Metric):
    """XAUC of a stream in at most `size` bytes, with a bound: `Meter(XAUCSketch())`, then `compute()` and `bounds()`.

    A grid counts rows by intervals of prediction and target. Pairs in separate intervals are counted exactly; the
    others are undecided, a share u ≈ 0.009 of all pairs for 253 intervals. A random sample, which holds a row with
    probability π = min(1, w·rate), estimates these: XAUC's score and count of pairs are those of the grid, plus the
    sample's estimate for the undecided pairs.

    Proof of the bound. Let θ be the XAUC of all rows, and for an undecided pair rᵢⱼ = cᵢⱼ(sᵢⱼ - θ) - (½ - θ), with
    c = 1 if comparable and s its score: |r| ≤ ½, because c(s - θ) is in [-θ, 1 - θ]. With ξᵢ the indicator of i in the
    sample less π, and vᵢ = wᵢ/πᵢ, the estimate θ̂ has count·(θ̂ - θ) = T₁ + T₂, T₁ = Σᵢ ξᵢvᵢGᵢ with Gᵢ = Σⱼ wⱼrᵢⱼ,
    and T₂ = Σ ξᵢξⱼvᵢvⱼrᵢⱼ over pairs. The ξ have mean 0 and are independent of each other and of the intervals.
    |Gᵢ| ≤ Uᵢ/2, with Uᵢ the weight of the undecided partners of i, which the grid knows. So Bernstein's inequality
    bounds T₁ by its variance, at most Σ wᵢUᵢ²/(4·rate), and Chebyshev's inequality bounds T₂ by its variance, at most
    Σ wᵢwⱼ/(4·rate²) over undecided pairs. Nothing is assumed about the data or its order. Each bound holds for a fixed
    rate. The rate is one of three neighbouring steps, because the sample's size is within 10 % of its mean except with
    probability 1e-7, so each step gets a third of `failure`. `certain` is an interval that always holds, from the grid
    alone, and about u wide.

    The bound is proven to be at most (0.045·u + 0.0038·√u)/ρ at 1 MiB and 0.001 failures, where u is now the largest
    share of undecided partners that a row has and ρ the share of pairs that are comparable: 0.001 for u = 0.0125 and
    ρ = 1. The value of u depends on the intervals. For rows in random order, and for merges of such shards, the bound
    was 0.0004 to 0.0009 (10⁶ rows of seven distributions, up to 64 shards), the errors below 0.0001. For streams sorted
    by either column, whose old intervals are too wide for the values that come later, it was 0.003; it grows as 1/ρ for
    rare targets. Up to 12,288 rows the value is exact. Shards that are copies of each other draw the same sample; the
    bound does not hold for these.

    Args:
        size: bytes of state, at least 2¹⁸. The error falls like 1/size.
        failure: probability that the bound does not hold. A tenth of it makes the bound about twice as wide.

    >>> from transun.metrics import Meter
    >>> meter = Meter(XAUCSketch())
    >>> meter.update([1.0, 2.0, 2.0], [1.0, 2.0, 3.0])
    >>> meter.compute(), meter.bounds()
    ({'XAUCSketch': 0.8333333333333334}, {'XAUCSketch': 0.0})

    """

    size: int = 1 << 20
    failure: float = 1e-3

    label: ClassVar[str] = "XAUCSketch"
    better: ClassVar[Better] = "higher"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    digits: ClassVar[int] = 4
    description: ClassVar[str] = "ranking, estimated"
    meaning: ClassVar[str] = TieAware.meaning

    def __post_init__(self) -> None:
        if self.size < 1 << 18 or not 0 < self.failure < 1:
            raise ValueError(
                f"`size` is {self.size} and `failure` {self.failure}: use at least 2**18 bytes and a chance in (0, 1)"
            )

    @property
    def key(self) -> Hashable:
        """The size: sketches of one size share their state."""
        return PairSketch, self.size

    def summarise(self, rows: Rows) -> PairSketch:
        """A sketch of the rows."""
        return PairSketch.of(rows, self.size)

    def compute(self, summary: PairSketch) -> float:
        """The estimate; it is exact as long as no row had to be forgotten."""
        sketch = summary.flushed
        if sketch.rate == math.inf:
            return XAUC.evaluate(sketch.sample.rows)
        score, count = _estimate(sketch)
        certain = self.certain(sketch)
        return min(max(score / count, certain.low), certain.high) if count > 0 else math.nan

    def compute_bound(self, summary: PairSketch) -> float:
        """How far the value is at most from the XAUC of all rows, except with probability `failure`."""
        sketch = summary.flushed
        if sketch.rate == math.inf:
            return 0.0
        _, count = _estimate(sketch)
        if not count > 0:
            return math.nan
        weight, bounds = sketch.grid.weight, sketch.grid.bounds
        # T₂ gets nine tenths of the failures: T₁ depends on its tenth by a logarithm only.
        log, failure = math.log(2 / (self.failure / 30)), 0.9 * self.failure / 3
        variance = float((weight * bounds.undecided_by_cell**2).sum()) / 4 / sketch.rate
        largest = float(bounds.undecided_by_cell[weight > 0].max()) / 2 / sketch.rate
        first = math.sqrt(2 * variance * log) + largest * log / 3
        second = math.sqrt(bounds.undecided / 4 / failure) / sketch.rate
        certain, value = self.certain(sketch), self.compute(sketch)
        return min((first + second) / count, max(certain.high - value, value - certain.low))

    def certain(self, summary: PairSketch) -> Interval:
        """The interval that always holds the XAUC of all rows, from the grid alone."""
        bounds = summary.flushed.grid.bounds
        most = bounds.comparable + bounds.undecided_y
        if not most > 0:
            return Interval(math.nan, math.nan)
        return Interval(bounds.score / most, min(1.0, (bounds.score + bounds.undecided) / most))

    def compute_error(self, summary: PairSketch) -> float:
        """The standard error over redraws of all rows: that of the sample, scaled by 1/√rows."""
        sketch = summary.flushed
        error = XAUC.compute_error(Sample((_weighted(sketch),)))
        return error if sketch.rate == math.inf else error * math.sqrt(len(sketch.sample) / summary.count)


def _weighted(sketch: PairSketch) -> Rows:
    """The sample with each row's weight divided by its probability, w/π."""
    rows = sketch.sample.rows
    return rows if sketch.rate == math.inf else Rows(rows.pred, rows.y, rows.weight.clamp(min=1 / sketch.rate))


def _estimate(sketch: PairSketch) -> tuple[float, float]:
    """Estimated weights of the pairs that score and that count.

    Half of the undecided pairs are taken to score and all to count. The sample corrects both: its exact pairs, less
    what a grid of the sample's rows over the same intervals would take them for.
    """
    rows, sample = _weighted(sketch), sketch.sample
    pairs, bounds = count_pairs(rows), sketch.grid.bounds
    index, index_y = sample.index.astype(np.int64), sample.index_y.astype(np.int64)
    of_sample = sketch.grid.with_rows(index, index_y, rows.weight.numpy()).bounds
    score = float(XAUC.score(pairs)) - of_sample.score - of_sample.undecided / 2
    count = float(pairs.comparable) - of_sample.comparable - of_sample.undecided_y
    return bounds.score + bounds.undecided / 2 + score, bounds.comparable + bounds.undecided_y + count
