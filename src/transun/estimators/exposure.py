"""Exposure: what an amount was collected over, as the days of a policy or the visits of a customer."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

Array = NDArray[np.float64]


def check_exposure(exposure: Any, rows: int) -> Array:
    """The exposures of the rows as a vector of positive numbers; an error names the first wrong row.

    Args:
        exposure: one number for each row, or one for all of them.
        rows: the number of rows.

    >>> check_exposure(2.0, 3)
    array([2., 2., 2.])
    >>> check_exposure([1.0, 0.0], 2)
    Traceback (most recent call last):
    ValueError: exposure is 0.0 in row 1, and an amount cannot be divided by it: leave the row out or correct it

    """
    values = np.atleast_1d(
        check_array(exposure, ensure_2d=False, ensure_all_finite=False, dtype=np.float64, input_name="exposure")
        if np.ndim(exposure)
        else np.asarray(exposure, dtype=np.float64)
    )
    if values.shape == (1,):
        values = np.repeat(values, rows)
    if values.shape != (rows,):
        raise ValueError(f"exposure has the shape {values.shape}, and there are {rows} rows: give one number for each")
    wrong = ~(np.isfinite(values) & (values > 0.0))
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"exposure is {values[row]} in row {row}, and an amount cannot be divided by it: leave the row out or "
            "correct it"
        )
    return np.asarray(values)


def to_rates(y: Array, weight: Array | None, exposure: Array) -> tuple[Array, Array]:
    """Amounts per unit of exposure, and the weights with which they count.

    The rate y/e of a row with twice the exposure is a mean over twice as much, and has half the variance: it weighs
    twice as much. With weights e the total of the predicted amounts, Σe·rate, is the total that is fitted.

    >>> to_rates(np.array([1.0, 6.0]), None, np.array([0.5, 2.0]))
    (array([2., 3.]), array([0.5, 2. ]))
    """
    return y / exposure, exposure if weight is None else weight * exposure
