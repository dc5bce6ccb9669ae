"""A simulated order log of any size whose conditional mean E[y|x] is known, and its rows as a stream to train on."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transun.data import hashing
from transun.data.dataset import Batch, Dataset
from transun.support.extras import need
from transun.support.progress import Progress

__all__ = ["OrderLog", "OrderStream"]

_SEGMENTS = 8
_IDS = 1 << 31  # the product of two smaller numbers fits in int64
_WEEKEND = 5  # Saturday, where Monday is 0

# Rows computed at a time. On a CPU their temporaries (2.6 MB each with 20 past items) stay in the cache; on a GPU a
# block must be large enough to outweigh the launch of its kernels.
_CPU_BLOCK, _GPU_BLOCK = 1 << 14, 1 << 20

# Rows of a row group of a written log: many of them fit in a shuffle buffer, and each is still read at full speed.
_ROW_GROUP = 1 << 16

# Targets from which a head learns its constants: the error of their mean is a thousandth of a standard deviation.
_TARGETS = 1 << 20

# A stream has fewer rows, so that the product of two row numbers fits in int64.
_STREAM_ROWS = 1 << 31

Rows = tuple[dict[str, Tensor], Tensor, Tensor]


@dataclass(frozen=True)
class OrderLog:
    """Orders (x, y) with E[y|x] = (1 - zero_share) · exp(m(x) + σ(x)²/2), made on demand.

    An order is y = exp(m(x) + σ(x)·ε), ε ~ N(0, 1), where

        m = log_price + taste(user) + 0.3·[user and item share a segment]
            + 0.6·(share of the history in the item's segment) + 0.2·cos(2π(hour - 20)/24) + 0.15·[weekend]
        σ = 0.4 + 0.4·noise(item) + 0.4·noise(user)            taste ∈ ±0.5, noise ∈ [0, 1]

    so the noise differs from row to row, and a model trained on log y without correction predicts exp(m), about 29 %
    too little in total. Users buy in their own segment four times in five, in this order and in the history, hence the
    history tells who the user is; users and items have skewed popularity. No real log can tell bias from variance row
    by row, because its E[y|x] is unknown; this one can.

    Nothing is stored: every attribute is a hash of (seed, its name, id), so row i is the same in every chunk and on
    every device (floats up to rounding), and 132,657,136 orders of 67,729,869 users and 14,538,759 items cost no
    memory.

    Args:
        orders: rows of the log. Row i does not depend on it: a longer log continues a shorter one.
        users: users to draw from; at 2 orders a user, an embedding of users hardly learns.
        items: items to draw from, at least 8 (one for each segment).
        history: longest list of past items; each row has 0 to `history` of them, then -1. With 0 there is no such
            column.
        seed: another seed, another log.
        zero_share: share of the orders that are returned, y = 0, whatever x.

    >>> log = OrderLog(orders=1000, users=50, items=20, history=3)
    >>> x, y, truth = log.chunk(0, 1000)
    >>> {name: tuple(column.shape) for name, column in x.items()}
    {'user': (1000,), 'item': (1000,), 'history': (1000, 3), 'log_price': (1000,), 'hour': (1000,), 'weekday': (1000,)}
    >>> torch.equal(log.chunk(600, 700)[1], y[600:700]) and torch.equal(log.expected(x), truth)
    True

    """

    orders: int = 200_000
    users: int = 5_000
    items: int = 2_000
    history: int = 20
    seed: int = 0
    zero_share: float = 0.0

    def __post_init__(self) -> None:
        if self.orders < 1:
            raise ValueError(f"orders={self.orders}: a log has at least one order")
        if not 1 <= self.users < _IDS:
            raise ValueError(f"users={self.users} must lie in 1..{_IDS - 1}")
        if not _SEGMENTS <= self.items < _IDS:
            raise ValueError(f"items={self.items} must lie in {_SEGMENTS}..{_IDS - 1}, one item a segment at least")
        if self.history < 0:
            raise ValueError(f"history={self.history} must not be negative; 0 leaves the column out")
        if not 0 <= self.zero_share < 1:
            raise ValueError(f"zero_share={self.zero_share} must lie in [0, 1): some orders must have a value")

    @property
    def sizes(self) -> dict[str, int]:
        """How many ids each id column can hold; the history holds items.

        >>> OrderLog(users=50, items=20).sizes
        {'user': 50, 'item': 20, 'hour': 24, 'weekday': 7}
        """
        return {"user": self.users, "item": self.items, "hour": 24, "weekday": 7}

    def __len__(self) -> int:
        return self.orders

    def chunk(self, start: int, stop: int, device: torch.device | str = "cpu") -> Rows:
        """Rows start..stop-1 as (x, y, truth), truth = E[y|x]; made on `device` directly."""
        parts = list(self._blocks(start, stop, device))
        x = {name: torch.cat([part[0][name] for part in parts]) for name in parts[0][0]}
        return x, torch.cat([part[1] for part in parts]), torch.cat([part[2] for part in parts])

    def rows(self, numbers: Tensor) -> Rows:
        """The rows with these numbers (n,), as (x, y, truth), on the device of the numbers, which are not checked.

        >>> log = OrderLog(orders=100)
        >>> torch.equal(log.rows(torch.tensor([7, 3]))[1], log.chunk(0, 10)[1][[7, 3]])
        True
        """
        x = self._features(numbers)
        centre, spread = self._law(x)
        y = torch.exp(centre + spread * torch.special.ndtri(self._draw("noise", numbers)))
        kept = self._draw("return", numbers) >= self.zero_share
        return x, (y * kept).float(), self._mean(centre, spread).float()

    def dataset(self, start: int = 0, stop: int | None = None) -> Dataset:
        """Rows start..stop-1 (by default all) in memory.

        >>> OrderLog(orders=10, users=5, items=8, history=0).dataset(stop=4)
        Dataset(4 rows of user, item, log_price, hour, weekday)
        """
        x, y, _ = self.chunk(start, self.orders if stop is None else stop)
        return Dataset(x, y)

    def truth(self, start: int = 0, stop: int | None = None) -> Tensor:
        """E[y|x] of rows start..stop-1 (by default all), without holding their features."""
        stop = self.orders if stop is None else stop
        return torch.cat([truth for _, _, truth in self._blocks(start, stop, "cpu")])

    def expected(self, x: dict[str, Tensor]) -> Tensor:
        """E[y|x] of any rows with the log's columns, (n,) float32: a function of x alone.

        It answers counterfactual questions too, e.g. what the same orders would sell for at another hour.
        """
        centre, spread = self._law(x)
        return self._mean(centre, spread).float()

    def geometric(self, x: dict[str, Tensor]) -> Tensor:
        """exp(E[log y|x]) = exp(m(x)) of the orders that are kept, (n,) float32: what MSE on log y tends to.

        Its total over the total of `expected` is the bias that a log-trained model has at its very best.
        """
        return self._law(x)[0].exp().float()

    def to_parquet(self, folder: str | Path, *, rows_per_file: int = 1 << 20, progress: bool | None = None) -> Path:
        """Write the log as files orders-00000.parquet, …, one row group in memory at a time; returns the folder.

        Columns are those of `chunk`, with the history as a list without padding, and the target `y`. The truth is not
        written, so that no model can learn from it; `truth` computes it again. The industrial log takes about 7 GB.

        Args:
            folder: created if it does not exist; one with Parquet files is refused, because two logs would mix.
            rows_per_file: rows of each file but the last.
            progress: show a progress bar; None shows it on a terminal.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = OrderLog(orders=10).to_parquet(folder, rows_per_file=4)
        ...     [file.name for file in sorted(written.iterdir())]
        ['orders-00000.parquet', 'orders-00001.parquet', 'orders-00002.parquet']

        """
        if rows_per_file < 1:
            raise ValueError(f"rows_per_file={rows_per_file}: a file has at least one row")
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.glob("*.parquet")):
            raise FileExistsError(f"{folder} holds Parquet files already: give another folder, or remove them")
        parquet = need("pyarrow.parquet")
        with Progress("writing orders", self.orders, progress) as bar:
            for number, first in enumerate(range(0, self.orders, rows_per_file)):
                last = min(first + rows_per_file, self.orders)
                file = folder / f"orders-{number:05d}.parquet"
                # Ids hardly repeat within a row group: a dictionary of them would be larger than they are.
                options = {"compression": "zstd", "use_dictionary": ["hour", "weekday"]}
                with parquet.ParquetWriter(file, self._table(first, first + 1).schema, **options) as writer:
                    for start in range(first, last, _ROW_GROUP):
                        stop = min(start + _ROW_GROUP, last)
                        writer.write_table(self._table(start, stop), row_group_size=_ROW_GROUP)
                        bar.advance(stop)
        return folder

    def _table(self, start: int, stop: int) -> Any:
        """Rows as a `pyarrow.Table`, in the smallest types that hold them."""
        arrow = need("pyarrow")
        x, y, _ = self.chunk(start, stop)
        narrow = {"hour": torch.int8, "weekday": torch.int8, "log_price": torch.float32}
        columns = {name: column.to(narrow.get(name, torch.int32)).numpy() for name, column in x.items()}
        if self.history:
            known = columns["history"] >= 0
            ends = np.append(0, known.sum(-1).cumsum()).astype(np.int32)
            columns["history"] = arrow.ListArray.from_arrays(ends, columns["history"][known])
        return arrow.table(columns | {"y": y.numpy()})

    def _mean(self, centre: Tensor, spread: Tensor) -> Tensor:
        return (1 - self.zero_share) * torch.exp(centre + spread**2 / 2)

    def require_part(self, start: int, stop: int) -> None:
        """Raise a `ValueError` unless start..stop-1 are numbers of rows of the log, at least one."""
        if not 0 <= start < stop <= self.orders:
            raise ValueError(f"rows {start}..{stop} are not a part of the {self.orders} orders")

    def _blocks(self, start: int, stop: int, device: torch.device | str) -> Iterator[Rows]:
        self.require_part(start, stop)
        size = _block_rows(device)
        for first in range(start, stop, size):
            yield self.rows(torch.arange(first, min(first + size, stop), device=device))

    def _draw(self, attribute: str, ids: Tensor) -> Tensor:
        return hashing.uniform(ids, self.seed, f"orders.{attribute}")

    def _features(self, rows: Tensor) -> dict[str, Tensor]:
        # Products instead of powers, here and below: they round alike on every device, so the ids agree.
        draw = self._draw("user", rows)
        user = _shuffle((draw * draw * self.users).long(), self.users)  # rank r orders with probability ~ r^(-1/2)
        home = self._home(user)
        item = self._choose("item", rows, home)
        x = {"user": user, "item": item}
        if self.history:
            length = (self._draw("history length", rows) * (self.history + 1)).long()
            slots = torch.arange(self.history, device=rows.device)
            past = self._choose("history", rows[:, None] * self.history + slots, home[:, None])
            x["history"] = past.masked_fill_(slots >= length[:, None], -1)
        price = torch.special.ndtri(self._draw("price", item)) * 0.8 + 3.0
        hour = ((self._draw("hour", rows) + self._draw("hour again", rows)) * 12).long()  # a sum of two has a peak
        return x | {
            "log_price": price.float(),
            "hour": (hour + 8) % 24,
            "weekday": (self._draw("weekday", rows) * 7).long(),
        }

    def _home(self, user: Tensor) -> Tensor:
        return hashing.bits(user, self.seed, "orders.segment") & (_SEGMENTS - 1)

    def _choose(self, stream: str, ids: Tensor, home: Tensor) -> Tensor:
        # A draw on [0, 35): its whole part 0..27 (four in five) chooses the home segment, 28..34 the segment that many
        # (1..7) further; its fraction chooses the item of the segment.
        draw = self._draw(stream, ids).mul_(35)
        segment = draw.long().sub_(27).clamp_min_(0).add_(home).bitwise_and_(_SEGMENTS - 1)
        # A segment is an eighth of the ranks; rank r within it sells with probability ~ r^(-2/3).
        part = draw.frac_()
        rank = (part * part).mul_(part).add_(segment).mul_(self.items / _SEGMENTS)
        return _shuffle(rank.long(), self.items)

    def _law(self, x: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """The mean m(x) and the deviation σ(x) of log y, float64 (n,)."""
        user, item = x["user"], x["item"]
        segment = _segment(item, self.items)
        centre = x["log_price"].double() + self._draw("taste", user) - 0.5
        centre += 0.3 * (self._home(user) == segment)
        if self.history:
            past = x["history"]
            known = past >= 0
            alike = (_segment(past, self.items) == segment[:, None]) & known
            centre += 0.6 * alike.sum(-1) / known.sum(-1).clamp_min_(1)
        centre += 0.2 * torch.cos((x["hour"] - 20) * (2 * math.pi / 24)) + 0.15 * (x["weekday"] >= _WEEKEND)
        return centre, 0.4 + 0.4 * (self._draw("item noise", item) + self._draw("user noise", user))


class OrderStream:
    """Rows start..stop-1 of an order log in batches, computed on a device when they are needed and never stored.

    The rows are those of `OrderLog.chunk`. On a GPU nothing is read or transferred, so that a benchmark measures the
    speed of training alone: 132,657,136 orders take the memory of one block of 2²⁰.

    Args:
        log: the orders.
        device: where the batches are computed.
        start: number of the first row.
        stop: number after the last; None is the end of the log.

    >>> log = OrderLog(orders=10, history=0)
    >>> [len(batch.y) for batch in OrderStream(log).batches(4)]
    [4, 4, 2]
    >>> shuffled = torch.cat([batch.y for batch in OrderStream(log).batches(4, seed=1)])
    >>> torch.equal(shuffled.sort().values, log.dataset().y.sort().values)
    True

    """

    def __init__(
        self, log: OrderLog, device: torch.device | str = "cpu", start: int = 0, stop: int | None = None
    ) -> None:
        stop = len(log) if stop is None else stop
        log.require_part(start, stop)
        if stop - start >= _STREAM_ROWS:
            raise ValueError(f"{stop - start} rows cannot be shuffled; a stream has fewer than {_STREAM_ROWS}")
        self.log, self.device, self.start, self.stop = log, torch.device(device), start, stop

    def __len__(self) -> int:
        return self.stop - self.start

    def __repr__(self) -> str:
        return f"OrderStream({len(self)} rows of {self.log} on {self.device})"

    def targets(self) -> Tensor:
        """The targets of the first rows, at most 1,048,576: a sample, since rows are independent of their numbers."""
        return self.log.chunk(self.start, min(self.stop, self.start + _TARGETS), self.device)[1]

    def batches(self, size: int, *, seed: int | None = None) -> Iterator[Batch]:
        """Every row once, `size` rows at a time; the last batch has the rest.

        Args:
            size: rows of a batch.
            seed: None keeps the order. With a number, the i-th row visited is (i·stride + offset) mod n, where stride
                and offset are drawn from it. That would not shuffle a real log well, but rows of this one do not
                depend on their neighbours.

        """
        if size < 1:
            raise ValueError(f"batch size {size}: a batch has at least one row")
        return self._batches(size, seed)

    def _batches(self, size: int, seed: int | None) -> Iterator[Batch]:
        stride, offset = (1, 0) if seed is None else self._stride_and_offset(seed)
        block = max(_block_rows(self.device) // size, 1) * size
        for first in range(0, len(self), block):
            numbers = torch.arange(first, min(first + block, len(self)), device=self.device)
            x, y, _ = self.log.rows(numbers.mul_(stride).add_(offset).remainder_(len(self)).add_(self.start))
            for cut in range(0, len(y), size):
                yield Batch({name: column[cut : cut + size] for name, column in x.items()}, y[cut : cut + size])

    def _stride_and_offset(self, seed: int) -> tuple[int, int]:
        drawn = hashing.uniform(torch.arange(2), seed, "orders.walk") * len(self)
        stride, offset = int(drawn[0]), int(drawn[1])
        while math.gcd(stride, len(self)) != 1:
            stride += 1
        return stride, offset


def _block_rows(device: torch.device | str) -> int:
    return _CPU_BLOCK if torch.device(device).type == "cpu" else _GPU_BLOCK


@cache
def _stride(count: int) -> tuple[int, int]:
    # A step coprime to `count`, near count / golden ratio, and its inverse. No small multiple of it returns to its
    # start, so ids show nothing of rank or segment, not even modulo a small number, as a hashed embedding sees them.
    step = round(count * (math.sqrt(5) - 1) / 2) or 1
    while math.gcd(step, count) != 1:
        step += 1
    return step, pow(step, -1, count)


def _shuffle(rank: Tensor, count: int) -> Tensor:
    """The id of a popularity rank: a bijection of 0..count-1, computed instead of stored."""
    return rank.mul(_stride(count)[0]).remainder_(count)


def _segment(item: Tensor, items: int) -> Tensor:
    rank = item.mul(_stride(items)[1]).remainder_(items)
    # Of a rank that straddles two segments, the upper one, where it is the most popular.
    return rank.mul_(_SEGMENTS).add_(_SEGMENTS - 1).floor_divide_(items)
