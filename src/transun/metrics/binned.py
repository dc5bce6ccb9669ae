"""Bias by bin: where on the scale the model predicts too much or too little."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transun.metrics.bias import PGR, STRE
from transun.metrics.inversions import stable_order
from transun.metrics.metric import Sample, filled
from transun.metrics.rows import Rows, Vector, check
from transun.support.arrays import Floats

__all__ = ["BinTable", "bin_by_prediction", "bin_by_target"]


@dataclass(frozen=True)
class BinTable:
    """A table with one entry per bin, lowest first; bin b holds the values in [edges[b], edges[b+1]).

    Attributes:
        edges: (bins + 1,) the smallest value of each bin, and the largest of all, which is in the last bin.
        count: (bins,) rows.
        weight: (bins,) sum of their weights.
        pred: (bins,) mean prediction.
        y: (bins,) mean target.
        stre: (bins,) signed total relative error, Σ(ŷ - y)/Σŷ.
        stre_error: (bins,) its standard error with the edges taken as given; NaN for a bin of one row.
        pgr: (bins,) mean prediction over mean target.

    """

    edges: Floats
    count: Floats
    weight: Floats
    pred: Floats
    y: Floats
    stre: Floats
    stre_error: Floats
    pgr: Floats

    def __len__(self) -> int:
        return len(self.count)


def bin_by_prediction(pred: Vector, y: Vector, weight: Vector | None = None, *, bins: int = 10) -> BinTable:
    """The bias in bins of equal weight by ŷ: a calibrated model has STRE 0 in every bin, up to `stre_error`.

    Equal values are never split, so there may be fewer bins, down to one.

    >>> bin_by_prediction([1.0, 1.0, 3.0, 3.0], [0.0, 2.0, 6.0, 6.0], bins=2).stre.tolist()
    [0.0, -1.0]
    """
    rows = filled(Sample((check(pred, y, weight),))).rows
    return _table(rows, rows.pred, bins)


def bin_by_target(pred: Vector, y: Vector, weight: Vector | None = None, *, bins: int = 10) -> BinTable:
    """The bias in bins of equal weight by y, as in the paper: even the best model is not at 0 here.

    The conditional mean regresses to the mean: it predicts too much where y turned out low and too little where it
    turned out high. Use it to compare with the paper, and `bin_by_prediction` to test calibration.

    >>> bin_by_target([2.0, 2.0], [1.0, 3.0], bins=2).stre.tolist()
    [0.5, -0.5]
    """
    rows = filled(Sample((check(pred, y, weight),))).rows
    return _table(rows, rows.y, bins)


def _table(rows: Rows, value: Tensor, bins: int) -> BinTable:
    if bins < 1:
        raise ValueError(f"`bins` is {bins}: use at least one bin")
    value, rows = value[rows.weight > 0], rows.with_weight()
    order, new = stable_order(value.numpy())
    sorted_rows, value = rows.take(torch.from_numpy(order)), value[torch.from_numpy(order)]
    # A group of equal values goes to the bin that the middle of its weight falls in.
    start = np.flatnonzero(new)
    size = np.add.reduceat(sorted_rows.weight.numpy(), start)
    middle = (np.cumsum(size) - size / 2) / size.sum()
    number = np.minimum((middle * bins).astype(np.int64), bins - 1)
    first = start[np.flatnonzero(np.diff(number, prepend=-1))]
    ends = [*first[1:].tolist(), len(value)]
    parts = [sorted_rows.take(torch.arange(a, b)) for a, b in zip(first.tolist(), ends, strict=True)]

    weight = np.array([part.weight.sum().item() for part in parts])
    return BinTable(
        edges=np.append(value[torch.from_numpy(first)].numpy(), value[-1].item()),
        count=np.array([float(len(part)) for part in parts]),
        weight=weight,
        pred=np.array([(part.weight @ part.pred).item() for part in parts]) / weight,
        y=np.array([(part.weight @ part.y).item() for part in parts]) / weight,
        stre=np.array([STRE.compute(STRE.summarise(part)) for part in parts]),
        stre_error=np.array([STRE.compute_error(STRE.summarise(part)) for part in parts]),
        pgr=np.array([PGR.compute(PGR.summarise(part)) for part in parts]),
    )
