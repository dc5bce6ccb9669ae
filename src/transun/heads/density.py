"""Heads that model the whole law of y|x: its distribution function, quantiles and draws."""

import torch
from torch import Tensor

from transun.heads.head import Head, Raw

# Halvings of the bracket: enough for float32 from any start.
_HALVINGS = 60


class Density(Head):
    """A head with a law of y|x. A subclass writes `cdf` and `support`; quantiles and draws follow.

    The mean of an assumed law is only as unbiased as the assumption: `GTS` around a density keeps its mean.
    """

    def cdf(self, raw: Raw, v: Tensor) -> Tensor:
        """P(y ≤ v | x), row by row: raw outputs of B rows and v (B,) give (B,)."""
        raise NotImplementedError

    def support(self, raw: Raw) -> tuple[Tensor, Tensor]:
        """Two values (B,) between which practically all of each row's law lies."""
        raise NotImplementedError

    def quantile(self, raw: Raw, level: float | Tensor) -> Tensor:
        """The least v with cdf(v) ≥ level, (B,), by bisection between the ends of the support."""
        low, high = self.support(raw)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            reached = self.cdf(raw, middle) >= level
            low, high = torch.where(reached, low, middle), torch.where(reached, middle, high)
        return high

    def sample(self, raw: Raw, generator: torch.Generator | None = None) -> Tensor:
        """One draw of y for each row, (B,): the quantile at a uniform level."""
        level = torch.rand(raw[0].shape[0], generator=generator, device=raw[0].device)
        return self.quantile(raw, level)
