"""What happens during training: losses, and the bias of predictions for a sample of the training rows."""

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from transun.data import Dataset
from transun.heads import Head
from transun.metrics import MRE, PGR, TRE, Metric
from transun.models.network import Model
from transun.models.spec import dumps, loads
from transun.training.evaluation import predict
from transun.training.history import Step
from transun.training.optimisers import Adam
from transun.training.recipe import Recipe
from transun_paper.lab.encoded_dataset import Frozen
from transun_paper.lab.measures import values
from transun_paper.lab.protocol import Protocol
from transun_paper.lab.run import MLP, NAMES, fit_run, lab_recipe
from transun_paper.lab.sources import cache_path
from transun_paper.tables.jobs import Job

_METRICS: tuple[Metric, ...] = (PGR, TRE, MRE)
# Looks at the sample during training, and its rows.
_LOOKS, _SAMPLE = 50, 4096
# One rate for all, without averaging: what is shown is the training itself.
_RATE, _EPOCHS = 1e-3, 2


def trace_job(protocol: Protocol, key: str, head: Head, seed: int) -> Job:
    """The training of a head on a data set, watched."""
    batch = protocol.training_for(key, Adam(_RATE)).batch_size
    training = lab_recipe(optimiser=Adam(_RATE), epochs=_EPOCHS, batch_size=batch, averaging=None, patience=None)
    return Job("trace", {"dataset": key, "head": dumps(head), "training": dumps(training), "seed": seed})


def compute(arguments: Mapping[str, Any], cache: Path) -> dict[str, Any]:
    """Train, and look about fifty times.

    A look has the step, every term of the loss averaged over the batches since the last look, and PGR, TRE and MRE of
    the same 4096 training rows, predicted with the weights of this step.
    """
    data = Frozen.load(cache_path(cache, arguments["dataset"]))
    recipe: Recipe = loads(arguments["training"], NAMES)
    model = Model(MLP().build(data), loads(arguments["head"]), arguments["seed"])
    watch = _Watch(
        model, _sample(data.train), -(-len(data.train) // recipe.batch_rows(len(data.train))) * recipe.epochs
    )
    try:
        fit_run(model, data.train, recipe, on_step=watch)
    except FloatingPointError as error:
        return {"failed": str(error)}
    return {"rows": len(data.train), "batch_size": recipe.batch_size, "looks": watch.looks}


def _sample(data: Dataset) -> Dataset:
    rows = torch.arange(0, len(data), max(1, len(data) // _SAMPLE))[:_SAMPLE]
    return data.take(rows)


class _Watch:
    def __init__(self, model: Model, sample: Dataset, total: int) -> None:
        self.model, self.sample = model, sample
        self.every = max(1, total // _LOOKS)
        self.since: list[Mapping[str, float]] = []
        self.looks: list[dict[str, Any]] = []

    def __call__(self, step: Step) -> None:
        self.since.append(step.terms)
        if (step.step + 1) % self.every:
            return
        terms = {name: fmean(seen[name] for seen in self.since) for name in step.terms}
        found = values(_METRICS, predict(self.model, self.sample), self.sample.y)
        self.looks.append({"step": step.step + 1, "terms": terms, **found})
        self.since = []
