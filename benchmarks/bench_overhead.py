"""What the bias branch costs in training on a CPU: LogSUN against LogMSE on one network, step by step in turn.

Writes benchmarks/results/overhead.json. The columns are those of the Globo sessions (ten ids, one list of items) with
random rows, as time does not depend on their values. All models of a case take the same step of `fit` one after
another, then the next step in a rotated order: other work on the machine slows all of them down.
"""

import os

os.environ["OMP_NUM_THREADS"] = "2"  # before torch is imported; each measurement sets its own number below that

import json
import math
import statistics
import time
from collections.abc import Iterator
from functools import cache
from itertools import count, islice, pairwise

import torch
from record import RESULTS, Cell, machine, write
from torch import Tensor

from transun import Adam, EmbeddingMLP, LogMSE, LogSUN, Model, RowWise
from transun.data import Dataset
from transun.support.group import Group
from transun.training.batches import BatchPart, own_parts
from transun.training.engine import Compiled, Eager, Engine
from transun.training.loop import TrainStep
from transun.training.optimisers import Optimiser

BATCH, STEPS, SKIPPED = 512, 300, 20
HIDDEN, DIM = (128, 64, 32), 16
SMALL = {"environment": 4, "device": 6, "os": 9, "country": 12, "region": 29, "referrer": 8}
SMALL |= {"start_day": 18, "start_hour": 25, "n_clicks": 7}
ITEMS, LIST = 42_427, 10
USERS = {"123k ids": 80_455, "362k ids, as Globo": 319_530}
SHARED = (1, 2, 3, 4)
# What the leaderboard calls them: the paper's way of sharing, and two that cost less.
LEADERBOARD = RESULTS.parent.parent / "paper" / "reports" / "leaderboard.json"
PUBLISHED, CHEAPER = "LogSUN, shared embedding", {3: "LogSUN, 3 of 4 stages shared", 4: "LogSUN, all stages shared"}


def sessions(users: int, rows: int, seed: int = 0) -> tuple[EmbeddingMLP, Dataset]:
    """Rows with Globo's columns, and the paper's network over them; popular ids are drawn more often."""
    draw = torch.Generator().manual_seed(seed)

    def ids(size: int, *shape: int) -> Tensor:
        return (torch.rand(shape, generator=draw).square() * size).long()

    sizes = {"user_id": users} | SMALL
    x = {name: ids(size, rows) for name, size in sizes.items()}
    length = 1 + torch.rand(rows, 1, generator=draw).pow(3).mul(LIST).long()  # a session has one to ten items
    x["item"] = ids(ITEMS, rows, LIST).masked_fill(torch.arange(LIST) >= length, -1)
    y = torch.randn(rows, generator=draw).mul(1.2).add(5.0).exp()
    return EmbeddingMLP(sizes, {"item": ITEMS}, dim=DIM, hidden=HIDDEN), Dataset(x, y)


def train_step(model: Model, data: Dataset, optimiser: Optimiser, engine: Engine) -> TrainStep:
    """The step of `fit` for this model."""
    model.prepare(data.targets().double()).train()
    return TrainStep(optimiser.on(model, engine), None, engine.loss_function(model, BATCH), None)


def batches(data: Dataset) -> Iterator[BatchPart]:
    """Epoch after epoch."""
    for epoch in count():
        yield from own_parts(data, Group(), BATCH, seed=epoch)


def compare(case: str, optimiser: Optimiser, threads: int, engine: Engine = Eager()) -> list[list[Cell]]:
    torch.set_num_threads(threads)
    # With one thread, the time that the process was given: the clock's, less what other work on the machine took.
    clock = time.process_time if threads == 1 else time.perf_counter
    backbone, data = sessions(USERS[case], BATCH * 20)
    models = {0: Model(backbone, LogMSE())} | {shared: Model(backbone, LogSUN(shared=shared)) for shared in SHARED}
    sides = {shared: train_step(model, data, optimiser, engine) for shared, model in models.items()}
    times: dict[int, list[float]] = {shared: [] for shared in sides}
    order = list(sides)
    for rows in islice(batches(data), SKIPPED + STEPS):
        for shared in order:
            began = clock()
            sides[shared](rows)
            times[shared].append(1e3 * (clock() - began))
        order = order[1:] + order[:1]
    plain = times.pop(0)[SKIPPED:]  # the first steps compile, and make what the optimiser keeps
    found: list[list[Cell]] = []
    for shared, with_branch in times.items():
        ratios = sorted(100 * (b / a - 1) for a, b in zip(plain, with_branch[SKIPPED:], strict=True))
        # Order statistics around the median: the true one lies between them with 95 % probability.
        margin, middle = round(len(ratios) ** 0.5), len(ratios) // 2
        percent = [round(ratios[place], 1) for place in (middle, middle - margin, middle + margin)]
        least = 100 * 3 * arithmetic(backbone, shared, BATCH) / statistics.median(plain)  # forward, twice as much back
        step = round(statistics.median(plain), 2)
        kinds = type(optimiser).__name__, type(engine).__name__
        found.append([case, *kinds, threads, shared, step, *percent, round(least, 1)])
        print(*found[-1], flush=True)
    return found


def arithmetic(backbone: EmbeddingMLP, shared: int, rows: int) -> float:
    """Milliseconds that the branch's multiplications for one pass over its layers take at the machine's best."""
    widths = (backbone._embedded(), *HIDDEN, 1)[shared - 1 :]
    return rows * sum(inside * outside for inside, outside in pairwise(widths)) / best_rate(torch.get_num_threads())


@cache
def best_rate(threads: int) -> float:
    """Multiplications with addition a millisecond, as reached by a product of large matrices."""
    matrix, times = torch.randn(1024, 1024), []
    for _ in range(30):
        began = time.perf_counter()
        matrix @ matrix
        times.append(1e3 * (time.perf_counter() - began))
    return 1024**3 / min(times)


def accuracy(name: str) -> str:
    """NRMSE of a method on the leaderboard over that with a shared embedding: per cent more, paired by seed."""
    found = []
    for table in json.loads(LEADERBOARD.read_text(encoding="utf-8"))["tables"]:
        seeds = {entry["method"]: entry["seeds"]["NRMSE"] for entry in table["entries"] if "seeds" in entry}
        more = [100 * (one / other - 1) for one, other in zip(seeds[name], seeds[PUBLISHED], strict=True)]
        error = statistics.stdev(more) / math.sqrt(len(more))
        found.append(f"{table['dataset']} {statistics.mean(more):+.2f} ± {error:.2f}")
    return ", ".join(found)


def main() -> None:
    small, large = USERS
    rows = [
        *compare(small, Adam(), 1),
        *compare(large, Adam(), 1),
        *compare(small, RowWise(), 1),
        *compare(small, Adam(), 2),
        *compare(small, RowWise(), 2),
        *compare(small, RowWise(), 1, Compiled()),
    ]
    write(
        "overhead",
        "Time of a training step with the bias branch, LogSUN(shared=1) to LogSUN(shared=4), over that of LogMSE on "
        f"the same network: embeddings of {DIM}, layers {HIDDEN}, batches of {BATCH}, on a CPU. Aim: at most 6 %.",
        [
            "tables",
            "optimiser",
            "engine",
            "threads",
            "shared stages",
            "ms a step without",
            "overhead %",
            "from",
            "to",
            "least %",
        ],
        rows,
        [
            "One thread: by the time of the process, so that other work on the machine counts less; two: by the clock.",
            f"Median of {STEPS} ratios of neighbouring steps, all models in turn, with its 95 % interval.",
            "Shared stages: 1 is the embedding alone, as the paper shares; 4 leaves the branch its output layer.",
            "The least is the branch's multiplications at the rate of a product of large matrices, over a step without "
            "it: with the embedding alone shared the branch is a second tower of the same widths.",
            "What sharing costs in accuracy, by the leaderboard's protocol: NRMSE in per cent more than with a shared "
            "embedding, mean and standard error of five paired seeds. "
            + "; ".join(f"{shared} stages: {accuracy(name)}" for shared, name in CHEAPER.items())
            + ".",
            "The dearer the rest of a step, the smaller the share: dense Adam moves every row of every table, RowWise "
            "those of the batch.",
        ],
        where=machine("torch", threads=2),
    )


if __name__ == "__main__":
    main()
