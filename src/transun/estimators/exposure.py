"""Exposure: what an amount was collected over, as the days of a policy or the visits of a customer."""

from typing import Any

import numpy as np

from transun.data.magnitude import refuse_vanishing, require_squarable
from transun.support.arrays import Floats, to_floats


def check_exposure(exposure: Any, rows: int) -> Floats:
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
    values = np.atleast_1d(to_floats(exposure, "exposure"))
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
    require_squarable(np.arange(rows), exposure=values)
    refuse_vanishing(exposure=values)
    return values


def to_amounts(rates: Floats, exposure: Any, *, by_exposure: bool) -> Floats:
    """Predicted amounts: the rates times the exposures, where the model was fitted with exposures.

    To predict without the exposures, or with exposures that the fit did not have, would be a number in other units
    than the targets.

    >>> to_amounts(np.array([2.0, 3.0]), [0.5, 2.0], by_exposure=True)
    array([1., 6.])
    >>> to_amounts(np.array([2.0, 3.0]), None, by_exposure=True)
    Traceback (most recent call last):
    ValueError: the model was fitted with exposure: pass exposure to predict, 1.0 for the amount per unit of it
    """
    if by_exposure and exposure is None:
        raise ValueError(
            "the model was fitted with exposure: pass exposure to predict, 1.0 for the amount per unit of it"
        )
    if not by_exposure and exposure is not None:
        raise ValueError("the model was fitted without exposure: pass exposure to fit too, or leave it out")
    return rates * check_exposure(exposure, len(rates)) if by_exposure else rates
