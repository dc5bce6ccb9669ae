"""Training by several ranks: rows a second, bytes that a rank sends in a step, and whether the losses stay the same.

Runs from a bare checkout with torch and numpy alone (`PYTHONPATH=src python benchmarks/bench_ranks.py --out DIR`) and
writes DIR/ranks.json, by default benchmarks/results. torchrun starts the ranks; with `--device cuda` and fewer GPUs
than ranks, the ranks share a GPU and talk by gloo through the CPU, since NCCL wants a GPU for each.

The time and the bytes of a step are the difference of a long and a short training over the difference of their steps,
so that neither the start nor copying the weights of rank 0 counts. Both take turns, after a training that is not timed,
because it imports, compiles and allocates; the median of the turns is reported.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, cast

import record
import torch
from torch import Tensor

from transun import Adam, Compiled, EmbeddingMLP, LogSUN, Model, OrderLog, RowWise, fit
from transun.backbones import sharding
from transun.data import Dataset
from transun.support.group import Group, current_group
from transun.training import History
from transun.training.recipe import plain_recipe

_SHORT = 10  # steps of the short training


@dataclass(frozen=True)
class Setting:
    """What is trained: ids of the largest table, rows a step over all ranks, the longest history; and how long."""

    ids: int
    batch: int
    history: int
    steps: int
    turns: int
    sharded: bool
    device: str
    engine: str


def work(setting: Setting) -> dict[str, Any]:
    """Train on this rank, short and long in turns, and return what was measured."""
    group = current_group()
    log = OrderLog(
        orders=setting.batch * 8, users=setting.ids, items=max(1000, setting.ids // 5), history=setting.history
    )
    rows = log.dataset().to(setting.device)
    lookups, distinct = _ids(rows, setting.batch, group)
    _train(setting, log, rows, _SHORT)
    seconds = []
    for _ in range(setting.turns):
        short = _train(setting, log, rows, _SHORT)
        long = _train(setting, log, rows, _SHORT + setting.steps)
        seconds.append((long.seconds - short.seconds) / setting.steps)
    return {
        "seconds": statistics.median(seconds),
        "bytes": (long.history.bytes_sent - short.history.bytes_sent) / setting.steps,
        "losses": [step.loss for step in long.history.steps[:_SHORT]],
        "lookups": lookups,
        "distinct": distinct,
        "dense": long.dense,
        "table_mib": long.table_bytes / 2**20,
        "peak_mib": (torch.cuda.max_memory_allocated() if setting.device == "cuda" else record.peak()) / 2**20,
    }


def _ids(rows: Dataset, batch: int, group: Group) -> tuple[float, float]:
    """Look-ups of a row in the tables of users and items, and distinct ids of them in this rank's part of a batch."""
    start, stop = group.cut(batch)
    lookups, distinct = [], []
    for part in rows.batches(batch):
        x = cast(Mapping[str, Tensor], part.x)
        users, items = x["user"], x["item"].unsqueeze(1)
        if "history" in x:
            items = torch.cat([items, x["history"]], 1)
        lookups.append(1.0 + float((items >= 0).sum()) / batch)
        own = items[start:stop]
        distinct.append(len(torch.unique(users[start:stop])) + len(torch.unique(own[own >= 0])))
    return statistics.fmean(lookups), statistics.fmean(distinct)


class Trained(NamedTuple):
    """A training: its seconds, its history, bytes of the tables on this rank, and numbers in all other parameters."""

    seconds: float
    history: History
    table_bytes: int
    dense: int


def _train(setting: Setting, log: OrderLog, rows: Dataset, steps: int) -> Trained:
    """Train for so many steps."""
    network = EmbeddingMLP(log.sizes, {"history": "item"} if log.history else {}, ("log_price",))
    with torch.device(setting.device), sharding(least=1000) if setting.sharded else nullcontext():
        model = Model(network, LogSUN(shared=1))
    engine = {"engine": Compiled("bfloat16")} if setting.engine == "compiled" else {}
    epochs = -(-steps // 8)
    recipe = plain_recipe(optimiser=RowWise(0.01, dense=Adam()), epochs=epochs, batch_size=setting.batch, **engine)
    began = _clock(setting.device)
    history = fit(model, _First(rows, steps), recipe, progress=False)
    seconds = _clock(setting.device) - began
    tables = {name: weight for name, weight in model.named_parameters() if ".tables." in name}
    dense = sum(weight.numel() for name, weight in model.named_parameters() if name not in tables)
    return Trained(seconds, history, sum(table.numel() * table.element_size() for table in tables.values()), dense)


def _clock(device: str) -> float:
    """On a GPU the clock, once it is idle; on a CPU the time of this process, so that other work does not count."""
    if device == "cuda":
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


class _First:
    """The first so many batches of a data set, over all epochs."""

    def __init__(self, rows: Dataset, steps: int) -> None:
        self.rows, self.left = rows, steps

    def __len__(self) -> int:
        return len(self.rows)

    def targets(self) -> torch.Tensor:
        return self.rows.targets()

    def batches(self, size: int, *, seed: int | None = None) -> Any:
        for batch in self.rows.batches(size, seed=seed):
            if not self.left:
                return
            self.left -= 1
            yield batch


def launch(ranks: int, setting: Setting) -> list[dict[str, Any]]:
    """What each rank has measured."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", __file__]
        command += ["--worker", json.dumps(asdict(setting)), "--out", folder]
        subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
        return [json.loads((Path(folder) / f"{rank}.json").read_text()) for rank in range(ranks)]


def row(setting: Setting, measured: list[dict[str, Any]], alone: list[dict[str, Any]]) -> list[record.Cell]:
    """One line of the table: the slowest rank counts."""
    seconds, reference = (max(rank["seconds"] for rank in ranks) for ranks in (measured, alone))
    pairs = zip(measured[0]["losses"], alone[0]["losses"], strict=True)
    return [
        len(measured),
        setting.ids,
        setting.batch,
        "sharded" if setting.sharded else "copied",
        round(setting.batch / seconds),
        round(reference / seconds, 2),
        round(max(rank["bytes"] for rank in measured)),
        round(measured[0]["lookups"], 2),
        round(max(rank["distinct"] for rank in measured)),
        measured[0]["dense"],
        max(abs(mine / other - 1.0) for mine, other in pairs),
        round(max(rank["table_mib"] for rank in measured), 1),
        round(max(rank["peak_mib"] for rank in measured)),
    ]


COLUMNS = (
    "ranks",
    "ids",
    "rows a step",
    "tables",
    "rows a second",
    "times one rank",
    "bytes a rank sends in a step",
    "look-ups a row",
    "distinct ids of a rank in a step",
    "dense parameters",
    "largest relative difference of a loss",
    "MiB of tables on a rank",
    "most MiB of a rank",
)


def main() -> None:
    """Measure every setting with every number of ranks, or be one of the ranks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--ids", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--batch", type=int, nargs="+", default=[4096])
    parser.add_argument("--history", type=int, nargs="+", default=[20], help="longest list of past items of a row")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--engine", choices=["eager", "compiled"], default="eager")
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    parser.add_argument("--name", default="ranks")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        result = work(Setting(**json.loads(options.worker)))
        (options.out / f"{current_group().rank}.json").write_text(json.dumps(result))
        return
    rows: list[list[record.Cell]] = []
    for ids, history, batch in product(options.ids, options.history, options.batch):
        alone: list[dict[str, Any]] = []
        copied = [(ranks, False) for ranks in options.ranks]
        for ranks, sharded in [*copied, *((ranks, True) for ranks in options.ranks if ranks > 1)]:
            times = (options.steps, options.turns)
            setting = Setting(ids, batch, history, *times, sharded, options.device, options.engine)
            measured = launch(ranks, setting)
            alone = alone or measured
            rows.append(row(setting, measured, alone))
            print(dict(zip(COLUMNS, rows[-1], strict=True)), flush=True)
    where = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    record.write(
        options.name,
        "One training by several ranks that share every batch: EmbeddingMLP with LogSUN(shared=1) and RowWise",
        COLUMNS,
        rows,
        [
            f"{where}; {options.engine}; tables of 16 numbers a row; one thread a rank.",
            "The time of a step is that of the slowest rank, the median of "
            + (
                f"{options.turns} turns by the clock. Ranks that share a GPU take turns on it, and gloo sends their "
                "numbers through the CPU: more rows a second come with more GPUs."
                if options.device == "cuda"
                else f"{options.turns} turns by its CPU time, so that neither other work on the machine nor waiting "
                "for other ranks counts: it is what ranks with a processor each would take, were sending free."
            ),
        ],
        where=record.machine("torch", "numpy"),
        folder=options.out,
        script=" ".join(["bench_ranks.py", *sys.argv[1:]]),
    )


if __name__ == "__main__":
    main()
