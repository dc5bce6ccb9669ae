"""Reading shuffled batches from Parquet against training on them, and peak memory over a folder ten times the cap.

Writes benchmarks/results/stream.json. Reading and training take turns on the same rows, so that other work on the
machine slows both down. Memory is that of a separate process, interpreter and libraries included.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy and torch are imported

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from record import Cell, machine, peak, write

from transun import Adam, EmbeddingMLP, LogSUN, Model, OrderLog, ParquetStream, fit
from transun.data.features import Features
from transun.data.kinds import Bag, Id, Kind, Standardised
from transun.training.recipe import plain_recipe

BATCH = 512
TURNS = 3
ORDERS, TRAINED = 300_000, 40 * BATCH
CAP = 640 << 20  # bytes of memory for the whole process; one that trains on a fixed batch, without data, takes 347 MiB
NUMBERS, ROWS = 40, 1 << 19  # columns and rows of the file that the large folder repeats
STEPS = 200  # of training within the large pass; the rest is read only, as a step costs what 20 batches of reading do


def best(call: Callable[[], int]) -> tuple[float, float]:
    """Rows a second, by the wall clock and by the time of all threads."""
    wall, cpu = time.perf_counter(), time.process_time()
    rows = call()
    return rows / (time.perf_counter() - wall), rows / (time.process_time() - cpu)


def speed(folder: Path) -> list[list[Cell]]:
    log = OrderLog(orders=ORDERS, users=100_000, items=20_000)
    history = Bag(shares_table_with="item")
    kinds: dict[str, Kind] = {"user": Id(), "item": Id(), "history": history, "log_price": Standardised()}
    log.to_parquet(folder, rows_per_file=100_000, progress=False)
    features = Features(kinds | {"hour": Id(), "weekday": Id()}).fit(folder)
    stream = ParquetStream(folder, features, "y")
    some = features.to_dataset(pq.read_table(folder).slice(0, TRAINED), "y")
    model = Model(EmbeddingMLP(features.ids, features.bags, features.numeric), LogSUN())
    fit(model, some, plain_recipe(batch_size=BATCH, optimiser=Adam()))  # the first steps also allocate
    turns = [
        (
            best(lambda seed=seed: sum(len(batch.y) for batch in stream.batches(BATCH, seed=seed))),
            best(lambda seed=seed: fit(model, some, plain_recipe(batch_size=BATCH, seed=seed, optimiser=Adam())).rows),
        )
        for seed in range(TURNS)
    ]
    (read, read_cpu), (train, train_cpu) = (
        tuple(map(max, zip(*side, strict=True))) for side in zip(*turns, strict=True)
    )
    print(
        f"reading {read:,.0f} rows/s, training {train:,.0f}: {read / train:.1f}x ({read_cpu / train_cpu:.1f}x in CPU)"
    )
    size = sum(file.stat().st_size for file in folder.iterdir())
    return [
        ["reading shuffled batches", ORDERS, size >> 20, read, None, read / train, read_cpu / train_cpu],
        ["training on them", TRAINED, None, train, None, 1.0, 1.0],
    ]


def wide(folder: Path) -> int:
    """A folder of CAP · 10 bytes at least: one file under many names, which a reader cannot know."""
    rng = np.random.default_rng(0)
    columns = {"item": rng.integers(0, 10_000, ROWS), "y": rng.gamma(2.0, 1.0, ROWS)}
    columns |= {f"number_{i}": rng.normal(size=ROWS) for i in range(NUMBERS)}
    first = folder / "part-000.parquet"
    # Neither compressed nor encoded: a byte on disk is a byte of data.
    pq.write_table(pa.table(columns), first, row_group_size=1 << 16, compression="none", use_dictionary=False)
    copies = -(-10 * CAP // first.stat().st_size)
    for copy in range(1, copies):
        (folder / f"part-{copy:03d}.parquet").hardlink_to(first)
    return copies * first.stat().st_size


def pass_over(folder: Path) -> None:
    """Run in a process of its own: train some steps, read everything, print what it took."""
    torch.set_num_threads(1)
    bare = peak()
    kinds: dict[str, Kind] = {"item": Id()} | {f"number_{i}": Standardised() for i in range(NUMBERS)}
    with pq.ParquetFile(folder / "part-000.parquet") as file:
        features = Features(kinds).fit(file.read_row_group(0).slice(0, 8192))
    stream = ParquetStream(folder, features, "y", shuffle_rows=1 << 16)
    model = Model(EmbeddingMLP(features.ids, features.bags, features.numeric), LogSUN())
    model.prepare(stream.targets().double())
    optimiser = Adam().build(model.parameters())
    rows, began = 0, time.perf_counter()
    for step, batch in enumerate(stream.batches(BATCH, seed=0)):
        rows += len(batch.y)
        if step < STEPS:
            optimiser.zero_grad()
            torch.stack([term.mean() for term in model.loss(batch.x, batch.y).values()]).sum().backward()
            optimiser.step()
    seconds = time.perf_counter() - began
    assert rows == len(stream)
    print(json.dumps({"rows": rows, "seconds": round(seconds, 1), "peak_bytes": peak(), "bare_bytes": bare}))


def memory(folder: Path) -> tuple[list[Cell], str]:
    size = wide(folder)
    done = subprocess.run([sys.executable, __file__, str(folder)], capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    most, bare = result["peak_bytes"] >> 20, result["bare_bytes"] >> 20
    note = (
        f"The large folder is {size / CAP:.1f} times the cap of {CAP >> 20} MiB, and the process that read it all and "
        f"trained {STEPS} steps held at most {most} MiB, {bare} MiB of it libraries: "
        f"{'under' if result['peak_bytes'] < CAP else 'OVER'} the cap."
    )
    print(note)
    rows = result["rows"]
    return ["one pass over a large folder", rows, size >> 20, rows / result["seconds"], most, None, None], note


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        fast = speed(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        small, note = memory(Path(folder))
    write(
        "stream",
        f"Reading shuffled batches of {BATCH} rows from Parquet against training on them (EmbeddingMLP, LogSUN), the "
        f"best of {TURNS} turns, and the memory of a pass over more data than fits.",
        ["what", "rows", "MiB on disk", "rows/s", "peak MiB", "over training", "over training, CPU"],
        [*fast, small],
        [note],
        where=machine("torch", "pyarrow"),
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        pass_over(Path(sys.argv[1]))
    else:
        main()
