"""Smooth isotonic regression (SIR): predictions recalibrated bin by bin without changing their order."""

import torch
from torch import Tensor

from transun.corrections.correction import PointCorrection, equal_frequency_groups, group_totals, padded
from transun.support.arguments import require_count


class SmoothIsotonic(PointCorrection):
    """ŷ = h(T⁻¹(u)) with h increasing and piecewise linear through the centroids (x̄, ȳ) of pooled bins.

    Assumes nothing but that higher predictions mean higher targets. Bins of equal frequency whose means are out of
    order are pooled (weighted pool-adjacent-violators); interpolation between the centroids keeps distinct
    predictions distinct, so the ranking of the model survives. Beyond the outer centroids a prediction is scaled by
    the ratio ȳ/x̄ of the nearest one; where that is not positive, as around zero, it stays at ȳ.

    Args:
        bins: of the calibration rows. More follow finer miscalibration and need more rows: a bin's mean has the
            noise of n/bins targets.

    >>> x, y = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([2.0, 6.0, 4.0, 8.0])
    >>> correction = SmoothIsotonic().fit(x, y, Identity())  # 6 and 4 are pooled: knots (1, 2), (2.5, 5), (4, 8)
    >>> correction(torch.tensor([0.5, 1.0, 2.0, 3.0, 5.0])).tolist()
    [1.0, 2.0, 4.0, 6.0, 10.0]

    """

    before: Tensor
    after: Tensor

    def __init__(self, bins: int = 50) -> None:
        super().__init__()
        require_count("SmoothIsotonic", bins=bins)
        self.bins = bins
        # A single knot on the diagonal: everything is scaled by one.
        self.register_buffer("before", torch.ones(bins))
        self.register_buffer("after", torch.ones(bins))

    def _learn(self, u: Tensor, y: Tensor, weight: Tensor) -> dict[str, Tensor]:
        x = self.transform.inverse(u)
        x, y, weight = _centroids(x, y, weight, equal_frequency_groups(x, weight, self.bins))
        x, y, weight = _centroids(x, y, weight, pool_adjacent_violators(y, weight))
        return {"before": padded(x, self.bins), "after": padded(y, self.bins)}

    def _correct(self, u: Tensor) -> Tensor:
        x = self.transform.inverse(u).contiguous()
        before, after = self.before.to(x.dtype), self.after.to(x.dtype)
        passed = torch.searchsorted(before, x, right=True)  # knots at or below x
        left, right = (passed - 1).clamp(min=0), passed.clamp(max=self.bins - 1)
        x0, y0, width = before[left], after[left], before[right] - before[left]
        # The denominators are guarded because both sides of a `where` are computed.
        between = y0 + (x - x0) / torch.where(width > 0.0, width, 1.0) * (after[right] - y0)
        ratio = y0 / torch.where(x0 == 0.0, torch.inf, x0)
        beyond = torch.where(ratio > 0.0, ratio * x, y0)
        return torch.where(left == right, beyond, between)


def pool_adjacent_violators(values: Tensor, weight: Tensor) -> Tensor:
    """Block indices (n,) such that the weighted means of consecutive blocks are the isotonic regression of the values.

    >>> pool_adjacent_violators(torch.tensor([1.0, 5.0, 3.0, 6.0]), torch.ones(4)).tolist()
    [0, 1, 1, 2]
    """
    blocks: list[tuple[float, float, int]] = []  # mean, weight, rows
    for mean, mass in zip(values.tolist(), weight.tolist(), strict=True):
        rows = 1
        while blocks and blocks[-1][0] > mean:
            last_mean, last_mass, last_rows = blocks.pop()
            mean = (mean * mass + last_mean * last_mass) / (mass + last_mass)
            mass, rows = mass + last_mass, rows + last_rows
        blocks.append((mean, mass, rows))
    sizes = torch.tensor([rows for _, _, rows in blocks], device=values.device)
    return torch.arange(len(blocks), device=values.device).repeat_interleave(sizes)


def _centroids(x: Tensor, y: Tensor, weight: Tensor, group: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    groups = int(group.max()) + 1
    mass = group_totals(weight, group, groups)
    return group_totals(weight * x, group, groups) / mass, group_totals(weight * y, group, groups) / mass, mass
