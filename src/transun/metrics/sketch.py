"""XAUC of a stream in a fixed amount of memory: a grid of counts, and a sample for what the grid leaves in doubt."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from transun.metrics.grid import Grid
from transun.metrics.inversions import Flags, Integers
from transun.metrics.metric import Better, Interval, Metric, Sample
from transun.metrics.pairs import count_pairs
from transun.metrics.ranking import XAUC, TieAware
from transun.metrics.rows import Rows

__all__ = ["PairSketch", "XAUCSketch"]

_WAITING, _SAMPLED, _CELL = 24, 32, 8  # bytes of a waiting row, of a sampled row, of a cell of the grid
_STEP = 0.9  # the sampling rate falls in such steps, so that it is one of few and depends on no order of the rows


@dataclass(frozen=True)
class Drawn:
    """A sample: rows, their draws u/w with u uniform on (0, 1), and their strips of prediction and of target."""

    rows: Rows
    draw: NDArray[np.float32]
    place: NDArray[np.int16]
    place_y: NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.draw)

    def moved(self, place: Integers, place_y: Integers) -> Drawn:
        """Return the sample after its strips were renumbered."""
        return Drawn(self.rows, self.draw, place[self.place].astype(np.int16), place_y[self.place_y].astype(np.int16))

    def take(self, kept: Flags) -> Drawn:
        """Return some of the sample."""
        return Drawn(self.rows.take(torch.from_numpy(kept)), self.draw[kept], self.place[kept], self.place_y[kept])

    def join(self, other: Drawn) -> Drawn:
        """Return both samples as one."""
        return Drawn(
            Rows.join([self.rows, other.rows]),
            np.concatenate([self.draw, other.draw]),
            np.concatenate([self.place, other.place]),
            np.concatenate([self.place_y, other.place_y]),
        )


@dataclass(frozen=True)
class PairSketch:
    """What is kept of a stream: rows that wait to be counted, a grid of counts, a sample drawn at `rate`.

    A row of weight w is in the sample with probability π = min(1, w·rate), independently of the others.
    """

    size: int
    count: int
    total_weight: float
    waiting: tuple[Rows, ...]
    grid: Grid
    drawn: Drawn
    rate: float
    chain: bytes

    @staticmethod
    def of(rows: Rows, size: int) -> PairSketch:
        """A sketch of some rows that may use `size` bytes."""
        none = Rows(*(torch.empty(0, dtype=torch.float64) for _ in range(3)))
        place = np.empty(0, dtype=np.int16)
        drawn = Drawn(none, np.empty(0, dtype=np.float32), place, place)
        sketch = PairSketch(size, len(rows), rows.weight.sum().item(), (rows,), Grid.none(), drawn, math.inf, b"")
        # Rows that fit wait for the sketch that these are added to: its strips take rows better than other strips.
        return sketch if _WAITING * len(rows) <= size else sketch.counted

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers kept, at most `size`."""
        return self.grid.nbytes + _SAMPLED * len(self.drawn) + _WAITING * sum(map(len, self.waiting))

    def __add__(self, other: PairSketch) -> PairSketch:
        if not other.chain:
            return self._wait(other.waiting)
        if not self.chain:
            return other._wait(self.waiting)
        grid, (a, a_y, b, b_y) = self.grid.join(other.grid, self._strips)
        drawn = self.drawn.moved(a, a_y).join(other.drawn.moved(b, b_y))
        drawn, rate = self._thinned(drawn, min(self.rate, other.rate))
        chain = hashlib.blake2b(self.chain + other.chain, digest_size=8).digest()
        count, weight = self.count + other.count, self.total_weight + other.total_weight
        joined = replace(self, count=count, total_weight=weight, grid=grid, drawn=drawn, rate=rate, chain=chain)
        return replace(joined, waiting=(*self.waiting, *other.waiting))._settled()

    @cached_property
    def counted(self) -> PairSketch:
        """The same with no row waiting."""
        if not self.waiting:
            return self
        rows = Rows.join(self.waiting)
        rows = rows.take(rows.weight > 0)
        result = replace(self, waiting=())
        # In parts, because many rows may come at once.
        for start in range(0, len(rows), self._room):
            result = result._count(rows.take(torch.arange(start, min(start + self._room, len(rows)))))
        return result

    def _wait(self, waiting: tuple[Rows, ...]) -> PairSketch:
        count = self.count + sum(map(len, waiting))
        weight = self.total_weight + sum(rows.weight.sum().item() for rows in waiting)
        waiting = (*self.waiting, *(rows for rows in waiting if len(rows)))
        return replace(self, count=count, total_weight=weight, waiting=waiting)._settled()

    def _settled(self) -> PairSketch:
        return self.counted if sum(map(len, self.waiting)) > self._room else self

    def _count(self, rows: Rows) -> PairSketch:
        # + 0.0 makes −0.0 and 0.0 one value.
        pred, y, weight = rows.pred.numpy() + 0.0, rows.y.numpy() + 0.0, rows.weight.numpy()
        # The draws depend on all that came before, so that a stream that repeats itself is drawn anew each time.
        content = self.chain + pred.tobytes() + y.tobytes() + weight.tobytes()
        chain = hashlib.blake2b(content, digest_size=8).digest()
        uniform = np.random.default_rng(int.from_bytes(chain, "little")).random(len(y))
        draw = (uniform / weight).astype(np.float32)
        grid, (old, old_y, place, place_y) = self.grid.add(pred, y, weight, self._strips)
        new = Drawn(rows, draw, place.astype(np.int16), place_y.astype(np.int16)).take(draw < self.rate)
        drawn, rate = self._thinned(self.drawn.moved(old, old_y).join(new), self.rate)
        return replace(self, grid=grid, drawn=drawn, rate=rate, chain=chain)

    def _thinned(self, drawn: Drawn, rate: float) -> tuple[Drawn, float]:
        """Return at most as many rows as fit, and the largest rate that allows it."""
        drawn = drawn.take(drawn.draw < rate)
        most = self.size * 3 // 8 // _SAMPLED
        while len(drawn) > most:
            limit = float(np.partition(drawn.draw, most)[most])
            rate = min(_STEP ** math.ceil(math.log(limit, _STEP)), rate * _STEP)
            drawn = drawn.take(drawn.draw < rate)
        return drawn, rate

    @property
    def _strips(self) -> int:
        return math.isqrt(self.size // 2 // _CELL) - 3  # three lines of cells pay for the ends of the strips

    @property
    def _room(self) -> int:
        return self.size // 8 // _WAITING


@dataclass(frozen=True)
class XAUCSketch(Metric):
    """XAUC of a stream in at most `size` bytes, with a bound: `Meter(XAUCSketch())`, then `compute()` and `bounds()`.

    A grid counts rows by strips of prediction and target. Pairs in separate strips are counted exactly; the others are
    in doubt, a share u ≈ 0.009 of them for 253 strips. A sample, a row in it with probability π = min(1, w·rate),
    settles these: XAUC's score and count of pairs are the grid's, plus what the sample says about pairs in doubt.

    Proof of the bound. Let θ be the XAUC of all rows, and for a pair in doubt rᵢⱼ = cᵢⱼ(sᵢⱼ − θ) − (½ − θ), with c = 1
    if comparable and s its score: |r| ≤ ½, because c(s − θ) is in [−θ, 1 − θ]. With ξᵢ the indicator of i in the sample
    less π, and vᵢ = wᵢ/πᵢ, the estimate θ̂ has count·(θ̂ − θ) = T₁ + T₂, T₁ = Σᵢ ξᵢvᵢGᵢ with Gᵢ = Σⱼ wⱼrᵢⱼ, and
    T₂ = Σ ξᵢξⱼvᵢvⱼrᵢⱼ over pairs. The ξ have mean 0 and are independent of each other and of the strips. |Gᵢ| ≤ Uᵢ/2,
    with Uᵢ the weight in doubt to i, which the grid knows. So Bernstein's inequality bounds T₁ by its variance, at most
    Σ wᵢUᵢ²/(4·rate), and Chebyshev's T₂ by its, at most Σ wᵢwⱼ/(4·rate²) over pairs in doubt. Nothing is assumed of
    the data or its order. Each holds for a given rate. The rate is one of three neighbours on a ladder, as the sample's
    size is within 10 % of its mean but for a chance of 1e-7, so each gets a third of `failure`. `sure` is an interval
    that holds without any chance, from the grid alone, and about u wide.

    The bound is proven to be at most (0.045·u + 0.0038·√u)/ρ at 1 MiB and 0.001 failures, with u here the largest share
    of the weight in doubt to a row and ρ the share of pairs that are comparable: 0.001 for u = 0.0125 and ρ = 1. What u
    is depends on the strips. For rows in random order, and for merges of such shards, the bound was 0.0004 to 0.0009
    (10⁶ rows of seven distributions, up to 64 shards), the errors below 0.0001. For streams sorted by either column,
    whose old strips are too wide for what comes later, it was 0.003; it grows as 1/ρ for rare targets. Up to 12,288
    rows the value is exact. Shards that are copies of each other draw the same sample; the bound is not for these.

    Args:
        size: Bytes of state, at least 2¹⁸. The error falls like 1/size.
        failure: Chance that the bound does not hold. A tenth of it makes the bound wider by about a factor of two.

    >>> meter = Meter(XAUCSketch())
    >>> meter.update([1.0, 2.0, 2.0], [1.0, 2.0, 3.0])
    >>> meter.compute(), meter.bounds()
    ({'XAUCSketch': 0.8333333333333334}, {'XAUCSketch': 0.0})

    """

    size: int = 1 << 20
    failure: float = 1e-3

    label: ClassVar[str] = "XAUCSketch"
    better: ClassVar[Better] = "higher"
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
        """Return the size: sketches of one size share their state."""
        return PairSketch, self.size

    def summarise(self, rows: Rows) -> PairSketch:
        """Return a sketch of the rows."""
        return PairSketch.of(rows, self.size)

    def compute(self, summary: PairSketch) -> float:
        """Return the estimate; exact as long as no row had to be forgotten."""
        sketch = summary.counted
        if sketch.rate == math.inf:
            return XAUC.evaluate(sketch.drawn.rows)
        score, count = _estimate(sketch)
        sure = self.sure(sketch)
        return min(max(score / count, sure.low), sure.high) if count > 0 else math.nan

    def compute_bound(self, summary: PairSketch) -> float:
        """Return how far the value is at most from XAUC of all rows, but for a chance of `failure`."""
        sketch = summary.counted
        if sketch.rate == math.inf:
            return 0.0
        _, count = _estimate(sketch)
        if not count > 0:
            return math.nan
        weight, known = sketch.grid.weight, sketch.grid.known
        # T₂ gets nine tenths of the chance, for T₁ hardly feels the difference.
        log, chance = math.log(2 / (self.failure / 30)), 0.9 * self.failure / 3
        variance = float((weight * known.cells**2).sum()) / 4 / sketch.rate
        largest = float(known.cells[weight > 0].max()) / 2 / sketch.rate
        first = math.sqrt(2 * variance * log) + largest * log / 3
        second = math.sqrt(known.doubt / 4 / chance) / sketch.rate
        sure, value = self.sure(sketch), self.compute(sketch)
        return min((first + second) / count, max(sure.high - value, value - sure.low))

    def sure(self, summary: PairSketch) -> Interval:
        """Return the interval that holds XAUC of all rows without any chance, by the grid alone."""
        known = summary.counted.grid.known
        most = known.comparable + known.doubt_y
        if not most > 0:
            return Interval(math.nan, math.nan)
        return Interval(known.score / most, min(1.0, (known.score + known.doubt) / most))

    def compute_error(self, summary: PairSketch) -> float:
        """Return the standard error over redraws of the rows, from the sample's own: it falls as 1/√rows."""
        sketch = summary.counted
        error = XAUC.compute_error(Sample((_weighted(sketch),)))
        return error if sketch.rate == math.inf else error * math.sqrt(len(sketch.drawn) / summary.count)


def _weighted(sketch: PairSketch) -> Rows:
    """The sample, each row with the weight it stands for, w/π."""
    rows = sketch.drawn.rows
    return rows if sketch.rate == math.inf else Rows(rows.pred, rows.y, rows.weight.clamp(min=1 / sketch.rate))


def _estimate(sketch: PairSketch) -> tuple[float, float]:
    """Estimate the weights of pairs that score and that count: the grid's, corrected by the sample where it doubts."""
    rows, drawn = _weighted(sketch), sketch.drawn
    pairs, known = count_pairs(rows), sketch.grid.known
    place, place_y = drawn.place.astype(np.int64), drawn.place_y.astype(np.int64)
    told = sketch.grid.of(place, place_y, rows.weight.numpy()).known
    score = float(XAUC.score(pairs)) - told.score - told.doubt / 2
    count = float(pairs.comparable) - told.comparable - told.doubt_y
    return known.score + known.doubt / 2 + score, known.comparable + known.doubt_y + count
