"""The noise of a total, measured by the errors of the rows that it was assessed on, and these errors in turn."""

import math

import numpy as np

from transun.diagnosis.error_sums import ErrorSums
from transun.diagnosis.result import Assessment
from transun.diagnosis.tail import AmountTail, relative_amounts
from transun.models.noise import Noise
from transun.support.arrays import Floats, Integers
from transun.tables.model import TableModel

__all__ = ["noise_errors", "noise_of", "noise_tail", "unit_errors"]


def unit_errors(ratio: float, pred: Floats, y: Floats, weight: Floats, unit: Integers | None = None) -> ErrorSums:
    """The errors w(y - Rŷ) of each unit at the ratio R of actual to predicted total."""
    counted = weight > 0.0
    sums = [values[counted] for values in (weight * y, weight * pred)]
    if unit is not None:
        codes = np.unique(unit[counted], return_inverse=True)[1]
        sums = [np.bincount(codes, values).astype(np.float64) for values in sums]
    tail = AmountTail.of(relative_amounts(*sums))
    return ErrorSums.of(sums[0] - (ratio if math.isfinite(ratio) else 1.0) * sums[1], tail)


def noise_of(assessed: Assessment, trained: TableModel, errors: ErrorSums, cluster: str | None) -> Noise:
    """The noise of the total of assessed rows with these errors, whose units are the values of the column `cluster`."""
    return Noise(
        training_rows=0 if trained.seen is None else trained.seen.rows,
        rows=assessed.rows,
        units=errors.units,
        cluster=cluster,
        actual=assessed.actual,
        predicted=assessed.predicted,
        squares=errors.squares,
        cubes=errors.cubes,
        fourths=errors.fourths,
        largest=errors.largest,
        tail_index=errors.tail.index,
        tail_error=errors.tail.error,
        tail_count=errors.tail.count,
    )


def noise_errors(noise: Noise) -> ErrorSums:
    """The errors that a noise was measured by."""
    return ErrorSums(noise.units, noise.squares, noise.cubes, noise.fourths, noise.largest, noise_tail(noise))


def noise_tail(noise: Noise) -> AmountTail:
    """The tail of the amounts that a noise was measured by."""
    return AmountTail(noise.tail_index, noise.tail_error, noise.tail_count)
