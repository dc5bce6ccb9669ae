"""EGMN, the exponential-Gaussian mixture network: one exponential law for quick exits, K normal laws for the rest."""

import math
from typing import ClassVar, Self

import torch
from torch import Tensor
from torch.nn.functional import softplus

from transun.heads.density import NORMAL_REACH, Density, inverse_softplus, middles, normal_cdf, quantiles, widen
from transun.heads.head import Branch, Raw, check_targets
from transun.support.arguments import require_count
from transun.transforms import Identity

# Smallest width and mean of a component, in units of the mean target: without it one collapses onto a repeated value.
_FLOOR = 1e-3
# Expectation-maximisation for the starting values: order statistics that it uses, and rounds.
_ENOUGH, _ROUNDS = 4_000, 100
# Nothing worth mentioning of an exponential law lies beyond this many means: e^-40 = 4e-18.
_EXPONENTIAL_REACH = 40.0


class EGMN(Density):
    """y|x is a mixture of one exponential and K normal laws: ŷ = π₀·θ + Σ πₖ·mₖ. For y ≥ 0.

    The exponential law describes the mass near zero (videos that are skipped, small baskets), the normal laws the modes
    beyond it (videos watched to the end). Zhao et al., RecSys 2025. The loss has three terms, in units of the mean
    target:

    - nll, the negative log-likelihood;
    - entropy, `entropy`·Σ π·ln π, which keeps components alive: few of them would take all rows otherwise;
    - regression, `regression`·|y - ŷ|, which ties the mean to the target.

    It costs 3K + 2 outputs. The absolute error pulls ŷ towards the median, hence below the mean of a skewed target:
    with `regression=0` and `entropy=0` every stationary point has the right total. `GTS(EGMN())` keeps both terms and
    has it as well. The authors' weights of the two terms depend on the data; ours are small fixed ones.

    Args:
        components: K, the number of normal laws.
        entropy: weight of the second term.
        regression: weight of the third term.
        unit: mean training target; None learns it.
        upper: largest credible prediction; infinite learns `headroom` times the largest training target.

    >>> head = EGMN(components=1, unit=1.0)
    >>> unity = math.log(math.e - 1)  # softplus(unity) = 1
    >>> raw = (torch.tensor([[0.0, 0.0, unity, 5.0, unity]]),)  # π = ½, ½; θ = 1; m = 5; σ = 1 (all + 0.001 but m)
    >>> round(head(raw).item(), 3)  # ½·1.001 + ½·5
    3.0
    >>> round(head.cdf(raw, torch.tensor([5.0])).item(), 3)  # ½·(1 - e^(-5/1.001)) + ½·½
    0.747

    """

    headroom: ClassVar[float] = 10.0

    def __init__(
        self,
        components: int = 10,
        entropy: float = 0.01,
        regression: float = 0.1,
        unit: float | None = None,
        upper: float = math.inf,
    ) -> None:
        super().__init__()
        require_count("EGMN", components=components)
        if not (entropy >= 0 and regression >= 0):
            raise ValueError(f"EGMN needs entropy >= 0 and regression >= 0, got {entropy} and {regression}")
        if unit is not None and not 0.0 < unit < math.inf:
            raise ValueError(f"EGMN needs a finite unit > 0, got {unit}")
        self.components, self.entropy, self.regression, self.unit, self.upper = (
            components,
            entropy,
            regression,
            unit,
            upper,
        )
        self._unit = 1.0 if unit is None else unit
        self.branches = (Branch(3 * components + 2),)
        self.transform = Identity(lower=0.0, upper=upper)

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        weight, theta, mean, width = self._laws(raw)
        x = y / self._unit
        terms = {"nll": -(weight + _log_densities(x, theta, mean, width)).logsumexp(-1) + math.log(self._unit)}
        if self.entropy:
            terms["entropy"] = self.entropy * (weight.exp() * weight).sum(-1)
        if self.regression:
            terms["regression"] = self.regression * (_mean(weight, theta, mean) - x).abs()
        return terms

    def point(self, raw: Raw) -> Tensor:
        weight, theta, mean, _ = self._laws(raw)
        return self._unit * _mean(weight, theta, mean)

    def cdf(self, raw: Raw, v: Tensor) -> Tensor:
        weight, theta, mean, width = self._laws(raw)
        x = (v / self._unit).unsqueeze(-1)
        exponential = -torch.expm1(-x.clamp(min=0.0) / theta)
        return (weight.exp() * torch.cat((exponential, normal_cdf((x - mean) / width)), -1)).sum(-1)

    def support(self, raw: Raw) -> tuple[Tensor, Tensor]:
        _, theta, mean, width = self._laws(raw)
        low = (mean - NORMAL_REACH * width).amin(-1).clamp(max=0.0)
        high = torch.cat((_EXPONENTIAL_REACH * theta, mean + NORMAL_REACH * width), -1).amax(-1)
        return self._unit * low, self._unit * high

    def prepare(self, y: Tensor) -> Self:
        check_targets(y)
        self.transform.check(y)
        return self.replace(
            unit=self.unit or float(y.double().mean()) or 1.0,
            upper=min(self.upper, self.headroom * float(y.max()) or 1.0),
        )

    def initial_outputs(self, y: Tensor) -> Raw:
        weight, theta, mean, width = _expectation_maximisation(y.double() / self._unit, self.components)
        positive = inverse_softplus((torch.cat((theta, width)) - _FLOOR).clamp(min=1e-3))
        return (torch.cat((weight.log(), positive[:1], mean, positive[1:])).to(y.dtype),)

    def _laws(self, raw: Raw) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Log weights (B, K + 1), the exponential mean (B, 1), normal means and widths (B, K)."""
        count = self.components
        logits, theta, mean, width = torch.split(widen(raw[0]), [count + 1, 1, count, count], dim=-1)
        return logits.log_softmax(-1), softplus(theta) + _FLOOR, mean, softplus(width) + _FLOOR


def _log_densities(x: Tensor, theta: Tensor, mean: Tensor, width: Tensor) -> Tensor:
    """The logarithms of the densities of the laws, (B, K + 1), at points x ≥ 0 (B,)."""
    x = x.unsqueeze(-1)
    normal = -0.5 * ((x - mean) / width).square() - width.log() - 0.5 * math.log(2.0 * math.pi)
    return torch.cat((-x / theta - theta.log(), normal), -1)


def _mean(weight: Tensor, theta: Tensor, mean: Tensor) -> Tensor:
    return (weight.exp() * torch.cat((theta, mean), -1)).sum(-1)


def _expectation_maximisation(x: Tensor, components: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Weights (K + 1,), mean (1,), means (K,) and widths (K,), found from equal weights and spaced means."""
    x = quantiles(x, middles(min(len(x), _ENOUGH)))
    weight = torch.full((components + 1,), 1.0 / (components + 1), dtype=x.dtype)
    theta = x.mean().clamp(min=_FLOOR).reshape(1)
    mean = quantiles(x, middles(components))
    width = torch.full_like(mean, max(float(x.std(correction=0)) / components, _FLOOR))
    for _ in range(_ROUNDS):
        share = (weight.log() + _log_densities(x, theta, mean, width)).softmax(-1)
        # A component without any responsibility keeps a little weight: its logarithm is needed.
        weight = share.mean(0).clamp(min=1e-6)
        centre = (share * x.unsqueeze(-1)).mean(0) / weight
        theta, mean = centre[:1].clamp(min=_FLOOR), centre[1:]
        variance = (share[:, 1:] * (x.unsqueeze(-1) - mean).square()).mean(0) / weight[1:]
        width = variance.sqrt().clamp(min=_FLOOR)
    return weight, theta, mean, width
