"""The industrial table: a simulated order log, DIN, all orders and the 30 % of highest value, at two sizes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transun.backbones import DIN
from transun.data import OrderLog, OrderStream
from transun.heads import Head
from transun.metrics import FLOORED, Metric, bin_by_prediction, bin_by_target, metric_named
from transun.metrics.paired import leave_out
from transun.models.network import Model
from transun.models.spec import dumps, loads
from transun.training.engine import Compiled
from transun.training.evaluation import predict_with_kappa
from transun.training.optimisers import AdagradDecay, Adam, RowWise, linear
from transun.training.recipe import Recipe, plain_recipe
from transun_paper.lab.compare import Reports
from transun_paper.lab.computation import Computation
from transun_paper.lab.measures import bins_with_slope, values
from transun_paper.lab.protocol import Study
from transun_paper.lab.run import NAMES, fit_run, lab_recipe
from transun_paper.lab.store import Store
from transun_paper.tables.causes import beats_the_truth
from transun_paper.tables.figures import bin_answers, figure_report, mean_bins
from transun_paper.tables.findings import Answer, Side, TestRows, able, best_of, best_rival, better
from transun_paper.tables.table import (
    ERRORS,
    FIVE,
    PAPER_METHODS,
    Keys,
    PaperRow,
    leaderboard_row,
    table_report,
    table_row,
)

_COLUMNS = ("STRE", *FIVE)
_MEASURED: tuple[Metric, ...] = tuple(map(metric_named, _COLUMNS))
# The top orders are those of highest value.
_TOP = 0.3
_BINS = 20
# LogSUN and what it is compared with come first, so that a GPU that is lent for so long only has them.
_NAMES = ("LogSUN", "LogMSE", "MSE", "LogMAE", "WLR", "ZILN", "MDME", "TPM", "CREAD", "OptDist")
# As the paper does at scale, the branches of LogSUN share the embedding.
_METHODS = PAPER_METHODS | {"LogSUN": "LogSUN, shared embedding"}
_ROWS = tuple(leaderboard_row(name, "-", _METHODS.get(name, name)) for name in _NAMES)
# What a model of one feature, and a model that knows everything, would score.
_PRICE, _TRUTH = "log_price alone", "the truth E[y|x]"


@dataclass(frozen=True)
class Size:
    """How large the log and the network are, and how they are trained.

    Args:
        train: orders to train on.
        test: orders after them.
        users: users of the log.
        items: items of the log.
        history: past items of an order, at most.
        hidden: widths of the dense layers.
        recipe: how every method is trained.
        seeds: how often.

    """

    train: int
    test: int
    users: int
    items: int
    history: int
    hidden: tuple[int, ...]
    recipe: Recipe
    seeds: int

    def arguments(self, head: str, seed: int) -> dict[str, Any]:
        """The arguments of the computation of one method with one seed."""
        sizes = {name: getattr(self, name) for name in ("train", "test", "users", "items", "history")}
        return {
            "head": head,
            **sizes,
            "hidden": list(self.hidden),
            "training": dumps(self.recipe),
            "seed": seed,
        }


# The paper's log: five sixths of 132,657,136 orders are trained on. Batches are a thousand times the paper's, which a
# GPU needs, hence row-wise Adagrad for the tables and Adam for the dense layers in place of AdagradDecay.
PAPER_SIZE = Size(
    train=110_547_613,
    test=1 << 20,
    users=67_729_869,
    items=14_538_759,
    history=20,
    hidden=(1024, 512, 256),
    recipe=plain_recipe(
        optimiser=RowWise(1e-2, dense=Adam(1e-3)),
        batch_size=1 << 16,
        decay=linear,
        engine=Compiled("bfloat16"),
        device="cuda",
    ),
    seeds=5,
)
# What a CPU trains in a minute; rate, optimiser, batch and the one epoch are the paper's.
_PAPER_RECIPE = lab_recipe(optimiser=AdagradDecay(), epochs=1, batch_size=64, patience=None)
CPU_SIZE = Size(333_333, 66_667, 5_000, 2_000, 10, (256, 128, 64), _PAPER_RECIPE, 5)
QUICK_SIZE = Size(5_000, 1_000, 5_000, 2_000, 10, (64, 32), _PAPER_RECIPE, 2)


@dataclass(frozen=True)
class Predicted:
    """Predictions of the test orders with their targets and true means, (n,) each, on the CPU; or why there are none.

    `slope` is κ of the bias branch, None where the method has none.
    """

    pred: Tensor
    y: Tensor
    truth: Tensor
    slope: Tensor | None
    seconds: float
    train: int


def compute(arguments: Mapping[str, Any], cache: Path) -> dict[str, Any]:
    """Train one method on the log with one seed; metrics of the test rows and of the top orders among them."""
    try:
        return measured(train_and_predict(arguments))
    except (FloatingPointError, ValueError) as error:
        return {"failed": str(error)}


def train_and_predict(arguments: Mapping[str, Any]) -> Predicted:
    """The predictions of one method, or of a reference, where the recipe says."""
    recipe: Recipe = loads(arguments["training"], NAMES)
    device, end = recipe.device or "cpu", arguments["train"]
    log = OrderLog(end + arguments["test"], arguments["users"], arguments["items"], arguments["history"])
    y, truth, price = _test_orders(log, end, device)
    if arguments["head"] in _REFERENCES:
        pred = _REFERENCES[arguments["head"]](y, truth, price)
        return Predicted(pred, y, truth, None, 0.0, end)
    with torch.device(device):  # tables of gigabytes are made where they are used
        backbone = DIN(log.sizes, numeric=("log_price",), history={"history": "item"}, hidden=arguments["hidden"])
        model = Model(backbone, loads(arguments["head"]), arguments["seed"])
    history = fit_run(model, OrderStream(log, device, stop=end), recipe)
    pred, slope = predict_with_kappa(model, OrderStream(log, device, start=end))
    return Predicted(pred.cpu(), y, truth, None if slope is None else slope.cpu(), history.seconds, end)


# A reference has no parameters. The price is brought to the right total, so that it is judged by its order and spread.
_REFERENCES = {
    _PRICE: lambda y, truth, price: price * (y.double().mean() / price.double().mean()).float(),
    _TRUTH: lambda y, truth, price: truth,
}


@lru_cache(maxsize=1)
def _test_orders(log: OrderLog, start: int, device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Targets, true means and prices of the test orders."""
    x, y, truth = log.chunk(start, len(log), device)
    return y.cpu(), truth.cpu(), x["log_price"].exp().cpu()


def measured(predicted: Predicted) -> dict[str, Any]:
    """The report of predictions: of all test orders, of the top ones, and by bin."""
    pred, y, truth = predicted.pred, predicted.y, predicted.truth
    if not pred.isfinite().all():
        return {"failed": "a prediction is not finite"}
    top = y >= torch.quantile(y.double(), 1.0 - _TOP).float()
    tables = {"prediction": (bin_by_prediction, pred), "target": (bin_by_target, y)}
    return {
        **_measured(pred, y),
        "top": _measured(pred[top], y[top]),
        "bins": {
            by: bins_with_slope(table(pred, y, bins=_BINS), value, predicted.slope)
            for by, (table, value) in tables.items()
        },
        "distance": float((pred - truth).double().square().mean().sqrt() / truth.double().mean()),
        "share_of_top": float(y[top].double().sum() / y.double().sum()),
        "seconds": predicted.seconds,
        "data": {"name": "simulated orders", "train": predicted.train, "test": len(y)},
    }


def cost(arguments: Mapping[str, Any], cache: Path) -> float:
    """Orders, times branches."""
    if arguments["head"] in _REFERENCES:
        return float(arguments["test"])
    head: Head = loads(arguments["head"])
    return float(arguments["train"] * (1 + len(head.branches)))


def _measured(pred: Tensor, y: Tensor) -> dict[str, Any]:
    return {"metrics": values((*_MEASURED, FLOORED), pred, y), "left_out": leave_out(_MEASURED, pred, y)}


@dataclass(frozen=True)
class IndustrialTable:
    """All orders, and the top 30 % of them.

    Args:
        name: the name of its report.
        title: the title of its page.
        size: of the log and the network.

    """

    name: str
    title: str
    size: Size

    def datasets(self, available: Iterable[str]) -> list[str]:
        """None: the orders are simulated."""
        return []

    def studies(self, keys: Keys, quick: bool = False) -> list[Study]:
        """None: the reports of runs have no metrics of the top orders."""
        return []

    def computations(self, keys: Keys, quick: bool = False) -> list[Computation]:
        """One training per method and seed, and the references."""
        return [seed for seeds in self.by_row(quick).values() for seed in seeds]

    def obstacle(self, store: Store, quick: bool) -> str | None:
        """Why it cannot be made here: work is left that needs a GPU, and there is none; else None."""
        size = self._size(quick)
        left = [work for work in self.computations({}, quick) if work.text not in store]
        if not left or size.recipe.device is None or torch.cuda.is_available():
            return None
        return f"{len(left)} of its trainings are left and need a GPU; paper/README.md says how to bring them back"

    def report(self, store: Store, keys: Keys, quick: bool = False) -> dict[str, Any]:
        """Both tables, the paper's, and the answers."""
        reports = {name: read_seeds(store, seeds) for name, seeds in self.by_row(quick).items()}
        methods = {name: seeds for (name, _), seeds in reports.items() if name not in _REFERENCES}
        tables, claims = [], []
        for title, rows in {"all orders": TestRows(), "top 30 % of orders": TestRows(("top",))}.items():
            against = {name: ("LogSUN", "-") for name in reports if name[0] in methods and name[0] != "LogSUN"}
            entries = [table_row(name, reports, _COLUMNS, rows, against.get(name)) for name in reports]
            tables.append({"dataset": title, "rows": entries})
            claims += _claims(rows, methods, reports[_TRUTH, "-"], title)
        labels = ("comp_sota_indus",)
        statement = self.statement(quick)
        return table_report(self.name, self.title, statement, _COLUMNS, tables, claims, labels, TestRows.noise)

    def statement(self, quick: bool) -> str:
        """How it was made, in words."""
        size = self._size(quick)
        recipe = size.recipe
        return (
            f"{size.train:,} simulated orders to train and {size.test:,} to test (`transun.data.OrderLog`), of "
            f"{size.users:,} users and {size.items:,} items, with up to {size.history} past items; DIN with dense "
            f"layers of {', '.join(map(str, size.hidden))}. The paper: 132,657,136 orders, 67,729,869 users, "
            f"14,538,759 items and layers of 1024, 512, 256. One epoch of `{dumps(recipe.optimiser)}`, batch "
            f"{recipe.batch_rows(size.train):,}, the rate by `{recipe.decay.__name__}`, the embedding shared between "
            f"branches, {size.seeds} seeds. No rate is tuned: no rows choose anything. Two rows are references: the "
            "price, brought to the right total, shows what a single feature is worth, and the true mean shows what is "
            "possible: a metric by which other predictions beat it, such as those of orders chosen by their target, "
            "does not ask for the mean."
        )

    def by_row(self, quick: bool) -> dict[tuple[str, str], list[Computation]]:
        """The computations of every row, one per seed; a reference has one."""
        size = self._size(quick)
        rows = {row.id: [training(row, size, seed) for seed in range(size.seeds)] for row in _ROWS}
        return rows | {(name, "-"): [Computation("industrial", size.arguments(name, 0))] for name in _REFERENCES}

    def _size(self, quick: bool) -> Size:
        return QUICK_SIZE if quick else self.size


@dataclass(frozen=True)
class IndustrialBins:
    """The figure of the paper's industrial data: signed TRE by bin, and the mean slope, from the runs of the table."""

    name: str
    title: str
    table: IndustrialTable

    def datasets(self, available: Iterable[str]) -> list[str]:
        """None: the orders are simulated."""
        return []

    def studies(self, keys: Keys, quick: bool = False) -> list[Study]:
        """None."""
        return []

    def computations(self, keys: Keys, quick: bool = False) -> list[Computation]:
        """Those of the two methods, which the table has too."""
        return [seed for label in ("LogMSE", "LogSUN") for seed in self.table.by_row(quick)[label, "-"]]

    def obstacle(self, store: Store, quick: bool) -> str | None:
        """That of the table."""
        return self.table.obstacle(store, quick)

    def report(self, store: Store, keys: Keys, quick: bool = False) -> dict[str, Any]:
        """The bins and the answers."""
        rows = self.table.by_row(quick)
        reports = {label: read_seeds(store, rows[label, "-"]) for label in ("LogMSE", "LogSUN")}
        usable = {label: seeds for label, seeds in reports.items() if able(seeds)}
        panels = [{"dataset": "simulated orders", **mean_bins(usable)}]
        about = (
            f"Test orders in {_BINS} bins of equal frequency, means over seeds. By ascending target, as in the paper, "
            "even E[y|x] itself is not 0 (errata E22); bins by prediction test calibration. The slope is in the unit "
            f"of z, in which κ·y is 1 on average. {self.table.statement(quick)}"
        )
        return figure_report(self.name, self.title, about, panels, bin_answers(reports, "simulated orders"))


def training(row: PaperRow, size: Size, seed: int) -> Computation:
    """The training of a row at a size with a seed."""
    return Computation("industrial", size.arguments(dumps(row.head), seed))


def read_seeds(store: Store, seeds: Sequence[Computation]) -> list[dict[str, Any]]:
    """The reports of all seeds; none where one is missing."""
    return [store.read(seed.text) for seed in seeds] if all(seed.text in store for seed in seeds) else []


def _claims(rows: TestRows, reports: Mapping[str, Reports], truth: Reports, where: str) -> list[Answer]:
    ranking = better(rows, Side("LogSUN", reports["LogSUN"]), Side("LogMSE", reports["LogMSE"]), "XAUC")
    best = Side(_TRUTH, truth)
    answers = []
    for metric in ERRORS:
        finding = best_of(rows, "LogSUN", reports, metric)
        rival = best_rival(rows, "LogSUN", reports, metric)
        cause = None if rival is None else beats_the_truth(rows, Side(rival, reports[rival]), best, metric)
        possible = f"; {_TRUTH} has {rows.mean_with_error(truth, metric)[0]:.4f}" if able(truth) else ""
        finding = replace(finding, evidence=finding.evidence + possible)
        answers.append(Answer.of(f"LogSUN has the best {metric} of all methods", where, finding, cause))
    return [*answers, Answer.of("LogSUN ranks better than LogMSE (XAUC)", where, ranking)]


INDUSTRIAL = IndustrialTable("industrial", "All methods on an order log of the paper's size, with DIN", PAPER_SIZE)
INDUSTRIAL_CPU = IndustrialTable(
    "industrial_cpu", "All methods on a simulated order log that a CPU can train", CPU_SIZE
)
INDUSTRIAL_BINS = IndustrialBins(
    "fig_bins_industrial", "Signed TRE and the mean slope by bin, paper's size", INDUSTRIAL
)
