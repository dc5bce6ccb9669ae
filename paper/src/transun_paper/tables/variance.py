"""How hard each loss target is to learn: variance, V/E² and outliers of y, ln(1 + y) and κ·y on the training rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from transun.data import Dataset
from transun.heads import LogMSE
from transun.metrics.spread import outlier_share, relative_variance, variance
from transun.models.network import Model
from transun.models.spec import dumps, loads
from transun.training.evaluation import BATCH
from transun.training.optimisers import Adam
from transun_paper.lab.compare import paired_t
from transun_paper.lab.encoded_dataset import Frozen
from transun_paper.lab.protocol import Study
from transun_paper.lab.run import MLP, NAMES
from transun_paper.lab.sources import cache_path
from transun_paper.lab.store import Store
from transun_paper.lab.train_seeds import fit_together
from transun_paper.tables.instances import SLOPES
from transun_paper.tables.jobs import Job
from transun_paper.tables.judge import LEVEL, NO, NOISE, YES, Answer
from transun_paper.tables.table import OTHERS, RATE, Keys, board_of, framed, kept

_COLUMNS = ("Mean", "Var", "V/E²", "Outlier %")
_Y, _LOG = ("MSE", "y"), ("T-MSE", "ln(1+y)")
_OWN = ("sun", f"κ·y, κ = {next(iter(SLOPES))}")
_TARGETS = (_Y, _LOG, *(("sun", f"κ·y, κ = {name}") for name in SLOPES))


def compute(arguments: Mapping[str, Any], cache: Path) -> list[dict[str, dict[str, float]]]:
    """Train LogMSE with every seed; per seed and target its statistics over the training rows."""
    data = Frozen.load(cache_path(cache, arguments["dataset"]))
    training = loads(arguments["training"], NAMES)
    models = [Model(MLP().build(data), LogMSE(), seed) for seed in range(arguments["seeds"])]
    histories = fit_together(models, data.train, data.valid, training)
    for history in histories:
        if isinstance(history, FloatingPointError):
            raise history
    return [_statistics(model, data.train) for model in models]


@torch.no_grad()
def _statistics(model: Model, data: Dataset) -> dict[str, dict[str, float]]:
    transform = model.head.transform
    u = torch.cat([model.head.point(model.raw(batch.x)) for batch in data.batches(BATCH)]).double()
    y = data.y.double()
    values = [y, transform(y), *(y * slope.kappa(u, transform) for slope in SLOPES.values())]
    return {label: _of(value) for (_, label), value in zip(_TARGETS, values, strict=True)}


def _of(v: Tensor) -> dict[str, float]:
    numbers = (v.mean().item(), variance(v), relative_variance(v), 100.0 * outlier_share(v))
    return dict(zip(_COLUMNS, numbers, strict=True))


class VarianceTable:
    """Two tables of the paper: the three losses, and κ·y of three slopes."""

    name = "variance"
    title = "How hard the loss targets are: variance, V/E² and outliers"

    def studies(self, keys: Keys, quick: bool = False) -> list[Study]:
        """No runs: what they report does not include κ·y."""
        return []

    def jobs(self, keys: Keys, quick: bool = False) -> list[Job]:
        """One training of all seeds on each data set."""
        return list(self._jobs(keys, quick).values())

    def report(self, store: Store, keys: Keys, quick: bool = False) -> dict[str, Any]:
        """Statistics of every target, the paper's, and the answers."""
        tables, claims = [], []
        for name, job in self._jobs(keys, quick).items():
            if job.text not in store:
                continue
            seeds = store.read(job.text)
            tables.append({"dataset": name, "rows": [_entry(target, seeds) for target in _TARGETS]})
            claims += _claims(seeds, name)
        statement = (
            f"u is the point of LogMSE, trained as on the leaderboard with Adam {RATE:g}; T(y) = ln(1 + y), ε = 1. "
            "Statistics of the training rows; ± is the standard error over seeds. "
            "An outlier is further than 3 standard deviations from the mean."
        )
        labels = ("convergence_smooth", "lcltm_compare_k_var")
        return framed(self.name, self.title, statement, _COLUMNS, tables, claims, labels, "of seeds")

    def _jobs(self, keys: Keys, quick: bool) -> dict[str, Job]:
        protocol = board_of(quick).protocol
        return {
            name: Job(
                "variance",
                {
                    "dataset": keys[name],
                    "training": dumps(protocol.training_for(keys[name], Adam(RATE))),
                    "seeds": protocol.seeds,
                },
            )
            for name in kept(keys, OTHERS)
        }


def _entry(target: tuple[str, str], seeds: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, Any]:
    values = {column: [seed[target[1]][column] for seed in seeds] for column in _COLUMNS}
    cells = {column: (fmean(found), _error(found)) for column, found in values.items()}
    return {"method": target[0], "label": target[1], "cells": cells, "seeds": values}


def _claims(seeds: Sequence[Mapping[str, Mapping[str, float]]], where: str) -> list[Answer]:
    own, y = _OWN[1], _Y[1]
    result = [
        _smaller(seeds, where, "κ·y has a smaller {} than y, so that its loss is smoother than MSE", own, y, column)
        for column in _COLUMNS[1:]
    ]
    for _, label in _TARGETS[3:]:
        claim = "κ·y of TranSUN has a smaller {} than " + label
        result += [_smaller(seeds, where, claim, own, label, column) for column in ("Var", "V/E²")]
    return result


def _smaller(
    seeds: Sequence[Mapping[str, Mapping[str, float]]], where: str, claim: str, first: str, second: str, column: str
) -> Answer:
    a, b = ([seed[label][column] for seed in seeds] for label in (first, second))
    p = paired_t(a, b)
    holds = NOISE if p >= LEVEL else YES if fmean(a) < fmean(b) else NO
    return Answer(claim.format(column), where, holds, f"{fmean(a):.4g} against {fmean(b):.4g}, p = {p:.2g} over seeds")


def _error(values: Sequence[float]) -> float:
    mean, count = fmean(values), len(values)
    return float((sum((value - mean) ** 2 for value in values) / max(count - 1, 1) / count) ** 0.5)


TABLE = VarianceTable()
