"""Totals over time while amounts drift: a daily calibrator behind LogMSE, LogSUN alone, and both."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from transun.backbones import EmbeddingMLP
from transun.data import Dataset, OrderLog
from transun.heads import Head, LogMSE, LogSUN
from transun.models.network import Model
from transun.support.arrays import Floats, Integers
from transun.training import Adam, Recipe, fit, predict
from transun_paper.lab.computation import Computation
from transun_paper.lab.protocol import Study
from transun_paper.lab.store import Store
from transun_paper.tables.figures import figure_report
from transun_paper.tables.findings import NO, NOT_RUN, YES, Answer, Finding
from transun_paper.tables.table import Keys

_HEADS: dict[str, Head] = {"LogMSE": LogMSE(), "LogSUN": LogSUN(shared=1)}
_CALIBRATED = " + daily calibrator"
METHODS = tuple(f"{name}{calibrated}" for name in _HEADS for calibrated in ("", _CALIBRATED))
_COLUMNS = ("item", "log_price", "hour", "weekday")
_PARTS = 5
# Days of labels that the calibrator looks back at: fewer follow a drift sooner and are noisier.
_WINDOW = 3
_FULL = {"seeds": 5, "orders": 60_000, "days": 60, "daily": 4_000}
_QUICK = {"seeds": 2, "orders": 4_000, "days": 16, "daily": 500}


def level_of_day(day: int, days: int) -> float:
    """What all amounts are multiplied by: a loss of 0.5 % a day, and a sale of a tenth of the days at 0.8.

    >>> [round(level_of_day(day, 60), 3) for day in (0, 20, 24)]
    [1.0, 0.724, 0.71]
    """
    sale = days // 3 <= day < days // 3 + days // 10
    return math.exp(-0.005 * day) * (0.8 if sale else 1.0)


def compute(arguments: Mapping[str, Any], cache: Path) -> dict[str, Any]:
    """Train both heads on the time before, then predict day by day; totals of every day by part of the items."""
    seed, days, daily = arguments["seed"], arguments["days"], arguments["daily"]
    log = OrderLog(
        orders=arguments["orders"] + days * daily, users=20_000, items=500, history=0, seed=seed, zero_share=0.0
    )
    models = _train(log, arguments["orders"], seed)
    sums: dict[str, list[dict[str, list[float]]]] = {name: [] for name in models}
    group = _noise_of_items(log, arguments["orders"])
    for day in range(days):
        start = arguments["orders"] + day * daily
        x, y, truth = log.chunk(start, start + daily)
        part = group[x["item"].numpy()]
        level = level_of_day(day, days)
        for name, model in models.items():
            pred = predict(model, Dataset({column: x[column] for column in _COLUMNS}, y)).double().numpy()
            totals = {"predicted": pred, "actual": level * y.double().numpy(), "true": level * truth.double().numpy()}
            sums[name].append({key: np.bincount(part, values, _PARTS).tolist() for key, values in totals.items()})
    return {"sums": sums}


def _noise_of_items(log: OrderLog, orders: int) -> Integers:
    """The part of every item, (items,): items in five parts by how far the logarithm is off in their orders.

    It is ln(E[y|x] / geometric mean), the mean over the orders of the item; a model can learn it, since it sees items.
    """
    x, _, truth = log.chunk(0, orders)
    item = x["item"].numpy()
    gap = np.log(truth.double().numpy() / log.geometric(x).double().numpy())
    mean = np.bincount(item, gap, log.items) / np.maximum(np.bincount(item, minlength=log.items), 1)
    return np.searchsorted(np.quantile(mean, np.arange(1, _PARTS) / _PARTS), mean)


def _train(log: OrderLog, orders: int, seed: int) -> dict[str, Model]:
    x, y, _ = log.chunk(0, orders)
    data = Dataset({name: x[name] for name in _COLUMNS}, y)
    sizes = {name: size for name, size in log.sizes.items() if name in _COLUMNS}
    models = {}
    for name, head in _HEADS.items():
        models[name] = Model(EmbeddingMLP(sizes, numeric=("log_price",), dim=8, hidden=(32, 16)), head, seed)
        recipe = Recipe(epochs=4, batch_size=256, optimiser=Adam(1e-3), seed=seed)
        fit(models[name], data, recipe, progress=False)
    return models


def cost(arguments: Mapping[str, Any], cache: Path) -> float:
    """Orders of all trainings, times branches."""
    return float(4 * arguments["orders"] * sum(1 + len(head.branches) for head in _HEADS.values()))


def calibrated_totals(days: Sequence[Mapping[str, Sequence[float]]], calibrated: bool) -> tuple[Floats, Floats]:
    """Predicted / true total of every day, (days,), and by part of the items, (days, parts).

    The calibrator multiplies all predictions of a day by actual / predicted total of the days before, at most three;
    it knows no labels of the day itself, nor any before the first.

    >>> day = {"predicted": [1.0], "actual": [2.0], "true": [2.0]}
    >>> calibrated_totals([day, day], True)[0].tolist()
    [0.5, 1.0]
    """
    predicted, actual, true = (np.array([day[key] for day in days]) for key in ("predicted", "actual", "true"))
    factor = np.ones(len(days))
    if calibrated:
        for day in range(1, len(days)):
            past = slice(max(0, day - _WINDOW), day)
            factor[day] = actual[past].sum() / predicted[past].sum()
    predicted = predicted * factor[:, None]
    return predicted.sum(1) / true.sum(1), predicted / true


class DriftFigure:
    """Predicted / true total by day, and by part of the items, of LogMSE and LogSUN with and without a calibrator."""

    name = "fig_drift"
    title = "Totals over time while amounts drift: a daily calibrator, LogSUN, and both"
    about = (
        "Orders of the simulated log, whose noise differs by item and user; all amounts lose 0.5 % a day, and a sale "
        "cuts them by a fifth for a tenth of the days. Models are trained once, on the time before, and predict day by "
        "day. "
        f"The calibrator multiplies the predictions of a day by actual / predicted total of the {_WINDOW} days before. "
        "Left: predicted / true total by day. Right: the mean of predicted / true total over all days but the first, "
        "of items in five parts by how far the logarithm is off (E[y|x] over the geometric mean, from least to most)."
    )

    def datasets(self, available: Iterable[str]) -> list[str]:
        """None: the orders are simulated."""
        return []

    def studies(self, keys: Keys, quick: bool = False) -> list[Study]:
        """None: days are predicted one after the other."""
        return []

    def computations(self, keys: Keys, quick: bool = False) -> list[Computation]:
        """One per seed."""
        setting = dict(_QUICK if quick else _FULL)
        seeds = setting.pop("seeds")
        return [Computation("drift", {"seed": seed, **setting}) for seed in range(seeds)]

    def report(self, store: Store, keys: Keys, quick: bool = False) -> dict[str, Any]:
        """Lines by day and by part, means over the seeds, and the answers."""
        work = self.computations(keys, quick)
        results = [store.read(seed.text) for seed in work if seed.text in store]
        if not results:
            nothing = {"dataset": "not run yet", "days": {}, "parts": {}}
            return figure_report(self.name, self.title, self.about, [nothing], [])
        by_day, by_part = {}, {}
        for method in METHODS:
            name = method.removesuffix(_CALIBRATED)
            totals = [calibrated_totals(result["sums"][name], method != name) for result in results]
            by_day[method] = np.array([days for days, _ in totals])
            by_part[method] = np.array([parts[1:].mean(0) for _, parts in totals])
        panel = {
            "dataset": f"{len(results)} seeds",
            "days": {method: values.mean(0).tolist() for method, values in by_day.items()},
            "parts": {method: values.mean(0).tolist() for method, values in by_part.items()},
        }
        return figure_report(self.name, self.title, self.about, [panel], _claims(by_day, by_part))


def _claims(by_day: Mapping[str, Floats], by_part: Mapping[str, Floats]) -> list[Answer]:
    """Claims about the mean error of the totals of days, and of the parts, seed by seed."""
    if len(by_day[METHODS[0]]) < 2:
        return [Answer.of("A calibrator and LogSUN together are nearest to the truth", "drift", NOT_RUN)]
    # The first day has no calibrator yet.
    days = {method: np.abs(np.log(values[:, 1:])).mean(1) for method, values in by_day.items()}
    parts = {method: np.abs(np.log(values)).mean(1) for method, values in by_part.items()}
    mse, calibrated_mse, sun, both = METHODS
    return [
        _smaller(
            days, calibrated_mse, sun, "by day: the calibrator behind LogMSE follows the drift, LogSUN alone cannot"
        ),
        _smaller(parts, sun, calibrated_mse, "by part: LogSUN alone is nearer to the truth than the calibrated LogMSE"),
        _smaller(
            parts, both, calibrated_mse, "by part: LogSUN with the calibrator is nearer than the calibrated LogMSE"
        ),
        _smaller(days, both, sun, "by day: LogSUN with the calibrator is nearer than LogSUN alone"),
        _smaller(days, both, mse, "by day: LogSUN with the calibrator is nearer than LogMSE"),
    ]


def _smaller(errors: Mapping[str, Floats], first: str, second: str, claim: str) -> Answer:
    difference = errors[first] - errors[second]
    error = float(difference.std(ddof=1) / math.sqrt(len(difference)))
    holds = YES if difference.mean() + 2.0 * error < 0.0 else NO
    evidence = (
        f"mean |ln(predicted / true)| {errors[first].mean():.3f} ({first}) vs. {errors[second].mean():.3f} ({second})"
    )
    return Answer.of(claim, "drift", Finding(holds, evidence))


DRIFT = DriftFigure()
