"""What a billion rows and a billion ids cost on which machines: computed from measurements, for docs/capacity.md.

`python benchmarks/page.py` writes the page. What was measured is read from benchmarks/results: seconds of a row
(`steps`, `gpu`), of an exchange between ranks (`ranks`), of a pass over rows (`growth`, `stream`), and the distinct ids
that rows look up (`ids`, simulated). What nobody measured here, prices, memories and networks of machines, are the
inputs below: change them and write the page again.

A step of a rank takes

    fixed + rows·(row + lookup·look-ups) + received·distinct ids received + bytes received / bandwidth

of which the first line is fitted to trainings by one rank, `received` to trainings by several, and the rest is
arithmetic.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from page_tables import markdown_table

Results = Mapping[str, Mapping[str, Any]]
Line = Mapping[str, Any]

ROWS, IDS = 10**9, 10**9
DIM = 16  # numbers of a row of a table, as in every benchmark
FLOAT, ID, INT32 = 4, 8, 4  # bytes
DENSE = 1_496_355  # numbers of the industrial network, DIN 1024/512/256 with LogSUN(shared=1), outside its tables
GIB, GB = 2.0**30, 1e9
LATENCY = 50e-6  # seconds of one collective operation between machines
MESSAGES = 6  # such operations in a step: dense gradients, and ids, rows and gradients of two groups of tables


@dataclass(frozen=True)
class Machines:
    """Some equal machines, as plain inputs: nothing of this was measured here, and prices are round, not quoted.

    Args:
        name: in words.
        device: what a rank computes on, `gpu` or `cpu`.
        count: how many machines.
        ranks: ranks of each of them.
        gib: memory of each machine for tables and their optimiser, over all its devices.
        bandwidth: bytes that a rank receives in a second, from the others of its machine or, of several machines, from
            all.
        price: dollars an hour of each machine.

    """

    name: str
    device: str
    count: int
    ranks: int
    gib: float
    bandwidth: float
    price: float

    @property
    def all_ranks(self) -> int:
        return self.count * self.ranks


MACHINES = (
    Machines("one H200", "gpu", 1, 1, 130, 0.0, 4),
    Machines("8 H200 in one machine", "gpu", 1, 8, 8 * 130, 400 * GB, 32),
    Machines("64 H200 in 8 machines", "gpu", 8, 8, 8 * 130, 40 * GB, 32),
    Machines("one CPU machine, one rank", "cpu", 1, 1, 480, 0.0, 4),
    Machines("one CPU machine, 32 ranks", "cpu", 1, 32, 480, 2 * GB, 4),
    Machines("16 CPU machines, 512 ranks", "cpu", 16, 32, 480, 0.1 * GB, 4),
)


@dataclass(frozen=True)
class Law:
    """Seconds of a step of one rank: fixed + rows·(row + lookup·look-ups of a row)."""

    fixed: float
    row: float
    lookup: float

    def seconds(self, rows: float, lookups: float) -> float:
        """Of a step with so many rows, of so many look-ups each."""
        return self.fixed + rows * (self.row + self.lookup * lookups)


def fit_law(points: Sequence[tuple[float, float, float]]) -> Law:
    """The law that fits (rows of a step, look-ups of a row, seconds) with the least sum of squared relative errors.

    As many constants are fitted as the points can tell: two points leave no fixed part.

    >>> law = fit_law([(1000, 2, 0.003 + 1000 * 2e-6), (10_000, 2, 0.023), (1000, 12, 0.015)])
    >>> round(law.fixed, 6), round(law.row, 9), round(law.lookup, 9)
    (0.003, 0.0, 1e-06)
    """
    design = np.array([[1.0, rows, rows * lookups] for rows, lookups, _ in points])
    seconds = np.array([point[2] for point in points])
    known = design[:, 1:] if len(points) < design.shape[1] else design
    solved = np.linalg.lstsq(known / seconds[:, None], np.ones(len(points)), rcond=None)[0].tolist()
    return Law(*[0.0] * (design.shape[1] - len(solved)), *solved)


def lines(results: Results, name: str) -> list[Line]:
    """The rows of a result by their columns."""
    return [dict(zip(results[name]["columns"], row, strict=True)) for row in results[name]["rows"]]


def cpu_law(results: Results) -> Law:
    """Of one CPU core, by trainings of one rank with several batches and lengths of history."""
    return fit_law([(line["rows a step"], line["look-ups a row"], _step(line)) for line in lines(results, "steps")])


def gpu_law(results: Results) -> Law:
    """Of one H200, by the industrial epochs with short and long histories: half of a history is padding on average."""
    points = []
    for line in lines(results, "gpu"):
        epoch = re.fullmatch(r"an epoch, LogSUN\(shared=1\), history (\d+), batch (\d+)", line["what"])
        if epoch is not None:
            history, batch = map(int, epoch.groups())
            points.append((batch, 2 + history / 2, batch / line["rows a second"]))
    return fit_law(points)


def received_ids(distinct: float, ranks: int, sharded: bool) -> float:
    """Distinct ids whose rows or gradients a rank takes in: those of all ranks, or in shards its own and an owner's."""
    return 2 * distinct if sharded else ranks * distinct


def exchange_seconds(results: Results, sharded: bool) -> float:
    """CPU seconds for each distinct id that a rank takes in, by trainings of several ranks."""
    law = cpu_law(results)
    ratios = []
    for line in lines(results, "ranks"):
        if line["ranks"] > 1 and (line["tables"] == "sharded") == sharded and _exchanges_rows(line):
            alone = law.seconds(line["rows a step"] / line["ranks"], line["look-ups a row"])
            taken = received_ids(line["distinct ids of a rank in a step"], line["ranks"], sharded)
            ratios.append((_step(line) - alone) / taken)
    return max(0.0, float(np.mean(ratios)))


def bytes_sent(dense: float, distinct: float, sharded: bool) -> float:
    """Bytes that a rank sends in a step: gradients of dense layers, and ids and rows of the tables.

    Of a copied table an id travels with the gradient of its row; of a sharded one before that as a request, which the
    owner answers with the row.

    >>> bytes_sent(dense=0, distinct=1, sharded=False), bytes_sent(dense=0, distinct=1, sharded=True)
    (72, 144)
    """
    row = ID + FLOAT * DIM
    return FLOAT * dense + distinct * (2 * row if sharded else row)


def bytes_received(dense: float, distinct: float, ranks: int, sharded: bool) -> float:
    """Bytes that a rank receives in a step: of copied tables the rows of all others; dense sums go around in a ring.

    >>> bytes_received(dense=0, distinct=1, ranks=3, sharded=False), bytes_received(1, 0, ranks=2, sharded=True)
    (144, 4.0)
    """
    ring = 2 * (ranks - 1) / ranks * FLOAT * dense
    rows = bytes_sent(0, distinct, sharded)
    return ring + (rows * (ranks - 1) / ranks if sharded else rows * (ranks - 1))


@dataclass(frozen=True)
class Keeping:
    """What a table and its optimiser keep for an id.

    Args:
        name: in words.
        bytes_an_id: bytes for each id.
        offered: whether `fit` offers it; others are computed for comparison.

    """

    name: str
    bytes_an_id: int
    offered: bool = True


KEEPING = (
    Keeping("RowWise, sharded: the row and its sum of squares", FLOAT * DIM + FLOAT),
    Keeping("RowWise, copied: also the number that finds equal ids", FLOAT * DIM + FLOAT + INT32),
    Keeping(
        "RowWise, sharded, with averaging and the best weights: two more copies of the row", 3 * FLOAT * DIM + FLOAT
    ),
    Keeping("Adam: the row, two moments, and a gradient of the whole table", 4 * FLOAT * DIM),
    Keeping("RowWise with rows in bfloat16", FLOAT * DIM // 2 + FLOAT, offered=False),
)


def distinct_ids(results: Results, rows: float, history: int) -> float:
    """Distinct ids among a billion that so many rows look up; between simulated numbers of rows, a power law."""
    points = [line for line in lines(results, "ids") if line["ids"] == IDS and line["history"] == history]
    simulated, distinct = ([math.log(line[name]) for line in points] for name in ("rows", "distinct ids"))
    return math.exp(np.interp(math.log(rows), simulated, distinct))


@dataclass(frozen=True)
class Epoch:
    """One epoch of a billion rows with a billion ids: seconds by part, and what it costs."""

    gib: float
    fits: bool
    computing: float
    sending: float
    reading: float
    seconds: float
    dollars: float


def epoch(results: Results, machines: Machines, history: int = 20) -> Epoch:
    """What an epoch takes there, with tables sharded over all ranks and every rank reading rows of its own."""
    gpu, ranks, sharded = machines.device == "gpu", machines.all_ranks, machines.all_ranks > 1
    batch = {20: 65536, 50: 32768}[history] if gpu else 4096
    lookups = 2 + history / 2
    distinct = distinct_ids(results, batch, history)
    steps = ROWS / (batch * ranks)
    law = gpu_law(results) if gpu else cpu_law(results)
    computing = steps * law.seconds(batch, lookups)
    sending = 0.0
    if sharded:
        dense = DENSE if gpu else lines(results, "ranks")[0]["dense parameters"]
        wire = bytes_received(dense, distinct, ranks, sharded) / machines.bandwidth + MESSAGES * LATENCY
        taken = 0.0 if gpu else exchange_seconds(results, sharded) * received_ids(distinct, ranks, sharded)
        sending = steps * (wire + taken)
    reading = ROWS / (machines.count * gpu_reading(results) if gpu else ranks * cpu_reading(results))
    # A GPU computes while the processors of its machine read; a rank on a CPU does one after the other.
    seconds = max(computing + sending, reading) if gpu else computing + sending + reading
    keeping = KEEPING[0] if sharded else KEEPING[1]
    gib = IDS * keeping.bytes_an_id / machines.count / GIB
    dollars = seconds / 3600 * machines.count * machines.price
    return Epoch(gib, gib <= machines.gib, computing, sending, reading, seconds, dollars)


def cpu_reading(results: Results) -> float:
    """Rows a second that one core reads from Parquet files."""
    return float(next(line["rows/s"] for line in lines(results, "stream") if line["what"].startswith("one pass")))


def gpu_reading(results: Results) -> float:
    """Rows a second that the processors beside an H200 read from Parquet files, history 20."""
    return float(
        next(line["rows a second"] for line in lines(results, "gpu") if line["what"].startswith("reading alone"))
    )


def _step(line: Line) -> float:
    return float(line["rows a step"] / line["rows a second"])


def _exchanges_rows(line: Line) -> bool:
    """Whether the table of items, a fifth of the ids, has more rows than a step has look-ups, padding included.

    A smaller one is sent whole.
    """
    return bool(line["ids"] // 5 > line["rows a step"] * (2 * line["look-ups a row"] - 3))


def _laws(results: Results) -> str:
    rows = []
    for name, law in (("one CPU core", cpu_law(results)), ("one H200", gpu_law(results))):
        rows.append([name, 1e3 * law.fixed, 1e6 * law.row, 1e6 * law.lookup, 1e6 * law.seconds(65536, 12) / 65536])
    return markdown_table(["where", "ms a step", "µs a row", "µs a look-up", "µs a row of 12 look-ups"], rows)


def _fit_of_law(results: Results) -> str:
    law = cpu_law(results)
    rows = []
    for line in lines(results, "steps"):
        batch, lookups = line["rows a step"], line["look-ups a row"]
        computed, measured = (1e6 * seconds / batch for seconds in (law.seconds(batch, lookups), _step(line)))
        rows.append([batch, lookups, measured, computed, computed / measured])
    return markdown_table(["rows a step", "look-ups a row", "µs a row, measured", "by the law", "ratio"], rows)


def _largest_error(results: Results) -> float:
    law = cpu_law(results)
    points = [(law.seconds(line["rows a step"], line["look-ups a row"]), line) for line in lines(results, "steps")]
    return max(abs(computed / _step(line) - 1.0) for computed, line in points)


def _memory() -> str:
    rows = [
        [keeping.name, keeping.bytes_an_id, IDS * keeping.bytes_an_id / GIB, keeping.offered] for keeping in KEEPING
    ]
    return markdown_table(["what is kept", "bytes an id", "GiB of 10⁹ ids", "offered"], rows)


def _communication(results: Results) -> str:
    rows = []
    for line in lines(results, "ranks"):
        if line["ranks"] > 1 and _exchanges_rows(line):
            sharded, distinct = line["tables"] == "sharded", line["distinct ids of a rank in a step"]
            computed = bytes_sent(line["dense parameters"], distinct, sharded)
            measured = line["bytes a rank sends in a step"]
            rows.append([line["ranks"], line["tables"], line["ids"], distinct, measured, round(computed)])
            rows[-1].append(computed / measured)
    return markdown_table(
        ["ranks", "tables", "ids", "distinct ids of a rank", "bytes, measured", "by the formula", "ratio"], rows
    )


def _epochs(results: Results, history: int) -> str:
    rows = []
    for machines in MACHINES:
        cost = epoch(results, machines, history)
        parts = [round(part, 1) for part in (cost.computing, cost.sending, cost.reading, cost.seconds)]
        rows.append([machines.name, machines.all_ranks, cost.gib, cost.fits, *parts, round(cost.dollars, 2)])
    columns = ["machines", "ranks", "GiB a machine", "fits", "s computing", "s sending", "s reading"]
    return markdown_table([*columns, "s an epoch", "$ an epoch"], rows)


def _other_work(results: Results) -> str:
    rows: list[list[Any]] = []
    for line in lines(results, "growth"):
        sizes, seconds = ([float(text.replace(",", "")) for text in line[name].split()] for name in _GROWTH)
        if line["by"] == "rows" and sizes[-1] == 10**7:
            slope = max(1.0, line["slope of time"])
            rows.append([line["what"], seconds[-1], slope, seconds[-1] * (ROWS / sizes[-1]) ** slope / 3600])
    return markdown_table(["work", "CPU seconds of 10⁷ rows", "growth", "core hours of 10⁹ rows"], rows)


_GROWTH = ("sizes", "CPU seconds")


def _inputs() -> str:
    rows = [
        [one.name, one.count, one.ranks, one.gib, one.bandwidth / GB if one.bandwidth else None, one.price]
        for one in MACHINES
    ]
    columns = ["machines", "number", "ranks each", "GiB each", "GB/s that a rank receives", "$ an hour each"]
    return markdown_table(columns, rows)


def capacity_page(results: Results) -> str:
    """The page."""
    return f"""# Capacity

What a billion rows with a billion ids cost on which machines. Nobody ran that here: seconds and bytes of a row, of an
id and of a step were [measured](speed.md) on one CPU core and one H200, ids were simulated, and the rest is arithmetic
with the inputs at the end. Put your own machines and prices into `benchmarks/capacity.py` and run
`python benchmarks/page.py`.

## A billion rows, a billion ids, one epoch

Rows with up to 20 past items, 12 look-ups in tables of {DIM} numbers a row:

{_epochs(results, 20)}

Rows with up to 50 past items, 27 look-ups; the time to read is that of the shorter rows:

{_epochs(results, 50)}

“Fits” says whether tables and optimiser fit in the memory of a machine. GPUs train the paper's industrial network, DIN
1024/512/256; CPUs the small one of the benchmarks, EmbeddingMLP 128/64/32: compare lines of one kind. Where reading
takes longer than computing, more GPUs wait for files, and more machines read them.

## A row

A step of one rank takes a fixed time, a time for each row and a time for each id that a row looks up. Fitted to
trainings by one rank, on a CPU with several batches and lengths of history and on the GPU with the two of the
industrial epoch, which cannot tell a fixed part:

{_laws(results)}

The law of a CPU core is off by {_largest_error(results):.0%} at most from what it was fitted to, on a machine that
other work kept busy; the page of speeds tells its load:

{_fit_of_law(results)}

A rank on a CPU that takes in the rows of others also needs {1e6 * exchange_seconds(results, False):.2f} µs for each
distinct id where tables are copied, and {1e6 * exchange_seconds(results, True):.2f} µs where they are sharded, by
trainings with several ranks.

## An id

{_memory()}

Sharded tables divide this by the number of ranks. The time of a step does not depend on the number of ids with RowWise,
and is proportional to it with Adam, which moves every row in every step.

## A step between ranks

A rank sends 4 bytes for each dense parameter and, for each distinct id of its part of the batch, 8 bytes and a row of
gradients; of a sharded table before that a request of 8 bytes, which the owner answers with the row. That grows with
the batch and not with the table:

{_communication(results)}

A table with fewer rows than the batch has look-ups is sent whole. Of a billion ids, 65,536 rows with 12 look-ups each
name {distinct_ids(results, 65536, 20):,.0f} different ones, so that a rank on a GPU sends
{bytes_sent(DENSE, distinct_ids(results, 65536, 20), True) / 1e6:.0f} MB in a step.

## Other work on a billion rows

Extrapolated by the growth measured up to ten million rows, at least linear:

{_other_work(results)}

Rows are streamed: evaluating them holds a sample and sums, not the rows.

## Inputs and assumptions

{_inputs()}

- Prices are round numbers, not quotes; memory is what a machine leaves for tables and their optimiser.
- Every rank keeps the batch that was measured, {65536:,} rows of a GPU with a short history, {32768:,} with a long one,
  and {4096:,} of a CPU core, so that more ranks make a larger batch. What a larger batch does to accuracy is not said.
- Every rank reads rows of its own (`LocalRows`). One core reads {cpu_reading(results):,.0f} rows a second, the
  processors of a machine with GPUs {gpu_reading(results):,.0f} together.
- A step sends {MESSAGES} messages of {1e6 * LATENCY:.0f} µs each beside its bytes; dense gradients are summed around a
  ring; sending does not overlap with computing.
- All ranks are equally fast; nothing fails. A GPU takes in the rows of others at the speed of its memory.
- Ids follow the simulated order log, popular ones included; owners of table rows are asked evenly (section
  “ids” of the measurements).
"""
