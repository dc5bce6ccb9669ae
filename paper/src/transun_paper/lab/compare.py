"""Differences between methods and whether noise explains them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import Any

from transun.metrics.paired import jackknife_error, p_value

Reports = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Difference:
    """One metric of a method minus that of another: its value, standard error and two-sided p-value."""

    value: float
    error: float
    p: float


def paired_t(first: Sequence[float], second: Sequence[float]) -> float:
    """The two-sided p-value of a t-test paired by seed; 1 where every pair is equal.

    It knows the noise of training alone. That the test rows are a sample too, it does not: see `difference`.

    >>> round(paired_t([1.0, 2.0, 3.0], [2.0, 3.5, 5.0]), 4)  # differences -1, -1.5, -2: t = -5.196 with 2 degrees
    0.0351
    """
    if len(first) != len(second) or len(first) < 2:
        raise ValueError(f"a paired test needs two values or more a side, got {len(first)} and {len(second)}")
    if all(a == b for a, b in zip(first, second, strict=True)):
        return 1.0
    mean, error = _mean_and_error([a - b for a, b in zip(first, second, strict=True)])
    return p_value(mean, error, len(first) - 1)


def difference(first: Reports, second: Reports, metric: str) -> Difference:
    """The mean difference of a metric over seeds, with both of its noises: of the training and of the test rows.

    error² = variance over seeds of the paired differences / seeds + the delete-a-group jackknife of the difference of
    the means over seeds, over the same 20 blocks of test rows for both. The p-value is Student's with 19 degrees of
    freedom, those of the blocks. Seeds are paired because equal seeds mean equal first weights and order of rows.

    Args:
        first: reports of one method, one per seed.
        second: reports of the other; of a method without seeds one is enough, which then stands for all.
        metric: a name in their `metrics`.

    """
    left, right = _as_many(first, second)
    gaps = [a["metrics"][metric] - b["metrics"][metric] for a, b in zip(left, right, strict=True)]
    blocks = [a - b for a, b in zip(_blocks(left, metric), _blocks(right, metric), strict=True)]
    value, seeds = _mean_and_error(gaps)
    error = math.hypot(jackknife_error(blocks), seeds)
    return Difference(value, error, p_value(value, error, len(blocks) - 1))


def spread(reports: Reports, metric: str) -> tuple[float, float]:
    """The mean of a metric over seeds and its standard error, of seeds and test rows together."""
    value, seeds = _mean_and_error([report["metrics"][metric] for report in reports])
    return value, math.hypot(jackknife_error(_blocks(reports, metric)), seeds)


def _blocks(reports: Reports, metric: str) -> list[float]:
    """The mean over seeds of a metric without the rows of each block."""
    return [fmean(block) for block in zip(*(report["left_out"][metric] for report in reports), strict=True)]


def _as_many(first: Reports, second: Reports) -> tuple[Reports, Reports]:
    most = max(len(first), len(second))
    sides = [list(side) * most if len(side) == 1 else list(side) for side in (first, second)]
    if len(sides[0]) != len(sides[1]):
        raise ValueError(f"the reports are not paired: {len(first)} seeds against {len(second)}")
    return sides[0], sides[1]


def _mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    return fmean(values), math.sqrt(variance(values) / len(values)) if len(values) > 1 else 0.0
