"""How heavy the tail of some errors is, and whether their variance can be finite."""

import math
from dataclasses import dataclass

import numpy as np

from transun.diagnosis.moments import Floats

__all__ = ["ErrorTail"]

# The tail is the n^0.65 largest of n errors: few enough to be a tail, and many enough to be measured.
_GROWTH = 0.65
_FEWEST = 10
# The variance is called infinite where the index is above 1/2 by this many standard errors: 5 % one-sided.
_SURE = 1.645


@dataclass(frozen=True)
class ErrorTail:
    """The index ξ of a tail P(|e| > x) ~ x^(-1/ξ), with its standard error.

    A sum of n errors behaves like a normal one only if their variance is finite, that is for ξ < 1/2. The estimate is
    the moment estimator of Dekkers, Einmahl and de Haan: with M₁ and M₂ the mean and the mean square of
    ln(x / threshold) over the k largest, ξ = M₁ + 1 - ½ / (1 - M₁² / M₂). Hill's estimator, M₁ alone, would be sharper
    for an exact power law, but calls a lognormal one; this one sees the difference in M₂.

    Args:
        index: ξ; NaN where fewer than ten errors differ from the middle one.
        error: its standard error, √((1 + ξ²) / k).
        count: k, how many errors it was estimated from.

    """

    index: float
    error: float
    count: int

    @classmethod
    def of(cls, errors: Floats) -> "ErrorTail":
        """The tail of the distances of the errors (n,) from their median, both sides together.

        >>> ErrorTail.of(np.arange(1.0, 10_001.0) ** -0.8).infinite_variance  # P(e > x) = x^(-1.25): ξ = 0.8
        True
        >>> ErrorTail.of(np.linspace(-1.0, 1.0, 10_001)).infinite_variance
        False
        """
        distance = np.abs(errors - np.median(errors)) if len(errors) else errors
        count = min(int(len(errors) ** _GROWTH), int((distance > 0.0).sum()) - 1)
        if count < _FEWEST:
            return cls(math.nan, math.nan, max(count, 0))
        top = np.sort(np.partition(distance, -count - 1)[-count - 1 :])
        excess = np.log(top[1:] / top[0])
        first, second = float(excess.mean()), float((excess**2).mean())
        # Where the largest are all alike there is no tail.
        index = first + 1.0 - 0.5 / (1.0 - first**2 / second) if first**2 < second * (1.0 - 1e-9) else 0.0
        return cls(index, math.sqrt((1.0 + index**2) / count), count)

    @property
    def infinite_variance(self) -> bool:
        """Whether the errors show that their variance is infinite; False where they cannot tell."""
        return self.index - _SURE * self.error > 0.5
