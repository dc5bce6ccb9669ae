"""Exposure in tables: what an amount was collected over, as the years of a policy or the visits of a customer.

An exposure is no weight. A weight says how much a row counts: a row of weight 2 is the same amount, twice as important.
An exposure says over how much the amount was collected: a policy of half a year has half the claims of the same policy
over a year. So a model learns the rate y/e, which is comparable between rows, and predicts e times the rate: e is an
offset. The rate of a long exposure is a mean over more and less noisy, so that it counts e times as much. With these
weights the total of the predicted amounts, Σe·rate, is the total that is learned, and Poisson deviance of rates is
exactly that of amounts with ln e as offset.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from transun.data.table import as_numbers, column_array
from transun.support.arrays import Floats, Integers

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_exposure", "to_rates"]


def read_exposure(table: "pa.Table", name: str, file: Path | None = None, numbers: Integers | None = None) -> Floats:
    """The exposures of the rows of a table, positive numbers; an error names the first row that has none.

    Args:
        table: the rows.
        name: the column.
        file: that the rows are of, for the error.
        numbers: of the rows in that file, for the error.

    >>> import pyarrow
    >>> read_exposure(pyarrow.table({"years": [0.5, 0.0]}), "years")
    Traceback (most recent call last):
    ValueError: column 'years', row 1: 0 is no exposure, by which an amount could be divided: leave the row out, ...

    """
    values = np.array(as_numbers(f"column {name!r}", column_array(table, name), "name another"), np.float64)
    wrong = np.flatnonzero(~(np.isfinite(values) & (values > 0.0)))
    if len(wrong):
        row = wrong[0] if numbers is None else numbers[wrong[0]]
        of = "" if file is None else f"{file}, "
        raise ValueError(
            f"{of}column {name!r}, row {row}: {values[wrong[0]]:g} is no exposure, by which an amount could be "
            "divided: leave the row out, or correct it"
        )
    return values


def to_rates(y: Floats, weight: Floats | None, exposure: Floats) -> tuple[Floats, Floats]:
    """Amounts per unit of exposure, and the weights with which they count: the exposures, times the weights of rows.

    >>> to_rates(np.array([1.0, 6.0]), None, np.array([0.5, 2.0]))
    (array([2., 3.]), array([0.5, 2. ]))
    """
    return y / exposure, exposure if weight is None else weight * exposure
