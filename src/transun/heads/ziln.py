"""Lognormal amounts, with and without a probability of zero: LogNormal and ZILN."""

import math
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import softplus
from torch.special import ndtr, ndtri

from transun.heads.density import NORMAL_REACH, Density
from transun.heads.head import Branch, Head, Raw, check_targets, check_unit
from transun.transforms import Identity
from transun.transforms.transform import LARGEST

# σ of ln(shift + y): below the floor a repeated value makes the likelihood unbounded, above the cap exp(σ²/2) passes
# 2.7e5 and is no longer credible. The loss and the prediction read σ through the same clamp.
_SPREAD = (1e-3, 5.0)
# exp(80) is still a comfortable float32.
_EXPONENT = math.log(LARGEST)
# How far beyond the largest training target a prediction stays credible.
_HEADROOM = 10.0
# A share of exactly 0 or 1 would start its logit at ±∞.
_CERTAIN = 1e-6


class LogNormal(Density):
    """ln(shift + y) ~ N(μ, σ²), by maximum likelihood; predicts the mean exp(μ + σ²/2) - shift.

    Corrects the retransformation bias of a log-trained model by assuming that its errors are normal: a bias of -0.3 %
    on Gamma targets, but of +28 % on bimodal ones, where the assumption fails. `GTS` around it needs no assumption.

    The law is censored to the credible targets: what a shifted normal has below 0 counts as 0 in `cdf` and
    `quantile`, what it has above `upper` as `upper`.

    Args:
        shift: added to y before the logarithm, in units of the target. 1 is ln(1 + y), which allows zeros and
            reproduces the paper; 0 is the textbook lognormal, for y > 0 only.
        upper: largest credible target, where predictions saturate; infinite is learned by `prepare` as ten times the
            largest training target. exp(σ²/2) is otherwise what makes such models explode.

    >>> head = LogNormal()
    >>> raw = (torch.tensor([[1.0, 0.0]]),)  # μ = 1, σ = softplus(0) = ln 2
    >>> round(head(raw).item(), 4)  # exp(1 + 0.4805/2) - 1
    2.4564
    >>> round(head.quantile(raw, 0.5).item(), 4)  # e - 1
    1.7183

    """

    branches = (Branch(2),)  # μ and ρ, with σ = softplus(ρ)

    def __init__(self, shift: float = 1.0, upper: float = math.inf) -> None:
        super().__init__()
        if not 0.0 <= shift < math.inf:
            raise ValueError(f"{type(self).__name__} needs a finite shift >= 0, got {shift}")
        self.shift, self.upper = shift, upper
        self.transform = Identity(lower=0.0, upper=upper)

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        return {"amount": self._cost(raw, y)}

    def point(self, raw: Raw) -> Tensor:
        return self._mean(raw)

    def cdf(self, raw: Raw, v: Tensor) -> Tensor:
        below, above = v < self.transform.bounds[0], v >= self.transform.bounds[1]
        return self._below(raw, v).masked_fill(below, 0.0).masked_fill(above, 1.0)

    def support(self, raw: Raw) -> tuple[Tensor, Tensor]:
        return self._at(raw, -NORMAL_REACH), self._at(raw, NORMAL_REACH)

    def quantile(self, raw: Raw, level: float | Tensor) -> Tensor:
        """exp(μ + σ·Φ⁻¹(level)) - shift, (B,)."""
        return self._at(raw, ndtri(torch.as_tensor(level, dtype=raw[0].dtype, device=raw[0].device)))

    def prepare(self, y: Tensor) -> Self:
        check_amounts(self, y)
        self._check_zeros(y)
        if self.shift > 0.0:  # a number in units of the target, without which the law has no unit
            check_unit(y)
        self.transform.check(y)
        if math.isfinite(self.upper):
            return self.replace()
        # Targets that are all zero have no scale.
        return self.replace(upper=min(_HEADROOM * (float(y.max()) or 1.0), LARGEST))

    def initial_outputs(self, y: Tensor) -> Raw:
        return (self._constants(y.double()).to(y.dtype),)

    def _check_zeros(self, y: Tensor) -> None:
        if self.shift == 0.0 and (y == 0.0).any():
            row = int((y == 0.0).nonzero()[0])
            raise ValueError(
                f"target 0 in row {row} has no logarithm; use ZILN(shift=0.0), or a shift > 0 as in LogNormal(1.0)"
            )

    # What follows is the law of an amount, shared with ZILN: μ and ρ are the last two outputs of both.

    def _law(self, raw: Raw) -> tuple[Tensor, Tensor]:
        """μ and σ, both (B,): the only place where ρ is read."""
        return raw[0][:, -2], softplus(raw[0][:, -1]).clamp(*_SPREAD)

    def _log(self, y: Tensor) -> Tensor:
        # A zero gets a safe label: to mask the infinite cost of shift 0 afterwards would leave NaN in the gradient.
        return (y + self.shift).clamp(min=torch.finfo(y.dtype).tiny).log()

    def _cost(self, raw: Raw, y: Tensor) -> Tensor:
        """-ln of the density of y, the Jacobian of the logarithm included."""
        mu, sigma = self._law(raw)
        u = self._log(y)
        return 0.5 * ((u - mu) / sigma).square() + sigma.log() + 0.5 * math.log(2.0 * math.pi) + u

    def _mean(self, raw: Raw) -> Tensor:
        mu, sigma = self._law(raw)
        return (mu + 0.5 * sigma.square()).clamp(max=_EXPONENT).exp() - self.shift

    def _below(self, raw: Raw, v: Tensor) -> Tensor:
        mu, sigma = self._law(raw)
        share: Tensor = ndtr((self._log(v) - mu) / sigma)
        return share

    def _at(self, raw: Raw, deviations: float | Tensor) -> Tensor:
        """The credible target this many standard deviations of its logarithm from the median."""
        mu, sigma = self._law(raw)
        return self.transform.inverse((mu + deviations * sigma).clamp(max=_EXPONENT).exp() - self.shift)

    def _constants(self, y: Tensor) -> Tensor:
        """The likeliest constant μ and ρ of the amounts y, in float64."""
        u = self._log(y)
        sigma = u.std(correction=0).clamp(*_SPREAD)
        return torch.stack((u.mean(), sigma + (-torch.expm1(-sigma)).log()))


class ZILN(LogNormal):
    """P(y > 0) = sigmoid(a), and ln(shift + y) ~ N(μ, σ²) where y > 0; predicts sigmoid(a)·(exp(μ + σ²/2) - shift).

    The zero-inflated lognormal of customer value: a share of buyers and what a buyer spends, so that zeros do not
    bend the law of the amounts. Both terms are averages over all rows, hence the likelihood of y itself; averaging the
    second over buyers only would give it another weight.

    Args:
        shift: as in `LogNormal`. 1 is the convention that reproduces the paper's numbers, 0 is the original one.
        upper: as in `LogNormal`.

    >>> head = ZILN()
    >>> raw = (torch.tensor([[0.0, 1.0, 0.0]]),)  # a buyer with probability ½; μ = 1, σ = ln 2
    >>> round(head(raw).item(), 4)  # ½·(exp(1 + 0.4805/2) - 1)
    1.2282
    >>> [round(term.item(), 4) for term in head.loss(raw, torch.tensor([0.0])).values()]  # ln 2, and no amount
    [0.6931, 0.0]

    """

    branches = (Branch(3),)  # a, μ and ρ

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        bought, amount = y > 0.0, self._cost(raw, y)
        return {
            "zero": binary_cross_entropy(raw[0][:, 0], bought),
            "amount": torch.where(bought, amount, torch.zeros_like(amount)),
        }

    def point(self, raw: Raw) -> Tensor:
        return raw[0][:, 0].sigmoid() * self._mean(raw)

    def quantile(self, raw: Raw, level: float | Tensor) -> Tensor:
        """0 up to the share of zeros, then the quantile of the amounts at what is left of the level; (B,)."""
        bought, none = raw[0][:, 0].sigmoid(), (-raw[0][:, 0]).sigmoid()
        rest = ((level - none) / bought.clamp(min=torch.finfo(bought.dtype).tiny)).clamp(0.0, 1.0)
        return super().quantile(raw, rest)  # level 0 of a lognormal is -shift, hence 0 here

    def support(self, raw: Raw) -> tuple[Tensor, Tensor]:
        _, high = super().support(raw)
        return torch.zeros_like(high), high

    def initial_outputs(self, y: Tensor) -> Raw:
        bought = y > 0.0
        # Without a single buyer nothing is known of the amounts; two of them give a spread to begin with.
        amounts = y[bought].double() if bought.any() else torch.tensor([1.0, 10.0], dtype=torch.float64)
        share = logit(bought.double().mean()).reshape(1)
        return (torch.cat((share, self._constants(amounts.to(share.device)))).to(y.dtype),)

    def _check_zeros(self, y: Tensor) -> None:
        """Zeros are what the first output is for."""

    def _below(self, raw: Raw, v: Tensor) -> Tensor:
        return (-raw[0][:, 0]).sigmoid() + raw[0][:, 0].sigmoid() * super()._below(raw, v)


def binary_cross_entropy(logit: Tensor, label: Tensor) -> Tensor:
    """softplus(l) - c·l, the cost (B,) of a logit against a label that is true or false.

    >>> [round(v, 4) for v in binary_cross_entropy(torch.tensor([0.0, -2.0]), torch.tensor([True, False])).tolist()]
    [0.6931, 0.1269]
    """
    return torch.where(label, softplus(-logit), softplus(logit))


def logit(share: Tensor) -> Tensor:
    """ln(p / (1 - p)), finite for shares of 0 and 1 too.

    >>> [round(v, 4) for v in logit(torch.tensor([0.0, 0.5, 0.75], dtype=torch.float64)).tolist()]
    [-13.8155, 0.0, 1.0986]
    """
    return share.clamp(_CERTAIN, 1.0 - _CERTAIN).logit()


def check_amounts(head: Head, y: Tensor) -> None:
    """Raise a `ValueError` that names the first target that is not an amount: not finite, or negative."""
    check_targets(y)
    wrong = y < 0.0
    if wrong.any():
        row = int(wrong.nonzero()[0])
        raise ValueError(
            f"target {y[row].item():g} in row {row} is negative, and {type(head).__name__} is for amounts; "
            "use PointHead(Asinh()) for signed targets"
        )
