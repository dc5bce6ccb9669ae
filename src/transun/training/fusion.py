"""Where to keep the prediction before debiasing for the sake of its order: the threshold of `ThresholdFusion`."""

import copy
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from transun.corrections.correction import equal_frequency_groups, group_totals
from transun.corrections.isotonic import pool_adjacent_violators
from transun.heads import ThresholdFusion
from transun.metrics import XAUC
from transun.models.network import Model
from transun.training.batches import BatchSource

__all__ = ["FusionChoice", "fuse", "fusion_threshold"]


@dataclass(frozen=True)
class FusionChoice:
    """A threshold, and for each bin of the base its lowest value, and the gain in XAUC as counted and smoothed."""

    threshold: float
    edges: tuple[float, ...]
    gains: tuple[float, ...]
    smoothed: tuple[float, ...]


def fusion_threshold(base: Tensor, debiased: Tensor, y: Tensor, *, bins: int = 50) -> FusionChoice:
    """The base value from which on the debiased prediction orders rows better than the base does.

    The rule of the paper's appendix: bins of equal frequency by the base, in each the XAUC of the debiased prediction
    minus that of the base, and the left edge of the first bin with a gain. Taken literally, noise chooses, because
    one of the first bins has a gain by chance. So the gains are first replaced by their isotonic regression: the
    increasing sequence nearest to them, which is the shape that the rule presumes.

    Args:
        base: predictions before debiasing (n,), of rows that the model was not trained on.
        debiased: predictions (n,) of the same rows.
        y: their targets (n,).
        bins: fewer are steadier, more place the threshold finer.

    Returns:
        The choice. Its threshold is -inf where debiasing orders better from the first bin on, and inf where nowhere.

    >>> base, y = torch.arange(1.0, 9.0), torch.tensor([1.0, 2.0, 3.0, 4.0, 6.0, 5.0, 8.0, 7.0])
    >>> debiased = torch.tensor([2.0, 1.0, 4.0, 3.0, 6.0, 5.0, 8.0, 7.0])  # worse below 5, better from there on
    >>> fusion_threshold(base, debiased, y, bins=4).threshold
    5.0

    """
    base, debiased, y = (values.detach().double().cpu() for values in (base, debiased, y))
    group = equal_frequency_groups(base, torch.ones_like(base), bins)
    edges, gains = [], []
    for index in range(int(group.max()) + 1):
        rows = group == index
        gain = XAUC(debiased[rows], y[rows]) - XAUC(base[rows], y[rows])
        if math.isfinite(gain):  # a bin of equal targets has no order to get right
            edges.append(float(base[rows].min()))
            gains.append(gain)
    if not gains:
        raise ValueError("no two targets of a bin differ, so no threshold can be chosen: use fewer bins or more rows")
    values = torch.tensor(gains, dtype=torch.float64)
    block = pool_adjacent_violators(values, torch.ones_like(values))
    blocks = int(block.max()) + 1
    means = group_totals(values, block, blocks) / group_totals(torch.ones_like(values), block, blocks)
    smoothed = means[block].tolist()
    first = next((index for index, gain in enumerate(smoothed) if gain > 0.0), len(gains))
    threshold = -math.inf if first == 0 else math.inf if first == len(gains) else edges[first]
    return FusionChoice(threshold, tuple(edges), tuple(gains), tuple(smoothed))


@torch.no_grad()
def fuse(model: Model, data: BatchSource, *, bins: int = 50) -> Model:
    """A copy of a debiased model that predicts its base where that orders rows better; see `fusion_threshold`.

    Below the threshold totals are those of the base again: use it for ranking, not for totals of small amounts.

    Args:
        model: trained, with a bias branch; it stays as it is.
        data: rows that the model was not trained on, a split of their own.
        bins: of the base predictions.

    >>> model = Model(Constant(), LogSUN()).prepare(torch.tensor([1.0, 7.0]))
    >>> fused = fuse(model, Dataset({"a": [0.0, 1.0]}, [1.0, 7.0]))  # all rows are predicted alike: no gain
    >>> fused.head.threshold, round(fused({"a": torch.zeros(1)}).item(), 4)
    (inf, 3.0)

    """
    if not model.head.debiased:
        raise ValueError("fuse chooses between a prediction and its base, and this head has no bias branch: wrap it")
    model.require_trained()
    fused = copy.deepcopy(model).eval()
    bases, preds, targets = [], [], []
    for rows in data.batches(model.rows_at_once):
        raw = fused.raw(rows.x)
        bases.append(fused.over_members(fused.head.undebiased(raw)))
        preds.append(fused.over_members(fused.head(raw)))
        targets.append(rows.y)
    choice = fusion_threshold(torch.cat(bases), torch.cat(preds), torch.cat(targets), bins=bins)
    fused.head = ThresholdFusion(fused.head, choice.threshold)
    return fused.train(model.training)
