"""Public data sets as a matrix of numbers and codes, the form that boosted trees take."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from transun.data.hashing import uniform
from transun.support.arrays import Floats, Integers
from transun_paper.datasets.public import load_public_dataset

# Columns that a tree can order as they are; every other column becomes codes.
_NUMBERS: Mapping[str, tuple[str, ...]] = {
    "kuairand": ("duration_s", "freshness_days", "date", "hourmin"),
    "globo": ("n_clicks", "start_day", "start_hour"),
    "online_retail": ("n_lines", "ts"),
    "lastfm": (),
    "eu_health": ("policy_years", "age_at_inception"),
    "movietweetings": ("year",),
}
# Items beyond the first three add little, and each costs a column.
_LATE = tuple(f"item_{number}" for number in range(3, 20))
# Codes of at most this many values go to the trees as they are; columns of more values are ids.
_FEW = 32


@dataclass(frozen=True)
class Matrix:
    """Features (n, columns) and targets (n,); `ids` are the columns that hold codes of many values."""

    X: Floats
    y: Floats
    ids: tuple[int, ...]


def matrix(name: str, rows: int | None = None) -> Matrix:
    """A public data set as a matrix of at most so many rows, chosen by a hash of the row number.

    Codes number the distinct texts of a column; no target is looked at.
    """
    data = load_public_dataset(name)
    table = data.table
    if rows is not None and rows < len(table):
        table = table.take(np.sort(_hashed(len(table), "sample").argsort()[:rows]))
    columns: list[Floats] = []
    ids: list[int] = []
    for column in table.column_names:
        if column == data.target or column in _LATE:
            continue
        values = table.column(column).to_numpy()
        if column in _NUMBERS[name]:
            columns.append(_number(values))
            continue
        known, codes = np.unique(values.astype(str), return_inverse=True)
        ids += [len(columns)] if len(known) > _FEW else []
        columns.append(codes.astype(np.float64))
    y = table.column(data.target).to_numpy().astype(np.float64)
    return Matrix(np.column_stack(columns), y, tuple(ids))


def folds(rows: int, count: int = 5) -> Integers:
    """The fold of each row, by a hash of its number: the same for every method and machine."""
    return (_hashed(rows, "fold") * count).astype(np.int64)


def _hashed(rows: int, purpose: str) -> Floats:
    return np.asarray(uniform(torch.arange(rows), 0, purpose).numpy())


def _number(values: NDArray[Any]) -> Floats:
    if np.issubdtype(values.dtype, np.datetime64):
        return values.astype("datetime64[s]").astype(np.float64)
    return values.astype(np.float64)
