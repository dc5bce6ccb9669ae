"""The industrial-shape table: a simulated order log, DIN, all orders and the 30 % of highest value."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transun.backbones import DIN
from transun.data import OrderLog
from transun.metrics import MRE, NMAE, NRMSE, STRE, TRE, XAUC, Metric
from transun.metrics.paired import leave_out
from transun.models.network import Model
from transun.models.spec import dumps, loads
from transun.training.evaluation import predict
from transun.training.optimisers import AdagradDecay
from transun.training.recipe import Recipe
from transun_paper.lab.compare import Reports
from transun_paper.lab.measures import values
from transun_paper.lab.protocol import Study
from transun_paper.lab.run import NAMES, fit_run, lab_recipe
from transun_paper.lab.store import Store
from transun_paper.tables.jobs import Job
from transun_paper.tables.judge import Answer, TestRows, answers, best_of, less
from transun_paper.tables.table import FIVE, Keys, Row, entry, framed, listed

_METRICS: tuple[Metric, ...] = (TRE, STRE, MRE, NRMSE, NMAE, XAUC)
_COLUMNS = ("STRE", *FIVE)
# The paper trains on five sixths of its orders; the top orders are those of highest value.
_TRAINED, _TOP = 5 / 6, 0.3
_NAMES = ("MSE", "LogMSE", "LogMAE", "WLR", "ZILN", "MDME", "TPM", "CREAD", "OptDist")
_ROWS = (
    *(listed(name, "-", name) for name in _NAMES),
    listed("LogSUN", "-", "LogSUN, shared embedding"),
)
# A sixteenth of the paper's width, which a CPU can train in seconds; rate, optimiser and one epoch are the paper's.
_HIDDEN = (256, 128, 64)
_TRAINING = lab_recipe(optimiser=AdagradDecay(), epochs=1, batch_size=64, patience=None)
_FULL, _QUICK = {"orders": 60_000, "seeds": 5}, {"orders": 6_000, "seeds": 2}


def compute(arguments: Mapping[str, Any], cache: Path) -> dict[str, Any]:
    """Train one method on the log with one seed; metrics of the test rows and of the top ones among them."""
    log = OrderLog(orders=arguments["orders"], history=arguments["history"])
    recipe: Recipe = loads(arguments["training"], NAMES)
    end = round(_TRAINED * log.orders)
    train, test = log.dataset(stop=end), log.dataset(end)
    backbone = DIN(log.sizes, numeric=("log_price",), history={"history": "item"}, hidden=arguments["hidden"])
    model = Model(backbone, loads(arguments["head"]), arguments["seed"])
    try:
        history = fit_run(model, train, recipe)
    except (FloatingPointError, ValueError) as error:
        return {"failed": str(error)}
    pred, truth = predict(model, test), log.truth(end)
    top = test.y >= torch.quantile(test.y.double(), 1.0 - _TOP).float()
    return {
        **_measured(pred, test.y),
        "top": _measured(pred[top], test.y[top]),
        "distance": float((pred - truth).double().square().mean().sqrt() / truth.double().mean()),
        "share_of_top": float(test.y[top].double().sum() / test.y.double().sum()),
        "seconds": history.seconds,
        "data": {"name": "simulated orders", "train": len(train), "test": len(test)},
    }


def _measured(pred: Tensor, y: Tensor) -> dict[str, Any]:
    return {"metrics": values(_METRICS, pred, y), "left_out": leave_out(_METRICS, pred, y)}


class IndustrialTable:
    """All orders, and the top 30 % of them."""

    name = "industrial"
    title = "All methods on a simulated order log with DIN"

    def studies(self, keys: Keys, quick: bool = False) -> list[Study]:
        """No runs: the top orders' errors are not in their reports."""
        return []

    def jobs(self, keys: Keys, quick: bool = False) -> list[Job]:
        """One job a method and seed."""
        return [job for jobs in self._jobs(quick).values() for job in jobs]

    def report(self, store: Store, keys: Keys, quick: bool = False) -> dict[str, Any]:
        """Both tables, the paper's, and the answers."""
        found = {name: _read(store, jobs) for name, jobs in self._jobs(quick).items()}
        tables, claims = [], []
        for title, rows in {"all orders": TestRows(), "top 30 % of orders": TestRows(("top",))}.items():
            base = {name: ("LogSUN", "-") for name in found if name[0] != "LogSUN"}
            entries = [entry(name, found, _COLUMNS, rows, base.get(name)) for name in found]
            tables.append({"dataset": title, "rows": entries})
            claims += _claims(rows, {name: reports for (name, _), reports in found.items()}, title)
        setting = _QUICK if quick else _FULL
        statement = (
            f"{setting['orders']:,} simulated orders (`transun.data.OrderLog`), five sixths to train; DIN with dense "
            f"layers of {', '.join(map(str, _HIDDEN))} (the paper: 132,657,136 orders and 1024, 512, 256). "
            f"AdagradDecay 0.01, batch {_TRAINING.batch_size} and one epoch are the paper's, weights are averaged (EMA "
            f"0.99), the embedding is shared between branches, {setting['seeds']} seeds. No rate is tuned and no rows "
            "choose anything."
        )
        return framed(self.name, self.title, statement, _COLUMNS, tables, claims, ("comp_sota_indus",), TestRows.noise)

    def _jobs(self, quick: bool) -> dict[tuple[str, str], list[Job]]:
        setting = _QUICK if quick else _FULL
        return {row.id: [_job(row, setting["orders"], seed) for seed in range(setting["seeds"])] for row in _ROWS}


def _job(row: Row, orders: int, seed: int) -> Job:
    return Job(
        "industrial",
        {
            "head": dumps(row.head),
            "orders": orders,
            "history": 10,
            "hidden": list(_HIDDEN),
            "training": dumps(_TRAINING),
            "seed": seed,
        },
    )


def _read(store: Store, jobs: list[Job]) -> list[dict[str, Any]]:
    return [store.read(job.text) for job in jobs] if all(job.text in store for job in jobs) else []


def _claims(rows: TestRows, found: Mapping[str, Reports], where: str) -> list[Answer]:
    result = [
        answer
        for metric in ("TRE", "MRE", "NRMSE", "NMAE")
        for answer in answers(
            f"LogSUN has the best {metric} of all methods", [(where, best_of(rows, "LogSUN", found, metric))]
        )
    ]
    finding = less(rows, found["LogSUN"], found["LogMSE"], "XAUC")
    return result + answers("LogSUN ranks better than LogMSE (XAUC)", [(where, finding)])


TABLE = IndustrialTable()
