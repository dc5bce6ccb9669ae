"""Duan's smearing: the mean of T⁻¹ over held-out residuals, whatever their distribution."""

import torch
from torch import Tensor

from transun.corrections.correction import PointCorrection, equal_frequency_groups, group_totals
from transun.support.arguments import require_count


class Smearing(PointCorrection):
    """ŷ = mean over held-out residuals r of T⁻¹(u + r), r = T(y) - u (Duan 1983).

    Needs no law of the residuals, only that it is the same for every row. Where the noise grows with u it is too high
    for one half of the rows and too low for the other, though the total may look right: see `BinnedSmearing`.

    More residuals than `points` are replaced by the means of groups of neighbours, narrow both in value and in the log
    odds of their rank: few rows in the tails, where T⁻¹ amplifies, and none across a gap. Groups of equal size, or
    mid-quantiles, would lose 5 % of the mean of a log-normal with σ = 2; these lose 0.01 %.

    Args:
        points: residuals kept, and evaluations of T⁻¹ for a prediction. Exact for at most this many rows.

    >>> u, y = torch.tensor([1.0, 3.0]), torch.tensor([0.0, 16.0])  # residuals of √y: -1 and 1
    >>> Smearing().fit(u, y, Power(0.5))(torch.tensor([2.0, 3.0])).tolist()  # (1 + 9) / 2 and (4 + 16) / 2
    [5.0, 10.0]

    """

    residuals: Tensor
    shares: Tensor

    def __init__(self, points: int = 512) -> None:
        super().__init__()
        require_count("Smearing", points=points)
        self.points = points
        self.register_buffer("residuals", torch.zeros(points))
        self.register_buffer("shares", _first(torch.zeros(points)))

    def _learn(self, u: Tensor, y: Tensor, weight: Tensor) -> dict[str, Tensor]:
        residuals, shares = _condensed(self.transform(y) - u, weight, self.points)
        return {"residuals": residuals, "shares": shares}

    def _correct(self, u: Tensor) -> Tensor:
        return (self.transform.inverse(u.unsqueeze(-1) + self.residuals) * self.shares).sum(-1)


class BinnedSmearing(PointCorrection):
    """Smearing with the residuals of rows whose point is in the same bin: ŷ = mean over r in bin(u) of T⁻¹(u + r).

    For noise that changes with the level. Each bin learns from its own share of the rows, so more bins follow the
    change more closely and are noisier; the prediction steps at the edges, and order near them may change.

    Args:
        bins: of equal frequency in u; equal points stay together.
        points: residuals kept in each bin; see `Smearing`.

    >>> u = torch.tensor([1.0, 1.0, 5.0, 5.0])
    >>> y = torch.tensor([1.0, 1.0, 16.0, 36.0])  # no noise at u = 1, residuals of √y ±1 at u = 5
    >>> BinnedSmearing(bins=2).fit(u, y, Power(0.5))(torch.tensor([1.0, 5.0])).tolist()
    [1.0, 26.0]

    """

    edges: Tensor
    residuals: Tensor
    shares: Tensor

    def __init__(self, bins: int = 10, points: int = 128) -> None:
        super().__init__()
        require_count("BinnedSmearing", bins=bins, points=points)
        self.bins, self.points = bins, points
        # Bins that no row is in lie above every point; infinity would do, but saved numbers are finite.
        self.register_buffer("edges", torch.full((bins - 1,), torch.finfo(torch.float32).max))
        self.register_buffer("residuals", torch.zeros(bins, points))
        self.register_buffer("shares", _first(torch.zeros(bins, points)))

    def _learn(self, u: Tensor, y: Tensor, weight: Tensor) -> dict[str, Tensor]:
        state = {name: buffer.double() for name, buffer in self.unfitted().named_buffers()}
        group = equal_frequency_groups(u, weight, self.bins)
        for bin_ in range(int(group.max()) + 1):
            in_bin = group == bin_
            state["residuals"][bin_], state["shares"][bin_] = _condensed(
                (self.transform(y) - u)[in_bin], weight[in_bin], self.points
            )
            if bin_ > 0:
                state["edges"][bin_ - 1] = 0.5 * (u[group == bin_ - 1].max() + u[in_bin].min())
        return state

    def _correct(self, u: Tensor) -> Tensor:
        row = torch.bucketize(u.contiguous(), self.edges.to(u.dtype), right=True)
        return (self.transform.inverse(u.unsqueeze(-1) + self.residuals[row]) * self.shares[row]).sum(-1)


def _condensed(residual: Tensor, weight: Tensor, points: int) -> tuple[Tensor, Tensor]:
    """Residuals (points,) and their shares (points,) that summarise n residuals; unused ones have share 0."""
    order = residual.argsort()
    residual, weight = residual[order], weight[order] / weight.sum()
    group = torch.arange(len(residual), device=residual.device)
    if len(residual) > points:
        odds = (weight.cumsum(0) - 0.5 * weight).logit()
        position = 0.5 * (_progress(odds) + _progress(residual))
        group = (position * points).long().clamp(max=points - 1)
    shares = group_totals(weight, group, points)
    # An empty group has residual 0 instead of 0/0.
    return group_totals(weight * residual, group, points) / shares.clamp(min=torch.finfo(shares.dtype).tiny), shares


def _progress(ascending: Tensor) -> Tensor:
    """How far along its range each of the ascending values is, 0 to 1; 0 where there is no range."""
    length = (ascending[-1] - ascending[0]).clamp(min=torch.finfo(ascending.dtype).tiny)
    return (ascending - ascending[0]) / length


def _first(shares: Tensor) -> Tensor:
    """All weight on the first residual, which is zero in an unfitted correction."""
    shares[..., 0] = 1.0
    return shares
