"""Convex combinations of unbiased predictions, which are unbiased, with the least squared error out of fold."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

Array = NDArray[np.float64]

# A candidate that counts less than this is not worth the fits.
_LEAST = 0.05


@dataclass(frozen=True)
class Judgement:
    """A mean squared error, and its distance from the best one's with the standard error of that distance."""

    error: float
    worse_by: float
    standard_error: float


def shares(rows: int, weight: Array | None) -> Array:
    """What each row counts, adding up to one; the same for all where there are no weights.

    >>> shares(2, None).tolist(), shares(2, np.array([3.0, 1.0])).tolist()
    ([0.5, 0.5], [0.75, 0.25])
    """
    return np.full(rows, 1.0 / rows) if weight is None else np.asarray(weight / weight.sum())


def judge(errors: Array, weight: Array | None = None) -> list[Judgement]:
    """The squared errors (n, candidates) of each candidate against those of the best, row by row.

    >>> judge(np.array([[1.0, 4.0], [1.0, 2.0]]))[1]
    Judgement(error=3.0, worse_by=2.0, standard_error=1.0)
    """
    share = shares(len(errors), weight)
    means = share @ errors
    gaps = errors - errors[:, [int(means.argmin())]]
    worse = share @ gaps
    count = max(1.0 / float(share @ share) - 1.0, 1.0)  # rows that equal weights would need, less one
    noise = np.sqrt(share @ (gaps - worse) ** 2 / count)
    return [Judgement(*map(float, row)) for row in zip(means, worse, noise, strict=True)]


def mix(predictions: Array, y: Array, weight: Array | None = None) -> Array:
    """Weights (candidates,) that are not negative and add up to one, of least squared error; small ones are dropped.

    >>> mix(np.array([[0.0, 4.0], [0.0, 4.0]]), np.array([1.0, 1.0])).round(6).tolist()
    [0.75, 0.25]
    """
    root = np.ones_like(y) if weight is None else np.sqrt(weight)
    kept = np.ones(predictions.shape[1], dtype=bool)
    weights = np.zeros(predictions.shape[1])
    while True:
        weights[:] = 0.0
        weights[kept] = _simplex(predictions[:, kept] * root[:, None], y * root)
        small = (weights < _LEAST) & kept
        if not small.any():
            return weights
        kept &= ~small


def _simplex(predictions: Array, y: Array) -> Array:
    """Least squares over the simplex: with weights that add up to one, ŷ - y is a combination of the errors."""
    errors = predictions - y[:, None]
    gram = errors.T @ errors
    scale = float(np.trace(gram)) / len(gram) or 1.0
    # min wᵀGw on the simplex is, up to a factor, min |Lᵀw|² + (Σw - 1)², since its optimum has equal gradients.
    root = np.linalg.cholesky(gram / scale + 1e-10 * np.eye(len(gram))).T
    system = np.vstack((root, np.ones(len(gram))))
    found, _ = nnls(system, np.append(np.zeros(len(gram)), 1.0))
    return np.asarray(found / found.sum())
