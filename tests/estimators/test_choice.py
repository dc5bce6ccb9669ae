import numpy as np
import pytest
from scipy.optimize import minimize

from transun.estimators.choice import Choice, choose_weights, compare_errors, convex_weights


class TestConvexWeights:
    def test_equals_a_general_optimiser_on_the_simplex(self):
        rng = np.random.default_rng(1)
        y = rng.lognormal(0.0, 1.0, 400)
        predictions = np.column_stack([y + rng.standard_normal(400) * s for s in (1.0, 1.2, 2.0)])
        weights = convex_weights(predictions, y)

        def error(w):
            return np.mean((predictions @ w - y) ** 2)

        best = minimize(
            error, np.full(3, 1 / 3), bounds=[(0, 1)] * 3, constraints={"type": "eq", "fun": lambda w: w.sum() - 1}
        )
        assert weights.sum() == pytest.approx(1.0)
        assert error(weights) == pytest.approx(best.fun, rel=1e-3)

    def test_weights_are_rows_counted_often(self):
        rng = np.random.default_rng(2)
        y, times = rng.standard_normal(50), rng.integers(1, 4, 50)
        predictions = y[:, None] + rng.standard_normal((50, 2))
        again = np.repeat(np.arange(50), times)
        counted = convex_weights(predictions[again], y[again])
        assert convex_weights(predictions, y, times.astype(float)) == pytest.approx(counted)


def test_standard_error_is_that_of_paired_differences():
    rng = np.random.default_rng(3)
    errors = rng.gamma(1.0, 1.0, (200, 2)) + np.array([0.0, 5.0])
    gap = errors[:, 1] - errors[:, 0]
    comparisons = compare_errors(errors)
    assert comparisons[0].worse_by == 0.0
    assert comparisons[1].worse_by == pytest.approx(gap.mean())
    assert comparisons[1].standard_error == pytest.approx(gap.std(ddof=1) / np.sqrt(200))


class TestChooseWeights:
    rng = np.random.default_rng(4)
    y = rng.lognormal(0.0, 1.0, 2_000)

    def test_a_combination_is_taken_where_it_is_clearly_better(self):
        """Two candidates with independent errors: the mean halves the squared error."""
        predictions = self.y[:, None] + self.rng.standard_normal((2_000, 2))
        assert choose_weights(predictions, self.y) == pytest.approx([0.5, 0.5], abs=0.1)

    def test_the_best_candidate_is_taken_where_a_combination_gains_nothing(self):
        error = self.rng.standard_normal(2_000)
        predictions = self.y[:, None] + error[:, None] * [1.0, 2.0]
        assert choose_weights(predictions, self.y).tolist() == [1.0, 0.0]


def test_the_table_by_hand():
    y = np.array([1.0, 3.0])
    choice = Choice.score(
        ["a", "b"], np.array([[2.0, 3.0], [4.0, 5.0]]), {"c": "too dear"}, np.array([1.0, 0.0]), y, None
    )
    best, other = choice.rows
    assert (best.nrmse, best.worse_by, best.total) == (0.5, 0.0, 1.5)  # errors of 1 around a mean of 2
    assert (other.nrmse, other.worse_by, other.total) == (1.0, 3.0, 2.0)  # errors of 2
    assert str(choice).splitlines()[-1] == "c: left out, too dear"
