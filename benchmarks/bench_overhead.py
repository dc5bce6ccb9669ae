"""What the bias branch costs in training on a CPU: LogSUN(shared=1) against LogMSE, by `fit`, taking turns.

Writes benchmarks/results/overhead.json. The columns are those of the Globo sessions (ten ids, one list of items) with
random rows, as time does not depend on what they say. A step is timed by `fit`'s own call after it; the first steps of
a turn, in which the optimiser makes its state, are left out.
"""

import os

os.environ["OMP_NUM_THREADS"] = "2"  # before torch is imported; each measurement sets its own number below that

import statistics
import time
from functools import cache
from itertools import pairwise

import torch
from record import machine, write
from torch import Tensor

from transun import Adam, EmbeddingMLP, LogMSE, LogSUN, Model, RowWise, fit
from transun.data import Dataset
from transun.engine import Compiled, Eager, Engine
from transun.optimisers import Optimiser

BATCH, STEPS, SKIPPED, PAIRS = 512, 20, 4, 11
HIDDEN, DIM = (128, 64, 32), 16
SMALL = {"environment": 4, "device": 6, "os": 9, "country": 12, "region": 29, "referrer": 8}
SMALL |= {"start_day": 18, "start_hour": 25, "n_clicks": 7}
ITEMS, LIST = 42_427, 10
USERS = {"123k ids": 80_455, "362k ids, as Globo": 319_530}


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


def one_turn(model: Model, data: Dataset, optimiser: Optimiser, engine: Engine, seed: int) -> float:
    """Milliseconds of the median step."""
    # With one thread, the time that the process was given: the clock's, less what other work on the machine took.
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    moments: list[float] = []
    fit(
        model,
        data,
        optimiser=optimiser,
        engine=engine,
        batch_size=BATCH,
        seed=seed,
        on_step=lambda _: moments.append(clock()),
    )
    return 1e3 * statistics.median(after - before for before, after in pairwise(moments[SKIPPED:]))


def compare(
    case: str, optimiser: Optimiser, threads: int, shared: int = 1, engine: Engine = Eager(), pairs: int = PAIRS
) -> list[object]:
    torch.set_num_threads(threads)
    backbone, data = sessions(USERS[case], BATCH * STEPS)
    models = [Model(backbone, LogMSE()), Model(backbone, LogSUN(shared=shared))]
    for model in models:
        one_turn(model, data, optimiser, engine, 0)
    without, with_branch = [], []
    for pair in range(pairs):
        sides = [(models[0], without), (models[1], with_branch)]
        for model, times in sides if pair % 2 else sides[::-1]:
            times.append(one_turn(model, data, optimiser, engine, pair))
    ratios = sorted(b / a for a, b in zip(without, with_branch, strict=True))
    # Order statistics around the median: with 11 pairs the true median lies within with 93 % probability.
    margin = round(pairs**0.5)
    low, high = ratios[pairs // 2 - margin], ratios[pairs // 2 + margin]
    plain = statistics.median(without)
    percent = [round(100 * (ratio - 1), 1) for ratio in (statistics.median(ratios), low, high)]
    floor = round(100 * 3 * arithmetic(backbone, shared, BATCH) / plain, 1)  # forward, and twice as much back
    row = [case, type(optimiser).__name__, type(engine).__name__, threads, shared, round(plain, 2), *percent, floor]
    print(*row, flush=True)
    return row


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


def main() -> None:
    small = next(iter(USERS))
    rows = [compare(case, Adam(), 1) for case in USERS]
    rows += [compare(small, RowWise(), 1)]
    rows += [compare(small, optimiser, 2) for optimiser in (Adam(), RowWise())]
    rows += [compare(small, RowWise(), 1, shared) for shared in (2, 3, 4)]
    rows += [compare(small, optimiser, 1, engine=Compiled()) for optimiser in (Adam(), RowWise())]
    write(
        "overhead",
        "Time of a training step with the bias branch, LogSUN(shared=1), over that of LogMSE on the same network: "
        f"embeddings of {DIM}, layers {HIDDEN}, batches of {BATCH}, by fit on a CPU. Aim: at most 6 %.",
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
            f"Median of {PAIRS} ratios of neighbouring turns, each the median of {STEPS - SKIPPED - 1} steps, with its "
            "93 % interval.",
            "The least is the branch's multiplications at the rate of a product of large matrices, over a step without "
            "it: the branch is a second tower of the same widths, so joining towers removes calls but no arithmetic.",
            "The dearer the rest of a step, the smaller the share: dense Adam moves every row of every table, RowWise "
            "those of the batch.",
        ],
        where=machine("torch", threads=2),
    )


if __name__ == "__main__":
    main()
