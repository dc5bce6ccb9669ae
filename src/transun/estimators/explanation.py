"""SHAP values in units of the target, which add up to the prediction, of any function of rows."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from transun.data.frames import arrow_table, is_frame
from transun.support.extras import need

__all__ = ["explain"]


def explain(
    predict: Callable[[Any], Any], X: Any, background: Any, *, evaluations: int | str = "auto", seed: int = 0
) -> Any:
    """What each column adds to each prediction, against the mean prediction of some background rows.

    ŷ(x) = base + Σφⱼ, where φⱼ is the Shapley value of column j: the change of the prediction when column j of a
    background row is replaced by that of x, averaged over the background rows and over the orders in which columns are
    replaced. SHAP of boosters, `shap.TreeExplainer`, explains ln(y) or z alone; this explains what is predicted,
    κ, ratio, guard, correction and balance included. Up to ten columns all orders are averaged, which is exact; of more
    columns some are drawn, and the sum is exact all the same.

    The cost is a call of `predict` with (2d + 1)·10 rows, or up to 2ᵈ rows for d ≤ 10, times the background rows, for
    each row explained. Predict by the ONNX form of the model, which is several times faster, and take some dozen rows
    as background.

    Args:
        predict: from rows to predictions (n,): `estimator.predict`, `table_model.predict`, or a session of onnxruntime.
            It is called with what X is: an array, a dict of arrays, or an Arrow table for a frame of any library.
        X: the rows to explain: an array (n, d), a frame, or a dict of arrays.
        background: rows that stand for what is usual, in the form of X, such as a sample of the training rows.
        evaluations: of a row, see `max_evals` of `shap.Explainer`.
        seed: of the orders that are drawn.

    Returns:
        A `shap.Explanation` with `values` (n, d) and `base_values` (n,), which the plots of shap take.

    Of ŷ = 10 + 2a - b at a = 3 and b = 4, with background rows whose means are 1 and 1, the base is 11, and the values
    are 2·(3 - 1) = 4 and -(4 - 1) = -3.

    """
    shap = need("shap")
    rows = _Rows(X, background)

    def predict_mixed(numbers: np.ndarray) -> np.ndarray:
        return np.asarray(predict(rows.mixed(numbers)), np.float64).reshape(len(numbers))

    masker = shap.maskers.Independent(rows.background_numbers, max_samples=len(rows.background_numbers))
    explainer = shap.Explainer(predict_mixed, masker, seed=seed)
    explained = explainer(rows.explained_numbers, max_evals=evaluations, silent=True)
    # shap has seen the numbers of rows, and its plots are to show their values.
    explained.data, explained.feature_names = rows.values(), list(rows.names)
    return explained


class _Rows:
    """Background rows, and after them the rows to explain, of which new rows are mixed column by column.

    shap mixes numbers. Here these are the numbers of rows, one for each column, so that columns may hold anything.
    """

    def __init__(self, X: Any, background: Any) -> None:
        self.make, columns = _columns(X)
        others = _columns(background)[1]
        if list(columns) != list(others):
            raise ValueError(f"X has the columns {', '.join(columns)}, and the background {', '.join(others)}")
        counts = [len(next(iter(part.values()))) if part else 0 for part in (others, columns)]
        if not all(counts):
            raise ValueError("explain needs at least one column, one row in X, and one in the background")
        self.columns = {name: _joined(others[name], columns[name]) for name in columns}
        self.names = tuple(columns)
        numbers = np.repeat(np.arange(sum(counts))[:, None], len(columns), 1)
        self.background_numbers, self.explained_numbers = numbers[: counts[0]], numbers[counts[0] :]

    def mixed(self, numbers: np.ndarray) -> Any:
        """Rows whose column j has the values of the rows numbers[:, j], in the form of X."""
        by_column = zip(self.columns.items(), numbers.astype(np.int64).T, strict=True)
        return self.make({name: values.take(rows) for (name, values), rows in by_column})

    def values(self) -> np.ndarray:
        """The values (n, d) of the rows to explain, of any type."""
        rows = self.explained_numbers[:, 0]
        lists = [values.take(rows).tolist() for values in self.columns.values()]
        table = np.empty((len(rows), len(lists)), object)
        for number, column in enumerate(lists):
            table[:, number] = column
        return table


def _columns(X: Any) -> tuple[Callable[[dict[str, Any]], Any], dict[str, Any]]:
    """How rows are made of columns, and the columns."""
    if isinstance(X, Mapping):
        return dict, {str(name): np.asarray(values) for name, values in X.items()}
    if is_frame(X):
        table = arrow_table(X)
        return need("pyarrow").table, {name: table[name].combine_chunks() for name in table.column_names}
    matrix = np.asarray(X)
    if matrix.ndim != 2:
        raise ValueError(f"X is an array of rows and columns, a frame or a dict of columns, got shape {matrix.shape}")
    return lambda columns: np.column_stack(list(columns.values())), {
        f"x{j}": matrix[:, j] for j in range(matrix.shape[1])
    }


def _joined(first: Any, second: Any) -> Any:
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second])
    return need("pyarrow").chunked_array([first, second]).combine_chunks()
