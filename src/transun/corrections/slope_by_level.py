"""GTS that sees a row only through its prediction: the bias learned by level of the point."""

import torch
from torch import Tensor

from transun.corrections.correction import PointCorrection, equal_frequency_groups, group_totals, padded
from transun.schemes import PowerVariance, Slope
from transun.support.arguments import require_count


class SlopeByLevel(PointCorrection):
    """ŷ = z(u) / κ(u), z the mean of y·κ(u) among rows of similar u: GTS that sees x only through the prediction.

    It learns in bins of equal frequency, joined by straight lines, what GTS learns by a branch of the network. So it
    shows how far the prediction alone can repair the total, before a model is trained again.

    Args:
        scheme: the slope κ.
        bins: of u; more follow finer changes of the bias and are noisier.

    >>> u, y = torch.tensor([1.0, 1.0, 3.0, 3.0]), torch.tensor([1.0, 3.0, 2.0, 8.0])
    >>> SlopeByLevel(PowerVariance(0.0), bins=2).fit(u, y, Identity())(torch.tensor([1.0, 2.0, 3.0])).tolist()
    [2.0, 3.5, 5.0]

    """

    at: Tensor
    z: Tensor
    fitted: Tensor

    def __init__(self, scheme: Slope = PowerVariance(1.0), bins: int = 50) -> None:
        super().__init__()
        require_count("SlopeByLevel", bins=bins)
        self.scheme, self.bins = scheme, bins
        self.register_buffer("at", torch.zeros(bins))
        self.register_buffer("z", torch.zeros(bins))
        # No constant z corrects nothing at every u: whether the correction is fitted is part of its state.
        self.register_buffer("fitted", torch.zeros(()))

    def _learn(self, u: Tensor, y: Tensor, weight: Tensor) -> dict[str, Tensor]:
        group = equal_frequency_groups(u, weight, self.bins)
        groups = int(group.max()) + 1
        mass = group_totals(weight, group, groups)
        z = group_totals(weight * self.scheme.encode(y, u, self.transform), group, groups) / mass
        at = group_totals(weight * u, group, groups) / mass
        return {"at": padded(at, self.bins), "z": padded(z, self.bins), "fitted": torch.ones_like(self.fitted)}

    def _correct(self, u: Tensor) -> Tensor:
        at, z = self.at.to(u.dtype), self.z.to(u.dtype)
        right = torch.searchsorted(at, u.contiguous()).clamp(1, max(self.bins - 1, 1)).clamp(max=self.bins - 1)
        left = (right - 1).clamp(min=0)
        width = at[right] - at[left]
        position = ((u - at[left]) / torch.where(width > 0.0, width, 1.0)).clamp(0.0, 1.0)
        corrected = self.scheme.decode(z[left] + position * (z[right] - z[left]), u, self.transform)
        return torch.where(self.fitted > 0.0, corrected, self.transform.inverse(u))
