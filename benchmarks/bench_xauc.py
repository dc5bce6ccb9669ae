"""XAUC against scipy.stats.kendalltau, and NDCG against scikit-learn, on the same rows, one thread, in turns.

Writes benchmarks/results/xauc.json. A ratio is the peer's best time over ours; turns alternate, so that other work
on the machine slows both down. XAUC of 10⁸ rows has a process of its own, for its memory.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy and torch are imported

import json
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from record import Cell, machine, peak, write
from scipy.stats import kendalltau
from sklearn.metrics import ndcg_score

from transun.metrics import NDCG, XAUC, Metric

REPEATS = 3
LARGE = 10**8
Score = Callable[[np.ndarray, np.ndarray], float]
# A metric, its peer, the same number by the peer, and numbers of rows.
CASES: list[tuple[Metric, str, Score, tuple[int, ...]]] = [
    (XAUC, "kendalltau", lambda pred, y: (1 + kendalltau(pred, y).statistic) / 2, (10**5, 10**6, 10**7)),
    (NDCG, "ndcg_score", lambda pred, y: ndcg_score(y[None], pred[None]), (10**6, 10**7)),
]


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.gamma(1.0, 1.0, n)
    return y + rng.normal(size=n), y


def timed(call: Callable[[], float]) -> tuple[float, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    value = call()
    return value, time.perf_counter() - wall, time.process_time() - cpu


def compare(metric: Metric, peer: str, theirs: Score, n: int) -> list[Cell]:
    name, (pred, y) = metric.name, rows(n)
    turns = [(timed(lambda: metric(pred, y)), timed(lambda: theirs(pred, y))) for _ in range(REPEATS)]
    (value, _, _), (expected, _, _) = turns[0]
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    wall = [min(turn[side][1] for turn in turns) for side in (0, 1)]
    cpu = [min(turn[side][2] for turn in turns) for side in (0, 1)]
    print(f"{name:5s} {n:>10,d} {wall[0]:9.3f} s {peer:11s} {wall[1]:9.3f} s {wall[1] / wall[0]:7.1f}x", flush=True)
    return [f"{name}, float64", n, wall[0], cpu[0], peer, wall[1], wall[1] / wall[0], cpu[1] / cpu[0], None]


def large(kind: str) -> None:
    """Run in a process of its own: XAUC of many rows, its time and its memory, that of the rows included."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    dtype = np.dtype(kind)
    y = rng.standard_exponential(LARGE, dtype=dtype)
    pred = rng.standard_normal(LARGE, dtype=dtype)
    pred += y
    _, wall, cpu = timed(lambda: XAUC(pred, y))
    print(json.dumps([wall, cpu, peak() / 2**30]))


def main() -> None:
    torch.set_num_threads(1)
    table: list[list[Cell]] = []
    for metric, peer, theirs, sizes in CASES:
        table += [compare(metric, peer, theirs, n) for n in sizes]
    for kind in ("float64", "float32"):
        done = subprocess.run([sys.executable, __file__, kind], capture_output=True, text=True, check=True)
        wall, cpu, memory = json.loads(done.stdout)
        print(f"XAUC, {kind} {LARGE:,} {wall:.1f} s {memory:.1f} GiB", flush=True)
        table.append([f"XAUC, {kind}", LARGE, wall, cpu, None, None, None, None, memory])
    columns = ["what", "rows", "seconds", "CPU seconds", "peer", "peer's seconds", "ratio", "ratio of CPU", "peak GiB"]
    write(
        "xauc",
        "Exact XAUC against `scipy.stats.kendalltau` and NDCG against `sklearn.metrics.ndcg_score`: best of "
        f"{REPEATS} turns each. The aim is a ratio of 3 to kendalltau at 10⁷ rows, and of more than 1 to scikit-learn.",
        columns,
        table,
        [
            "Peak memory is that of the whole process, the rows and the libraries included.",
            "float32 rows have ties, which cost one more sort.",
        ],
        where=machine("numpy", "scipy", "scikit-learn", "torch"),
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        large(sys.argv[1])
    else:
        main()
