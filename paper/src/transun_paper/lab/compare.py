"""Differences between methods, whether noise explains them, and claims that they support."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import Any

from transun.metrics.paired import jackknife_error, p_value

Reports = Sequence[Mapping[str, Any]]
"""The reports of one method on one data set, one per seed."""

# A difference counts as real when one as large would be this rare by chance.
SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class Claim:
    """A sentence, whether the numbers support it, and the numbers."""

    text: str
    holds: bool
    evidence: str


@dataclass(frozen=True)
class Difference:
    """One metric of a method minus that of another: its value, standard error and two-sided p-value.

    `of_rows` is the share of the squared error that the sample of test rows makes; the rest is that of the seeds.
    """

    value: float
    error: float
    p: float
    of_rows: float = 0.0


def paired_t(first: Sequence[float], second: Sequence[float]) -> float:
    """The two-sided p-value of a t-test paired by seed; 1 where every pair is equal.

    The test knows the noise of training alone. The test rows are a sample too, which only `difference` takes into
    account.

    >>> round(paired_t([1.0, 2.0, 3.0], [2.0, 3.5, 5.0]), 4)  # differences -1, -1.5, -2: t = -5.196 with 2 degrees
    0.0351
    """
    if len(first) != len(second) or len(first) < 2:
        raise ValueError(f"a paired test needs two values or more a side, got {len(first)} and {len(second)}")
    if all(a == b for a, b in zip(first, second, strict=True)):
        return 1.0
    mean, error = seed_mean([a - b for a, b in zip(first, second, strict=True)])
    return p_value(mean, error, len(first) - 1)


def difference(first: Reports, second: Reports, metric: str) -> Difference:
    """The mean difference of a metric over seeds, with both of its noises: of the training and of the test rows.

    error² = variance over seeds of the paired differences / seeds + the delete-a-group jackknife of the difference of
    the means over seeds, over the same 20 blocks of test rows for both. The p-value is Student's with 19 degrees of
    freedom, from the blocks. Seeds are paired because equal seeds mean equal initial weights and order of rows.

    Args:
        first: reports of one method, one per seed.
        second: reports of the other; of a method without seeds one is enough, which is then used for every seed.
        metric: a name in their `metrics`.

    """
    left, right = _pair_seeds(first, second)
    gaps = [a["metrics"][metric] - b["metrics"][metric] for a, b in zip(left, right, strict=True)]
    blocks = [a - b for a, b in zip(_blocks(left, metric), _blocks(right, metric), strict=True)]
    value, seed_error = seed_mean(gaps)
    row_error = jackknife_error(blocks)
    error = math.hypot(row_error, seed_error)
    of_rows = row_error**2 / error**2 if error > 0.0 else 0.0
    return Difference(value, error, p_value(value, error, len(blocks) - 1), of_rows)


def log_ratio(first: Reports, second: Reports, metric: str) -> Difference:
    """The logarithm of the ratio of a metric of two methods, which are geometric means over seeds, as `difference`."""
    return difference(_logarithms(first, metric), _logarithms(second, metric), metric)


def _logarithms(reports: Reports, metric: str) -> Reports:
    return [
        {
            "metrics": {metric: math.log(report["metrics"][metric])},
            "left_out": {metric: [math.log(value) for value in report["left_out"][metric]]},
        }
        for report in reports
    ]


def mean_with_error(reports: Reports, metric: str) -> tuple[float, float]:
    """The mean of a metric over seeds and its standard error, of seeds and test rows together."""
    value, seed_error = seed_mean([report["metrics"][metric] for report in reports])
    return value, math.hypot(jackknife_error(_blocks(reports, metric)), seed_error)


def _blocks(reports: Reports, metric: str) -> list[float]:
    """The mean over seeds of a metric without the rows of each block."""
    return [fmean(block) for block in zip(*(report["left_out"][metric] for report in reports), strict=True)]


def finished_seeds(first: Reports, second: Reports) -> tuple[Reports, Reports]:
    """The reports of both methods at the seeds at which neither failed.

    >>> finished_seeds([{"failed": "nan"}, {"seed": 1}], [{"seed": 0}, {"seed": 1}])
    ([{'seed': 1}], [{'seed': 1}])
    """
    pairs = zip(*_pair_seeds(first, second), strict=True)
    finished = [(a, b) for a, b in pairs if "failed" not in a and "failed" not in b]
    return [a for a, _ in finished], [b for _, b in finished]


def _pair_seeds(first: Reports, second: Reports) -> tuple[Reports, Reports]:
    most = max(len(first), len(second))
    sides = [list(side) * most if len(side) == 1 else list(side) for side in (first, second)]
    if len(sides[0]) != len(sides[1]):
        raise ValueError(f"the reports are not paired: {len(first)} seeds against {len(second)}")
    return sides[0], sides[1]


def seed_mean(values: Sequence[float]) -> tuple[float, float]:
    """The mean of a value over seeds and its standard error; 0 for a single seed, whose noise nobody knows.

    >>> seed_mean([1.0, 3.0])
    (2.0, 1.0)
    """
    return fmean(values), math.sqrt(variance(values) / len(values)) if len(values) > 1 else 0.0
