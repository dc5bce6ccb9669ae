"""What a run reports of its predictions: metrics, standard errors, leave-out values for paired tests, bins."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transun.metrics import (
    FLOORED,
    MRE,
    NDCG,
    NEGATIVE,
    NMAE,
    NRMSE,
    PGR,
    SMRE,
    STRE,
    TRE,
    XAUC,
    Metric,
    TopNDCG,
    TopXAUC,
    bin_by_prediction,
    bin_by_target,
)
from transun.metrics.binned import BinTable
from transun.metrics.paired import jackknife_error, leave_out
from transun_paper.lab.encoded_dataset import Frozen

# Metrics whose standard error has a formula, and those whose error is the jackknife's.
FORMULA: tuple[Metric, ...] = (TRE, STRE, PGR, MRE, SMRE, NRMSE, NMAE, XAUC)
RANKINGS: tuple[Metric, ...] = (TopXAUC(), NDCG, TopNDCG())
METRICS = (*FORMULA, *RANKINGS)
# Not defined for negative targets.
GAINS: tuple[Metric, ...] = (NDCG, TopNDCG())
SHARES: tuple[Metric, ...] = (FLOORED, NEGATIVE)
TRAINING: tuple[Metric, ...] = (TRE, STRE, PGR, MRE, SMRE, NRMSE)
BINS = 20


@dataclass(frozen=True)
class Predictions:
    """What a model says of the rows of frozen data, (n,) each; `slope` is κ of the test rows where it has one."""

    train: Tensor
    valid: Tensor
    test: Tensor
    slope: Tensor | None = None


def assess(predictions: Predictions, data: Frozen) -> dict[str, Any]:
    """All that a report says of predictions for frozen data.

    `metrics` and `errors` are of the test rows; `left_out` has every metric over all test rows but those of one block,
    for `compare`; `bins` has the test rows in 20 bins by prediction and by target. NDCG is left out where a target is
    negative.
    """
    train, valid, test = data.train.y, data.valid.y, data.test.y
    defined = [metric for metric in METRICS if metric not in GAINS or bool((test >= 0).all())]
    left_out = leave_out(defined, predictions.test, test)
    errors = {name: jackknife_error(found) for name, found in left_out.items()}
    errors |= {metric.name: metric.standard_error(predictions.test, test) for metric in FORMULA}
    return {
        "metrics": values((*defined, *SHARES), predictions.test, test),
        "errors": errors,
        "valid": values((NRMSE, STRE), predictions.valid, valid),
        "train": values(TRAINING, predictions.train, train),
        "train_errors": {metric.name: metric.standard_error(predictions.train, train) for metric in TRAINING},
        "left_out": left_out,
        "bins": {
            "prediction": _bins(bin_by_prediction(predictions.test, test, bins=BINS), predictions.test, predictions),
            "target": _bins(bin_by_target(predictions.test, test, bins=BINS), test, predictions),
        },
    }


def values(metrics: Iterable[Metric], pred: Tensor, y: Tensor) -> dict[str, float]:
    """Metrics by name."""
    return {metric.name: metric(pred, y) for metric in metrics}


def _bins(table: BinTable, by: Tensor, predictions: Predictions) -> dict[str, list[float]]:
    result = {name: getattr(table, name).tolist() for name in ("count", "pred", "y", "stre", "stre_error")}
    if predictions.slope is not None:
        # A value that begins a bin belongs to it, so the search is from the right.
        edges = torch.from_numpy(table.edges[1:-1].copy())
        number = torch.bucketize(by.double(), edges, right=True)
        total = torch.zeros(len(table), dtype=torch.float64).index_add(0, number, predictions.slope.double())
        result["slope"] = (total / torch.bincount(number, minlength=len(table))).tolist()
    return result
