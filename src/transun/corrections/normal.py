"""Normal theory: what the mean of y would be if T(y) were normal around the point."""

import numpy as np
import torch
from torch import Tensor

from transun.corrections.correction import PointCorrection

# The step of the second difference, in units of σ: float64 keeps eight digits of g there, and what the difference
# leaves out is below 1e-8 of the next term of the series.
_STEP = 1e-4


class _Normal(PointCorrection):
    """Learns σ² = mean (T(y) - u)², the one number of normal theory."""

    sigma: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("sigma", torch.zeros(()))

    def _learn(self, u: Tensor, y: Tensor, weight: Tensor) -> dict[str, Tensor]:
        variance = ((self.transform(y) - u).square() * weight).sum() / weight.sum()
        return {"sigma": variance.sqrt()}


class NormalTheory(_Normal):
    """ŷ = E T⁻¹(u + σN) with N standard normal, by Gauss-Hermite quadrature; for the logarithm exp(u + σ²/2) - 1.

    Right when T(y)|x is normal with one σ for all rows; then it wastes no data, since it learns a single number.
    Wrong otherwise, in either direction: two equal humps come out 28 % too high, a large low one with a small high
    one 21 % too low.
    The clamp of T⁻¹ is part of the mean, as y itself never leaves the credible range.

    Args:
        nodes: of the quadrature; 32 have six digits where T⁻¹ is smooth within 3 σ of u, and are a per cent off where
            u is right at the clamp.

    >>> correction = NormalTheory().fit(torch.tensor([2.0, 2.0]), torch.tensor([2.0, 4.0]).expm1(), Log1p())
    >>> round(correction.sigma.item() ** 2, 4)  # residuals 0 and 2
    2.0
    >>> wide = NormalTheory().fit(torch.tensor([5.0, 5.0]), torch.tensor([4.9, 5.1]).expm1(), Log1p())
    >>> round(wide(torch.tensor([5.0])).add(1.0).log().item(), 4)  # 5 + 0.1²/2
    5.005

    """

    nodes_at: Tensor
    weights: Tensor

    def __init__(self, nodes: int = 32) -> None:
        super().__init__()
        if not 1 <= nodes <= 100:
            raise ValueError(f"NormalTheory needs 1 <= nodes <= 100, got {nodes}")
        self.nodes = nodes
        at, weights = np.polynomial.hermite_e.hermegauss(nodes)
        self.register_buffer("nodes_at", torch.from_numpy(at).float(), persistent=False)
        self.register_buffer("weights", torch.from_numpy(weights / weights.sum()).float(), persistent=False)

    def _correct(self, u: Tensor) -> Tensor:
        spread = u.unsqueeze(-1) + self.sigma * self.nodes_at
        return (self.transform.inverse(spread) * self.weights).sum(-1)


class SecondOrder(_Normal):
    """ŷ = g(u) + ½·g''(u)·σ² with g = T⁻¹: the first terms of the mean for any law of T(y)|x with this variance.

    Needs no normality and is exact for the square root, where g is a parabola. For bounded transforms and powers
    above 1 the higher terms are not small and it can be far off; only the clamp to the credible range limits it then.

    g'' is a central second difference of T⁻¹ in float64, so that every transform has one, a user's included, and the
    exported graph needs no derivative. Its step is a small part of σ: both the rounding error, relative to g, and
    what is left out of the series then do not depend on the units of y. Beyond the range of T, where the clamp makes
    T⁻¹ flat, g'' is taken at the range's end.

    >>> correction = SecondOrder().fit(torch.tensor([2.0, 2.0]), torch.tensor([1.0, 9.0]), Power(0.5))
    >>> [round(v, 4) for v in correction(torch.tensor([2.0, 3.0])).tolist()]  # u² + σ², residuals -1 and 1
    [5.0, 10.0]

    """

    def _correct(self, u: Tensor) -> Tensor:
        g = self.transform.inverse
        low, high = self.transform.range
        step = _STEP * self.sigma.double()
        centre = torch.minimum(torch.maximum(u.double(), low + step), high - step)
        bend = (g(centre + step) - 2.0 * g(centre) + g(centre - step)) / _STEP**2
        return (g(u.double()) + 0.5 * bend).to(u.dtype)
