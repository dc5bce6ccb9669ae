"""What `import transun` adds to `import torch`, and how long `transun --help` takes: processes in turns.

Writes benchmarks/results/startup.json. Wall seconds are of a machine with warm disk caches; CPU seconds leave out
what other processes took. What a name adds to torch is measured inside a process that has just imported torch, because
the time of that import differs by more from one process to the next.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from record import Cell, machine, write

TURNS = 5
COMMAND = str(Path(sys.executable).parent / "transun")
PYTHON = {"python": "pass", "import transun": "import transun", "import torch": "import torch"}
NAMES = ("import transun", "import transun; transun.LogSUN", "import transun; transun.train", "from transun import *")
COUNTED = "import time, torch\nbegan = time.process_time()\n{}\nprint(time.process_time() - began)"
AFTER_TORCH = {f"import torch; {code}": COUNTED.format(code) for code in NAMES}
COMMANDS = ["--help", "--version", "fit --help", "diagnose --help", "predict --help", "evaluate --help"]
OVER_TORCH = 0.3
HELP = 0.5


def timed(call: list[str]) -> tuple[float, float, str]:
    """Wall and CPU seconds of a process, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    printed = subprocess.run(call, check=True, capture_output=True, text=True).stdout
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, printed


def imports_torch(arguments: str) -> bool:
    """Whether a command imports torch."""
    code = (
        "import sys; sys.argv = ['transun', *sys.argv[1:]]\n"
        "from transun.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('torch' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments.split()], check=True, capture_output=True, text=True)
    return done.stderr.strip().endswith("True")


def main() -> None:
    calls = {name: [sys.executable, "-c", code] for name, code in (PYTHON | AFTER_TORCH).items()}
    calls |= {f"transun {arguments}": [COMMAND, *arguments.split()] for arguments in COMMANDS}
    times: dict[str, list[tuple[float, float, str]]] = {name: [] for name in calls}
    for turn in range(TURNS + 1):
        for name, call in calls.items():
            measured = timed(call)
            if turn:  # the first turn only warms the caches
                times[name].append(measured)
    rows: list[list[Cell]] = []
    for name, turns in times.items():
        wall, cpu = statistics.median(w for w, _, _ in turns), statistics.median(c for _, c, _ in turns)
        over = statistics.median(float(printed) for _, _, printed in turns) if name in AFTER_TORCH else None
        least = min(w for w, _, _ in turns)
        torch = imports_torch(name.removeprefix("transun ")) if name.startswith("transun ") else None
        rows.append([name, least, wall, cpu, over, torch])
        print(*rows[-1], flush=True)
    added = max(float(row[4]) for row in rows if row[4] is not None)  # type: ignore[arg-type]
    helps = max(float(row[3]) for row in rows if str(row[0]).endswith("--help"))  # type: ignore[arg-type]
    write(
        "startup",
        f"Start-up: what `import transun` and its names add to `import torch` (the aim is under {OVER_TORCH} s), and "
        f"the time of `transun --help` (under {HELP} s, without importing torch). {TURNS} turns of all of them.",
        ["what", "seconds, best", "seconds, median", "CPU seconds", "CPU seconds over torch", "imports torch"],
        rows,
        [
            "`import transun` alone imports nothing: names are found on first use.",
            f"The most that a name adds is {added:.2f} s of CPU; the slowest help takes {helps:.2f} s of CPU.",
        ],
        where=machine("torch", "typer"),
    )


if __name__ == "__main__":
    main()
