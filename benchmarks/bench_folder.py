"""`transun fit` on a folder of Parquet files that is larger than the memory it may take: the peak of its memory.

`python benchmarks/bench_folder.py --gigabytes 20` repeats one file under many names (hard links), which a reader cannot
know, until the folder has that size. Writes benchmarks/results/folder.json. The network is trained for a while
(`--budget`), because memory does not depend on how long it takes; everything else reads the folder from end to end.
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
from record import machine, write

LIMIT = 2 << 30  # bytes that the command may hold
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
    done = subprocess.run([sys.executable, "-c", script, *command], check=True, stdout=subprocess.PIPE, text=True)
    cpu, peak = json.loads(done.stdout)
    return Measured(time.perf_counter() - began, cpu, peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=0.5, help="size of the folder")
    parser.add_argument("--budget", default="60", help="seconds of training")
    parser.add_argument("--rows", type=int, default=1 << 18, help="rows of a file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        where = Path(temporary)
        file = first_file(where, arguments.rows)
        files = max(2, round(arguments.gigabytes * 1e9 / file.stat().st_size))
        size = links(file, where / "large", files)
        whole = fit(where / "large", where / "l", "--stream", "--test-share", "0.001", "--budget", arguments.budget)
    cells = [files * arguments.rows, files, size / 1e9, whole.wall, whole.cpu, whole.peak >> 20]
    write(
        "folder",
        f"`transun fit --stream` with a network: survey, {arguments.budget} seconds of training, certificate and "
        f"report. Aim: at most {LIMIT >> 20} MiB.",
        ["rows", "files", "GB of files", "seconds", "CPU seconds", "peak MiB"],
        [cells],
        [
            f"The folder is {size / whole.peak:.1f} times the memory that the process held at most, libraries "
            f"included: {'under' if whole.peak <= LIMIT else 'OVER'} the limit of {LIMIT >> 20} MiB."
        ],
        where=machine("torch", "pyarrow"),
        script=" ".join(["bench_folder.py", *sys.argv[1:]]),
    )
    print(*cells)


if __name__ == "__main__":
    main()
