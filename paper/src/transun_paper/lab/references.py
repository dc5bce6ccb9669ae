"""Predictions that need no training: the mean and the median of the training targets, for every row."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from transun_paper.lab.computation import Computation
from transun_paper.lab.encoded_dataset import EncodedDataset, cache_path, training_rows
from transun_paper.lab.measures import Predictions, measure_predictions

REFERENCES = ("mean", "median")


def reference(dataset: str, constant: str) -> Computation:
    """The report of a constant, one of `REFERENCES`, on an encoded data set, given by its key."""
    return Computation("constant", {"dataset": dataset, "constant": constant})


def compute(arguments: Mapping[str, Any], cache: Path) -> dict[str, Any]:
    """The report of the constant, as that of a run."""
    data = EncodedDataset.load(cache_path(cache, arguments["dataset"]))
    y = data.train.y.double()
    value = {"mean": y.mean(), "median": y.quantile(0.5)}[arguments["constant"]].float()
    parts = (torch.full_like(part.y, float(value)) for part in (data.train, data.valid, data.test))
    return {"data": {"name": data.name, **data.sizes}, **measure_predictions(Predictions(*parts), data)}


def cost(arguments: Mapping[str, Any], cache: Path) -> float:
    """Training rows, each looked at once."""
    return float(training_rows(cache, arguments["dataset"]))
