"""Runs carried out: trained, together where that is possible, and reported."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from transun.data import Dataset
from transun.models.network import Model
from transun.training.calibration import balance, calibrate
from transun.training.evaluation import predict, predict_with_kappa
from transun.training.history import History
from transun.training.recipe import Recipe
from transun_paper.lab.encoded_dataset import Frozen
from transun_paper.lab.measures import Predictions, assess
from transun_paper.lab.run import Run, fit_run
from transun_paper.lab.stacked_network import can_stack
from transun_paper.lab.store import rounded
from transun_paper.lab.train_seeds import fit_together


def execute(runs: Sequence[Run], data: Frozen) -> list[dict[str, Any]]:
    """A report for each of these runs, which may differ in their seed and in what is done after training only.

    Every seed is trained once, whatever is read from it; all of them in one model where the backbone allows. A method
    that refuses the targets, or that diverges, has a report too: {"failed": why}.
    """
    if len({run.trained for run in runs}) != 1:
        raise ValueError("execute takes runs that differ in their seed, correction and balance only: group them first")
    first = runs[0]
    seeds = sorted({run.seed for run in runs})
    backbone = first.backbone.build(data)
    models = [Model(backbone, first.head, seed) for seed in seeds]
    try:
        models[0].head.prepare(data.train.targets().double())
    except ValueError as error:  # the head forbids these targets, and says which
        return [{"failed": str(error)} for _ in runs]
    together = can_stack(backbone)
    train = fit_together if together else fit_in_turn
    histories = train(models, data.train, data.valid, first.training)
    trained = dict(zip(seeds, zip(models, histories, strict=True), strict=True))
    return [_report(run, data, *trained[run.seed], len(seeds) if together else 1) for run in runs]


def fit_in_turn(
    models: Sequence[Model], train: Dataset, valid: Dataset, recipe: Recipe
) -> list[History | FloatingPointError]:
    """What `fit_together` does, for any network: one model after the other."""
    results: list[History | FloatingPointError] = []
    for model in models:
        try:
            history = fit_run(model, train, recipe, valid)
        except (FloatingPointError, ValueError) as error:  # a loss or a validation prediction that is not finite
            results.append(FloatingPointError(str(error)))
        else:
            results.append(history)
    return results


def _report(run: Run, data: Frozen, model: Model, history: History | FloatingPointError, lanes: int) -> dict[str, Any]:
    if isinstance(history, FloatingPointError):
        return {"failed": str(history)}
    if run.correction is not None:
        model = calibrate(model, data.valid, run.correction)
    if run.balanced:
        model = balance(model, data.train, data.valid)
    train, valid = (predict(model, part) for part in (data.train, data.valid))
    test, kappa = predict_with_kappa(model, data.test)
    if not all(bool(part.isfinite().all()) for part in (train, valid, test)):
        return {"failed": "a prediction is not finite"}
    found = assess(Predictions(train, valid, test, kappa), data)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    taken = history.checks[-1].step
    report = {
        "data": {"name": data.name, **data.sizes},
        **found,
        "seconds": history.seconds,
        "lanes": lanes,
        "parameters": parameters,
        "bytes": sum(parameter.nbytes for parameter in model.parameters()),
        "steps": taken,
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
    return points[:: math.ceil(len(points) / most)] if points else points
