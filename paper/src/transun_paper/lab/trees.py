"""Boosted trees as rows of the leaderboard: the same frozen rows as the networks, by the estimators."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transun.data import Dataset
from transun.estimators import UnbiasedRegressor
from transun_paper.lab.boosters import base, quiet
from transun_paper.lab.encoded_dataset import Frozen
from transun_paper.lab.measures import Predictions
from transun_paper.lab.methods import Foreign

# Ids of more values than this are encoded by their targets; fewer are left to the trees.
_FEW = 32
# Of a bag the first members, each a column.
_MEMBERS = 3


def _row(name: str, build: Callable[[Callable[..., Any]], Any]) -> Foreign:
    def predict(data: Frozen, seed: int) -> Predictions:
        names, ids = _columns(data)
        with quiet():
            model = build(lambda **given: base(ids, **given))
            model.fit(_matrix(data.train, names), data.train.y.double().numpy())
        said = [torch.from_numpy(model.predict(_matrix(part, names))) for part in (data.train, data.valid, data.test)]
        return Predictions(*said)

    return Foreign(f"LightGBM, {name}", f"LightGBM with default parameters, {name}, version 1", predict, seeds=1)


#: Trees have no learning rate to choose here: default parameters, validation rows unused.
TREES: tuple[Foreign, ...] = (
    _row("MSE", lambda base: base()),
    _row("Poisson", lambda base: base(objective="poisson")),
    _row("UnbiasedRegressor", lambda base: UnbiasedRegressor(base(), random_state=0)),
)


def _columns(data: Frozen) -> tuple[list[tuple[str, int]], list[int]]:
    """The columns of the matrix, each a feature and a position in it, and which of them are ids of many values."""
    names = [(name, 0) for name in (*data.numeric, *data.ids)]
    names += [(name, place) for name in data.bags for place in range(_MEMBERS)]
    return names, [index for index, (name, _) in enumerate(names) if _values(data, name) > _FEW]


def _values(data: Frozen, name: str) -> int:
    return 0 if name in data.numeric else int(_column(data.train, name).max())


def _matrix(part: Dataset, names: list[tuple[str, int]]) -> NDArray[np.float64]:
    columns = []
    for name, place in names:
        values = _column(part, name).double().numpy()
        columns.append(values if values.ndim == 1 else values[:, min(place, values.shape[1] - 1)])
    return np.column_stack(columns)


def _column(part: Dataset, name: str) -> Tensor:
    return cast(Mapping[str, Tensor], part.x)[name]
