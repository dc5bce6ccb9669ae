"""How heavy the tail of amounts is, and whether their variance can be finite."""

import math
from dataclasses import dataclass

import numpy as np

from transun.support.arrays import Floats

__all__ = ["AmountTail", "relative_amounts"]

# The tail is the n^0.75 largest of n amounts above 0: few enough to be a tail, and many enough to be measured.
_GROWTH = 0.75
_FEWEST = 10
# "Shown" means by this many standard errors: 5 % one-sided.
_SURE = 1.645
# A prediction below this share of the mean one counts as this share: no amount is large because nothing was expected.
_LEAST_SHARE = 0.1


def relative_amounts(y: Floats, pred: Floats) -> Floats:
    """|y| / ŷ of units whose amounts are y (n,) and whose predictions are ŷ (n,); small ŷ count as a tenth of the mean.

    Large amounts of rows that were expected to be large are no surprise, and errors that grow with ŷ mix tails of many
    sizes, which looks like a heavy one. The amount as a multiple of what was expected has neither defect.

    >>> relative_amounts(np.array([3.0, 4.0]), np.array([1.0, 8.0])).tolist()
    [3.0, 0.5]
    """
    if not len(y):
        return np.abs(y)
    least = _LEAST_SHARE * float(np.mean(np.abs(pred)))
    return np.asarray(np.abs(y) / np.maximum(pred, least)) if least > 0.0 else np.abs(y)


@dataclass(frozen=True)
class AmountTail:
    """The index ξ of a tail P(x > t) ~ t^(-1/ξ), with its standard error.

    A sum of n amounts behaves like a normal one only if their variance is finite, that is for ξ < 1/2. The estimate is
    the moment estimator of Dekkers, Einmahl and de Haan: with M₁ and M₂ the mean and the mean square of
    ln(x / threshold) over the k largest, ξ = M₁ + 1 - ½ / (1 - M₁² / M₂). Hill's estimator, M₁ alone, would be sharper
    for an exact power law, but calls a lognormal one; this one sees the difference in M₂.

    Args:
        index: ξ; NaN where too few amounts are above 0.
        error: its standard error, √((1 + ξ²) / k).
        count: k, how many amounts it was estimated from.

    """

    index: float
    error: float
    count: int

    @classmethod
    def of(cls, values: Floats) -> "AmountTail":
        """The tail of values (n,), of which those above 0 count.

        >>> AmountTail.of(np.arange(1.0, 10_001.0) ** -0.8).infinite_variance  # P(x > t) = t^(-1.25): ξ = 0.8
        True
        >>> AmountTail.of(np.linspace(0.0, 1.0, 10_001)).finite_variance
        True
        """
        positive = values[values > 0.0]
        count = min(int(len(positive) ** _GROWTH), len(positive) - 1)
        if count < _FEWEST:
            return cls(math.nan, math.nan, max(count, 0))
        top = np.sort(np.partition(positive, -count - 1)[-count - 1 :])
        excess = np.log(top[1:] / top[0])
        first, second = float(excess.mean()), float((excess**2).mean())
        # Where the largest are all alike there is no tail.
        index = first + 1.0 - 0.5 / (1.0 - first**2 / second) if first**2 < second * (1.0 - 1e-9) else 0.0
        return cls(index, math.sqrt((1.0 + index**2) / count), count)

    def joined(self, other: "AmountTail | None") -> "AmountTail":
        """The tail by the rows of both, each index counting by its precision.

        >>> AmountTail(0.2, 0.1, 100).joined(AmountTail(0.4, 0.1, 100))  # doctest: +ELLIPSIS
        AmountTail(index=0.3..., error=0.07..., count=200)
        """
        if other is None or math.isnan(other.index):
            return self
        if math.isnan(self.index):
            return other
        mine, theirs = self.error**-2, other.error**-2
        index = (mine * self.index + theirs * other.index) / (mine + theirs)
        return AmountTail(index, (mine + theirs) ** -0.5, self.count + other.count)

    @property
    def finite_variance(self) -> bool:
        """Whether the amounts show, beyond chance, that their variance is finite."""
        return self.index + _SURE * self.error < 0.5

    @property
    def infinite_variance(self) -> bool:
        """Whether the amounts show, beyond chance, that their variance is infinite; False where they cannot tell."""
        return self.index - _SURE * self.error > 0.5

    @property
    def likely_finite_variance(self) -> bool:
        """Whether a finite variance is the likelier case, ξ < 1/2.

        Proof beyond chance would be the wrong thing to ask for before an interval is given. A few hundred rows cannot
        prove it even where it holds; and where they seem to, their largest amounts happen to be missing, so that the
        interval of the same rows misses more often than it would without the question. Asked this way, nine of ten
        samples of 300 lognormal amounts get an interval, which keeps its level; and of 300 amounts with ξ = 2/3, whose
        variance is infinite, one in six gets one, so that 1 in 20 gets one that misses. It is therefore true of both
        that at most 5 of 100 questions get a wrong 95 % interval (`benchmarks/coverage_totals.py`).
        """
        return self.index < 0.5

    def refusal(self, *, assumed: bool = False) -> str:
        """Why this tail allows no interval of a total, as the end of a sentence; empty where it allows one.

        Args:
            assumed: the variance is taken to be finite unless the amounts show that it is not.

        """
        if self.infinite_variance:
            return (
                f"the largest amounts fall off so slowly (tail index {self.index:.2f} ± {self.error:.2f}, and from 0.5 "
                "on the variance is infinite) that the next one may be larger than all so far together"
            )
        if assumed or self.likely_finite_variance:
            return ""
        if math.isnan(self.index):
            return "too few amounts are above 0 to tell whether their variance is finite"
        return (
            f"the variance of the amounts is likelier infinite than finite (tail index {self.index:.2f} ± "
            f"{self.error:.2f}, and it is infinite from 0.5 on), and no interval holds where it is infinite"
        )
