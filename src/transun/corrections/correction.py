"""The concept of a correction: learned from held-out points and targets, then a function of the point.

A model trained on T(y) knows a point u of the law of T(y)|x, and T⁻¹(u) is not the mean of y|x. A correction looks at
rows that the model was not trained on and learns what to predict instead. Most see x only through u
(`PointCorrection`), so that they can be right on average over all rows that share a u, and no finer; `Multicalibration`
reads columns too.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from transun.support.text_form import arguments
from transun.transforms import Identity, Transform


@dataclass(frozen=True)
class HeldOutRows:
    """Checked rows of positive weight that a correction learns from.

    Args:
        u: points (n,), in float64.
        y: targets (n,), in float64.
        weight: what each row counts (n,), in float64.
        x: the encoded columns that the correction reads, (n,) or (n, L) each.
        group: of each row (n,); None: every row is a group of its own.

    """

    u: Tensor
    y: Tensor
    weight: Tensor
    x: Mapping[str, Tensor]
    group: Tensor | None


class Correction(nn.Module, ABC):
    """A map from points u in the space of T to predictions in units of the target, learned by `fit`.

    The learned numbers are buffers whose shapes the constructor decides, so that a `state_dict` of a fitted correction
    loads into one that is built from its text, and an exported graph contains it. An unfitted correction corrects
    nothing: it predicts T⁻¹(u).

    Every constructor argument is stored under its own name. A correction that sees x through u alone is a
    `PointCorrection`; one that reads columns names them in `columns`.
    """

    transform: Transform = Identity()
    """T, set by `fit` or `on`: it belongs to the trained model and is therefore no constructor argument."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The encoded columns that it reads beside the point; mostly none."""
        return ()

    def fit(
        self,
        u: Tensor,
        y: Tensor,
        transform: Transform,
        weight: Tensor | None = None,
        x: Mapping[str, Tensor] | None = None,
        group: Tensor | None = None,
    ) -> Self:
        """A copy that has learned from these rows; the correction itself stays as it is.

        Args:
            u: points (n,) of rows that the model was not trained on, or out of fold. On training rows the residuals
                are too small and the correction with them.
            y: targets (n,) of the same rows.
            transform: T, the transform of the points u.
            weight: what each row counts (n,); None counts every row once.
            x: encoded columns of the same rows, for a correction that reads some.
            group: of each row (n,): a correction that leaves rows out to learn leaves out whole groups. None: every
                row is a group.

        """
        _check(u, y, transform, weight)
        u, y = u.detach().double(), y.detach().double()
        weight = torch.ones_like(u) if weight is None else weight.detach().double()
        counted = weight > 0.0
        columns = {name: column[counted] for name, column in self._read(x).items()}
        rows = HeldOutRows(u[counted], y[counted], weight[counted], columns, None if group is None else group[counted])
        return self.on(transform).to(u.device)._fitted(rows)

    def on(self, transform: Transform) -> Self:
        """A copy with the same state on the space of another T."""
        moved = copy.deepcopy(self)
        moved.transform = transform
        return moved

    def unfitted(self) -> Self:
        """The same correction on the same T, unfitted."""
        return type(self)(**arguments(self)).on(self.transform)

    def forward(self, u: Tensor, x: Mapping[str, Tensor] | None = None) -> Tensor:
        """Predictions (B,) for the points u (B,) and the columns that it reads, inside the credible targets of T."""
        return self._corrected(u, self._read(x)).clamp(*self.transform.bounds)

    def _read(self, x: Mapping[str, Tensor] | None) -> dict[str, Tensor]:
        columns = {} if x is None else x
        if missing := [name for name in self.columns if name not in columns]:
            raise ValueError(
                f"{type(self).__name__} reads column {missing[0]!r}, and got {', '.join(columns) or 'no columns'}; a "
                "network passes none on: use multicalibrate for its segments"
            )
        return {name: columns[name] for name in self.columns}

    @abstractmethod
    def _fitted(self, rows: HeldOutRows) -> Self:
        """The correction with what n ≥ 1 rows have taught it; it is a copy already and may be changed."""

    @abstractmethod
    def _corrected(self, u: Tensor, x: Mapping[str, Tensor]) -> Tensor:
        """Predictions (B,), which may lie outside the credible targets."""


class PointCorrection(Correction):
    """A correction that sees x only through u.

    A subclass registers its buffers with the values that correct nothing and writes `_learn` and `_correct`.
    """

    def _fitted(self, rows: HeldOutRows) -> Self:
        for name, value in self._learn(rows.u, rows.y, rows.weight).items():
            self.get_buffer(name).copy_(value)
        return self

    def _corrected(self, u: Tensor, x: Mapping[str, Tensor]) -> Tensor:
        return self._correct(u)

    @abstractmethod
    def _learn(self, u: Tensor, y: Tensor, weight: Tensor) -> dict[str, Tensor]:
        """The buffers by name, learned from n ≥ 1 checked rows in float64 of positive weight."""

    @abstractmethod
    def _correct(self, u: Tensor) -> Tensor:
        raise NotImplementedError


def group_totals(values: Tensor, group: Tensor, groups: int) -> Tensor:
    """Sums (groups,) of the values (n,) by group index.

    >>> group_totals(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0, 2, 0]), 3).tolist()
    [5.0, 0.0, 2.0]
    """
    return values.new_zeros(groups).index_add(0, group, values)


def equal_frequency_groups(values: Tensor, weight: Tensor, bins: int) -> Tensor:
    """Indices (n,) of at most `bins` consecutive groups, ascending with the values and of about equal weight.

    Equal values stay together: a model that predicts one number for many rows cannot tell them apart. A value that is
    heavier than a bin fills its neighbours too, so that fewer bins remain.

    >>> equal_frequency_groups(torch.tensor([3.0, 1.0, 2.0, 4.0]), torch.ones(4), 2).tolist()
    [1, 0, 0, 1]
    >>> equal_frequency_groups(torch.tensor([5.0, 5.0, 5.0]), torch.ones(3), 2).tolist()
    [0, 0, 0]

    """
    distinct, row = torch.unique(values, return_inverse=True)
    mass = group_totals(weight, row, len(distinct))
    level = (mass.cumsum(0) - 0.5 * mass) / mass.sum()
    slot = (level * bins).long().clamp(max=bins - 1)
    group: Tensor = torch.unique(slot, return_inverse=True)[1]  # without the slots that stay empty
    return group[row]


def padded(values: Tensor, size: int) -> Tensor:
    """The values (k,) followed by copies of the last one, (size,): the shape that a buffer keeps."""
    return torch.cat((values, values[-1:].expand(size - len(values))))


def _check(u: Tensor, y: Tensor, transform: Transform, weight: Tensor | None) -> None:
    """Raise a `ValueError` that names what is wrong with the rows a correction should learn from."""
    if not (isinstance(u, Tensor) and isinstance(y, Tensor)):
        raise TypeError(
            f"a correction needs tensors, got {type(u).__name__} and {type(y).__name__}: torch.from_numpy(y)"
        )
    if u.ndim != 1 or u.shape != y.shape:
        raise ValueError(f"a correction needs points and targets (n,), got {tuple(u.shape)} and {tuple(y.shape)}")
    if weight is not None and (weight.shape != y.shape or bool((weight < 0.0).any())):
        raise ValueError(f"a correction needs {len(y)} weights that are not negative, got {tuple(weight.shape)}")
    if len(y) == 0 or (weight is not None and not bool((weight > 0.0).any())):
        raise ValueError("there are no rows to learn a correction from")
    for name, value in (("point", u), ("target", y), ("T(target)", transform(y))):
        wrong = ~value.isfinite()
        if wrong.any():
            row = int(wrong.nonzero()[0])
            raise ValueError(f"{name} {value[row].item()} in row {row} is not finite; y = {y[row].item():g}")
