"""The main job in one minute: a log-trained model and its debiased twin on an order log whose truth is known."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import torch

from transun.backbones import EmbeddingMLP
from transun.data import Dataset, OrderLog
from transun.heads import Head, LogMSE, LogSUN
from transun.metrics import MRE, NRMSE, PGR, STRE, TRE, XAUC, Meter, bin_by_prediction
from transun.metrics.binned import BinTable
from transun.models.network import Model
from transun.report.markdown import table
from transun.training.evaluation import predict
from transun.training.loop import fit
from transun.training.optimisers import Adam
from transun.training.recipe import Recipe

METRICS = (PGR, TRE, STRE, MRE, NRMSE, XAUC)


@dataclass(frozen=True)
class Outcome:
    """One model on the held-out orders: metrics with standard errors, calibration, and its distance to the truth.

    `distance` is the root mean squared distance to E[y|x], relative to its mean: NRMSE without the noise that nobody
    can predict.
    """

    metrics: Mapping[str, float]
    errors: Mapping[str, float]
    distance: float
    deciles: BinTable
    seconds: float
    pred: torch.Tensor = field(repr=False)


def run_demo(
    log: OrderLog = OrderLog(), *, seed: int = 0, epochs: int = 2, progress: bool | None = None
) -> dict[str, Outcome]:
    """Train LogMSE and LogSUN on the first 80 % of the log and judge them on the rest."""
    held_out = _trained(log)
    train, test, truth = log.dataset(stop=held_out), log.dataset(held_out), log.truth(held_out)
    heads: dict[str, Head] = {"LogMSE": LogMSE(), "LogSUN": LogSUN(shared=1)}
    return {
        name: _judge(Model(backbone(log), head, seed), train, test, truth, seed, epochs, progress)
        for name, head in heads.items()
    }


def held_out_orders(log: OrderLog) -> tuple[torch.Tensor, torch.Tensor]:
    """Values and prices of the orders that no model is trained on."""
    rows = log.dataset(_trained(log))
    return rows.y, cast(Mapping[str, torch.Tensor], rows.x)["log_price"].exp()


def backbone(log: OrderLog) -> EmbeddingMLP:
    """The paper's Embedding + MLP over the columns of the log; the history shares the table of the items."""
    return EmbeddingMLP(log.sizes, {"history": "item"} if log.history else {}, ("log_price",), dropout=0.1)


def _trained(log: OrderLog) -> int:
    """How many of the orders, the first ones, are trained on."""
    return int(0.8 * len(log))


def _judge(
    model: Model, train: Dataset, test: Dataset, truth: torch.Tensor, seed: int, epochs: int, progress: bool | None
) -> Outcome:
    recipe = Recipe(Adam(3e-3), epochs=epochs, batch_size=512, seed=seed)
    history = fit(model, train, recipe, progress=progress)
    pred = predict(model, test)
    meter = Meter(*METRICS)
    meter.update(pred, test.y)
    return Outcome(
        meter.compute(),
        meter.standard_errors(),
        NRMSE(pred, truth),
        bin_by_prediction(pred, test.y),
        history.seconds,
        pred,
    )


# What a person reads for a metric, and its format.
_LINES = {
    "PGR": ("predicted / actual total (PGR)", "{:.3f}"),
    "TRE": ("total relative error (TRE)", "{:.3f}"),
    "MRE": ("mean relative error (MRE)", "{:.3f}"),
    "NRMSE": ("error (NRMSE)", "{:.3f}"),
    "XAUC": ("ranking (XAUC)", "{:.4f}"),
}


def demo_table(outcomes: Mapping[str, Outcome]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: one line per metric, one column per model, values ± standard errors."""
    models = outcomes.values()
    rows = [
        [title, *[f"{form.format(o.metrics[name])} ± {form.format(o.errors[name])}" for o in models]]
        for name, (title, form) in _LINES.items()
    ]
    rows.append(["distance to the true E[y|x]", *[f"{o.distance:.3f}" for o in models]])
    rows.append(["seconds of training", *[f"{o.seconds:.1f}" for o in models]])
    return ["held-out orders", *outcomes], rows


def verdict(outcomes: Mapping[str, Outcome]) -> str:
    """What happened, in a sentence per model."""
    lines = []
    for name, outcome in outcomes.items():
        gap, error = outcome.metrics["PGR"] - 1.0, outcome.errors["PGR"]
        side = "under" if gap < 0 else "over"
        sure = "" if abs(gap) > 2 * error else ", within sampling error"
        lines.append(f"{name} {side}-predicts the total by {abs(gap):.1%} (± {2 * error:.1%}){sure}.")
    return " ".join(lines)


def demo_page(outcomes: Mapping[str, Outcome], picture: str) -> str:
    """Markdown of the demo."""
    parts = [
        "# A log-trained model and its debiased twin",
        verdict(outcomes),
        table(*demo_table(outcomes)),
        "Made by `transun demo`: a simulated order log whose E[y|x] is known; the last fifth of it is held out.",
        f"![calibration by decile of the prediction]({picture})",
    ]
    return "\n\n".join(parts) + "\n"


def decile_rows(bins: BinTable) -> list[dict[str, float]]:
    """The bins as rows for a chart: mean prediction, mean target and a 95 % interval of the latter."""
    rows = []
    for index in range(len(bins)):
        pred, y = float(bins.pred[index]), float(bins.y[index])
        half = 1.96 * float(bins.stre_error[index]) * pred  # STRE = 1 - ȳ/ŷ, so sd(ȳ) = ŷ·sd(STRE)
        rows.append({"prediction": pred, "target": y, "low": y - half, "high": y + half})
    return rows


def demo_json(outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
    """The same as plain values."""
    return {
        name: {
            "metrics": dict(outcome.metrics),
            "standard_errors": dict(outcome.errors),
            "distance_to_truth": outcome.distance,
            "deciles": decile_rows(outcome.deciles),
            "seconds": outcome.seconds,
        }
        for name, outcome in outcomes.items()
    }
