"""What an estimator computes from the predictions of its fitted models, as a module for a graph."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from transun.corrections import Correction
from transun.estimators.target import to_tensor
from transun.support.arrays import Floats

__all__ = ["Balanced", "Composition", "CorrectedMean", "Mixed", "WeightedMean"]


@dataclass(frozen=True)
class Composition:
    """Fitted models, and the formula that makes one prediction of theirs.

    Args:
        models: fitted regressors, each of which predicts the rows.
        formula: from the predictions (models, n), and after them the columns below, to predictions (n,).
        columns: columns of X that the formula needs too, by name or position.
        per_exposure: whether predictions are amounts per unit of an exposure.

    """

    models: Sequence[Any]
    formula: nn.Module
    columns: Sequence[str | int] = field(default=())
    per_exposure: bool = False


class WeightedMean(nn.Module):
    """The mean of predictions with some shares.

    >>> WeightedMean([0.25, 0.75])(torch.tensor([[1.0], [3.0]], dtype=torch.float64)).tolist()
    [2.5]
    """

    def __init__(self, shares: Sequence[float] | Floats) -> None:
        super().__init__()
        self.register_buffer("shares", to_tensor(np.asarray(shares, np.float64)))

    def forward(self, predictions: Tensor) -> Tensor:
        return self.get_buffer("shares") @ predictions


class CorrectedMean(WeightedMean):
    """The mean over points of what a correction makes of each."""

    def __init__(self, correction: Correction, shares: Sequence[float] | Floats) -> None:
        super().__init__(shares)
        self.correction = correction

    def forward(self, predictions: Tensor) -> Tensor:
        count = len(self.get_buffer("shares"))
        corrected = self.correction(predictions.reshape(-1)).reshape(count, -1)
        return super().forward(corrected)


class Mixed(nn.Module):
    """A weighted sum of formulas, each of which reads some of the predictions.

    Args:
        formulas: the formulas.
        reads: for each the models whose predictions it reads.
        weights: of the formulas.

    """

    def __init__(self, formulas: Sequence[nn.Module], reads: Sequence[Sequence[int]], weights: Sequence[float]) -> None:
        super().__init__()
        self.formulas = nn.ModuleList(formulas)
        self.weights = [float(weight) for weight in weights]
        for number, models in enumerate(reads):
            self.register_buffer(f"reads_{number}", torch.tensor(list(models)))

    def forward(self, predictions: Tensor) -> Tensor:
        parts = [
            weight * formula(predictions[self.get_buffer(f"reads_{number}")])
            for number, (formula, weight) in enumerate(zip(self.formulas, self.weights, strict=True))
        ]
        return torch.stack(parts).sum(0)


class Balanced(nn.Module):
    """The predictions of a formula times a factor, plus a shift.

    With segments, the last of the predictions (models + 1, n) are the segments of the rows.

    Args:
        formula: what is balanced.
        factor: of rows in no known segment.
        shift: what is added.
        segments: factors by segment, which must be numbers.

    """

    def __init__(
        self, formula: nn.Module, factor: float, shift: float = 0.0, segments: Mapping[Any, float] | None = None
    ) -> None:
        super().__init__()
        self.formula, self.factor, self.shift = formula, factor, shift
        self.by_segment = bool(segments)
        if segments:
            if text := [name for name in segments if isinstance(name, str)]:
                raise ValueError(f"segment {text[0]!r} is text, and this graph has numbers only: encode it in X first")
            # A missing segment is NaN in a graph, which equals nothing.
            self.missing = None in segments
            keys = [math.nan if name is None else name for name in segments]
            self.register_buffer("keys", to_tensor(np.array(keys, np.float64)))
            self.register_buffer("factors", to_tensor(np.array(list(segments.values()), np.float64)))

    def forward(self, predictions: Tensor) -> Tensor:
        if not self.by_segment:
            return self.formula(predictions) * self.factor + self.shift  # type: ignore[no-any-return]
        segment, keys = predictions[-1].unsqueeze(-1), self.get_buffer("keys")
        known = segment == keys
        if self.missing:
            known = known | (segment.isnan() & keys.isnan())
        known = known.to(predictions.dtype)
        factor = self.factor + known @ (self.get_buffer("factors") - self.factor)
        return self.formula(predictions[:-1]) * factor  # type: ignore[no-any-return]
