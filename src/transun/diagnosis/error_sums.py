"""Sums of powers of errors that suffice for the interval of a total, whoever adds the total up."""

import math
from dataclasses import dataclass

import numpy as np

from transun.diagnosis.interval import skewed_quantile
from transun.diagnosis.tail import AmountTail
from transun.metrics.metric import Interval
from transun.support.arrays import Floats
from transun.support.counting import verb

__all__ = ["FEWEST_UNITS", "ErrorSums", "TotalError"]

# Intervals of fewer units than this miss too often in simulated worlds, whatever the method.
FEWEST_UNITS = 60
# In skewed samples, what is still to be drawn is missing from mean, spread and skewness alike. So an error as large as
# the largest is counted 45·ξ²/∛n times more, ξ being the tail index: the heavier the tail, and the fewer the rows, the
# more is missing. The form was chosen by the coverage of simulated totals, from 60 rows to 4,000.
_UNDRAWN = 45.0
# Outside of this range an index is an accident of few rows; without one, it is taken from the middle.
_LIGHTEST, _HEAVIEST, _MIDDLE = 0.2, 0.6, 0.4
# Where the errors' variance is known no better than from three rows, one row decides, and not the sample.
_FEWEST_FREEDOM = 3.0


@dataclass(frozen=True)
class TotalError:
    """The error of a total: D = scale·Σu + others - Σe, with the errors u of labelled units and e of the new rows.

    Args:
        scale: how many new rows, by weight, each labelled one stands for.
        new_rows: (Σ₂, Σ₃), by which sums of squares and of cubes of labelled errors become those of the new rows, whose
            own errors are part of the total; (0, 0) for the expected total.
        others: (Σ₂, Σ₃) of further terms that are independent of the errors.

    """

    scale: float
    new_rows: tuple[float, float] = (0.0, 0.0)
    others: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class ErrorSums:
    """Σu², Σu³ and Σu⁴ of the errors u of n independent units, whose mean is 0, with the largest one and their tail.

    Args:
        units: n; rows, or the customers or households that they belong to.
        squares: Σu².
        cubes: Σu³.
        fourths: Σu⁴.
        largest: the error of the largest absolute value.
        tail: how heavy the tail of the amounts is.

    """

    units: int
    squares: float
    cubes: float
    fourths: float
    largest: float
    tail: AmountTail

    @classmethod
    def of(cls, errors: Floats, tail: AmountTail) -> "ErrorSums":
        """The sums of the deviations of some errors (n,) from their mean, of amounts with this tail.

        >>> sums = ErrorSums.of(np.array([1.0, 2.0, 6.0]), AmountTail(0.0, 0.1, 100))  # deviations -2, -1 and 3
        >>> sums.squares, sums.cubes, sums.largest
        (14.0, 18.0, 3.0)
        """
        if not len(errors):
            return cls(0, 0.0, 0.0, 0.0, 0.0, tail)
        u = errors - errors.mean()
        squares, cubes, fourths = (float((u**power).sum()) for power in (2, 3, 4))
        return cls(len(u), squares, cubes, fourths, float(u[np.abs(u).argmax()]), tail)

    def repeated(self, times: float) -> "ErrorSums":
        """The sums of `times` as many errors of the same kind, for which these are a sample."""
        squares, cubes, fourths = (times * each for each in (self.squares, self.cubes, self.fourths))
        return ErrorSums(round(times * self.units), squares, cubes, fourths, self.largest, self.tail)

    @property
    def largest_share(self) -> float:
        """The share of the largest error in the variance."""
        return self.largest**2 / self.squares if self.squares > 0.0 else 0.0

    @property
    def decided_by_one(self) -> bool:
        """Whether the variance is known no better than from three rows, because one error is most of it."""
        return self.squares > 0.0 and self.fourths / self.squares**2 - 1.0 / self.units > 2.0 / _FEWEST_FREEDOM

    def refusal(self, *, assumed: bool = False) -> str:
        """Why these errors allow no interval, as the end of a sentence; empty where they allow one.

        Args:
            assumed: the variance of the amounts is taken to be finite unless they show that it is not.

        """
        if self.units < FEWEST_UNITS:
            are = verb(self.units, "is", "are")
            return f"there {are} {self.units:,} labelled, and at least {FEWEST_UNITS} are needed"
        if not self.squares > 0.0:
            return (
                f"the errors of all {self.units:,} labelled are the same, so that nothing shows the scatter of amounts"
            )
        if self.decided_by_one:
            return f"one of {self.units:,} errors carries {self.largest_share:.0%} of the uncertainty"
        return self.tail.refusal(assumed=assumed)

    def variance(self, total: TotalError) -> float:
        """The variance of the error D of a total."""
        return (total.scale**2 + total.new_rows[0]) * self._unbiased_squares() + total.others[0]

    def interval(self, value: float, total: TotalError, level: float) -> Interval:
        """The interval of a total whose estimate is `value`, with unequal sides where the errors are skewed.

        t = D / √V̂ is not Student's: V̂ is high where D is. Its mean and third cumulant follow from those of D and from
        the covariance of D and V̂, and Hall's cubic with them removes the skewness; see `skewed_quantile`. The degrees
        of freedom are those that the kurtosis leaves to V̂ (Satterthwaite).

        >>> even = ErrorSums.of(np.array([-1.0, 1.0] * 5_000), AmountTail(0.0, 0.01, 10_000))
        >>> ends = even.interval(100.0, TotalError(scale=1.0), level=0.95)
        >>> round(100.0 - ends.low), round(ends.high - 100.0)  # 1.96·√10,000
        (196, 196)
        """
        again = self._undrawn() * abs(self.largest)
        squares = self._unbiased_squares() + again * abs(self.largest)
        cubes = self.cubes + again * self.largest * abs(self.largest)
        fourths = self.fourths + again * abs(self.largest) ** 3
        both = total.scale**2 + total.new_rows[0]
        variance = both * squares + total.others[0]
        if not variance > 0.0:
            return Interval(value, value)
        unit = variance**1.5
        skewness = ((total.scale**3 - total.new_rows[1]) * cubes + total.others[1]) / unit
        covariance = (total.scale * both * cubes + total.others[1]) / unit
        bend = (3.0 * covariance - skewness) / 6.0
        shift = 0.5 * covariance - bend
        noise = both**2 * (fourths - squares**2 / self.units) / variance**2
        freedom = min(self.units - 1.0, 2.0 / max(noise, 1e-12))
        upper, lower = (skewed_quantile(freedom, 0.5 * (1.0 + side * level), bend, shift) for side in (1.0, -1.0))
        error = math.sqrt(variance)
        return Interval(value - upper * error, value - lower * error)

    def units_to_halve(self, total: TotalError) -> float:
        """How many labelled units would halve the interval; infinite where the luck of the new rows alone is more.

        >>> even = ErrorSums.of(np.array([-1.0, 1.0] * 50), AmountTail(0.0, 0.1, 100))
        >>> round(even.units_to_halve(TotalError(scale=1.0)))
        400
        """
        estimated = total.scale**2 * self._unbiased_squares()
        fixed = total.new_rows[0] * self._unbiased_squares() + total.others[0]
        left = (estimated + fixed) / 4.0 - fixed
        return self.units * estimated / left if left > 0.0 else math.inf

    def _undrawn(self) -> float:
        index = _MIDDLE if math.isnan(self.tail.index) else min(max(self.tail.index, _LIGHTEST), _HEAVIEST)
        return _UNDRAWN * index**2 / math.cbrt(self.units)

    def _unbiased_squares(self) -> float:
        return self.squares * self.units / max(self.units - 1, 1)
