"""Kills trainings and reproductions at random moments and checks that nothing is lost: `make kills`.

Every round starts `transun fit` in a fresh folder, or in one with an older model, and ends it by SIGKILL: after a
random time, or before a random one of the calls that sync, rename or remove a file. Some resumed runs are killed once
more. Then:

- the folder holds no model, the older one or the new one, whole;
- the same command with --resume ends in the weights of a run that was never killed;
- no temporary file is left.

With --reproductions, `transun-paper reproduce` is killed as well: the same command, given again, ends in the report of
a run that was never killed.

The processes are forked from this one, so that importing torch, most of the time of a short training, is paid for once.
The state of training is saved twenty times a second instead of once a minute, so that most kills meet such a file.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from transun.cli import main as transun
from transun.models.description import describe_model, is_saved_model
from transun.tables import load
from transun.training import resume
from transun_paper.cli import main as transun_paper

_PERIOD = 0.05
# A short reproduction of many runs, all of them synthetic.
_REPRODUCTION = "synthetic"


def write_orders(path: Path, rows: int = 1_500) -> None:
    """A table of skewed amounts."""
    rng = random.Random(0)
    lines = ["shop,price,gmv"]
    for _ in range(rows):
        price = rng.uniform(1, 20)
        lines.append(f"{rng.randrange(30)},{price:.2f},{price * rng.lognormvariate(0, 1):.2f}")
    path.write_text("\n".join(lines) + "\n")


def run(folder: Path, out: str, epochs: int, killed_before: int | None) -> None:
    """`transun fit --resume` in this process, which is killed before the file operation with this number."""
    torch.set_num_threads(1)
    resume._PERIOD = _PERIOD
    os.chdir(folder)
    if killed_before is not None:
        die_before_file_operation(killed_before)
    sys.argv = ["transun", "fit", "orders.csv", "--target", "gmv", "--head", "Scaled(LogSUN())", "--out", out]
    sys.argv += ["--epochs", str(epochs), "--patience", "100", "--resume", "--no-progress"]
    silently(transun)


def silently(command: Callable[[], None]) -> None:
    """Call a command without its output."""
    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        command()


def reproduce(out: Path, killed_before: int | None) -> None:
    """`transun-paper reproduce` in this process, which is killed before the file operation with this number."""
    torch.set_num_threads(1)
    if killed_before is not None:
        die_before_file_operation(killed_before)
    sys.argv = ["transun-paper", "reproduce", _REPRODUCTION, "--quick", "--jobs", "1", "--out", str(out)]
    silently(transun_paper)


def die_before_file_operation(number: int) -> None:
    """Let this process kill itself before the call with this number that syncs, renames or removes a file."""
    calls = 0

    def deadly(function):  # type: ignore[no-untyped-def]
        def call(*arguments, **named):  # type: ignore[no-untyped-def]
            nonlocal calls
            calls += 1
            if calls > number:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **named)

        return call

    for name in ("fsync", "replace", "rename", "unlink", "remove"):
        setattr(os, name, deadly(getattr(os, name)))


def fit(folder: Path, out: str, epochs: int, after: float | None = None, killed_before: int | None = None) -> float:
    """Train in a process of its own; see `killed`."""
    return killed(f"transun fit --out {out}", run, (folder, out, epochs, killed_before), after, killed_before)


def killed(
    name: str, target: Callable[..., None], arguments: tuple[Any, ...], after: float | None, killed_before: int | None
) -> float:
    """Run a function in a process of its own and kill it `after` so many seconds; the seconds that it took.

    A process that is not killed has to succeed.
    """
    process = multiprocessing.get_context("fork").Process(target=target, args=arguments)
    began = time.perf_counter()
    process.start()
    process.join(after)
    process.kill()
    process.join()
    if process.exitcode not in (0, -signal.SIGKILL) or (process.exitcode and after is None and killed_before is None):
        raise SystemExit(f"{name} ended with exit code {process.exitcode}")
    return time.perf_counter() - began


def weights(folder: Path) -> str | None:
    """The checksum of the weights of the model in the folder, after loading it; None without a model."""
    if not is_saved_model(folder):
        return None
    # In a process of its own: libraries start threads, which a process that forks must not have.
    process = multiprocessing.get_context("fork").Process(target=load, args=(folder,))
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{folder} holds half a model")
    return describe_model(folder).weights


def temporary_files(folder: Path) -> list[str]:
    """What an unfinished write leaves behind."""
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix in (".tmp", ".pt")]


def one_round(folder: Path, out: str, chance: random.Random, seconds: float, older: str, expected: str) -> str:
    """Kill a training once or twice, resume it, and compare; says how it was killed."""
    replaces = chance.random() < 0.5
    if replaces:
        fit(folder, out, epochs=1)
    times = chance.choice([1, 1, 2])
    for _ in range(times):
        if chance.random() < 0.5:
            fit(folder, out, epochs=8, after=chance.uniform(0.0, seconds))
        else:
            fit(folder, out, epochs=8, killed_before=chance.randrange(60))
        between = weights(folder / out)
        if between not in ({older, expected} if replaces else {None, expected}):
            raise SystemExit(f"{out} holds neither the older model nor the new one")
    left = temporary_files(folder / out)
    fit(folder, out, epochs=8)
    if weights(folder / out) != expected:
        raise SystemExit(f"{out}: the resumed training ended in other weights")
    if still := temporary_files(folder / out):
        raise SystemExit(f"{out}: the next run left {', '.join(still)}")
    before = "a folder with an older model" if replaces else "a fresh folder"
    return (
        f"killed {'twice' if times == 2 else 'once'} in {before}, {len(left)} temporary files removed by the next run"
    )


def report_of(out: Path) -> dict[str, Any] | None:
    """The report of a reproduction, without the seconds that it took; None where none was written."""
    path = out / f"{_REPRODUCTION}.json"
    if not path.is_file():
        return None
    report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    del report["seconds"]
    return report


def reproduction_round(out: Path, chance: random.Random, seconds: float, expected: dict[str, Any]) -> str:
    """Kill a reproduction once or twice, continue it, and compare; says how it was killed."""
    times = chance.choice([1, 1, 2])
    for _ in range(times):
        if chance.random() < 0.5:
            killed("transun-paper", reproduce, (out, None), chance.uniform(0.0, seconds), None)
        else:
            before = chance.randrange(200)
            killed("transun-paper", reproduce, (out, before), None, before)
        if report_of(out) not in (None, expected):
            raise SystemExit(f"{out.name}: a killed reproduction wrote another report")
    kept = len(list((out / "runs").glob("*.json")))
    killed("transun-paper", reproduce, (out, None), None, None)
    if report_of(out) != expected:
        raise SystemExit(f"{out.name}: the continued reproduction ended in another report")
    if still := temporary_files(out):
        raise SystemExit(f"{out.name}: the next run left {', '.join(still)}")
    return f"reproduction killed {'twice' if times == 2 else 'once'}, {kept} runs kept"


def main() -> None:
    """The rounds, and what they amount to."""
    parser = argparse.ArgumentParser(description="Kill trainings at random moments, and resume them.")
    parser.add_argument("--kills", type=int, default=50, help="how many trainings are killed")
    parser.add_argument("--reproductions", type=int, default=0, help="how many reproductions are killed")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    options = parser.parse_args()
    torch.set_num_threads(1)
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_orders(folder / "orders.csv")
        fit(folder, "older", epochs=1)
        seconds = fit(folder, "expected", epochs=8)
        older, expected = weights(folder / "older"), weights(folder / "expected")
        if older is None or expected is None:
            raise SystemExit("a training that nobody killed left no model")
        began = time.perf_counter()
        for number in range(options.kills):
            line = one_round(folder, f"round-{number}", chance, seconds, older, expected)
            print(f"{number + 1}: {line}", flush=True)
        if options.reproductions:
            seconds = killed("transun-paper", reproduce, (folder / "reproduced", None), None, None)
            report = report_of(folder / "reproduced")
            if report is None:
                raise SystemExit("a reproduction that nobody killed left no report")
            for number in range(options.reproductions):
                line = reproduction_round(folder / f"reproduction-{number}", chance, seconds, report)
                print(f"{number + 1}: {line}", flush=True)
    rounds = options.kills + options.reproductions
    print(f"{rounds} rounds in {time.perf_counter() - began:.0f} s: none corrupt, none different, nothing left")


if __name__ == "__main__":
    main()
