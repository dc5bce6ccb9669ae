"""Models on the same rows: paired differences of their metrics, which the noise of the rows hardly touches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transun.extras import need
from transun.lab.compare import difference
from transun.lab.measures import BLOCKS
from transun.metrics import MRE, NMAE, NRMSE, PGR, STRE, TRE, XAUC, Metric

__all__ = ["METRICS", "PairedDifference", "paired_differences"]

METRICS: tuple[Metric, ...] = (TRE, STRE, PGR, MRE, NRMSE, NMAE, XAUC)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PairedDifference:
    """One metric of `model` minus that of `against`, with a 95 % interval and a two-sided p-value."""

    model: str
    against: str
    metric: str
    value: float
    low: float
    high: float
    p: float


def paired_differences(
    preds: Mapping[str, Floats], y: Floats, weight: Floats | None = None, metrics: Sequence[Metric] = METRICS
) -> tuple[PairedDifference, ...]:
    """Every model against the first one: both predict the same rows, so what these have in common cancels.

    The error is the delete-a-group jackknife of the difference over 20 blocks of rows, and Student's t with 19 degrees
    of freedom makes the interval.

    Args:
        preds: predictions (n,) by name of the model; the first is what the others are compared with.
        y: actual values (n,).
        weight: how often each row counts (n,), or None.
        metrics: what to compare.

    >>> y = np.arange(1.0, 41.0)
    >>> pair = paired_differences({"a": y, "b": 2 * y}, y, metrics=[PGR])
    >>> pair[0].value, pair[0].low, pair[0].high
    (1.0, 1.0, 1.0)

    """
    names = list(preds)
    mass = np.ones(len(y)) if weight is None else weight
    block = np.arange(len(y)) % min(BLOCKS, len(y))
    reports = {name: _report(pred, y, mass, block, metrics) for name, pred in preds.items()}
    half = float(need("scipy.special", extra="lab").stdtrit(max(block) or 1, 0.975))
    found = []
    for name in names[1:]:
        for metric in metrics:
            one = difference([reports[name]], [reports[names[0]]], metric.name)
            low, high = one.value - half * one.error, one.value + half * one.error
            found.append(PairedDifference(name, names[0], metric.name, one.value, low, high, one.p))
    return tuple(found)


def _report(
    pred: Floats, y: Floats, mass: Floats, block: NDArray[np.int64], metrics: Sequence[Metric]
) -> dict[str, dict[str, object]]:
    kept = [block != index for index in range(int(block.max()) + 1)]
    return {
        "metrics": {metric.name: metric(pred, y, mass) for metric in metrics},
        "left_out": {metric.name: [metric(pred[rows], y[rows], mass[rows]) for rows in kept] for metric in metrics},
    }
