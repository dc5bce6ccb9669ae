"""The mean as an average of quantiles, each learned by its own pinball loss."""

import math
from typing import Self

import torch
from torch import Tensor

from transun.heads.density import Density, middles, quantiles, widen
from transun.heads.head import Branch, Raw, check_targets
from transun.support.arguments import require_count

# The unit of the outputs is at most so many times the mean of their starting values.
_LARGEST_UNIT = 10.0


class QuantileMean(Density):
    """N quantiles qⱼ at the levels (j - ½)/N by pinball losses; ŷ = Σqⱼ / N.

    Assumes no shape of the law, and an outlier pulls no harder than any other target above its quantile. The price is
    the tail: nothing beyond the highest level is ever seen, so the mean of a heavy tail comes out too low. More levels
    cost outputs and see further. The outputs are sorted, in the loss too, so that quantiles cannot cross; sorting never
    raises the cost and, unlike a sum of positive steps, lets quantiles coincide, as they must on repeated values.

    The law has a quantile function that is linear between the levels and flat outside of them: its mean is ŷ exactly,
    and each end holds an atom of 1/(2N).

    Args:
        levels: N.
        scale: the unit of the outputs; None takes the mean of |y| in `prepare`, or ten times the mean of its |qⱼ| where
            that is less: where a few huge targets, which no level sees, make up the mean, outputs in its unit would all
            be zero but for the noise of training.

    >>> head = QuantileMean(levels=2, scale=10.0)
    >>> raw = (torch.tensor([[3.0, 1.0]]),)  # quantiles 10 and 30 at the levels ¼ and ¾
    >>> head(raw).item(), head.cdf(raw, torch.tensor([20.0])).item(), head.quantile(raw, 0.75).item()
    (20.0, 0.5, 30.0)
    >>> head.loss(raw, torch.tensor([20.0]))["pinball"].item()  # ½(¼·1 + ¼·1)
    0.25

    """

    _levels: Tensor

    def __init__(self, levels: int = 32, scale: float | None = None) -> None:
        super().__init__()
        require_count("QuantileMean", levels=levels)
        if scale is not None and not 0.0 < scale < math.inf:
            raise ValueError(f"QuantileMean needs a finite scale > 0, got {scale}")
        self.levels, self.scale = levels, scale
        self._unit = 1.0 if scale is None else scale
        self.branches = (Branch(levels),)
        self.register_buffer("_levels", middles(levels).float(), persistent=False)

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        gap = (y / self._unit).unsqueeze(-1) - self._sorted(raw)
        return {"pinball": torch.maximum(self._levels * gap, (self._levels - 1.0) * gap).mean(-1)}

    def point(self, raw: Raw) -> Tensor:
        # In double precision: quantiles of both signs cancel, and the order of a sum would show.
        return (self._unit * raw[0].double().mean(-1)).to(widen(raw[0]).dtype)

    def cdf(self, raw: Raw, v: Tensor) -> Tensor:
        q, x = self._unit * self._sorted(raw), v.unsqueeze(-1)
        count = (q <= x).sum(-1, keepdim=True)
        low = q.gather(-1, (count - 1).clamp(min=0))
        high = q.gather(-1, count.clamp(max=self.levels - 1))
        # Between two quantiles low ≤ x < high; at the ends the ratio is not used.
        share = (x - low) / torch.where(high > low, high - low, 1.0)
        inside = (count - 0.5 + share) / self.levels
        return torch.where(count == 0, 0.0, torch.where(count == self.levels, 1.0, inside)).squeeze(-1)

    def support(self, raw: Raw) -> tuple[Tensor, Tensor]:
        q = self._unit * self._sorted(raw)
        return q[:, 0], q[:, -1]

    def quantile(self, raw: Raw, level: float | Tensor) -> Tensor:
        """The quantile at the level, (B,), by interpolation between the outputs."""
        q = self._unit * self._sorted(raw)
        position = (torch.as_tensor(level, dtype=q.dtype, device=q.device) * self.levels - 0.5).clamp(
            0, self.levels - 1
        )
        position = position.expand(q.shape[0]).unsqueeze(-1)
        below = position.floor().long()
        low, high = q.gather(-1, below), q.gather(-1, (below + 1).clamp(max=self.levels - 1))
        return torch.lerp(low, high, position - below).squeeze(-1)

    def prepare(self, y: Tensor) -> Self:
        check_targets(y)
        mean, seen = float(y.abs().double().mean()), float(quantiles(y, middles(self.levels)).abs().mean())
        # Targets that are zero at every level give no bound; targets that are all zero have no unit.
        return self.replace(scale=self.scale or min(mean, _LARGEST_UNIT * seen or mean) or 1.0)

    def initial_outputs(self, y: Tensor) -> Raw:
        return ((quantiles(y, middles(self.levels)) / self._unit).to(y.dtype),)

    def _sorted(self, raw: Raw) -> Tensor:
        return widen(raw[0]).sort(-1).values
