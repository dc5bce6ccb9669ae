"""Mixture density networks: K normal components on the target, or on its logarithm, beside a Bernoulli for zeros."""

import math

import torch
from torch import Tensor
from torch.nn.functional import softplus

from transun.heads.density import (
    NORMAL_REACH,
    Axis,
    Hurdle,
    LinearAxis,
    LogAxis,
    inverse_softplus,
    middles,
    normal_cdf,
    quantiles,
)
from transun.support.arguments import require_count

# Narrowest component, in units of the spread: without it a component collapses onto a repeated value.
_FLOOR = 1e-2
# Expectation-maximisation for the starting values: order statistics that it uses, and rounds.
_ENOUGH, _ROUNDS = 20_000, 200


class Mixture(Hurdle):
    """Components of weight softmax(aₖ), mean mₖ and width softplus(ρₖ) + 1e-2 on a standard axis; see `Hurdle`.

    Trained by the negative log-likelihood of y. It starts at the mixture that expectation-maximisation finds for the
    training targets as a whole: equal components would receive equal gradients and stay equal.

    Args:
        components: K. Three outputs each; the likelihood has more local optima the more there are.
        zeros, centre, scale, upper: constants, learned in `prepare`; see `Hurdle`.

    """

    def __init__(
        self,
        components: int = 3,
        zeros: float | None = None,
        centre: float | None = None,
        scale: float | None = None,
        upper: float = math.inf,
    ) -> None:
        require_count(type(self).__name__, components=components)
        super().__init__(3 * components, zeros, centre, scale, upper)
        self.components = components

    def nll(self, parameters: Tensor, x: Tensor) -> Tensor:
        weight, mean, width = self._components(parameters)
        distance = (x.unsqueeze(-1) - mean) / width
        return -(weight - 0.5 * distance.square() - width.log()).logsumexp(-1) + 0.5 * math.log(2.0 * math.pi)

    def standard_cdf(self, parameters: Tensor, x: Tensor) -> Tensor:
        weight, mean, width = self._components(parameters)
        return (weight.exp() * normal_cdf((x.unsqueeze(-1) - mean) / width)).sum(-1)

    def standard_ends(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        _, mean, width = self._components(parameters)
        return (mean - NORMAL_REACH * width).amin(-1), (mean + NORMAL_REACH * width).amax(-1)

    def mean(self, parameters: Tensor) -> Tensor:
        weight, mean, width = self._components(parameters)
        return (weight.exp() * self.axis.mean(self._centre + self._scale * mean, self._scale * width)).sum(-1)

    def initial(self, x: Tensor) -> Tensor:
        weight, mean, width = _expectation_maximisation(x, self.components)
        return torch.cat((weight.log(), mean, inverse_softplus((width - _FLOOR).clamp(min=1e-3))))

    def _components(self, parameters: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        logits, mean, rho = parameters.chunk(3, dim=-1)
        return logits.log_softmax(-1), mean, softplus(rho) + _FLOOR


class GaussianMixture(Mixture):
    """y|x is zero, or else a mixture of K normal laws: ŷ = p·Σ πₖ·mₖ. Targets of either sign.

    At every stationary point of the likelihood the responsibilities average to the weights and the weighted means to
    the sample mean: ŷ is unbiased although the law is not right. What it costs is outputs, and a likelihood that a
    heavy tail drives: an outlier of n standard deviations weighs n².

    >>> head = GaussianMixture(components=2)
    >>> raw = (torch.tensor([[0.0, 0.0, 0.0, 1.0, 5.0, 0.0, 0.0]]),)  # p's logit, weights ½ and ½, means 1 and 5
    >>> head(raw).item(), round(head.cdf(raw, torch.tensor([3.0])).item(), 4)
    (3.0, 0.5)

    """

    axis: Axis = LinearAxis()


class LogNormalMixture(Mixture):
    """1 + y is one, or else a mixture of K lognormal laws: ŷ = p·Σ πₖ·(exp(mₖ + σₖ²/2) - 1). For y ≥ 0.

    A few lognormal pieces follow most amounts closely. Unbiased as far as the assumption holds: the mean of a piece
    depends on its fitted width.

    >>> head = LogNormalMixture(components=1)
    >>> raw = (torch.tensor([[0.0, 0.0, 0.0, 0.5413]]),)  # m = 0, σ = softplus(0.5413) + 0.01 = 1.01
    >>> round(head(raw).item(), 3)  # exp(1.01²/2) - 1
    0.665

    """

    axis: Axis = LogAxis()


def _expectation_maximisation(x: Tensor, components: int) -> tuple[Tensor, Tensor, Tensor]:
    """Weights, means and widths (K,) of the normal mixture found from K spaced means, on at most 20 000 quantiles."""
    x = quantiles(x, middles(min(len(x), _ENOUGH))).unsqueeze(-1)
    weight = torch.full((components,), 1.0 / components, dtype=x.dtype)
    mean = quantiles(x.squeeze(-1), middles(components))
    width = torch.full_like(mean, max(float(x.std(correction=0)) / components, _FLOOR))
    for _ in range(_ROUNDS):
        share = (weight.log() - 0.5 * ((x - mean) / width).square() - width.log()).softmax(-1)
        # A component without any responsibility keeps a little weight: its logarithm is needed.
        weight = share.mean(0).clamp(min=1e-6)
        mean = (share * x).mean(0) / weight
        width = ((share * (x - mean).square()).mean(0) / weight).sqrt().clamp(min=_FLOOR)
    return weight, mean, width
