"""The main job in one minute: a log-trained model and its debiased twin on an order log whose truth is known."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import torch

from transun.averaging import EMA
from transun.backbones import EmbeddingMLP
from transun.data import Dataset, OrderLog
from transun.evaluation import predict
from transun.heads import Head, LogMSE, LogSUN
from transun.metrics import MRE, NRMSE, PGR, STRE, TRE, XAUC, BinTable, Meter, bin_by_prediction
from transun.model import Model
from transun.optimisers import Adam, linear
from transun.training import fit

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
    history = fit(
        model,
        train,
        optimiser=Adam(3e-3),
        epochs=epochs,
        decay=linear,
        averaging=EMA(0.99),
        seed=seed,
        progress=progress,
    )
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
