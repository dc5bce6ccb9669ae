"""What the ranks of a test do; a module of its own, because other processes must be able to import it."""

import contextlib
import io
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from shop import orders
from transun.backbones import Backbone, EmbeddingMLP, sharding
from transun.backbones.sharded import shards_in
from transun.cli import main
from transun.data import Batch, Dataset, Features, Id, OrderLog, read_table
from transun.diagnosis.evaluation import evaluate_held_out
from transun.heads import Head, LogMSE
from transun.metrics import metric_named
from transun.models.checkpoint import load_model, save_model
from transun.models.network import Model
from transun.models.row_intervals import RowIntervals
from transun.support.group import current_group
from transun.tables import TableModel, load
from transun.training.batches import LocalRows
from transun.training.calibration import balance
from transun.training.evaluation import measure
from transun.training.loop import fit
from transun.training.optimisers import RowWise
from transun.training.recipe import Recipe, plain_recipe

LOG = OrderLog(orders=800, users=700, items=600, history=3)
TRAIN, VALID, TEST = LOG.dataset(stop=257), LOG.dataset(257, 500), LOG.dataset(500)


@dataclass(frozen=True)
class Case:
    """A model and how it is trained, in double precision: then ranks differ by rounding alone, which is tiny."""

    backbone: Backbone
    head: Head
    recipe: Recipe
    weighted: bool = False

    def model(self) -> Model:
        torch.manual_seed(0)
        return Model(self.backbone, self.head).double()

    def rows(self) -> Dataset:
        return Dataset(TRAIN.x, TRAIN.y, torch.arange(257.0) % 5 if self.weighted else None)


@dataclass(frozen=True)
class Outcome:
    """What a training leaves behind, as plain numbers."""

    losses: list[dict[str, float]]
    checks: list[dict[str, float]]
    rows: int
    weights: list[float]
    total: float
    bytes_sent: int


def train(case: Case) -> Outcome:
    """Train, balance, and measure the total of test rows, by all ranks together."""
    group = current_group()
    model, rows = case.model(), case.rows()
    history = fit(model, rows, case.recipe, valid=VALID)
    balanced = balance(model, rows, VALID, group=group)
    total = measure(balanced, TEST, batch_size=100, group=group).compute()["PGR"]
    return _outcome(model, history, total)


def train_shards(case: Case, counts: list[int]) -> Outcome:
    """Train on rows of which every rank holds some, so many on each."""
    group = current_group()
    start = sum(counts[: group.rank])
    own = case.rows().take(torch.arange(start, start + counts[group.rank])) if counts[group.rank] else None
    model = case.model()
    history = fit(model, LocalRows(own), case.recipe)
    total = measure(model, TEST, batch_size=100, group=group).compute()["PGR"]
    return _outcome(model, history, total)


class ShardedOrder:
    """In one process, the batches that ranks with so many rows each put together, in the order of the rows."""

    def __init__(self, rows: Dataset, counts: list[int]) -> None:
        self.rows, self.counts = rows, counts

    def __len__(self) -> int:
        return len(self.rows)

    def targets(self) -> Any:
        return self.rows.targets()

    def batches(self, size: int, *, seed: int | None = None) -> Any:
        steps = -(-len(self) // size)
        starts = [sum(self.counts[:rank]) for rank in range(len(self.counts))]
        orders = [_own_order(count, seed) for count in self.counts]
        for step in range(steps):
            picked = [
                start + order[count * step // steps : count * (step + 1) // steps]
                for start, count, order in zip(starts, self.counts, orders, strict=True)
            ]
            taken = self.rows.take(torch.cat(picked))
            yield Batch(taken.x, taken.y, taken.weight)


def _own_order(count: int, seed: int | None) -> Any:
    if not count:
        return torch.zeros(0, dtype=torch.int64)
    numbers = Dataset(torch.zeros(count, 1), torch.arange(float(count)))
    return torch.cat([batch.y for batch in numbers.batches(count, seed=seed)]).long()


def _outcome(model: Model, history: Any, total: float) -> Outcome:
    return Outcome(
        [step.terms for step in history.steps],
        [check.values for check in history.checks],
        history.rows,
        torch.cat([value.double().flatten() for value in model.state_dict().values()]).tolist(),
        total,
        history.bytes_sent,
    )


def train_interrupted(case: Case, file: str, step: int | None) -> tuple[int, Outcome | None]:
    """Train with a file for the state; the last rank gets Ctrl-C in the given step. Returns the steps done first."""
    group = current_group()
    model, steps = case.model(), []

    def on_step(taken: Any) -> None:
        steps.append(taken.step)
        if taken.step == step and group.rank == group.size - 1:
            signal.raise_signal(signal.SIGINT)

    try:
        history = fit(model, case.rows(), case.recipe, valid=VALID, resume=file, on_step=on_step)
    except KeyboardInterrupt:
        return steps[-1] + 1, None
    return steps[-1] + 1, _outcome(model, history, 0.0)


class Recorder:
    """A tracker that keeps what it is given."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, dict[str, float]]] = []

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self.calls.append((step, dict(values)))


def train_tracked(case: Case, everywhere: bool) -> list[tuple[int, dict[str, float]]]:
    """Train with a tracker on every rank or on rank 0 alone, and return what the tracker of this rank got."""
    recorder = Recorder()
    tracker = recorder if everywhere or current_group().leads else None
    fit(case.model(), case.rows(), case.recipe, valid=VALID, tracker=tracker)
    return recorder.calls


def torch_metrics(names: list[str], pred: torch.Tensor, y: torch.Tensor, counts: list[int]) -> dict[str, float]:
    """Metrics by torchmetrics, of rows of which every rank has some, so many on each."""
    from transun.integrations.torchmetrics import TorchMetric

    rank = current_group().rank
    own = slice(sum(counts[:rank]), sum(counts[: rank + 1]))
    values = {}
    for name in names:
        metric = TorchMetric(metric_named(name))
        metric.update(pred[own], y[own])
        values[name] = metric.compute().item()
    return values


def count_bytes(size: int, sharded: bool = False) -> int:
    """Bytes that this rank sends while it trains on the same ids, of tables with so many rows."""
    ids = torch.arange(128) * 7 % 300
    data = Dataset({"item": ids, "other": ids.flip(0)}, ids + 1.0)
    network = EmbeddingMLP({"item": size, "other": size}, dim=4, hidden=(8,))
    with sharding(least=100) if sharded else contextlib.nullcontext():
        model = Model(network, LogMSE())
    return fit(model, data, plain_recipe(optimiser=RowWise(0.1), batch_size=32)).bytes_sent


def train_sharded(case: Case, folder: str) -> tuple[Outcome, list[int], float]:
    """Train with tables spread over the ranks, save the model; also the rows here, and the total after loading them."""
    with sharding(least=100):
        model = case.model()
    history = fit(model, case.rows(), case.recipe, valid=VALID)
    save_model(model, folder)
    total = measure(model, TEST, batch_size=100, group=current_group()).compute()["PGR"]
    with sharding(least=100):
        again = load_model(folder)
    loaded = measure(again, TEST, batch_size=100, group=current_group()).compute()["PGR"]
    return _outcome(model, history, total), [len(table.weight) for table in shards_in(model).values()], loaded


def save_sharded(folder: str) -> bool:
    """Save a table model whose tables are spread over the ranks; whether anything is in the folder of this rank."""
    with sharding(least=100):
        model = Model(EmbeddingMLP({"item": 101}, dim=4, hidden=(8,)), LogMSE()).prepare(torch.tensor([1.0, 2.0]))
    features = Features({"item": Id()}).fit({"item": [str(number) for number in range(100)]})
    intervals = RowIntervals.of(np.arange(1.0, 100.0), np.arange(1.0, 100.0))
    own = Path(folder, str(current_group().rank))
    TableModel(features, model, "gmv", intervals=intervals).save(own)
    return own.exists()


def certify(folder: str, rows: int) -> dict[str, float]:
    """The metrics of a certificate about the first so many test rows, predicted by all ranks in double precision."""
    model = load(folder)
    model.model.double()
    table = read_table(orders(rows, seed=5))
    return {each.name: each.value for each in evaluate_held_out(model, table, group=current_group()).metrics}


def run_command(arguments: list[str]) -> tuple[int, str]:
    """The exit code of a command and what it prints on this rank."""
    os.environ["RANK"] = str(current_group().rank)
    printed, sys.argv, stdout = io.StringIO(), ["transun", *arguments], sys.stdout
    try:
        with contextlib.redirect_stdout(printed):
            main()
    except SystemExit as end:
        return int(end.code or 0), printed.getvalue()
    finally:
        sys.stdout = stdout
        del os.environ["RANK"]
    return 0, printed.getvalue()


def exchange_everything(rows: list[int]) -> dict[str, Any]:
    """Every method of a group, with so many rows on each rank: what it returns here."""
    group = current_group()
    own = torch.arange(rows[group.rank]) + 10 * group.rank
    numbers = (own.double() + 1.0).requires_grad_()
    joined = group.join(numbers)
    (joined.square().sum() * (group.rank + 1)).backward()
    counts = [rows[group.rank] if rank == group.size - 1 else 0 for rank in range(group.size)]
    sent, incoming = group.exchange(own, counts)
    ones = [torch.ones(2, 2), torch.ones(3, dtype=torch.float64)]
    group.sum_in_place(ones)
    try:
        failure = ""
        group.from_leader(lambda: int("no number"))
    except ValueError as error:
        failure = str(error)
    start = torch.full((2,), float(group.rank))
    group.copy_from_leader([start])
    return {
        "sum": group.sum(torch.tensor([group.rank, 1])).tolist(),
        "sums": [tensor.tolist() for tensor in ones],
        "gather": [part.tolist() for part in group.gather(own)],
        "objects": group.gather_objects(str(group.rank)),
        "any": group.any(group.rank == 1, False),
        "cut": group.cut(7),
        "joined": joined.tolist(),
        "gradient": numbers.grad.tolist(),  # type: ignore[union-attr]
        "exchange": (sent.tolist(), incoming),
        "leader": group.from_leader(lambda: group.rank),
        "failure": failure,
        "start": start.tolist(),
    }
