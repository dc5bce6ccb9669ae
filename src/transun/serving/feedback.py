"""Predictions that a server has made, and the actual amounts that come back for them."""

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from reprlib import repr as shortened

import numpy as np

from transun.experiments.sequence import always_valid_errors
from transun.metrics import PGR, Meter
from transun.metrics.metric import Interval
from transun.serving.promise import NoPromise, Promise
from transun.support.arrays import Floats

__all__ = ["Feedback", "MadePredictions"]

# Below so many labelled rows, the law of their ratio is too far from a normal one for an interval.
_FEWEST = 100


class MadePredictions:
    """The last predictions by their ids, in memory of a fixed size; each can be fetched once.

    An id is a number behind a word that every start of the server draws anew, so that ids of an earlier start, whose
    predictions are forgotten, are not mistaken.

    Args:
        kept: how many predictions are remembered, 8 bytes each.

    >>> made = MadePredictions(kept=2)
    >>> first, second, third = made.add([1.0, 2.0, 3.0])
    >>> made.take([third, second]).tolist()
    [3.0, 2.0]
    >>> made.take([first])
    Traceback (most recent call last):
    ValueError: ids, row 0: '...' is none of the last 2 predictions of this server: send the row itself instead

    """

    def __init__(self, kept: int) -> None:
        self._values = np.full(kept, np.nan)
        self._count, self._word = 0, secrets.token_hex(4)

    def add(self, pred: Sequence[float]) -> list[str]:
        """Remember predictions; returns their ids."""
        numbers = range(self._count, self._count + len(pred))
        size = len(self._values)
        self._values[np.array(numbers[-size:]) % size] = pred[-size:]
        self._count = numbers.stop
        return [f"{self._word}-{number}" for number in numbers]

    def take(self, ids: Sequence[object]) -> Floats:
        """The predictions of these ids, which are then forgotten; if one id is wrong, none is."""
        slots = [self._slot(row, id_) for row, id_ in enumerate(ids)]
        pred = self._values[slots]
        first: dict[int, int] = {}
        for row, slot in enumerate(slots):
            if first.setdefault(slot, row) != row or np.isnan(pred[row]):
                raise ValueError(f"ids, row {row}: {shortened(ids[row])} has its amount already: send each id once")
        self._values[slots] = np.nan
        return pred

    def _slot(self, row: int, id_: object) -> int:
        size = len(self._values)
        word, _, digits = id_.partition("-") if isinstance(id_, str) else ("", "", "")
        # At most 18 digits, as Python refuses to read a number of thousands.
        number = int(digits) if digits.isdecimal() and digits.isascii() and len(digits) < 19 else -1
        if word != self._word or not max(0, self._count - size) <= number < self._count:
            raise ValueError(
                f"ids, row {row}: {shortened(id_)} is none of the last {size:,} predictions of this server: send the "
                "row itself instead"
            )
        return number % size


@dataclass(eq=False)
class Feedback:
    """Totals of labelled rows: predicted, actual, and PGR = Σŷ/Σy with an interval that holds at every look.

    The interval is PGR ± c·se, se by the delta method and c of `transun.experiments.sequence.always_valid_errors`: the
    probability that it ever excludes the truth is 5 %, as the number of rows grows. It needs 100 rows.

    Args:
        promise: that of the certificate, which is tested.

    >>> feedback = Feedback()
    >>> feedback.update(np.array([2.0, 4.0]), np.array([1.0, 2.0]))
    >>> feedback.rows, feedback.predicted, feedback.actual, feedback.pgr
    (2, 6.0, 3.0, 2.0)

    """

    promise: Promise | NoPromise = NoPromise()
    rows: int = 0
    predicted: float = 0.0
    actual: float = 0.0

    def __post_init__(self) -> None:
        self._meter = Meter(PGR)

    def update(self, pred: Floats, actual: Floats) -> None:
        """Count labelled rows, in the order of their arrival."""
        self.rows += len(pred)
        self.predicted += float(pred.sum())
        self.actual += float(actual.sum())
        self._meter.update(pred, actual)
        self.promise.update(pred, actual)

    @property
    def pgr(self) -> float:
        """Predicted over actual total; NaN where the actual one is 0."""
        return self._meter.compute()["PGR"] if self.actual else math.nan

    @property
    def interval(self) -> Interval:
        """The always-valid 95 % interval of PGR; NaN for fewer than 100 rows."""
        if self.rows < _FEWEST or not self.actual:
            return Interval(math.nan, math.nan)
        half = always_valid_errors(self.rows) * self._meter.standard_errors()["PGR"]
        return Interval(self.pgr - half, self.pgr + half)
