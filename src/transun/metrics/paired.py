"""Several models on the same rows: differences of their metrics, which the noise of the rows hardly touches."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transun.metrics.bias import MRE, PGR, STRE, TRE
from transun.metrics.error import NMAE, NRMSE
from transun.metrics.metric import Metric
from transun.metrics.ranking import XAUC
from transun.support.extras import need

__all__ = ["PairedDifference", "jackknife_error", "leave_out", "p_value", "paired_differences"]

COMPARED: tuple[Metric, ...] = (TRE, STRE, PGR, MRE, NRMSE, NMAE, XAUC)
BLOCKS = 20

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
    preds: Mapping[str, Floats], y: Floats, weight: Floats | None = None, metrics: Sequence[Metric] = COMPARED
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
    (reference, first), *others = preds.items()
    mass = np.ones(len(y)) if weight is None else weight
    degrees = max(min(BLOCKS, len(y)) - 1, 1)
    half = float(need("scipy.special").stdtrit(degrees, 0.975))
    against = leave_out(metrics, first, y, mass)
    differences = []
    for name, pred in others:
        left_out = leave_out(metrics, pred, y, mass)
        for metric in metrics:
            gaps = np.subtract(left_out[metric.name], against[metric.name])
            value, error = metric(pred, y, mass) - metric(first, y, mass), jackknife_error(gaps)
            low, high, p = value - half * error, value + half * error, p_value(value, error, degrees)
            differences.append(PairedDifference(name, reference, metric.name, value, low, high, p))
    return tuple(differences)


def leave_out(
    metrics: Iterable[Metric], pred: Any, y: Any, weight: Any = None, blocks: int = BLOCKS
) -> dict[str, list[float]]:
    """Every metric over all rows but those of one block, block b being the rows b, b + blocks, ...

    Rows may follow the order of time; taking every twentieth makes blocks alike. The same rows give the same blocks for
    every model, so that differences between models can be tested.

    >>> leave_out([PGR], np.array([1.0, 3.0]), np.array([2.0, 3.0]))["PGR"]
    [1.0, 0.5]
    """
    count = min(blocks, len(y))
    block = np.arange(len(y)) % count
    kept = [block != index for index in range(count)]
    return {
        metric.name: [metric(pred[rows], y[rows], None if weight is None else weight[rows]) for rows in kept]
        for metric in metrics
    }


def jackknife_error(left_out: Sequence[float] | Floats) -> float:
    """The delete-a-group jackknife standard error, √((k-1)/k · Σ(θ₋ᵦ - mean)²).

    >>> round(jackknife_error([1.0, 2.0, 3.0]), 4)  # √(2/3 · 2)
    1.1547
    """
    values = np.asarray(left_out)
    return float(np.sqrt((len(values) - 1) / len(values) * np.square(values - values.mean()).sum()))


def p_value(value: float, error: float, degrees: int) -> float:
    """The two-sided p-value of Student's t = value / error; without any error 1 for a value of 0 and else 0.

    >>> round(p_value(2.262, 1.0, 9), 3)
    0.05
    """
    if error == 0.0:
        return 1.0 if value == 0.0 else 0.0
    if math.isnan(error):
        return math.nan
    return float(2.0 * need("scipy.stats").t.sf(abs(value) / error, degrees))
