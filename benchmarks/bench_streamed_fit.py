"""What a row costs in `transun fit` when it is streamed from Parquet files, against rows held in memory.

Writes benchmarks/results/streamed_fit.json. Both ways are run on the same few files and on one tiny file, in turns, and
the time of all threads is counted, so that other work on the machine disturbs neither. The start of the command and the
report take the same time for any number of rows, so that the cost of a row is the difference of the two runs over that
of their rows.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench_folder import Measured, first_file, fit, links
from record import Cell, machine, write

TINY = 1 << 12  # rows of the tiny file
WAYS = {"in memory": "--no-stream", "streamed": "--stream"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1 << 15, help="rows of a file")
    parser.add_argument("--files", type=int, default=4, help="how many files there are")
    parser.add_argument("--turns", type=int, default=3, help="how often both ways take turns")
    arguments = parser.parse_args()
    rows = arguments.files * arguments.rows
    turns: list[dict[str, tuple[Measured, float]]] = []
    with tempfile.TemporaryDirectory() as temporary:
        where = Path(temporary)
        for name, count, of_file in (("tiny", 1, TINY), ("folder", arguments.files, arguments.rows)):
            links(first_file(where, of_file), where / name, count)
            (where / "part-00000.parquet").unlink()
        for _ in range(arguments.turns):
            turn = {}
            for way, option in WAYS.items():
                tiny, whole = (fit(where / name, where / "model", option) for name in ("tiny", "folder"))
                turn[way] = (whole, 1e6 * (whole.cpu - tiny.cpu) / (rows - TINY))
            turns.append(turn)
            print({way: round(cost, 2) for way, (_, cost) in turn.items()}, flush=True)
    ratios = sorted(turn["streamed"][1] / turn["in memory"][1] for turn in turns)
    table: list[list[Cell]] = []
    for way in WAYS:
        runs = [turn[way][0] for turn in turns]
        cost, ratio = median(turn[way][1] for turn in turns), median(ratios) if way == "streamed" else 1.0
        wall, peak = median(run.wall for run in runs), max(run.peak for run in runs) >> 20
        table.append([way, rows, wall, cost, peak, ratio])
    write(
        "streamed_fit",
        "`transun fit` with a network of one epoch, survey and certificate included: rows in memory against the same "
        f"rows streamed; the medians of {arguments.turns} turns. Aim: at most 1.3 times the time of a row in memory.",
        ["rows are", "rows", "seconds", "µs of CPU a row", "peak MiB", "times in memory"],
        table,
        [f"The ratio of a turn went from {ratios[0]:.2f} to {ratios[-1]:.2f}."],
        where=machine("torch", "pyarrow"),
        script=" ".join(["bench_streamed_fit.py", *sys.argv[1:]]),
    )


if __name__ == "__main__":
    main()
