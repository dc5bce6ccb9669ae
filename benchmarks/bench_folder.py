"""`transun fit` on a folder of Parquet files that is larger than memory: peak memory, and time per row against memory.

`python benchmarks/bench_folder.py --gigabytes 20` repeats one file under many names (hard links), which a reader cannot
know, until the folder has that size. Writes benchmarks/results/folder.json. A part of the folder that fits is trained
on in memory and streamed; both take turns and count the time of all threads, so that other work on the machine disturbs
neither. The whole folder is trained on for a while (`--budget`), because memory does not depend on how long it takes.
Memory is that of the command's own process.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy and torch are imported

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from record import Cell, machine, write

NUMBERS, GROUP = 8, 1 << 16
SETTINGS = ["--target", "gmv", "--head", "LogSUN(shared=1)", "--epochs", "1", "--batch-size", "2048", "--no-progress"]


class Measured(NamedTuple):
    """Seconds by the wall clock and of all threads, and the largest number of bytes held."""

    wall: float
    cpu: float
    peak: int


def first_file(folder: Path, rows: int) -> Path:
    rng = np.random.default_rng(0)
    item = rng.integers(0, 50_000, rows)
    columns = {"item_id": item, "shop": rng.choice(["a", "b", "c"], rows)}
    columns |= {f"number_{i}": rng.normal(size=rows) for i in range(NUMBERS)}
    columns["gmv"] = np.exp(0.3 * columns["number_0"] + 0.1 * (item % 7) + 0.8 * rng.normal(size=rows))
    path = folder / "part-00000.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=GROUP)
    return path


def links(file: Path, folder: Path, count: int) -> int:
    """A folder with the file under so many names; its bytes."""
    folder.mkdir()
    for number in range(count):
        os.link(file, folder / f"part-{number:05d}.parquet")
    return count * file.stat().st_size


def fit(folder: Path, out: Path, *options: str) -> Measured:
    """Run the command in a process of its own, and measure it."""
    # A process between the two, because getrusage tells the peak of all children together.
    script = (
        "import json, resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss * 1024]))"
    )
    command = [sys.executable, "-m", "transun", "fit", str(folder), *SETTINGS, "--out", str(out), *options]
    began = time.perf_counter()
    found = subprocess.run([sys.executable, "-c", script, *command], check=True, capture_output=True, text=True)
    cpu, peak = json.loads(found.stdout)
    return Measured(time.perf_counter() - began, cpu, peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=0.5, help="size of the large folder")
    parser.add_argument("--budget", default="60", help="seconds of training on it")
    parser.add_argument("--rows", type=int, default=1 << 18, help="rows of a file")
    parser.add_argument("--compared", type=int, default=4, help="files to train on in memory too")
    parser.add_argument("--turns", type=int, default=2, help="how often both ways of these take turns")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        where = Path(temporary)
        file = first_file(where, arguments.rows)
        small, large = where / "small", where / "large"
        files = max(2, round(arguments.gigabytes * 1e9 / file.stat().st_size))
        few = min(arguments.compared, files)
        links(file, small, few)
        size = links(file, large, files)
        turns = [
            (fit(small, where / "m", "--no-stream"), fit(small, where / "s", "--stream"))
            for _ in range(arguments.turns)
        ]
        in_memory, streamed = (min(side, key=lambda one: one.cpu) for side in zip(*turns, strict=True))
        whole = fit(large, where / "l", "--stream", "--test-share", "0.001", "--budget", arguments.budget)
    measured = (("in memory", few, in_memory), ("streamed", few, streamed), ("streamed, for a while", files, whole))
    rows: list[list[Cell]] = []
    for name, number, of in measured:
        count = number * arguments.rows
        rows.append([name, count, number * size // files >> 20, of.wall, 1e6 * of.cpu / count, of.peak >> 20])
    ratio = rows[1][4] / rows[0][4]  # type: ignore[operator]
    write(
        "folder",
        "`transun fit` with a network of one epoch: survey, training, certificate and report.",
        ["rows are", "rows", "MiB of files", "seconds", "µs of CPU a row", "peak MiB"],
        rows,
        [
            f"On the same rows, a streamed fit takes {ratio:.2f} times the CPU time of one in memory; both include the "
            "start of the command, some seconds.",
        ],
        where=machine("torch", "pyarrow"),
        script=" ".join(["bench_folder.py", *sys.argv[1:]]),
    )
    print(*rows, f"ratio {ratio:.2f}", sep="\n")


if __name__ == "__main__":
    main()
