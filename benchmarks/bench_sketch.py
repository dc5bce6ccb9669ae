"""The sketch of XAUC against the exact value: error, its own bound, size and speed, by data, order and shards.

Writes benchmarks/results/sketch.json.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy and torch are imported

import time

import numpy as np
import torch
from record import Cell, machine, write

from transun.metrics import XAUC, Meter
from transun.metrics.sketch import XAUCSketch

ROWS = 2_000_000
BATCH = 16_384
Pair = tuple[np.ndarray, np.ndarray]


def gamma(rng: np.random.Generator) -> Pair:
    y = rng.gamma(1.0, 1.0, ROWS)
    return y + rng.normal(size=ROWS), y


def zipf(rng: np.random.Generator) -> Pair:
    y = rng.zipf(1.3, ROWS).clip(0, 2**53).astype(float)
    return np.log(y) + rng.normal(size=ROWS), y


def zeros(rng: np.random.Generator) -> Pair:
    y = rng.gamma(1.0, 1.0, ROWS) * (rng.random(ROWS) < 0.2)
    return y + rng.normal(size=ROWS), y


def rare(rng: np.random.Generator) -> Pair:
    y = rng.gamma(1.0, 1.0, ROWS) * (rng.random(ROWS) < 0.001)
    return y + rng.normal(size=ROWS), y


def clusters(rng: np.random.Generator) -> Pair:
    which = rng.integers(0, 2, ROWS)
    y = np.where(which, 1e9, 1e-9) * (1 + 1e-6 * rng.normal(size=ROWS))
    return np.where(rng.random(ROWS) < 0.9, which, 1 - which) + 1e-7 * rng.normal(size=ROWS), y


def ascending(rng: np.random.Generator) -> Pair:
    y = np.sort(rng.lognormal(0.0, 3.0, ROWS))
    return y * np.exp(rng.normal(size=ROWS)), y


def late(rng: np.random.Generator) -> Pair:
    y = rng.lognormal(0.0, 3.0, ROWS)
    y[ROWS // 50 :] = 1 + 1e-3 * rng.random(ROWS - ROWS // 50)
    return y * np.exp(1e-3 * rng.normal(size=ROWS)), y


CASES = [
    ("gamma targets, random order", gamma, 1),
    ("gamma targets, random order", gamma, 64),
    ("zipf targets", zipf, 1),
    ("80 % zeros", zeros, 1),
    ("80 % zeros", zeros, 64),
    ("two clusters", clusters, 1),
    ("sorted by target", ascending, 1),
    ("background first, then a narrow bulk", late, 1),
    ("99.9 % zeros", rare, 1),
]


def main() -> None:
    torch.set_num_threads(1)
    table: list[list[Cell]] = []
    for name, make, shards in CASES:
        pred, y = make(np.random.default_rng(0))
        began = time.perf_counter()
        meters = []
        for rows, targets in zip(np.array_split(pred, shards), np.array_split(y, shards), strict=True):
            meter = Meter(XAUCSketch())
            for start in range(0, len(targets), BATCH):
                meter.update(rows[start : start + BATCH], targets[start : start + BATCH])
            meters.append(meter)
        for meter in meters[1:]:
            meters[0].merge(meter)
        seconds = time.perf_counter() - began
        value, bound = meters[0].compute()["XAUCSketch"], meters[0].bounds()["XAUCSketch"]
        (summary,) = meters[0]._summaries.values()
        certain = XAUCSketch().certain(summary)
        size = summary.nbytes
        error = abs(value - XAUC(pred, y))
        print(f"{name:40s} {shards:3d} error {error:.1e} bound {bound:.1e} {size:,} bytes {ROWS / seconds:,.0f} rows/s")
        table.append([name, shards, ROWS, value, error, bound, (certain.high - certain.low) / 2, size, ROWS / seconds])
    columns = ["rows", "shards", "number", "XAUC", "error", "bound at 99.9 %", "sure to within", "bytes", "rows/s"]
    write(
        "sketch",
        "`XAUCSketch`, a mergeable sketch of XAUC for streams: its error against the exact value, and the bound that "
        "it reports itself. The aim is 0.001 at 1 MB.",
        columns,
        table,
        ["The bound is wider where the order of rows drifts and where few pairs are comparable, and says so."],
        where=machine("numpy", "torch"),
    )


if __name__ == "__main__":
    main()
