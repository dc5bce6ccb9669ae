"""Runs carried out: a model is trained, corrected in the ways that the runs ask for, and reported."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from transun.models.network import Model
from transun.training.calibration import balance, calibrate
from transun.training.evaluation import predict, predict_with_kappa
from transun.training.fusion import fuse
from transun.training.history import History
from transun_paper.lab.encoded_dataset import EncodedDataset
from transun_paper.lab.measures import Predictions, measure_predictions
from transun_paper.lab.run import Run, fit_run
from transun_paper.lab.store import rounded


def execute(runs: Sequence[Run], data: EncodedDataset, device: str = "cpu") -> list[dict[str, Any]]:
    """A report for each of these runs, which may differ only in what is done after training: the model is trained once.

    A method that refuses the targets, or that diverges, has a report too: {"failed": reason}. The model is trained on
    the device; what comes after training is done on the processor.
    """
    if len({run.trained for run in runs}) != 1:
        raise ValueError(
            "execute takes runs that differ in their correction, balance and fusion only: group them first"
        )
    first = runs[0]
    model = Model(first.backbone.build(data), first.head, first.seed).to(device)
    try:
        history = fit_run(model, data.train.to(device), first.training, data.valid.to(device))
    except (FloatingPointError, ValueError) as error:
        # The head does not allow these targets, or a loss or a validation prediction is not finite.
        return [{"failed": str(error)} for _ in runs]
    model.cpu()
    return [_report(run, data, model, history) for run in runs]


def _report(run: Run, data: EncodedDataset, model: Model, history: History) -> dict[str, Any]:
    if run.correction is not None:
        model = calibrate(model, data.valid, run.correction)
    if run.balanced:
        model = balance(model, data.train, data.valid)
    if run.fused:
        model = fuse(model, data.valid)
    train, valid = (predict(model, part) for part in (data.train, data.valid))
    test, kappa = predict_with_kappa(model, data.test)
    if not all(bool(part.isfinite().all()) for part in (train, valid, test)):
        return {"failed": "a prediction is not finite"}
    measures = measure_predictions(Predictions(train, valid, test, kappa), data)
    report = {
        "data": {"name": data.name, **data.sizes},
        **measures,
        "seconds": history.seconds,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "bytes": sum(parameter.nbytes for parameter in model.parameters()),
        "steps": history.checks[-1].step,
        "epochs": history.rows / len(data.train),
        "best_step": None if history.best is None else history.best.step,
        "stopped_early": history.stopped_early,
        "looks": [[check.step, check.values["NRMSE"]] for check in history.checks],
        "curve": [[step.step, step.terms] for step in _thinned(history.steps, 100)],
        "torch": torch.__version__,
    }
    plain: dict[str, Any] = rounded(report)
    return plain


def _thinned(points: Sequence[Any], most: int) -> Sequence[Any]:
    """At most so many of the points, evenly spaced."""
    return points[:: math.ceil(len(points) / most)] if points else points
