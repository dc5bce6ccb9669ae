"""Exact XAUC on a GPU, where the tensors are, against the same on its CPU. Needs torch and numpy alone.

`python benchmarks/bench_gpu_metrics.py --out DIR` writes DIR/gpu_metrics.json; without a GPU it says so and ends.
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))  # the machine with the GPU has no installed package

import torch
from record import RESULTS, Cell, machine, write

from transun.metrics import XAUC

SIZES = (10**6, 10**7, 10**8)
REPEATS = 5
ON_CPU = 10**7  # rows up to which the CPU is timed as well


def rows(n: int, ties: bool) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator("cuda").manual_seed(0)
    y = torch.empty(n, device="cuda").exponential_(generator=generator)
    pred = y + torch.randn(n, device="cuda", generator=generator)
    # Prices and seconds repeat: two digits after the point, and a third of zeros.
    return (pred, (100 * y).round() / 100 * (y > 0.4)) if ties else (pred, y)


def main(folder: Path) -> None:
    table: list[list[Cell]] = []
    for n in SIZES:
        for ties in (False, True):
            pred, y = rows(n, ties)
            value = XAUC(pred, y)  # the first call also loads the kernels
            torch.cuda.reset_peak_memory_stats()
            seconds = []
            for _ in range(REPEATS):
                torch.cuda.synchronize()
                began = time.perf_counter()
                again = XAUC(pred, y)
                torch.cuda.synchronize()
                seconds.append(time.perf_counter() - began)
                assert again == value
            memory = torch.cuda.max_memory_allocated() / 2**30
            on_cpu = ratio = None
            if n <= ON_CPU:
                host, host_y = pred.cpu(), y.cpu()
                began = time.perf_counter()
                expected = XAUC(host, host_y)
                on_cpu = time.perf_counter() - began
                assert abs(expected - value) < 1e-12, (expected, value)
                ratio = on_cpu / min(seconds)
            name = "rounded targets, a third zero" if ties else "float32 as drawn"
            print(f"{name} {n:,} {min(seconds):.4f} s, {memory:.2f} GiB, CPU {on_cpu}", flush=True)
            table.append([name, n, value, min(seconds), sorted(seconds)[REPEATS // 2], memory, on_cpu, ratio])
            del pred, y
            torch.cuda.empty_cache()
    columns = ["rows", "number", "XAUC", "seconds, best", "seconds, median", "peak GiB", "seconds on its CPU", "ratio"]
    write(
        "gpu_metrics",
        "Exact XAUC of tensors on a GPU: three stable sorts and one pass per bit, nothing leaves the device. "
        "The aim is 10⁸ rows in seconds.",
        columns,
        table,
        [f"Where the CPU was timed, once and with one thread, both values agree to 12 digits. {REPEATS} repeats."],
        where=f"{torch.cuda.get_device_name()}, {machine('torch', 'numpy')}",
        folder=folder,
        script="bench_gpu_metrics.py",
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=RESULTS)
    folder = parser.parse_args().out
    torch.set_num_threads(1)
    if torch.cuda.is_available():
        main(folder)
    else:
        print("no GPU here: run this on a machine that has one")
