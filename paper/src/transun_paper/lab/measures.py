"""What a report holds about predictions: metrics, standard errors, jackknife values for paired tests, bins."""

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
from transun_paper.lab.encoded_dataset import EncodedDataset

# Metrics of the training rows; their standard errors have formulas.
TRAINING_METRICS: tuple[Metric, ...] = (TRE, STRE, PGR, MRE, SMRE, NRMSE)
_WITH_FORMULA: tuple[Metric, ...] = (*TRAINING_METRICS, NMAE, XAUC)
# NDCG is not defined for negative targets.
_FOR_GAINS: tuple[Metric, ...] = (NDCG, TopNDCG())
# All that is measured of test rows with a standard error: by a formula where there is one, else by the jackknife.
TEST_METRICS: tuple[Metric, ...] = (*_WITH_FORMULA, TopXAUC(), *_FOR_GAINS)
_SHARES: tuple[Metric, ...] = (FLOORED, NEGATIVE)
_BINS = 20


@dataclass(frozen=True)
class Predictions:
    """Predictions for the rows of an encoded data set, (n,) each; `slope` is κ(u) of the test rows, if it exists."""

    train: Tensor
    valid: Tensor
    test: Tensor
    slope: Tensor | None = None


def measure_predictions(predictions: Predictions, data: EncodedDataset) -> dict[str, Any]:
    """The part of a report that concerns predictions for an encoded data set.

    `metrics` and `errors` are of the test rows; `left_out` has every metric over all test rows but those of one block,
    from which `compare` takes jackknife errors; `bins` has the test rows in 20 bins by prediction and by target. NDCG
    is left out where a target is negative.
    """
    train, valid, test = data.train.y, data.valid.y, data.test.y
    defined = [metric for metric in TEST_METRICS if metric not in _FOR_GAINS or bool((test >= 0).all())]
    left_out = leave_out(defined, predictions.test, test)
    errors = {name: jackknife_error(blocks) for name, blocks in left_out.items()}
    errors |= {metric.name: metric.standard_error(predictions.test, test) for metric in _WITH_FORMULA}
    return {
        "metrics": values((*defined, *_SHARES), predictions.test, test),
        "errors": errors,
        "valid": values((NRMSE, STRE), predictions.valid, valid),
        "train": values((*TRAINING_METRICS, FLOORED), predictions.train, train),
        "train_errors": {metric.name: metric.standard_error(predictions.train, train) for metric in TRAINING_METRICS},
        "left_out": left_out,
        "bins": {
            "prediction": bins_with_slope(
                bin_by_prediction(predictions.test, test, bins=_BINS), predictions.test, predictions.slope
            ),
            "target": bins_with_slope(bin_by_target(predictions.test, test, bins=_BINS), test, predictions.slope),
        },
    }


def values(metrics: Iterable[Metric], pred: Tensor, y: Tensor) -> dict[str, float]:
    """The value of each metric, by its name."""
    return {metric.name: metric(pred, y) for metric in metrics}


def bins_with_slope(table: BinTable, by: Tensor, slope: Tensor | None) -> dict[str, list[float]]:
    """Bins as plain values, with the mean of the slope κ (n,) in each where there is one; `by` made the bins."""
    result = {name: getattr(table, name).tolist() for name in ("count", "pred", "y", "stre", "stre_error")}
    if slope is not None:
        # A value on an edge belongs to the bin that begins there, so the search is from the right.
        edges = torch.from_numpy(table.edges[1:-1].copy())
        number = torch.bucketize(by.double(), edges, right=True)
        total = torch.zeros(len(table), dtype=torch.float64).index_add(0, number, slope.double())
        result["slope"] = (total / torch.bincount(number, minlength=len(table))).tolist()
    return result
