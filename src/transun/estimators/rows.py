"""Frames or arrays, targets and weights of scikit-learn users, checked with its messages and read as one table."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import validate_data

from transun.data import Features, Kind, Number, infer, read_table
from transun.data.frames import in_memory, is_frame
from transun.estimators.target import check_weight
from transun.heads import Head
from transun.support.arrays import Floats
from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TrainingRows", "feature_names", "read_features", "read_weights", "require_credible"]


@dataclass(frozen=True)
class TrainingRows:
    """Rows to learn from: a table of features, targets and perhaps weights.

    Args:
        table: all columns.
        target: the name of the targets.
        weight: the name of the weights; None counts every row once.
        named: whether X was a frame.

    """

    table: "pa.Table"
    target: str
    weight: str | None
    named: bool

    @classmethod
    def of(cls, table: "pa.Table", y: Floats, weight: Floats | None, *, named: bool) -> "TrainingRows":
        """The rows whose weight is not zero, under names that no feature has."""
        pa = need("pyarrow")
        target, counts = _free("target", table.column_names), _free("weight", table.column_names)
        table = table.append_column(target, [y])
        if weight is None:
            return cls(table, target, None, named)
        table = table.append_column(counts, [weight])
        return cls(table.filter(pa.array(weight > 0.0)), target, counts, named)

    def guess(self) -> Features:
        """Features for these rows, to be fitted: guessed for a frame, numbers for an array.

        A column of an array that happens to hold few whole numbers in training may hold others tomorrow, and an array
        has no way to say that it means ids.
        """
        columns = [name for name in self.table.column_names if name not in (self.target, self.weight)]
        filled = [name for name in columns if self.table[name].null_count < len(self.table)]
        numbers: dict[str, Kind] = {} if self.named else {name: Number() for name in filled}
        return infer(self.table, self.target, weight=self.weight, columns=numbers)


def read_features(estimator: Any, X: Any, *, reset: bool) -> "pa.Table":
    """The columns of X as a table, by their own names, or x0, x1, ... where these are no text.

    Args:
        estimator: whose `n_features_in_` and `feature_names_in_` are set, or else compared with.
        X: a frame of any library, or an array of numbers in which NaN is missing.
        reset: set them; for the first rows that an estimator sees.

    """
    X = in_memory(X)
    if not is_frame(X):
        values = validate_data(estimator, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")
        return read_table(dict(zip(feature_names(estimator), values.T, strict=True)))
    for axis, what in enumerate(("sample", "feature")):
        if X.shape[axis] == 0:
            raise ValueError(
                f"Found array with 0 {what}(s) (shape={tuple(X.shape)}) while a minimum of 1 is required "
                f"by {type(estimator).__name__}."
            )
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    # By place: what follows the columns of a pandas frame is its index, which is no feature.
    return read_table(X).select(list(range(X.shape[1]))).rename_columns(feature_names(estimator))


def read_weights(sample_weight: Any, rows: int) -> Floats | None:
    """Weights (n,), not negative and not all zero; None where every row counts the same."""
    values = check_weight(sample_weight, rows)
    return None if values is None or (values == values[0]).all() else values


def require_credible(y: Floats, head: Head) -> None:
    """Refuse the first target below what the head's transform can hold; its other checks are made in training."""
    least = head.transform.lower
    wrong = np.flatnonzero(y < least)
    if len(wrong):
        raise ValueError(
            f"y in row {wrong[0]} is {y[wrong[0]]:g}, below {least:g}, the least target of {type(head).__name__} under "
            "its transform; for signed targets use a head such as TranSUN(Asinh()) or MSE()"
        )


def _free(name: str, taken: list[str]) -> str:
    return _free(f"{name}_", taken) if name in taken else name


def feature_names(estimator: Any) -> list[str]:
    """The names of the features of a fitted estimator; x0, x1, ... where X had none."""
    named = getattr(estimator, "feature_names_in_", None)
    return [f"x{i}" for i in range(estimator.n_features_in_)] if named is None else list(named)
