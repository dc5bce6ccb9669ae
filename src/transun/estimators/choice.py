"""The automatic choice: candidates compared by squared error out of fold, their convex combination, and the table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from transun.support.arrays import Floats

# A candidate with less weight than this is not worth its fits.
_MIN_WEIGHT = 0.05


@dataclass(frozen=True)
class CandidateScore:
    """How a candidate predicts held-out rows.

    Args:
        name: the name of the candidate.
        nrmse: root of its mean squared error, divided by the mean target.
        worse_by: its mean squared error divided by that of the best candidate, less one.
        standard_error: standard error of `worse_by`, from the differences to the best candidate row by row.
        total: predicted total divided by actual total, before any balance.
        weight: its weight in the result.

    """

    name: str
    nrmse: float
    worse_by: float
    standard_error: float
    total: float
    weight: float


@dataclass(frozen=True)
class Choice:
    """The candidates with their scores, and those that were left out with the reason; prints as a table."""

    rows: Sequence[CandidateScore]
    skipped: Mapping[str, str]

    @classmethod
    def score(
        cls,
        names: Sequence[str],
        predictions: Floats,
        skipped: Mapping[str, str],
        weights: Floats,
        y: Floats,
        sample_weight: Floats | None,
    ) -> "Choice":
        """Score the out-of-fold predictions (n, candidates)."""
        comparisons = compare_errors((predictions - y[:, None]) ** 2, sample_weight)
        share = row_shares(len(y), sample_weight)
        mean, best = float(share @ y), min(comparison.error for comparison in comparisons) or 1.0
        return cls(
            [
                CandidateScore(
                    name,
                    comparison.error**0.5 / abs(mean) if mean else comparison.error**0.5,
                    comparison.worse_by / best,
                    comparison.standard_error / best,
                    float(share @ pred) / mean if mean else float("nan"),
                    float(weight),
                )
                for name, comparison, weight, pred in zip(names, comparisons, weights, predictions.T, strict=True)
            ],
            dict(skipped),
        )

    def __str__(self) -> str:
        width = max(len(row.name) for row in self.rows)
        lines = [f"{'candidate':{width}}   NRMSE   MSE above best   total   weight"]
        for row in self.rows:
            above = f"{row.worse_by:+.2%} ± {row.standard_error:.2%}"
            weight = f"{row.weight:.2f}" if row.weight else ""
            lines.append(f"{row.name:{width}}  {row.nrmse:6.4g}  {above:>15}  {row.total:6.3f}   {weight:>6}")
        return "\n".join([*lines, *(f"{name}: left out, {reason}" for name, reason in self.skipped.items())])


@dataclass(frozen=True)
class ErrorComparison:
    """A mean squared error, its difference to the smallest one, and the standard error of the difference."""

    error: float
    worse_by: float
    standard_error: float


def row_shares(rows: int, weight: Floats | None) -> Floats:
    """The share of each row in the total weight; equal shares without weights.

    >>> row_shares(2, None).tolist(), row_shares(2, np.array([3.0, 1.0])).tolist()
    ([0.5, 0.5], [0.75, 0.25])
    """
    return np.full(rows, 1.0 / rows) if weight is None else np.asarray(weight / weight.sum())


def compare_errors(errors: Floats, weight: Floats | None = None) -> list[ErrorComparison]:
    """Compare the squared errors (n, candidates) of each candidate with those of the best one, row by row.

    >>> compare_errors(np.array([[1.0, 4.0], [1.0, 2.0]]))[1]
    ErrorComparison(error=3.0, worse_by=2.0, standard_error=1.0)
    """
    share = row_shares(len(errors), weight)
    means = share @ errors
    differences = errors - errors[:, [int(means.argmin())]]
    mean_differences = share @ differences
    # 1 / Σ share² is the number of rows of equal weight that would be as informative.
    degrees_of_freedom = max(1.0 / float(share @ share) - 1.0, 1.0)
    standard_errors = np.sqrt(share @ (differences - mean_differences) ** 2 / degrees_of_freedom)
    return [ErrorComparison(*map(float, row)) for row in zip(means, mean_differences, standard_errors, strict=True)]


def choose_weights(predictions: Floats, y: Floats, weight: Floats | None = None) -> Floats:
    """Weight one for the best candidate, or the convex combination if it is better by more than a standard error.

    >>> predictions = np.array([[0.0, 2.0], [2.0, 0.0], [0.0, 2.0]])
    >>> choose_weights(predictions, np.array([1.0, 1.0, 1.0])).round(6).tolist()  # the mean of both is exact
    [0.5, 0.5]
    """
    combined = convex_weights(predictions, y, weight)
    errors = (np.column_stack((predictions, predictions @ combined)) - y[:, None]) ** 2
    comparisons = compare_errors(errors, weight)
    worse_by = [comparison.worse_by for comparison in comparisons[:-1]]
    best = int(np.argmin(worse_by))
    if worse_by[best] > comparisons[best].standard_error:
        return combined
    return np.asarray(np.eye(len(worse_by))[best])


def convex_weights(predictions: Floats, y: Floats, weight: Floats | None = None) -> Floats:
    """Weights (candidates,) of the convex combination with the least squared error; small ones are dropped.

    They are not negative and add up to one, so that a combination of unbiased predictions is unbiased.

    >>> convex_weights(np.array([[0.0, 4.0], [0.0, 4.0]]), np.array([1.0, 1.0])).round(6).tolist()
    [0.75, 0.25]
    """
    root = np.ones_like(y) if weight is None else np.sqrt(weight)
    used = np.ones(predictions.shape[1], dtype=bool)
    weights = np.zeros(predictions.shape[1])
    while True:
        weights[:] = 0.0
        weights[used] = _least_squares_on_simplex(predictions[:, used] * root[:, None], y * root)
        small = (weights < _MIN_WEIGHT) & used
        if not small.any():
            return weights
        used &= ~small


def _least_squares_on_simplex(predictions: Floats, y: Floats) -> Floats:
    # As the weights add up to one, the error of a combination is the combination of the errors.
    errors = predictions - y[:, None]
    gram = errors.T @ errors
    scale = float(np.trace(gram)) / len(gram) or 1.0
    # min wᵀGw on the simplex is, up to a factor, min |Lᵀw|² + (Σw - 1)², since its optimum has equal gradients.
    root = np.linalg.cholesky(gram / scale + 1e-10 * np.eye(len(gram))).T
    system = np.vstack((root, np.ones(len(gram))))
    solution, _ = nnls(system, np.append(np.zeros(len(gram)), 1.0))
    return np.asarray(solution / solution.sum())
