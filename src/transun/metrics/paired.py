"""Paired comparison of models on the same rows: differences of metrics, in which the noise of the rows cancels.

Two models that predict the same rows share most of the noise in their metrics. The error of the difference, by the
jackknife over blocks of rows, is therefore far smaller than the intervals of the two values suggest.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transun.metrics import STANDARD
from transun.metrics.metric import LEVEL, Metric
from transun.support.arrays import Floats
from transun.support.extras import need

__all__ = ["PairedDifference", "jackknife_error", "leave_out", "p_value", "paired_differences"]

_BLOCKS = 20


@dataclass(frozen=True)
class PairedDifference:
    """The metric of `model` minus the metric of `against`, with a 99 % interval and a two-sided p-value."""

    model: str
    against: str
    metric: str
    value: float
    low: float
    high: float
    p: float


def paired_differences(
    preds: Mapping[str, Floats], y: Floats, weight: Floats | None = None, metrics: Sequence[Metric] = STANDARD
) -> tuple[PairedDifference, ...]:
    """Every model's metrics minus those of the first model, on the same rows.

    The standard error is the delete-a-group jackknife of the difference over 20 blocks of rows, and the interval is
    that of Student's t with 19 degrees of freedom.

    Args:
        preds: predictions (n,) by name of the model; the others are compared with the first.
        y: actual values (n,).
        weight: importance weights (n,), or None.
        metrics: the metrics to compare by.

    >>> from transun.metrics import PGR
    >>> y = np.arange(1.0, 41.0)
    >>> (difference,) = paired_differences({"a": y, "b": 2 * y}, y, metrics=[PGR])
    >>> difference.value, difference.low, difference.high
    (1.0, 1.0, 1.0)

    """
    if len(y) < 2:
        raise ValueError(f"a difference between models has no interval on {len(y)} row: give two rows or more")
    (reference, reference_pred), *others = preds.items()
    row_weight = np.ones(len(y)) if weight is None else weight
    degrees = max(min(_BLOCKS, len(y)) - 1, 1)
    quantile = float(need("scipy.special").stdtrit(degrees, 0.5 * (1.0 + LEVEL)))
    reference_left_out = leave_out(metrics, reference_pred, y, row_weight)
    differences = []
    for model, pred in others:
        left_out = leave_out(metrics, pred, y, row_weight)
        for metric in metrics:
            value = metric(pred, y, row_weight) - metric(reference_pred, y, row_weight)
            with np.errstate(invalid="ignore"):  # a metric may be infinite for both, as an error relative to 0 is
                error = jackknife_error(np.subtract(left_out[metric.name], reference_left_out[metric.name]))
            low, high, p = value - quantile * error, value + quantile * error, p_value(value, error, degrees)
            differences.append(PairedDifference(model, reference, metric.name, value, low, high, p))
    return tuple(differences)


def leave_out(
    metrics: Iterable[Metric], pred: Any, y: Any, weight: Any = None, blocks: int = _BLOCKS
) -> dict[str, list[float]]:
    """Every metric over all rows but those of one block, for each block in turn; block b holds rows b, b + blocks, ...

    Rows may be sorted by time, and blocks of every twentieth row are alike all the same. The blocks depend on nothing
    but the number of rows, so that the values of two models can be subtracted block by block.

    >>> from transun.metrics import PGR
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
    """The delete-a-group jackknife standard error, √((k-1)/k · Σ(θ₋ᵦ - mean)²); NaN where a value is not finite.

    >>> round(jackknife_error([1.0, 2.0, 3.0]), 4)  # √(2/3 · 2)
    1.1547
    """
    values = np.asarray(left_out)
    if not np.isfinite(values).all():
        return math.nan
    return float(np.sqrt((len(values) - 1) / len(values) * np.square(values - values.mean()).sum()))


def p_value(value: float, error: float, degrees: int) -> float:
    """The two-sided p-value of Student's t = value / error; if the error is 0, it is 1 for a value of 0 and else 0.

    >>> round(p_value(2.262, 1.0, 9), 3)
    0.05
    """
    if error == 0.0:
        return 1.0 if value == 0.0 else 0.0
    if math.isnan(error):
        return math.nan
    return float(2.0 * need("scipy.stats").t.sf(abs(value) / error, degrees))
