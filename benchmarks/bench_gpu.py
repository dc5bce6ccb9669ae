"""The paper's industrial training on one GPU, by `fit`: an epoch, the bias branch's overhead, accuracy, and Parquet.

Runs from a bare checkout with torch and numpy alone (`PYTHONPATH=src python benchmarks/bench_gpu.py --out FOLDER`); the
Parquet part needs pyarrow too and is left out without it. Writes FOLDER/gpu.json, by default benchmarks/results.
Everything is trained by `fit` with `Compiled("bfloat16")` and `RowWise`; the time includes making the rows on the GPU.
"""

import argparse
import importlib.util
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import record
import torch

from transun import (
    DIN,
    NRMSE,
    TRE,
    Adam,
    Compiled,
    Head,
    LogMSE,
    LogSUN,
    Model,
    OrderLog,
    ParquetStream,
    RowWise,
    evaluate,
    fit,
)
from transun.data import Batch, OrderStream
from transun.training import Eager, Engine
from transun.training.recipe import plain_recipe

# The paper's log: orders of a month, users and items that occur in it.
ORDERS, USERS, ITEMS = 132_657_136, 67_729_869, 14_538_759
# Rows a step, by the length of the history: about the same number of look-ups.
BATCHES = {20: 1 << 16, 50: 1 << 15}
FAST = Compiled("bfloat16")
OPTIMISER = RowWise(1e-2, dense=Adam(1e-3))
# The first is what the others are compared with.
HEADS = {
    "LogMSE": LogMSE(),
    "LogSUN(shared=1)": LogSUN(shared=1),
    "LogSUN(shared=3)": LogSUN(shared=3),
    "LogSUN(shared=4)": LogSUN(shared=4),
}
GIB = 1 << 30
_WARM = 20  # steps before anything is timed: the first of them compile, allocate and record

# Cells of the table, one row a line: see `save`.
Rows = list[tuple[record.Cell, ...]]


def network(log: OrderLog, hidden: tuple[int, ...] = (1024, 512, 256)) -> DIN:
    return DIN(log.sizes, numeric=("log_price",), history={"history": "item"}, hidden=hidden)


def built(log: OrderLog, head: Head, device: str, seed: int = 0, **sizes: Any) -> Model:
    with torch.device(device):  # 5 GiB of tables: made where they are used
        return Model(network(log, **sizes), head, seed)


def timed(call: Callable[[], Any], device: str) -> float:
    wait(device)
    began = time.perf_counter()
    call()
    wait(device)
    return time.perf_counter() - began


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def peak(device: str) -> float:
    return round(torch.cuda.max_memory_allocated() / GIB, 2) if device == "cuda" else 0.0


def train(model: Model, log: OrderLog, device: str, batch: int, steps: int | None) -> None:
    stop = len(log) if steps is None else min(len(log), steps * batch)
    fit(model, OrderStream(log, device, stop=stop), plain_recipe(optimiser=OPTIMISER, batch_size=batch, engine=FAST))


def making(length: int, scale: "Scale") -> Rows:
    """Seconds of making the rows of an epoch and nothing else."""
    log, batch, device = scale.log(length), scale.batch(length), scale.device
    seconds = timed(lambda: [None for _ in OrderStream(log, device).batches(batch, seed=0)], device)
    return [(f"making the rows of an epoch, history {length}", *speed(len(log), seconds, batch), None, None, None)]


def epoch(length: int, scale: "Scale", head: str) -> Rows:
    """Seconds of a whole epoch of `fit`, after a few steps that compile and allocate."""
    log, batch, device = scale.log(length), scale.batch(length), scale.device
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    start = timed(lambda: train(built(log, HEADS[head], device), log, device, batch, _WARM), device)
    model = built(log, HEADS[head], device)
    seconds = timed(lambda: train(model, log, device, batch, None), device)
    memory = peak(device)
    held = OrderStream(OrderLog(len(log) + scale.held, log.users, log.items, length), device, start=len(log))
    scores = evaluate(model, held, [TRE, NRMSE])
    found = ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
    before = f"before it compiling and {_WARM} steps, {head}, history {length}"
    return [
        (f"an epoch, {head}, history {length}, batch {batch}", *speed(len(log), seconds, batch), memory, None, found),
        (before, round(start, 1), None, None, None, None, None),
    ]


class Paced(OrderStream):
    """An order stream that notes the time after `_WARM` steps: a training compiles and records its graphs in them."""

    began = 0.0

    def batches(self, size: int, *, seed: int | None = None) -> Iterator[Batch]:
        for step, rows in enumerate(super().batches(size, seed=seed)):
            if step == _WARM:
                wait(self.device.type)
                self.began = time.perf_counter()
            yield rows


def pace(model: Model, log: OrderLog, device: str, batch: int, steps: int) -> float:
    """Seconds of this many steps of `fit`, after some that are not timed."""
    rows = Paced(log, device, stop=(_WARM + steps) * batch)
    fit(model, rows, plain_recipe(optimiser=OPTIMISER, batch_size=batch, engine=FAST))
    wait(device)
    return time.perf_counter() - rows.began


def overhead(length: int, scale: "Scale") -> Rows:
    """Time of LogSUN over that of LogMSE, in turns of some steps each in one process."""
    log, batch, device = scale.log(length), scale.batch(length), scale.device
    models = {name: built(log, head, device) for name, head in HEADS.items()}
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(scale.turns):
        for name, model in models.items():
            seconds[name].append(pace(model, log, device, batch, scale.steps))
    plain = next(iter(seconds))
    table: Rows = []
    for name, spent in seconds.items():
        cells = speed(scale.steps * batch, statistics.median(spent), batch)
        ratios = [100 * (one / other - 1) for one, other in zip(spent, seconds[plain], strict=True)]
        more = (round(statistics.median(ratios), 1), f"overhead from {min(ratios):.1f} to {max(ratios):.1f} %")
        compared = (None, None) if name == plain else more
        table.append((f"{name}, {scale.steps} steps, history {length}", *cells, None, *compared))
    return table


def accuracy(scale: "Scale") -> Rows:
    """Held-out TRE and NRMSE of the fast ways and of the plain one, over seeds, on a log that tables can learn."""
    log, batch = OrderLog(*scale.small), scale.small_batch
    cut = len(log) * 3 // 4
    rows, held = OrderStream(log, scale.device, stop=cut), OrderStream(log, scale.device, start=cut)
    ways: dict[str, tuple[Engine, str]] = {
        "LogSUN(shared=1), float32, eager": (Eager(), "LogSUN(shared=1)"),
        "LogSUN(shared=1), bfloat16, compiled": (FAST, "LogSUN(shared=1)"),
        "LogSUN(shared=4), bfloat16, compiled": (FAST, "LogSUN(shared=4)"),
    }
    found: dict[str, list[tuple[float, dict[str, float]]]] = {name: [] for name in ways}
    for seed in range(scale.seeds):
        for name, (engine, head) in ways.items():
            model = built(log, HEADS[head], scale.device, seed, hidden=(256, 128, 64))
            plan = {"optimiser": OPTIMISER, "batch_size": batch, "engine": engine, "seed": seed}
            spent = timed(lambda model=model, plan=plan: fit(model, rows, plain_recipe(**plan)), scale.device)
            found[name].append((spent, evaluate(model, held, [TRE, NRMSE])))
    y = torch.cat([part.y for part in held.batches(batch)]).double().cpu()
    best = float((log.truth(cut).double() - y).square().mean().sqrt() / y.mean())
    table: Rows = [(f"{len(y)} held-out orders by their truth", None, None, None, None, None, f"NRMSE {best:.4f}")]
    for name, results in found.items():
        spent = min(seconds for seconds, _ in results)
        scores = [
            f"{metric} {statistics.mean(values):.4f} ± {statistics.stdev(values):.4f}"
            for metric in ("TRE", "NRMSE")
            for values in [[score[metric] for _, score in results]]
        ]
        what = f"{name}, {cut} orders, {scale.seeds} seeds"
        table.append((what, *speed(cut, spent, batch), None, None, ", ".join(scores)))
    return table


class Plain:
    """Columns of a written log as they are: ids number rows of tables already."""

    def __init__(self, log: OrderLog) -> None:
        self.length = log.history
        self.sources = (*log.sizes, "history", "log_price")

    def encode(self, table: Any) -> dict[str, torch.Tensor]:
        x = {name: torch.from_numpy(table[name].to_numpy().copy()) for name in self.sources if name != "history"}
        x = {name: column.long() if name != "log_price" else column for name, column in x.items()}
        lists = table["history"].combine_chunks()
        counts = torch.from_numpy(lists.offsets.to_numpy().copy()).long().diff()
        history = torch.full((len(counts), self.length), -1)
        history[torch.arange(self.length) < counts[:, None]] = torch.from_numpy(
            lists.flatten().to_numpy().copy()
        ).long()
        return x | {"history": history}


def parquet(scale: "Scale") -> Rows:
    """`fit` fed from Parquet files on disk, its reader alone, and the same steps on rows made on the GPU."""
    small = OrderLog(scale.on_disk, scale.users, scale.items, 20)
    batch, device, count = scale.batch(20), scale.device, scale.on_disk
    with tempfile.TemporaryDirectory() as folder:
        small.to_parquet(folder, progress=False)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        stream = ParquetStream(folder, Plain(small), "y").to(device)
        model = built(small, LogSUN(shared=1), device)
        train(model, small, device, batch, _WARM)
        reading = timed(lambda: sum(len(rows.y) for rows in stream.batches(batch, seed=0)), device)
        fitting = timed(
            lambda: fit(model, stream, plain_recipe(optimiser=OPTIMISER, batch_size=batch, engine=FAST)), device
        )
        made = timed(lambda: train(model, small, device, batch, None), device)
    bound = "bound by the reader" if fitting > 1.5 * made else "bound by the GPU"
    what = f"{count} orders, history 20"
    return [
        (
            f"from Parquet on disk, {size / count:.0f} bytes a row, {what}",
            *speed(count, fitting, batch),
            None,
            None,
            bound,
        ),
        (f"reading alone, {what}", *speed(count, reading, batch), None, None, None),
        (f"rows made on the GPU, {what}", *speed(count, made, batch), None, None, None),
    ]


def speed(rows: int, seconds: float, batch: int) -> tuple[float, int, float]:
    return round(seconds, 2), round(rows / seconds), round(1e3 * seconds * batch / rows, 3)


class Scale:
    """Sizes of all parts: the paper's, or toys with which a CPU tries the script."""

    def __init__(self, device: str) -> None:
        self.device = device
        toy = device == "cpu"
        self.orders, self.users, self.items = (8000, 4000, 2000) if toy else (ORDERS, USERS, ITEMS)
        self.steps, self.turns, self.seeds = (3, 2, 2) if toy else (300, 5, 5)
        self.small, self.small_batch = ((4000, 300, 200, 5), 256) if toy else ((2_000_000, 20_000, 5_000, 20), 1 << 13)
        self.held, self.on_disk = (500, 2000) if toy else (1 << 20, 1 << 21)

    def batch(self, length: int) -> int:
        return 256 if self.device == "cpu" else BATCHES[length]

    def log(self, length: int) -> OrderLog:
        return OrderLog(self.orders, self.users, self.items, length)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--only", nargs="*", default=["epoch", "overhead", "accuracy", "parquet"])
    chosen = parser.parse_args()
    if chosen.device == "cuda" and not torch.cuda.is_available():
        parser.error("there is no GPU here; --device cpu tries the script on toy sizes")
    scale = Scale(chosen.device)
    parts: dict[str, Callable[[], Rows]] = {}
    parts |= {f"epoch rows {length}": lambda length=length: making(length, scale) for length in BATCHES}
    # Epochs first: their peak of memory is that of one model.
    for head in ("LogSUN(shared=1)", "LogSUN(shared=4)"):
        for length in BATCHES:
            parts[f"epoch {length} {head}"] = lambda length=length, head=head: epoch(length, scale, head)
    parts |= {f"overhead {length}": lambda length=length: overhead(length, scale) for length in BATCHES}
    parts["accuracy"] = lambda: accuracy(scale)
    if importlib.util.find_spec("pyarrow"):
        parts["parquet"] = lambda: parquet(scale)
    rows: Rows = []
    for part, call in parts.items():
        if part.split()[0] in chosen.only:
            rows += (found := call())
            print(*found, sep="\n", flush=True)
            save(rows, scale, chosen.out)  # after every part: a machine may be lent for so long only


def save(rows: Rows, scale: "Scale", folder: Path) -> None:
    name = torch.cuda.get_device_name() if scale.device == "cuda" else "no GPU"
    record.write(
        "gpu",
        "The paper's industrial training on one GPU: DIN 1024/512/256 with LogSUN, tables of 16 numbers a row",
        ("what", "seconds", "rows a second", "ms a step", "peak GiB", "overhead %", "found"),
        rows,
        (
            f"{scale.orders:,} orders, {scale.users:,} users, {scale.items:,} items; products in bfloat16, tables and "
            "weights in float32, row-wise Adagrad for tables and Adam for the rest.",
            "Rows of the simulated log are made on the GPU within the time, except where they are read from disk.",
            f"Overheads over LogMSE: medians of {scale.turns} turns in one process, least and most beside, each "
            f"after {_WARM} steps that are not timed.",
            "Shared stages: 1 is the embedding with the attention, 4 leaves the branch its output layer.",
            "Accuracy is the mean and the deviation over seeds; the ways of training shall agree within noise.",
        ),
        where=f"{name}, {os.cpu_count()} CPU cores, Python {platform.python_version()}, torch {torch.__version__}",
        folder=folder,
    )


if __name__ == "__main__":
    main()
