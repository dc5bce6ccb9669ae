"""Training rows and validation rows of one training."""

from typing import NamedTuple

from transun.data import Dataset
from transun.training.recipe import Recipe

__all__ = ["RowSplit"]


class RowSplit(NamedTuple):
    """The rows of a training, divided once, with what they were divided from: a small table is divided anew in folds.

    Args:
        data: all rows that may be divided.
        given: validation rows that the caller gave; None where they are a share of `data`.
        train: the rows to learn from.
        valid: the rows that end the training; None where `data` is too small for any.

    """

    data: Dataset
    given: Dataset | None
    train: Dataset
    valid: Dataset | None

    @classmethod
    def of(cls, data: Dataset, valid: Dataset | None, recipe: Recipe) -> "RowSplit":
        """Validation rows as they are given, or the recipe's share of the rows.

        >>> data = Dataset({"a": range(100)}, [1.0] * 100)
        >>> split = RowSplit.of(data, None, Recipe(valid_share=0.5))
        >>> len(split.train) + len(split.valid), RowSplit.of(data, split.valid, Recipe()).train is data
        (100, True)
        """
        train, chosen = recipe.split(data) if valid is None else (data, valid)
        return cls(data, valid, train, chosen)
