"""The industrial-shape table: a simulated order log, DIN, all orders and the 30 % of highest value."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transun.backbones import DIN
from transun.data import OrderLog
from transun.heads import Head
from transun.metrics import Metric, metric_named
from transun.metrics.paired import leave_out
from transun.models.network import Model
from transun.models.spec import dumps, loads
from transun.training.evaluation import predict
from transun.training.optimisers import AdagradDecay
from transun.training.recipe import Recipe
from transun_paper.lab.compare import Reports
from transun_paper.lab.computation import Computation
from transun_paper.lab.measures import values
from transun_paper.lab.protocol import Study
from transun_paper.lab.run import NAMES, fit_run, lab_recipe
from transun_paper.lab.store import Store
from transun_paper.tables.findings import Answer, TestRows, best_of, better
from transun_paper.tables.table import ERRORS, FIVE, Keys, PaperRow, leaderboard_row, table_report, table_row

_COLUMNS = ("STRE", *FIVE)
_MEASURED: tuple[Metric, ...] = tuple(map(metric_named, _COLUMNS))
# The paper trains on five sixths of its orders; the top orders are those of highest value.
_TRAINED, _TOP = 5 / 6, 0.3
_NAMES = ("MSE", "LogMSE", "LogMAE", "WLR", "ZILN", "MDME", "TPM", "CREAD", "OptDist")
_ROWS = (
    *(leaderboard_row(name, "-", name) for name in _NAMES),
    leaderboard_row("LogSUN", "-", "LogSUN, shared embedding"),
)
# A sixteenth of the paper's width, which a CPU can train in seconds; rate, optimiser and one epoch are the paper's.
_HIDDEN = (256, 128, 64)
_TRAINING = lab_recipe(optimiser=AdagradDecay(), epochs=1, batch_size=64, patience=None)
_FULL, _QUICK = {"orders": 60_000, "seeds": 5}, {"orders": 6_000, "seeds": 2}


def compute(arguments: Mapping[str, Any], cache: Path) -> dict[str, Any]:
    """Train one method on the log with one seed; metrics of the test rows and of the top orders among them."""
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


def cost(arguments: Mapping[str, Any], cache: Path) -> float:
    """Orders, times branches."""
    head: Head = loads(arguments["head"])
    return float(arguments["orders"] * (1 + len(head.branches)))


def _measured(pred: Tensor, y: Tensor) -> dict[str, Any]:
    return {"metrics": values(_MEASURED, pred, y), "left_out": leave_out(_MEASURED, pred, y)}


class IndustrialTable:
    """All orders, and the top 30 % of them."""

    name = "industrial"
    title = "All methods on a simulated order log with DIN"

    def datasets(self, available: Iterable[str]) -> list[str]:
        """None: the orders are simulated."""
        return []

    def studies(self, keys: Keys, quick: bool = False) -> list[Study]:
        """None: the reports of runs have no metrics of the top orders."""
        return []

    def computations(self, keys: Keys, quick: bool = False) -> list[Computation]:
        """One training per method and seed."""
        return [seed for seeds in self._computations(quick).values() for seed in seeds]

    def report(self, store: Store, keys: Keys, quick: bool = False) -> dict[str, Any]:
        """Both tables, the paper's, and the answers."""
        reports = {name: _read(store, seeds) for name, seeds in self._computations(quick).items()}
        tables, claims = [], []
        for title, rows in {"all orders": TestRows(), "top 30 % of orders": TestRows(("top",))}.items():
            against = {name: ("LogSUN", "-") for name in reports if name[0] != "LogSUN"}
            entries = [table_row(name, reports, _COLUMNS, rows, against.get(name)) for name in reports]
            tables.append({"dataset": title, "rows": entries})
            claims += _claims(rows, {name: seeds for (name, _), seeds in reports.items()}, title)
        setting = _QUICK if quick else _FULL
        statement = (
            f"{setting['orders']:,} simulated orders (`transun.data.OrderLog`), five sixths to train; DIN with dense "
            f"layers of {', '.join(map(str, _HIDDEN))} (the paper: 132,657,136 orders and 1024, 512, 256). "
            f"AdagradDecay 0.01, batch {_TRAINING.batch_size} and one epoch are the paper's, weights are averaged (EMA "
            f"0.99), the embedding is shared between branches, {setting['seeds']} seeds. No rate is tuned: no rows "
            "choose anything."
        )
        labels = ("comp_sota_indus",)
        return table_report(self.name, self.title, statement, _COLUMNS, tables, claims, labels, TestRows.noise)

    def _computations(self, quick: bool) -> dict[tuple[str, str], list[Computation]]:
        setting = _QUICK if quick else _FULL
        return {row.id: [training(row, setting["orders"], seed) for seed in range(setting["seeds"])] for row in _ROWS}


def training(row: PaperRow, orders: int, seed: int) -> Computation:
    """The training of a row on so many orders with a seed."""
    return Computation(
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


def _read(store: Store, seeds: list[Computation]) -> list[dict[str, Any]]:
    """The reports of all seeds; none where one is missing."""
    return [store.read(seed.text) for seed in seeds] if all(seed.text in store for seed in seeds) else []


def _claims(rows: TestRows, reports: Mapping[str, Reports], where: str) -> list[Answer]:
    ranking = better(rows, reports["LogSUN"], reports["LogMSE"], "XAUC")
    return [
        *[
            Answer.of(f"LogSUN has the best {metric} of all methods", where, best_of(rows, "LogSUN", reports, metric))
            for metric in ERRORS
        ],
        Answer.of("LogSUN ranks better than LogMSE (XAUC)", where, ranking),
    ]


INDUSTRIAL = IndustrialTable()
