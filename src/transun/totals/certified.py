"""The total of new rows by a model's certificate alone, without labelled rows at hand."""

import math
from pathlib import Path

from transun.diagnosis.error_sums import TotalError
from transun.diagnosis.tail import AmountTail
from transun.diagnosis.total_noise import noise_errors, noise_tail
from transun.metrics.metric import Interval
from transun.models.certificate import valid_certificate
from transun.models.noise import Noise
from transun.totals.result import Total

__all__ = ["certified_tail", "certified_total"]


def certified_tail(folder: Path) -> AmountTail | None:
    """The tail of the amounts by the rows that a saved model was certified on; None where it has no good certificate.

    Args:
        folder: of the saved model.

    """
    certificate = valid_certificate(folder)
    return None if certificate is None or certificate.noise is None else noise_tail(certificate.noise)


def certified_total(noise: Noise, predicted: float, rows: int, level: float = 0.95) -> Total:
    """The total of rows whose predictions add up to `predicted`: R·Σŷ, with R = Σy / Σŷ of the rows held out.

    It holds for rows like those that the certificate was measured on, whose amounts are taken to have a finite variance
    unless they show that they have none. Customers or households, where the certificate counts them, are taken to have
    as many rows as they had there. Labelled rows of the time and place of the new ones are better than this, see
    `total`.

    Args:
        noise: of the certificate.
        predicted: Σŷ of the new rows.
        rows: how many they are.
        level: of the interval.

    >>> noise = Noise(900, 100, 100, None, 220.0, 200.0, 100.0, 0.0, 100.0, 1.0, 0.1, 0.1, 20)
    >>> total = certified_total(noise, predicted=2000.0, rows=1000)
    >>> round(total.value), round(total.high - total.value, -1)  # 2·√(10² · 100 + 10 · 100)
    (2200, 210.0)

    """
    errors = noise_errors(noise)
    usable = noise.predicted > 0.0 and predicted > 0.0
    share = rows / noise.rows
    total_error = TotalError(predicted / noise.predicted if usable else 0.0, new_rows=(share, share))
    value = predicted * noise.actual / noise.predicted if usable else math.nan
    refusal = errors.refusal(assumed=True) if usable else "the predictions do not add up to more than 0"
    ends = Interval(math.nan, math.nan) if refusal else errors.interval(value, total_error, level)
    return Total(
        value=value,
        low=ends.low,
        high=ends.high,
        level=level,
        rows=rows,
        labelled=noise.rows,
        units=noise.units,
        predicted=predicted,
        tuning=noise.actual / noise.predicted if usable else math.nan,
        largest_share=errors.largest_share,
        units_to_halve=errors.units_to_halve(total_error),
        refusal=refusal,
        remedy="certify the model on more rows" if refusal else "",
    )
