"""Sums of powers of errors that suffice for the interval of a total, whoever adds the total up."""

import math
from dataclasses import dataclass

import numpy as np

from transun.diagnosis.interval import skewed_quantile
from transun.diagnosis.moments import Floats
from transun.diagnosis.tail import ErrorTail
from transun.metrics.metric import Interval

__all__ = ["FEWEST_UNITS", "Composition", "ErrorSums"]

# Fewer units than this say next to nothing about the tail of their errors.
FEWEST_UNITS = 30
# An error as large as the largest is counted half a time more: in skewed samples what is still to be drawn is missing
# from mean, spread and skewness alike. The share was chosen among 0, 1/4 and 1/2 by the coverage of simulated totals.
_UNDRAWN = 0.5
# Where the errors' variance is known no better than from three rows, one row decides, and not the sample.
_FEWEST_FREEDOM = 3.0


@dataclass(frozen=True)
class Composition:
    """How the error of a total is made of the errors u of labelled units: D = scale·Σu + others - luck.

    Args:
        scale: how many new rows, by weight, each labelled one stands for.
        luck: (Σ₂, Σ₃), by which sums of squares and of cubes of labelled errors become those of the new rows, whose
            own errors are part of the total; (0, 0) for the expected total.
        others: (Σ₂, Σ₃) of further terms that are independent of the errors.

    """

    scale: float
    luck: tuple[float, float] = (0.0, 0.0)
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
        tail: how heavy the tail of the errors is.

    """

    units: int
    squares: float
    cubes: float
    fourths: float
    largest: float
    tail: ErrorTail

    @classmethod
    def of(cls, errors: Floats) -> "ErrorSums":
        """The sums of the deviations of some errors (n,) from their mean.

        >>> sums = ErrorSums.of(np.array([1.0, 2.0, 6.0]))  # deviations -2, -1 and 3
        >>> sums.squares, sums.cubes, sums.largest
        (14.0, 18.0, 3.0)
        """
        if not len(errors):
            return cls(0, 0.0, 0.0, 0.0, 0.0, ErrorTail.of(errors))
        u = errors - errors.mean()
        squares, cubes, fourths = (float((u**power).sum()) for power in (2, 3, 4))
        return cls(len(u), squares, cubes, fourths, float(u[np.abs(u).argmax()]), ErrorTail.of(errors))

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

    def refusal(self) -> str:
        """Why these errors allow no interval, as the end of a sentence; empty where they allow one."""
        if self.units < FEWEST_UNITS:
            return f"there are {self.units:,} labelled, and at least {FEWEST_UNITS} are needed"
        if not self.squares > 0.0:
            return (
                f"the errors of all {self.units:,} labelled are the same, so that nothing shows the scatter of amounts"
            )
        if self.decided_by_one:
            return f"one of {self.units:,} errors carries {self.largest_share:.0%} of the uncertainty"
        if self.tail.infinite_variance:
            return (
                f"the largest errors fall off so slowly (tail index {self.tail.index:.2f} ± {self.tail.error:.2f}, "
                "and from 0.5 on the variance is infinite) that the next one may be larger than all so far together"
            )
        return ""

    def variance(self, made_of: Composition) -> float:
        """The variance of the error D of a total."""
        return (made_of.scale**2 + made_of.luck[0]) * self._unbiased_squares() + made_of.others[0]

    def interval(self, value: float, made_of: Composition, level: float) -> Interval:
        """The interval of a total whose estimate is `value`, with unequal sides where the errors are skewed.

        t = D / √V̂ is not Student's: V̂ is high where D is. Its mean and third cumulant follow from those of D and from
        the covariance of D and V̂, and Hall's cubic with them removes the skewness; see `skewed_quantile`. The degrees
        of freedom are those that the kurtosis leaves to V̂ (Satterthwaite).

        >>> even = ErrorSums.of(np.array([-1.0, 1.0] * 5_000))
        >>> ends = even.interval(100.0, Composition(scale=1.0), level=0.95)
        >>> round(100.0 - ends.low), round(ends.high - 100.0)  # 1.96·√10,000
        (196, 196)
        """
        again = _UNDRAWN * abs(self.largest)
        squares = self._unbiased_squares() + again * abs(self.largest)
        cubes = self.cubes + again * self.largest * abs(self.largest)
        fourths = self.fourths + again * abs(self.largest) ** 3
        both = made_of.scale**2 + made_of.luck[0]
        variance = both * squares + made_of.others[0]
        if not variance > 0.0:
            return Interval(value, value)
        unit = variance**1.5
        skewness = ((made_of.scale**3 - made_of.luck[1]) * cubes + made_of.others[1]) / unit
        covariance = (made_of.scale * both * cubes + made_of.others[1]) / unit
        bend = (3.0 * covariance - skewness) / 6.0
        shift = 0.5 * covariance - bend
        noise = both**2 * (fourths - squares**2 / self.units) / variance**2
        freedom = min(self.units - 1.0, 2.0 / max(noise, 1e-12))
        upper, lower = (skewed_quantile(freedom, 0.5 * (1.0 + side * level), bend, shift) for side in (1.0, -1.0))
        error = math.sqrt(variance)
        return Interval(value - upper * error, value - lower * error)

    def units_to_halve(self, made_of: Composition) -> float:
        """How many labelled units would halve the interval; infinite where the luck of the new rows alone is more.

        >>> round(ErrorSums.of(np.array([-1.0, 1.0] * 50)).units_to_halve(Composition(scale=1.0)))
        400
        """
        estimated = made_of.scale**2 * self._unbiased_squares()
        fixed = made_of.luck[0] * self._unbiased_squares() + made_of.others[0]
        left = (estimated + fixed) / 4.0 - fixed
        return self.units * estimated / left if left > 0.0 else math.inf

    def _unbiased_squares(self) -> float:
        return self.squares * self.units / max(self.units - 1, 1)
