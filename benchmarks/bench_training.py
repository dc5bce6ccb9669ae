"""Training speed on a CPU against a plain PyTorch loop, Lightning and DeepCTR-Torch: the same network, rows and epochs.

Writes benchmarks/results/training.json. Every measurement is a process of its own and the libraries take turns, so that
other work on the machine slows all of them down. Lightning and DeepCTR-Torch need not be installed here: TRANSUN_PEERS
names another Python that has them; a library that is missing there is left out with a note.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ.get("TRANSUN_THREADS", "1")  # before numpy and torch are imported

import contextlib
import importlib.util
import io
import json
import logging
import shutil
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from record import machine, write
from torch import Tensor, nn

from transun import Adam, EmbeddingMLP, LogMSE, LogSUN, Model, OrderLog, RowWise, fit
from transun.data import Dataset
from transun.heads import Head
from transun.training.engine import Compiled, Eager, Engine
from transun.training.optimisers import Optimiser
from transun.training.recipe import plain_recipe

LOG = OrderLog(orders=61_440, users=100_000, items=23_000, history=10)
TRAINED, WARM, BATCH, TURNS = 40_960, 2_560, 512, 3
DIM, HIDDEN = 16, (128, 64, 32)
BEST, SAME = "transun, RowWise", "transun, Adam"

Timed = tuple[float, Callable[[dict[str, Tensor]], Tensor]]  # seconds, and the log of 1 + y that it predicts


class Plain(nn.Module):
    """The network as one would write it by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleDict({name: nn.Embedding(size, DIM) for name, size in LOG.sizes.items()})
        for table in self.tables.values():
            nn.init.normal_(table.weight, std=0.05)
        widths = (5 * DIM + 1, *HIDDEN)
        layers = [part for a, b in pairwise(widths) for part in (nn.Linear(a, b), nn.ReLU())]
        self.layers = nn.Sequential(*layers, nn.Linear(widths[-1], 1))

    def forward(self, x: dict[str, Tensor]) -> Tensor:
        vectors = [self.tables[name](x[name]) for name in LOG.sizes]
        known = (x["history"] >= 0).unsqueeze(-1)
        past = (self.tables["item"](x["history"].clamp(min=0)) * known).sum(1) / known.sum(1).clamp(min=1)
        return self.layers(torch.cat([*vectors, past, x["log_price"].unsqueeze(-1)], 1)).squeeze(-1)


class Rows(torch.utils.data.Dataset):
    """Rows by number: one, or a list of them."""

    def __init__(self, data: Dataset) -> None:
        self.x, self.y = data.x, data.y

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, row: Any) -> tuple[dict[str, Tensor], Tensor]:
        return {name: column[row] for name, column in self.x.items()}, self.y[row]


def loader(data: Dataset, batched: bool) -> Any:
    rows, tools = Rows(data), torch.utils.data
    if not batched:
        return tools.DataLoader(rows, batch_size=BATCH, shuffle=True)
    sampler = tools.BatchSampler(tools.RandomSampler(rows), BATCH, drop_last=False)
    return tools.DataLoader(rows, sampler=sampler, batch_size=None)


def plain(data: Dataset, batched: bool, fused: bool | None = None) -> Timed:
    model = Plain()
    optimiser = torch.optim.Adam(model.parameters(), fused=fused)

    def epoch(rows: Dataset) -> None:
        for x, y in loader(rows, batched):
            loss = nn.functional.mse_loss(model(x), y.log1p())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    return timed(epoch, data), model


def lightning(data: Dataset, batched: bool) -> Timed:
    import lightning as pl

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = Plain()

        def training_step(self, batch: Any, _: int) -> Tensor:
            x, y = batch
            return nn.functional.mse_loss(self.model(x), y.log1p())

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters())

    module = Module()

    def epoch(rows: Dataset) -> None:
        quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
        trainer = pl.Trainer(max_epochs=1, accelerator="cpu", enable_model_summary=False, **quiet)
        trainer.fit(module, loader(rows, batched))

    return timed(epoch, data), module.model


def deepctr(data: Dataset, l2: float) -> Timed:
    from deepctr_torch.inputs import DenseFeat, SparseFeat, VarLenSparseFeat
    from deepctr_torch.models import WDL

    columns = [SparseFeat(name, size + 1, DIM) for name, size in LOG.sizes.items()]
    past = SparseFeat("history", LOG.items + 1, DIM, embedding_name="item")
    columns += [VarLenSparseFeat(past, LOG.history, combiner="mean"), DenseFeat("log_price", 1)]
    model = WDL([], columns, HIDDEN, l2_reg_linear=0.0, l2_reg_embedding=l2, task="regression")
    model.compile("adam", "mse")

    def arrays(x: dict[str, Tensor]) -> dict[str, Any]:  # it takes id 0 for padding
        return {name: (column if column.is_floating_point() else column + 1).numpy() for name, column in x.items()}

    def epoch(rows: Dataset) -> None:
        model.fit(arrays(rows.x), rows.y.log1p().numpy(), batch_size=BATCH, epochs=1, verbose=0)

    return timed(epoch, data), lambda x: torch.from_numpy(model.predict(arrays(x), BATCH)).squeeze(-1)


def ours(data: Dataset, seed: int, optimiser: Optimiser, head: Head, engine: Engine = Eager()) -> Timed:
    backbone = EmbeddingMLP(LOG.sizes, {"history": "item"}, ("log_price",), DIM, HIDDEN)
    model = Model(backbone, head, seed)

    def epoch(rows: Dataset) -> None:
        fit(model, rows, plain_recipe(optimiser=optimiser, batch_size=BATCH, engine=engine, seed=seed))

    return timed(epoch, data), lambda x: model.head.undebiased(model.raw(x)).log1p()


def timed(epoch: Callable[[Dataset], object], data: Dataset) -> float:
    """Seconds of one epoch, after a short one that makes whatever is made once.

    With one thread, those that the process was given: they are the clock's, less what other work on the machine took.
    """
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    epoch(data.take(torch.arange(WARM)))
    began = clock()
    epoch(data)
    return clock() - began


CONTESTANTS: dict[str, tuple[str, Callable[[Dataset, int], Timed]]] = {
    BEST: ("transun", lambda data, seed: ours(data, seed, RowWise(), LogMSE())),
    SAME: ("transun", lambda data, seed: ours(data, seed, Adam(), LogMSE())),
    "transun, RowWise, compiled": (
        "a C++ compiler",
        lambda data, seed: ours(data, seed, RowWise(), LogMSE(), Compiled()),
    ),
    "transun, RowWise, with the bias branch": (
        "transun",
        lambda data, seed: ours(data, seed, RowWise(), LogSUN(shared=1)),
    ),
    "plain loop, a row at a time": ("torch", lambda data, _: plain(data, batched=False)),
    "plain loop, batched sampler": ("torch", lambda data, _: plain(data, batched=True)),
    "plain loop, batched sampler, fused Adam": ("torch", lambda data, _: plain(data, batched=True, fused=True)),
    "Lightning, a row at a time": ("lightning", lambda data, _: lightning(data, batched=False)),
    "Lightning, batched sampler": ("lightning", lambda data, _: lightning(data, batched=True)),
    "DeepCTR-Torch, as it comes": ("deepctr_torch", lambda data, _: deepctr(data, 1e-5)),
    "DeepCTR-Torch, no penalty": ("deepctr_torch", lambda data, _: deepctr(data, 0.0)),
}


def there(need: str) -> bool:
    return bool(shutil.which("g++")) if need == "a C++ compiler" else importlib.util.find_spec(need) is not None


def turn(name: str, seed: int) -> dict[str, float | str]:
    """Run in a process of its own: train once, and judge by rows that nobody trained on."""
    warnings.simplefilter("ignore")
    torch.manual_seed(seed)
    need, run = CONTESTANTS[name]
    if not there(need):
        return {"missing": need}
    data, test = LOG.dataset(stop=TRAINED), LOG.dataset(TRAINED)
    with contextlib.redirect_stdout(io.StringIO()):
        seconds, predict = run(data, seed)
    with torch.no_grad():
        loss = nn.functional.mse_loss(predict(test.x), test.y.log1p()).item()
    return {"rate": TRAINED / seconds, "loss": loss}


def turns() -> Iterator[tuple[str, dict[str, Any]]]:
    peers = os.environ.get("TRANSUN_PEERS", sys.executable)
    path = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1] / "src")}
    missing: set[str] = set()
    for seed in range(TURNS):
        for name, (need, _) in CONTESTANTS.items():
            if need in missing:
                continue
            python = peers if need in ("lightning", "deepctr_torch") else sys.executable
            command = [python, __file__, name, str(seed)]
            done = subprocess.run(command, capture_output=True, text=True, env=path)
            if done.returncode:
                raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
            found = json.loads(done.stdout.strip().splitlines()[-1])
            missing |= {need} if "missing" in found else set()
            yield name, found


def main() -> None:
    rates: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    losses: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    notes = [
        f"{TRAINED:,} simulated orders of {LOG.users:,} users and {LOG.items:,} items with up to {LOG.history} past "
        f"items, price, hour and weekday; embeddings of {DIM}, layers {HIDDEN}, batches of {BATCH}, one epoch; "
        f"{TURNS} turns of each, a process a turn, taking turns. Ratios are medians over rounds. Seconds are those of "
        "the process, which runs on one thread: what else the machine does is not counted.",
        "All minimise squares of ln(1 + y). The loss is that of 20,480 rows which nobody trained on, the median turn; "
        "of the model with the bias branch, that of its first branch.",
        "Everybody but RowWise trains with Adam at its usual rate. Not counted: a first short epoch, in which the "
        "compiled model also makes its program.",
        "DeepCTR-Torch is its WDL without the wide part, which is this network; as it comes, it penalises whole tables "
        "in every step. It starts weights at a deviation of 0.0001, so that its first epoch gets less far.",
    ]
    for name, found in turns():
        if "missing" in found:
            notes.append(f"{found['missing']} is not installed and was left out.")
            continue
        print(f"{name}: {found['rate']:,.0f} rows/s, loss {found['loss']:.4f}", flush=True)
        rates[name].append(found["rate"])
        losses[name].append(found["loss"])
    rows = [
        [
            name,
            round(statistics.median(found)),
            round(statistics.median(losses[name]), 4),
            *(
                round(statistics.median(a / b for a, b in zip(rates[side], found, strict=True)), 2)
                for side in (BEST, SAME)
            ),
        ]
        for name, found in rates.items()
        if found
    ]
    write(
        "training",
        "Rows a second that train one network on a CPU, and how many times as fast transun is. Aim: 5 times a plain "
        "PyTorch loop, 5 times DeepCTR-Torch, 2 times Lightning, to the same loss.",
        ["who", "rows a second", "test loss", "times slower than RowWise", "than our Adam"],
        rows,
        notes,
        where=machine("torch", threads=torch.get_num_threads()),
    )


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    if len(sys.argv) > 1:
        print(json.dumps(turn(sys.argv[1], int(sys.argv[2]))))
    else:
        main()
