"""How heavy the tail of amounts is, and whether their variance can be finite."""

import math
from dataclasses import dataclass

import numpy as np

from transun.support.arrays import Floats

__all__ = ["AmountTail", "relative_amounts"]

# A power law is looked for above these shares of the smallest amounts, and the first that fits is taken. From fewer
# amounts, or above a higher threshold, too many amounts of another law would be taken for one.
_BELOW = (0.05, 0.1, 0.2)
_FEWEST_OF_LAW = 100
# Of samples of a power law one in ten fits worse by the statistic of Anderson and Darling (Stephens, 1974).
_LARGEST_MISFIT = 1.062
# Elsewhere the tail is the n^0.75 largest of n amounts: few enough to be a tail, and many enough to be measured.
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

    A sum of n amounts behaves like a normal one only if their variance is finite, that is for ξ < 1/2. With M₁ and M₂
    the mean and the mean square of ln(x / threshold) over the k largest, there are two estimates:

    - Hill's, ξ = M₁, is the sharper one, since ln(x / threshold) of a power law is exponential with the mean ξ; but it
      calls a lognormal heavy.
    - The moment estimator of Dekkers, Einmahl and de Haan, ξ = M₁ + 1 - ½ / (1 - M₁² / M₂), holds for any tail, because
      it sees the difference in M₂; but it needs a high threshold, and from a few hundred amounts it is off by more than
      what there is to tell apart.

    So Hill's is taken where a power law fits nearly all amounts, by the test of Anderson and Darling, and the other one
    elsewhere. The mean of exponential variables is independent of how well their law fits (Basu), so that the test does
    not bias the index. A tail that is a power law only far out, above a body of another shape, gains nothing by it.

    Args:
        index: ξ; NaN where too few amounts are above 0.
        error: its standard error, ξ/√k of Hill's and √((1 + ξ²) / k) of the other.
        count: k, how many amounts it was estimated from.

    """

    index: float
    error: float
    count: int

    @classmethod
    def of(cls, values: Floats, *, bounded: bool = False) -> "AmountTail":
        """The tail of values (n,), of which those above 0 count.

        Args:
            values: amounts, or amounts relative to their predictions.
            bounded: they have an upper end, such as a cap, so that no power law is looked for.

        >>> AmountTail.of(np.arange(1.0, 10_001.0) ** -0.8).infinite_variance  # P(x > t) = t^(-1.25): ξ = 0.8
        True
        >>> AmountTail.of(np.linspace(0.0, 1.0, 10_001)).finite_variance
        True

        """
        logs = np.log(np.sort(values[values > 0.0])[::-1])
        for share in () if bounded else _BELOW:
            excesses = _excesses(logs, int((1.0 - share) * len(logs)))
            count = len(excesses)
            if count >= _FEWEST_OF_LAW and _follow_power_law(excesses):
                hill = float(excesses.mean())
                return cls(hill, hill / math.sqrt(count), count)
        excesses = _excesses(logs, int(len(logs) ** _GROWTH))
        count = len(excesses)
        if count < _FEWEST:
            return cls(math.nan, math.nan, count)
        index = _moment_index(excesses)
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
        interval of the same rows misses more often than it would without the question. What this costs, how many
        lognormal amounts are refused and how many of infinite variance are not, is in docs/coverage.md.
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


def _excesses(logs: Floats, count: int) -> Floats:
    """ln(x / threshold) of the `count` largest amounts, or of all but one, (k,); the threshold is the next one.

    Args:
        logs: logarithms of all amounts above 0, the largest first.
        count: k, where there are more.

    """
    count = max(min(count, len(logs) - 1), 0)
    return logs[:count] - logs[count] if count else np.zeros(0)


def _follow_power_law(excesses: Floats) -> bool:
    """Whether ln(x / threshold) (k,), the largest first, has an exponential law up to chance; k ≥ 1.

    Anderson and Darling's A² = -k - Σ (2i - 1)/k · (ln F(xᵢ) + ln(1 - F(xₖ₊₁₋ᵢ))), with F of the mean that was
    measured.
    """
    count, mean = len(excesses), float(excesses.mean())
    if not excesses[-1] > 0.0:  # several amounts are equal to the threshold: these are prices, and no density
        return False
    x = excesses[::-1] / mean
    weights = (2.0 * np.arange(1, count + 1) - 1.0) / count
    statistic = -count - float(weights @ (np.log(-np.expm1(-x)) - x[::-1]))
    return statistic * (1.0 + 0.6 / count) < _LARGEST_MISFIT


def _moment_index(excesses: Floats) -> float:
    """The moment estimator of ξ; 0 where the largest are all alike, because then there is no tail."""
    mean, square = float(excesses.mean()), float((excesses**2).mean())
    return mean + 1.0 - 0.5 / (1.0 - mean**2 / square) if mean**2 < square * (1.0 - 1e-9) else 0.0
