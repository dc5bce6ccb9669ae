"""How hard each loss target is to learn: variance, V/E² and outliers of y, ln(1 + y) and κ·y on the training rows."""

from collections.abc import Iterable, Mapping, Sequence
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
from transun.training.optimisers import Adam
from transun.training.recipe import Recipe
from transun_paper.lab.compare import seed_mean
from transun_paper.lab.computation import Computation
from transun_paper.lab.encoded_dataset import EncodedDataset, cache_path, training_rows
from transun_paper.lab.protocol import Study
from transun_paper.lab.run import MLP, NAMES, fit_run
from transun_paper.lab.store import Store
from transun_paper.tables.ablations import SLOPES
from transun_paper.tables.findings import Answer, below
from transun_paper.tables.table import OTHERS, RATE, Keys, kept, protocol_of, table_report

_COLUMNS = ("Mean", "Var", "V/E²", "Outlier %")
_Y, _LOG = ("MSE", "y"), ("T-MSE", "ln(1+y)")
_SUN = ("sun", f"κ·y, κ = {next(iter(SLOPES))}")
_TARGETS = (_Y, _LOG, *(("sun", f"κ·y, κ = {name}") for name in SLOPES))


def compute(arguments: Mapping[str, Any], cache: Path) -> list[dict[str, dict[str, float]]]:
    """Train LogMSE with every seed; per seed and target its statistics over the training rows."""
    data = EncodedDataset.load(cache_path(cache, arguments["dataset"]))
    recipe: Recipe = loads(arguments["training"], NAMES)
    models = [Model(MLP().build(data), LogMSE(), seed) for seed in range(arguments["seeds"])]
    for model in models:
        fit_run(model, data.train, recipe, data.valid)
    return [_statistics(model, data.train) for model in models]


def cost(arguments: Mapping[str, Any], cache: Path) -> float:
    """Training rows, times epochs and seeds, times branches."""
    epochs: int = loads(arguments["training"], NAMES).epochs
    branches = len(LogMSE().branches)
    return float(training_rows(cache, arguments["dataset"]) * epochs * arguments["seeds"] * (1 + branches))


@torch.no_grad()
def _statistics(model: Model, data: Dataset) -> dict[str, dict[str, float]]:
    transform = model.head.transform
    u = torch.cat(
        [model.over_members(model.head.point(model.raw(batch.x))) for batch in data.batches(model.rows_at_once)]
    ).double()
    y = data.y.double()
    values = [y, transform(y), *(y * slope.kappa(u, transform) for slope in SLOPES.values())]
    return {label: _describe(value) for (_, label), value in zip(_TARGETS, values, strict=True)}


def _describe(v: Tensor) -> dict[str, float]:
    numbers = (v.mean().item(), variance(v), relative_variance(v), 100.0 * outlier_share(v))
    return dict(zip(_COLUMNS, numbers, strict=True))


class VarianceTable:
    """Two tables of the paper: the three losses, and κ·y of three slopes."""

    name = "variance"
    title = "How hard the loss targets are: variance, V/E² and outliers"

    def datasets(self, available: Iterable[str]) -> list[str]:
        """The three main data sets, and the user's."""
        return kept(available, OTHERS)

    def studies(self, keys: Keys, quick: bool = False) -> list[Study]:
        """None: the reports of runs have no κ·y."""
        return []

    def computations(self, keys: Keys, quick: bool = False) -> list[Computation]:
        """One training of all seeds on each data set."""
        return list(self._computations(keys, quick).values())

    def report(self, store: Store, keys: Keys, quick: bool = False) -> dict[str, Any]:
        """Statistics of every target, the paper's, and the answers."""
        tables, claims = [], []
        for name, computation in self._computations(keys, quick).items():
            if computation.text not in store:
                continue
            seeds = store.read(computation.text)
            tables.append({"dataset": name, "rows": [_entry(target, seeds) for target in _TARGETS]})
            claims += _claims(seeds, name)
        statement = (
            f"u is the point of LogMSE, trained as on the leaderboard with Adam {RATE:g}; T(y) = ln(1 + y), ε = 1. "
            "Statistics of the training rows; ± is the standard error over seeds. "
            "An outlier is further than 3 standard deviations from the mean."
        )
        labels = ("convergence_smooth", "lcltm_compare_k_var")
        return table_report(self.name, self.title, statement, _COLUMNS, tables, claims, labels, "of seeds")

    def _computations(self, keys: Keys, quick: bool) -> dict[str, Computation]:
        protocol = protocol_of(quick)
        return {
            name: Computation(
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
    cells = {column: seed_mean(numbers) for column, numbers in values.items()}
    return {"method": target[0], "label": target[1], "cells": cells, "seeds": values}


def _claims(seeds: Sequence[Mapping[str, Mapping[str, float]]], where: str) -> list[Answer]:
    sun, y = _SUN[1], _Y[1]
    answers = [
        _smaller(seeds, where, "κ·y has a smaller {} than y, so that its loss is smoother than MSE", sun, y, column)
        for column in _COLUMNS[1:]
    ]
    for _, label in _TARGETS[3:]:
        claim = "κ·y of TranSUN has a smaller {} than " + label
        answers += [_smaller(seeds, where, claim, sun, label, column) for column in ("Var", "V/E²")]
    return answers


def _smaller(
    seeds: Sequence[Mapping[str, Mapping[str, float]]], where: str, claim: str, first: str, second: str, column: str
) -> Answer:
    a, b = ([seed[label][column] for seed in seeds] for label in (first, second))
    return Answer.of(claim.format(column), where, below(a, b, f"{first} {fmean(a):.4g}, {second} {fmean(b):.4g}"))


VARIANCE = VarianceTable()
