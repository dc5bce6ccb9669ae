"""Balance: what brings held-out predictions to the right total, overall and by segment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Balanced:
    """Predictions times a factor, or plus a shift; the factor may differ by segment.

    Args:
        factor: of rows whose segment has no factor of its own.
        shift: what is added.
        segments: factors by segment.

    """

    factor: float = 1.0
    shift: float = 0.0
    segments: Mapping[Any, float] = field(default_factory=dict)

    def __call__(self, pred: Array, segment: NDArray[Any] | None = None) -> Array:
        """The balanced predictions."""
        if segment is None or not self.segments:
            return pred * self.factor + self.shift
        known, place = np.unique(segment, return_inverse=True)
        factors = np.array([self.segments.get(value, self.factor) for value in known.tolist()])
        return np.asarray(pred * factors[place])


@dataclass(frozen=True)
class Balance:
    """Learns from held-out predictions the factor Σy / Σŷ that makes their total exact; called with them.

    Boosted trees and early-stopped networks do not keep totals, whatever their loss. One factor costs no accuracy
    and no ranking. By segment, b_g = Σy_g / Σŷ_g is noisy where the segment is small, so log b_g is shrunk towards the
    overall factor by τ² / (τ² + v_g): v_g is its sampling variance, τ² the variance between segments that the data
    show beyond it (the moment estimate of DerSimonian and Laird). With no true differences τ² is about zero and
    nothing moves. The total over all rows stays exact.

    Targets of both signs get a shift instead of a factor, overall only.

    Args:
        by: a column of X, by name or position, whose values are the segments. None balances overall.

    >>> Balance()(np.array([1.0, 3.0]), np.array([2.0, 6.0]))
    Balanced(factor=2.0, shift=0.0, segments={})

    """

    by: str | int | None = None

    def __call__(
        self, pred: Array, y: Array, weight: Array | None = None, segment: NDArray[Any] | None = None
    ) -> Balanced:
        """What balances these predictions of rows that their model did not see."""
        weight = np.ones_like(y) if weight is None else weight
        actual, predicted = float(weight @ y), float(weight @ pred)
        if (y < 0.0).any() or predicted <= 0.0:
            if segment is not None:
                raise ValueError("Balance by segment needs targets that are not negative and positive predictions")
            return Balanced(shift=(actual - predicted) / float(weight.sum()))
        overall = actual / predicted
        if segment is None or overall == 0.0:
            return Balanced(overall)
        return Balanced(overall, segments=_shrunk(pred, y, weight, segment, overall))


def _shrunk(pred: Array, y: Array, weight: Array, segment: NDArray[Any], overall: float) -> dict[Any, float]:
    known, place = np.unique(segment, return_inverse=True)
    actual, predicted = (np.bincount(place, weight * values) for values in (y, pred))
    usable = (actual > 0.0) & (predicted > 0.0)
    ratio = np.where(usable, actual, 1.0) / np.where(usable, predicted, 1.0)
    # By the delta method, the variance of a log ratio of totals is that of Σ w(y - bŷ), relative to (Σ wy)².
    noise = np.bincount(place, (weight * (y - ratio[place] * pred)) ** 2) / np.where(usable, actual, 1.0) ** 2
    usable &= noise > 0.0
    gap = np.where(usable, np.log(ratio / overall), 0.0)
    precision = np.where(usable, 1.0 / np.where(usable, noise, 1.0), 0.0)
    total = precision.sum()
    spread = 0.0
    if total > 0.0 and usable.sum() > 1:
        centre = float(precision @ gap) / total
        excess = float(precision @ (gap - centre) ** 2) - (usable.sum() - 1)
        spread = max(0.0, excess / (total - float(precision @ precision) / total))
    kept = np.where(usable, spread / np.where(usable, spread + noise, 1.0), 0.0)
    factors = overall * np.exp(kept * gap)
    factors *= float(weight @ y) / float((weight * pred) @ factors[place])
    return dict(zip(known.tolist(), factors.tolist(), strict=True))
