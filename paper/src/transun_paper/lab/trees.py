"""Boosted trees as rows of the leaderboard: the estimators on the same encoded rows as the networks."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from transun.data import Dataset
from transun.estimators import UnbiasedRegressor
from transun.support.arrays import Floats
from transun_paper.lab.boosters import base, quiet
from transun_paper.lab.encoded_dataset import EncodedDataset
from transun_paper.lab.measures import Predictions
from transun_paper.lab.methods import ExternalMethod

# Ids of more values than this are target-encoded; ids of fewer values go to the trees as they are.
_FEW = 32
# The first members of a bag, each of which becomes a column.
_MEMBERS = 3


def _row(name: str, build: Callable[[Callable[..., Any]], Any]) -> ExternalMethod:
    def predict(data: EncodedDataset, seed: int) -> Predictions:
        names, ids = _columns(data)
        with quiet():
            model = build(lambda **options: base(ids, **options))
            model.fit(_matrix(data.train, names), data.train.y.double().numpy())
        parts = (data.train, data.valid, data.test)
        return Predictions(*(torch.from_numpy(model.predict(_matrix(part, names))) for part in parts))

    return ExternalMethod(f"LightGBM, {name}", f"LightGBM with default parameters, {name}, version 1", predict, seeds=1)


#: The trees have default parameters, so the validation rows choose nothing.
TREES: tuple[ExternalMethod, ...] = (
    _row("MSE", lambda base: base()),
    _row("Poisson", lambda base: base(objective="poisson")),
    _row("UnbiasedRegressor", lambda base: UnbiasedRegressor(base(), random_state=0)),
)


def _columns(data: EncodedDataset) -> tuple[list[tuple[str, int]], list[int]]:
    """The columns of the matrix, each a feature and a position in it, and which of them are ids of many values."""
    names = [(name, 0) for name in (*data.numeric, *data.ids)]
    names += [(name, member) for name in data.bags for member in range(_MEMBERS)]
    return names, [index for index, (name, _) in enumerate(names) if _values(data, name) > _FEW]


def _values(data: EncodedDataset, name: str) -> int:
    return 0 if name in data.numeric else int(_column(data.train, name).max())


def _matrix(part: Dataset, names: list[tuple[str, int]]) -> Floats:
    columns = []
    for name, member in names:
        values = _column(part, name).double().numpy()
        columns.append(values if values.ndim == 1 else values[:, min(member, values.shape[1] - 1)])
    return np.column_stack(columns)


def _column(part: Dataset, name: str) -> Tensor:
    return cast(Mapping[str, Tensor], part.x)[name]
