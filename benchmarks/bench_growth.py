"""How time and memory grow with rows, batch, table, branches and bins.

Writes benchmarks/results/growth.json. Every point has a process of its own, which makes its data, then measures CPU
time and the memory above what the data took. The slope is that of log time (or memory) by log size; where it stays
below 1.15 over a factor of ten, growth is no worse than n·log n.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy and torch are imported

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from aims import STEEP
from record import Cell, machine, peak, resident, write

Call = Callable[[], object]
STEPS = 60


def columns(n: int, items: int = 1000):
    from transun import Dataset

    rng = np.random.default_rng(0)
    item = rng.integers(0, items, n)
    price = rng.normal(size=n).astype(np.float32)
    y = np.exp(0.5 * price + (item % 7) / 7 + 0.8 * rng.normal(size=n)).astype(np.float32)
    return Dataset({"item": item, "price": price}, y)


def network(items: int = 1000):
    from transun import EmbeddingMLP

    return EmbeddingMLP({"item": items}, numeric=("price",), dim=8, hidden=(32,))


def fitting(rows: int, batch: int = 4096, items: int = 1000, head=None, optimiser=None) -> Call:
    from transun import Adam, LogSUN, Model, fit
    from transun.training import plain_recipe

    data = columns(rows, items)
    model = Model(network(items), head if head is not None else LogSUN(shared=1))
    recipe = plain_recipe(batch_size=batch, optimiser=optimiser or Adam())
    fit(model, columns(4 * min(batch, rows), items), recipe)  # allocates
    return lambda: fit(model, data, recipe)


def fit_rows(n: int) -> Call:
    return fitting(n)


def predict_rows(n: int) -> Call:
    from transun import LogSUN, Model, predict

    data = columns(n)
    model = Model(network(), LogSUN(shared=1)).prepare(data.targets().double())
    return lambda: predict(model, data)


def evaluate_rows(n: int) -> Call:
    from transun import LogSUN, Model, evaluate

    data = columns(n)
    model = Model(network(), LogSUN(shared=1)).prepare(data.targets().double())
    return lambda: evaluate(model, data)


def diagnose_rows(n: int) -> Call:
    from transun.diagnosis import diagnose

    rng = np.random.default_rng(0)
    pred = np.exp(rng.normal(size=n))
    y = pred * np.exp(rng.normal(size=n))
    segments = {"country": np.array(["a", "b", "c", "d"])[rng.integers(0, 4, n)]}
    return lambda: diagnose(y, pred, segments, progress=False)


def reproduce_rows(n: int) -> Call:
    from transun import LogSUN
    from transun_paper.lab.encoded_dataset import EncodedDataset
    from transun_paper.lab.execute import execute
    from transun_paper.lab.run import MLP, Run, lab_recipe

    parts = columns(n), columns(n // 4), columns(n // 4)
    data = EncodedDataset("growth", *parts, {"item": 1000}, {}, ("price",), "each row by itself")
    training = lab_recipe(batch_size=4096)
    runs = [Run("growth", LogSUN(), training, MLP(8, (32,)), seed=seed) for seed in (0, 1)]
    return lambda: [execute([run], data) for run in runs]


def step_batch(batch: int) -> Call:
    return fitting(STEPS * batch, batch)


def step_table(items: int) -> Call:
    return fitting(STEPS * 512, 512, items)


def step_table_rowwise(items: int) -> Call:
    from transun import RowWise

    return fitting(STEPS * 512, 512, items, optimiser=RowWise())


def step_branches(branches: int) -> Call:
    from transun import Blend, Poisson

    return fitting(STEPS * 512, 512, head=Blend([Poisson()] * branches))


def step_bins(bins: int) -> Call:
    from transun import TPM

    return fitting(STEPS * 512, 512, head=TPM(leaves=bins))


TENS = [10**4, 10**5, 10**6, 10**7]
CASES: list[tuple[str, str, Callable[[int], Call], list[int]]] = [
    ("fit, one epoch", "rows", fit_rows, TENS),
    ("predict", "rows", predict_rows, TENS),
    ("evaluate, the standard metrics", "rows", evaluate_rows, TENS),
    ("diagnose, one column of segments", "rows", diagnose_rows, TENS),
    ("a run of a reproduced table, two seeds", "rows", reproduce_rows, TENS[:3]),
    (f"{STEPS} steps", "batch", step_batch, [64, 512, 4096, 32768]),
    (f"{STEPS} steps, Adam", "table rows", step_table, [*TENS[:3], 3 * 10**6]),
    (f"{STEPS} steps, RowWise", "table rows", step_table_rowwise, [*TENS[:3], 3 * 10**6]),
    (f"{STEPS} steps", "branches", step_branches, [1, 2, 4, 8, 16]),
    (f"{STEPS} steps of TPM", "bins", step_bins, [8, 32, 128, 512]),
]


def measure(case: int, size: int) -> None:
    """Run in a process of its own: the CPU seconds and the memory of one point."""
    import torch

    torch.set_num_threads(1)
    call = CASES[case][2](size)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of making the data
    before, seconds, began = resident("VmRSS"), [], time.perf_counter()
    # Short calls are repeated: the best of several is free of what else the machine does.
    while len(seconds) < 3 and time.perf_counter() - began < 4.0:
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    print(json.dumps([min(seconds), max(0, peak() - before)]))


def slope(sizes: list[int], values: list[float]) -> float:
    """Log-log slope of the last three points by least squares; constant costs would hide the growth of the first."""
    return round(float(np.polyfit(np.log(sizes[-3:]), np.log(values[-3:]), 1)[0]), 3)


def point(case: int, size: int) -> tuple[float, int]:
    """CPU seconds and bytes of one point."""
    call = [sys.executable, __file__, str(case), str(size)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{CASES[case][0]}, {CASES[case][1]} = {size}: {done.stderr[-2000:]}")
    seconds, memory = json.loads(done.stdout)
    print(*CASES[case][:2], size, seconds, memory, flush=True)
    return seconds, memory


def main() -> None:
    rows: list[list[Cell]] = []
    steep: list[str] = []
    for case, (name, by, _, sizes) in enumerate(CASES):
        points = [point(case, size) for size in sizes]
        seconds, memory = [spent for spent, _ in points], [held for _, held in points]
        growth = slope(sizes, seconds)
        # A few MiB more or less are the allocator's, not the work's.
        space = slope(sizes, [max(m, 8 << 20) for m in memory])
        text = " ".join(f"{s:.3g}" for s in seconds)
        mib = " ".join(f"{m / 2**20:.0f}" for m in memory)
        rows.append([name, by, " ".join(f"{size:,}" for size in sizes), text, growth, mib, space])
        if max(growth, space) > STEEP:
            steep.append(f"{name} by {by} grows faster than n·log n: slopes {growth:.2f} and {space:.2f}.")
    write(
        "growth",
        "Growth of CPU time and of memory above the data's own, by size; slopes are of the last three points on "
        "log-log scales. The aim is nothing worse than n·log n, whose slope is 1.07 from 10⁵ to 10⁷.",
        ["what", "by", "sizes", "CPU seconds", "slope of time", "MiB", "slope of memory"],
        rows,
        steep or [f"No slope exceeds {STEEP}."],
        where=machine("torch", "numpy"),
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(int(sys.argv[1]), int(sys.argv[2]))
    else:
        main()
