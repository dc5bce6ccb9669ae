"""How late actual amounts arrive: the delay curve, estimated from rows that are not all complete yet."""

from dataclasses import dataclass

import numpy as np

from transun.support.arrays import Floats

__all__ = ["DelayCurve", "arrivals_by_delay"]


@dataclass(frozen=True)
class DelayCurve:
    """The share of an amount that has arrived k periods after its prediction, for k = 0, 1, ...; the last share is 1.

    Args:
        arrived: shares, not falling.

    >>> curve = DelayCurve.of(np.array([[6.0, 4.0], [3.0, 2.0], [9.0, 0.0]]), now=2)  # the last is one period old
    >>> curve.arrived.tolist()
    [0.6, 1.0]
    >>> curve.expected(np.array([10.0, 20.0])).tolist()  # of each period of prediction, by delay
    [[6.0, 4.0], [12.0, 8.0]]

    """

    arrived: Floats

    @classmethod
    def of(cls, amounts: Floats, now: int) -> "DelayCurve":
        """The curve that amounts by period of prediction and delay show (chain ladder).

        From one delay to the next the amounts of all periods that are old enough for both grow by a factor, the ratio
        of their sums; the share arrived is one over the product of the factors to come. Periods that are too young to
        be complete thus count as far as they go, and none is taken for low because it is young.

        Args:
            amounts: that arrived (periods of prediction, delays).
            now: the last period whose arrivals are known, counted like the periods of prediction.

        """
        totals = np.cumsum(amounts, axis=1)
        age = now - np.arange(len(amounts))
        arrived = np.ones(amounts.shape[1])
        for delay in range(amounts.shape[1] - 2, -1, -1):
            old = age > delay
            later = totals[old, delay + 1].sum()
            step = totals[old, delay].sum() / later if later > 0.0 else 1.0
            arrived[delay] = arrived[delay + 1] * step
        return cls(np.clip(arrived, 0.0, 1.0))

    @property
    def shares(self) -> Floats:
        """The share that arrives at each delay; they add up to 1."""
        return np.diff(self.arrived, prepend=0.0)

    @property
    def half(self) -> int:
        """The delay by which about half of an amount has arrived, and after which some is still to come."""
        return int(np.argmin(np.abs(self.arrived[:-1] - 0.5))) if len(self.arrived) > 1 else 0

    def expected(self, predicted: Floats) -> Floats:
        """The amounts that are expected by period of prediction and delay, for predicted totals (n,)."""
        return np.outer(predicted, self.shares)


def arrivals_by_delay(amounts: Floats) -> Floats:
    """Amounts by period of arrival and delay, from amounts by period of prediction and delay.

    What arrives after the last period is left out.

    >>> arrivals_by_delay(np.array([[6.0, 4.0], [3.0, 2.0]])).tolist()
    [[6.0, 0.0], [3.0, 4.0]]
    """
    shifted = np.zeros_like(amounts)
    for delay in range(min(amounts.shape)):
        shifted[delay:, delay] = amounts[: len(amounts) - delay, delay]
    return shifted
