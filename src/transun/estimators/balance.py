"""Balance: factors, learned from out-of-fold predictions, that make totals right, overall and by segment."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from transun.corrections import TotalRatio, TotalShift
from transun.estimators.composition import Balanced, Composition
from transun.estimators.target import to_tensor
from transun.support.arrays import Floats, distinct
from transun.transforms import Identity


@dataclass(frozen=True)
class LearnedBalance:
    """Predictions times a factor, or plus a shift; the factor may differ by segment.

    Args:
        factor: the factor of rows whose segment is not in `segments`.
        shift: the amount that is added.
        segments: factors by segment.

    """

    factor: float = 1.0
    shift: float = 0.0
    segments: Mapping[Any, float] = field(default_factory=dict)

    def apply(self, pred: Floats, segment: NDArray[Any] | None = None) -> Floats:
        """The balanced predictions."""
        if segment is None or not self.segments:
            return pred * self.factor + self.shift
        names, segment_of_row = distinct(segment)
        factors = np.array([self.segments.get(name, self.factor) for name in names])
        return np.asarray(pred * factors[segment_of_row])

    def around(self, composition: Composition, by: str | int | None, unit: float = 1.0) -> Composition:
        """The same balance of what a composition predicts, times a unit.

        Args:
            composition: what is balanced.
            by: the column of X that holds the segments.
            unit: a factor of all predictions.

        """
        segments = {name: factor * unit for name, factor in self.segments.items()}
        formula = Balanced(composition.formula, self.factor * unit, self.shift * unit, segments)
        return replace(composition, formula=formula, columns=(by,) if segments and by is not None else ())


@dataclass(frozen=True)
class Balance:
    """Learns from out-of-fold predictions the factor Σy / Σŷ that makes their total exact.

    Boosted trees and early-stopped networks do not keep totals, whatever their loss. One factor costs no accuracy
    and no ranking. By segment, b_g = Σy_g / Σŷ_g is noisy where the segment is small, so log b_g is shrunk towards the
    overall factor by τ² / (τ² + v_g): v_g is its sampling variance, τ² the variance between segments that the data
    show beyond it (the moment estimate of DerSimonian and Laird). With no true differences τ² is about zero and
    nothing moves. The total over all rows stays exact.

    Targets of both signs get a shift instead of a factor, overall only.

    Args:
        by: a column of X, by name or position, whose values are the segments. None balances overall.

    >>> Balance()(np.array([1.0, 3.0]), np.array([2.0, 6.0]))
    LearnedBalance(factor=2.0, shift=0.0, segments={})

    """

    by: str | int | None = None

    def __call__(
        self, pred: Floats, y: Floats, weight: Floats | None = None, segment: NDArray[Any] | None = None
    ) -> LearnedBalance:
        """The factors or the shift for these predictions, of rows that their model was not fitted to.

        Balance is a callable because scikit-learn accepts no other object as the default of a parameter.
        """
        weight = np.ones_like(y) if weight is None else weight
        if (y < 0.0).any() or float(weight @ pred) <= 0.0:
            if segment is not None:
                raise ValueError("Balance by segment needs targets that are not negative and positive predictions")
            return LearnedBalance(shift=_total_shift(pred, y, weight))
        overall = _total_ratio(pred, y, weight)
        if segment is None or overall == 0.0:
            return LearnedBalance(overall)
        return LearnedBalance(overall, segments=_shrunk_factors(pred, y, weight, segment, overall))

    def segments(self, X: Any) -> NDArray[Any] | None:
        """The column of X that holds the segments, or None if the balance is overall."""
        if self.by is None:
            return None
        try:
            return np.asarray(_safe_indexing(X, self.by, axis=1))
        except (KeyError, ValueError, IndexError) as error:
            raise ValueError(f"Balance: X has no column {self.by!r} to take the segments from") from error


def _total_ratio(pred: Floats, y: Floats, weight: Floats) -> float:
    """Σy / Σŷ."""
    ratio = TotalRatio().double().fit(to_tensor(pred), to_tensor(y), Identity(), to_tensor(weight))
    return float(ratio.factor)


def _total_shift(pred: Floats, y: Floats, weight: Floats) -> float:
    """The mean of y - ŷ."""
    shift = TotalShift().double().fit(to_tensor(pred), to_tensor(y), Identity(), to_tensor(weight))
    return float(shift.shift)


def _shrunk_factors(pred: Floats, y: Floats, weight: Floats, segment: NDArray[Any], overall: float) -> dict[Any, float]:
    names, segment_of_row = distinct(segment)
    actual, predicted = (np.bincount(segment_of_row, weight * values) for values in (y, pred))
    usable = (actual > 0.0) & (predicted > 0.0)
    ratio = np.where(usable, actual, 1.0) / np.where(usable, predicted, 1.0)
    # By the delta method, the variance of a log ratio of totals is that of Σ w(y - bŷ), relative to (Σ wy)².
    residual = weight * (y - ratio[segment_of_row] * pred)
    variance = np.bincount(segment_of_row, residual**2) / np.where(usable, actual, 1.0) ** 2
    usable &= variance > 0.0
    log_ratio = np.where(usable, np.log(ratio / overall), 0.0)
    precision = np.where(usable, 1.0 / np.where(usable, variance, 1.0), 0.0)
    total_precision = precision.sum()
    between = 0.0  # τ²
    if total_precision > 0.0 and usable.sum() > 1:
        centre = float(precision @ log_ratio) / total_precision
        excess = float(precision @ (log_ratio - centre) ** 2) - (usable.sum() - 1)
        between = max(0.0, excess / (total_precision - float(precision @ precision) / total_precision))
    shrinkage = np.where(usable, between / np.where(usable, between + variance, 1.0), 0.0)
    factors = overall * np.exp(shrinkage * log_ratio)
    factors *= _total_ratio(pred * factors[segment_of_row], y, weight)
    return dict(zip(names, factors.tolist(), strict=True))
