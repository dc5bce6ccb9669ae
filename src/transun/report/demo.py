"""The demo: a log-trained model and its debiased twin on a simulated order log whose true mean is known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap
from typing import Any, cast

import torch

from transun import metrics
from transun.backbones import EmbeddingMLP
from transun.data import Dataset, OrderLog
from transun.heads import Head, LogMSE, LogSUN
from transun.metrics import NRMSE, Meter, bin_by_prediction
from transun.metrics.binned import BinTable
from transun.models.network import Model
from transun.report.assessment import CalibrationPoint, calibration_axes, draw_point, metric_text
from transun.report.document import Cell, Document, Figure, Paragraph, Table
from transun.report.formatting import number
from transun.report.svg import Canvas
from transun.training.evaluation import predict
from transun.training.loop import fit
from transun.training.optimisers import Adam
from transun.training.recipe import Recipe

__all__ = ["CALIBRATION", "Outcome", "calibration_svg", "demo_document", "demo_json", "held_out_orders", "run_demo"]

# The file of the picture, beside demo.md.
CALIBRATION = "calibration.svg"


@dataclass(frozen=True)
class Outcome:
    """A model on the held-out orders: metrics with standard errors, calibration, and its distance to the truth.

    `distance` is the root mean squared distance to E[y|x], relative to its mean: NRMSE without the noise that no model
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
    """Train LogMSE and LogSUN on the first 80 % of the log and evaluate them on the rest."""
    held_out = _first_held_out(log)
    train, test, truth = log.dataset(stop=held_out), log.dataset(held_out), log.truth(held_out)
    heads: dict[str, Head] = {"LogMSE": LogMSE(), "LogSUN": LogSUN(shared=1)}
    return {
        name: _outcome(Model(backbone(log), head, seed), train, test, truth, seed, epochs, progress)
        for name, head in heads.items()
    }


def held_out_orders(log: OrderLog) -> tuple[torch.Tensor, torch.Tensor]:
    """Values and prices of the orders that no model is trained on."""
    rows = log.dataset(_first_held_out(log))
    return rows.y, cast(Mapping[str, torch.Tensor], rows.x)["log_price"].exp()


def backbone(log: OrderLog) -> EmbeddingMLP:
    """The paper's embedding MLP over the columns of the log; the history shares the embedding table of the items."""
    return EmbeddingMLP(log.sizes, {"history": "item"} if log.history else {}, ("log_price",), dropout=0.1)


def _first_held_out(log: OrderLog) -> int:
    """The number of the first order that is held out; the orders before it are the training data."""
    return int(0.8 * len(log))


def _outcome(
    model: Model, train: Dataset, test: Dataset, truth: torch.Tensor, seed: int, epochs: int, progress: bool | None
) -> Outcome:
    recipe = Recipe(Adam(3e-3), epochs=epochs, batch_size=512, seed=seed)
    history = fit(model, train, recipe, progress=progress)
    pred = predict(model, test)
    meter = Meter(*metrics.STANDARD)
    meter.update(pred, test.y)
    return Outcome(
        meter.compute(),
        meter.standard_errors(),
        NRMSE(pred, truth),
        bin_by_prediction(pred, test.y),
        history.seconds,
        pred,
    )


def demo_document(outcomes: Mapping[str, Outcome]) -> Document:
    """The report: what happened in a sentence a model, the metrics side by side, and the calibration of both."""
    sentences, table = Paragraph([" ".join(starmap(_sentence, outcomes.items()))]), _table(outcomes)
    source = Paragraph(["A simulated order log whose E[y|x] is known; the last fifth of it is held out."])
    deciles = {name: decile_rows(outcome.deciles) for name, outcome in outcomes.items()}
    figure = Figure(calibration_svg(deciles), "calibration by decile of the prediction", CALIBRATION)
    return Document(
        "A log-trained model and its debiased twin",
        "",
        [sentences, table, source, figure],
        [],
        [table, sentences],
        "transun demo",
    )


def _table(outcomes: Mapping[str, Outcome]) -> Table:
    """One row per metric and one column per model, values ± standard errors."""
    rows = [
        [
            Cell(metric.title),
            *[
                Cell(
                    f"{metric_text(metric.name, outcome.metrics[metric.name])} ± "
                    f"{metric_text(metric.name, outcome.errors[metric.name])}",
                    outcome.metrics[metric.name],
                )
                for outcome in outcomes.values()
            ],
        ]
        for metric in metrics.STANDARD
    ]
    distances = [Cell(f"{outcome.distance:.3f}", outcome.distance) for outcome in outcomes.values()]
    seconds = [Cell(f"{outcome.seconds:.1f}", outcome.seconds) for outcome in outcomes.values()]
    rows += [[Cell("distance to the true E[y|x]"), *distances], [Cell("seconds of training"), *seconds]]
    return Table(["held-out orders", *outcomes], rows)


def _sentence(name: str, outcome: Outcome) -> str:
    gap, error = outcome.metrics["PGR"] - 1.0, outcome.errors["PGR"]
    side = "under" if gap < 0 else "over"
    chance = "" if abs(gap) > 2 * error else ", within sampling error"
    return f"{name} {side}-predicts the total by {abs(gap):.1%} (± {2 * error:.1%}){chance}."


def calibration_svg(deciles: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """Mean actual against mean predicted value by decile of the prediction, of two models, as an SVG file.

    A calibrated model lies on the dashed line; a log-trained one lies above it, since it predicts too little.

    Args:
        deciles: per model, the biased one first, rows with `prediction`, `target`, `low` and `high`, as in demo.json.

    """
    models = {
        name: [CalibrationPoint(row["prediction"], row["target"], row["low"], row["high"]) for row in rows]
        for name, rows in deciles.items()
    }
    canvas = Canvas(380.0, f"calibration by decile of the prediction: {', '.join(models)}")
    x, y = calibration_axes(canvas, [point for points in models.values() for point in points], "order value")
    for index, ((name, points), style) in enumerate(zip(models.items(), (" bad", ""), strict=True)):
        canvas.line([(x.position(point.pred), y.clamped(point.actual)) for point in points], f"path{style}")
        for point in points:
            title = f"{name}: predicted {number(point.pred)}, actual {number(point.actual)}"
            draw_point(canvas, x, y, replace(point, title=title), style)
        height = 40.0 + 18.0 * index
        canvas.dot(60.0, height - 4.0, f"dot{style}")
        canvas.text(70.0, height, name, "start", "name")
    height = 40.0 + 18.0 * len(models)
    canvas.line([(54.0, height - 4.0), (66.0, height - 4.0)], "even")
    canvas.text(70.0, height, "right totals", "start", "name")
    return canvas.file()


def decile_rows(bins: BinTable) -> list[dict[str, float]]:
    """The deciles as rows: mean prediction, mean target and a 95 % interval of the latter."""
    rows = []
    for pred, y, error in zip(bins.pred.tolist(), bins.y.tolist(), bins.stre_error.tolist(), strict=True):
        half = 1.96 * error * pred  # STRE = 1 - ȳ/ŷ, so sd(ȳ) = ŷ·sd(STRE)
        rows.append({"prediction": pred, "target": y, "low": y - half, "high": y + half})
    return rows


def demo_json(outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
    """The metrics, deciles and costs of each model as plain values."""
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
