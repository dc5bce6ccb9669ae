"""A conditional normalising flow in one dimension: a monotone spline that makes ln(1 + y) standard normal."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from transun.heads.density import NORMAL_REACH, Axis, Hurdle, LogAxis, normal_cdf, quantiles
from transun.support.arguments import require_count

# The spline fills the box [-4, 4]²; beyond it h goes on straight.
_BOX = 4.0
# Least share of the box that a bin keeps: slopes stay finite.
_LEAST = 1e-3
# ln h' at a knot stays within ±ln 100, bent like tanh.
_STEEP = math.log(100.0)


class SplineFlow(Hurdle):
    """h(x) ~ N(0, 1) for x = (ln(1 + y) - centre) / scale and a monotone rational-quadratic spline h; zeros apart.

    A law without a shape assumed: one spline follows several peaks, gaps and either tail, where a mixture needs a
    component for each. It is trained by -ln φ(h) - ln h' and predicts ŷ = p·Σ w_q·y(h⁻¹(n_q)), the mean by
    Gauss-Hermite quadrature, each y(·) capped at `upper`. Beyond the box of ±4 the spline continues as a straight line,
    so the tail is lognormal. Unbiased up to the resolution of the spline and of the quadrature, not by construction:
    wrap it in `GTS` where totals matter.

    The knots are evenly spaced in n = h(x): the outputs are the gaps between the quantiles of the law at the levels
    Φ(n), and the slopes there. Knots free in both directions, the usual choice, gain next to no likelihood and leave
    directions in which it is flat; training then wanders. It starts at the quantiles of the training targets.

    Args:
        bins: pieces of the spline, 2 outputs each. 8 to 16; more follow the training targets into their noise.
        nodes: points of the quadrature. A law with gaps needs more than the default.
        zeros, centre, scale, upper: constants, learned in `prepare`; see `Hurdle`. `upper` becomes twice the largest
            training target.

    >>> head = SplineFlow(bins=2)
    >>> raw = (torch.zeros(1, 6),)  # equal bins and unit slopes: h(x) = x, so ln(1 + y) ~ N(0, 1)
    >>> round(head(raw).item(), 4), round(head.cdf(raw, torch.tensor([0.0])).item(), 4)  # √e - 1 and ½
    (0.6487, 0.5)

    """

    axis: Axis = LogAxis()
    headroom: ClassVar[float] = 2.0
    _nodes: Tensor
    _weights: Tensor

    def __init__(
        self,
        bins: int = 8,
        nodes: int = 32,
        zeros: float | None = None,
        centre: float | None = None,
        scale: float | None = None,
        upper: float = math.inf,
    ) -> None:
        require_count("SplineFlow", bins=bins, nodes=nodes)
        super().__init__(2 * bins + 1, zeros, centre, scale, upper)
        self.bins, self.nodes = bins, nodes
        points, weights = np.polynomial.hermite_e.hermegauss(nodes)
        self.register_buffer("_nodes", torch.tensor(points).float(), persistent=False)
        self.register_buffer("_weights", torch.tensor(weights / weights.sum()).float(), persistent=False)

    def nll(self, parameters: Tensor, x: Tensor) -> Tensor:
        h, log_slope = self._spline(parameters)(x.unsqueeze(-1))
        return (0.5 * h.square() - log_slope).squeeze(-1) + 0.5 * math.log(2.0 * math.pi)

    def standard_cdf(self, parameters: Tensor, x: Tensor) -> Tensor:
        h, _ = self._spline(parameters)(x.unsqueeze(-1))
        return normal_cdf(h.squeeze(-1))

    def standard_ends(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        ends = self._spline(parameters).inverse(
            parameters.new_tensor([-NORMAL_REACH, NORMAL_REACH]).expand(parameters.shape[0], 2)
        )
        return ends[:, 0], ends[:, 1]

    def mean(self, parameters: Tensor) -> Tensor:
        # In double precision: a steep spline makes much of the last digits of its knots.
        x = self._spline(parameters.double()).inverse(self._nodes.double().expand(parameters.shape[0], -1))
        # The product, not a matrix product: an amount of 1e12 beside one of 1 must not depend on the batch.
        return (self._weights * self._target(x).clamp(max=self.upper)).sum(-1).to(parameters.dtype)

    def initial(self, x: Tensor) -> Tensor:
        n = torch.linspace(-_BOX, _BOX, self.bins + 1, dtype=x.dtype)
        knots = quantiles(x, normal_cdf(n))
        knots[0], knots[-1] = knots[0].clamp(max=-_BOX), knots[-1].clamp(min=_BOX)
        # Slopes from the quantiles as they are: a tail that leaves the box is straight, not steep.
        slope = (2.0 * _BOX / self.bins / (knots[1:] - knots[:-1]).clamp(min=4.0 * _BOX * _LEAST)).log()
        knots = knots.clamp(-_BOX, _BOX)
        width = ((knots[1:] - knots[:-1]) / (2.0 * _BOX)).clamp(min=2.0 * _LEAST)
        # The slope at a knot lies between those of its two neighbours.
        at_knots = 0.5 * (torch.cat((slope[:1], slope)) + torch.cat((slope, slope[-1:])))
        bent = _STEEP * (at_knots / _STEEP).clamp(-0.99, 0.99).atanh()
        return torch.cat(((width / width.sum() - _LEAST).clamp(min=1e-6).log(), bent))

    def _spline(self, parameters: Tensor) -> "_Spline":
        widths, slopes = parameters[:, : self.bins], parameters[:, self.bins :]
        share = _LEAST + (1.0 - self.bins * _LEAST) * widths.softmax(-1)
        x = torch.cat((torch.zeros_like(share[:, :1]), share.cumsum(-1)), dim=-1) * (2.0 * _BOX) - _BOX
        n = torch.linspace(-_BOX, _BOX, self.bins + 1, dtype=x.dtype, device=x.device).expand_as(x)
        return _Spline(x, n, (_STEEP * (slopes / _STEEP).tanh()).exp())


@dataclass(frozen=True)
class _Spline:
    """An increasing map through the knots (x, n) with these slopes there, all (B, K + 1); straight beyond the ends.

    Within a bin of slope s, at the share ξ of its width, n = n₀ + Δn·(sξ² + d₀ξ(1-ξ)) / (s + (d₀ + d₁ - 2s)·ξ(1-ξ)).
    """

    x: Tensor
    n: Tensor
    slope: Tensor

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The values n (B, N) at x (B, N), and ln of the slope there."""
        within = x.clamp(-_BOX, _BOX)
        x0, width, n0, height, d0, d1 = self._bin(self.x, within)
        s, share = height / width, ((within - x0) / width).clamp(0.0, 1.0)
        mixed = share * (1.0 - share)
        bottom = s + (d0 + d1 - 2.0 * s) * mixed
        n = n0 + height * (s * share.square() + d0 * mixed) / bottom
        top = d1 * share.square() + 2.0 * s * mixed + d0 * (1.0 - share).square()
        # The slope at an end of the box is the slope of the straight line beyond it.
        return n + self._beyond(x, within, self.slope), 2.0 * s.log() + top.log() - 2.0 * bottom.log()

    def inverse(self, n: Tensor) -> Tensor:
        """The points x (B, N) at which the spline is n (B, N)."""
        within = n.clamp(-_BOX, _BOX)
        x0, width, n0, height, d0, d1 = self._bin(self.n, within)
        s, rise = height / width, within - n0
        bend = d0 + d1 - 2.0 * s
        a, b, c = height * (s - d0) + rise * bend, height * d0 - rise * bend, -s * rise
        # This root of aξ² + bξ + c, written without a difference of nearly equal numbers.
        root = (b.square() - 4.0 * a * c).clamp(min=0.0).sqrt()
        share = (-2.0 * c / (b + root)).clamp(0.0, 1.0)
        return x0 + width * share + self._beyond(n, within, 1.0 / self.slope)

    def _bin(self, knots: Tensor, value: Tensor) -> tuple[Tensor, ...]:
        """Left end and size of the bin in x and in n, and the slopes at its two ends, each (B, N)."""
        index = (value.unsqueeze(-1) >= knots[:, None, 1:-1]).sum(-1)
        x0, x1, n0, n1, d0, d1 = (
            ends.gather(-1, index + side) for ends in (self.x, self.n, self.slope) for side in (0, 1)
        )
        return x0, x1 - x0, n0, n1 - n0, d0, d1

    @staticmethod
    def _beyond(value: Tensor, within: Tensor, slope: Tensor) -> Tensor:
        """How far the straight lines lead outside of the box."""
        return (value - within) * torch.where(value < 0, slope[:, :1], slope[:, -1:])
