"""Two transformation models: CTM, of any shape, by Bernstein polynomials, and CLTM, normal on a given axis."""

import math
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import softplus

from transun.heads.density import (
    NORMAL_REACH,
    Axis,
    LogAxis,
    inverse_softplus,
    middles,
    normal_cdf,
    normal_quantile,
    quantiles,
    spread,
    widen,
)
from transun.heads.head import Branch, Raw, check_targets
from transun.heads.transformation import Criterion, GridScore, Likelihood, TransformationModel, log_ndtr
from transun.support.arguments import require_count
from transun.transforms import Identity

# Least slope of h on the standard axis: the law is at most 100 times as wide as the targets.
_FLOOR = 1e-2
# Least step of a coefficient: an increase of exactly zero would have no logarithm.
_LEAST = 1e-6
# The starting value: quantiles that it is fitted to, and sweeps over the coefficients.
_START_QUANTILES, _SWEEPS = 200, 300
# How far beyond the largest training target a prediction stays credible.
_HEADROOM = 10.0


class CTM(TransformationModel):
    """P(y ≤ v | x) = Φ(Σ ϑⱼ(x)·Bⱼ(t)), with Bernstein polynomials Bⱼ of t(v), the position of ln(1 + v) in its range.

    The coefficients increase, ϑⱼ = ϑⱼ₋₁ + softplus(rawⱼ), hence so does h: no shape is assumed, only smoothness. The
    law lies between the smallest and the largest training target, with atoms at both ends; the lower one holds the
    zeros. ŷ = min + ∫(1 - F(v))dv by trapezoids, so a prediction never exceeds the largest training target.

    Args:
        order: of the polynomials, one output each and one more. Higher orders follow finer detail.
        criterion: `GridScore()`, indifferent to repeated values, or `Likelihood()`.
        nodes: trapezoids of the integral, evenly spaced on the axis.
        axis: where the polynomials are laid out: `LogAxis()` for amounts, `LinearAxis()` for signed or even targets.
        lower: smallest target; None learns it.
        upper: largest target; None learns it.

    >>> from transun.heads.density import LinearAxis
    >>> head = CTM(order=1, axis=LinearAxis(), lower=0.0, upper=2.0)
    >>> raw = (torch.tensor([[-1.0, 1.8546]]),)  # ϑ = -1 and -1 + softplus(1.8546) = 1: h(v) = v - 1
    >>> round(head.cdf(raw, torch.tensor([1.0])).item(), 3), round(head(raw).item(), 3)  # symmetric about 1
    (0.5, 1.0)

    """

    _values: Tensor
    _basis: Tensor

    def __init__(
        self,
        order: int = 8,
        criterion: Criterion = GridScore(),
        nodes: int = 128,
        axis: Axis = LogAxis(),
        lower: float | None = None,
        upper: float | None = None,
    ) -> None:
        super().__init__(criterion)
        require_count("CTM", order=order, nodes=nodes)
        self.order, self.nodes, self.axis, self.lower, self.upper = order, nodes, axis, lower, upper
        self.branches = (Branch(order + 1),)
        bounds = 0.0 if lower is None else lower, 1.0 if upper is None else upper
        self.transform = Identity(lower=bounds[0], upper=bounds[1])
        self._low, self._high = map(float, axis(torch.tensor(bounds, dtype=torch.float64)))
        t = torch.linspace(0.0, 1.0, nodes + 1, dtype=torch.float64)
        values = axis.inverse(self._low + (self._high - self._low) * t)
        self.register_buffer("_values", values.float(), persistent=False)
        self.register_buffer("_basis", self._tails(_bernstein(t, order)).float(), persistent=False)

    def h(self, raw: Raw, v: Tensor) -> Tensor:
        first, steps = self._coefficients(raw)
        t = self._position(v)
        within = t.clamp(0.0, 1.0)
        # Beyond the training targets h goes on straight, with the slope it has there.
        beyond = (t - within) * self.order * torch.where(t < 0, steps[:, :1], steps[:, -1:])
        return first + (self._tails(_bernstein(within, self.order)) * steps.unsqueeze(-2)).sum(-1) + beyond

    def log_slope(self, raw: Raw, y: Tensor) -> Tensor:
        _, steps = self._coefficients(raw)
        slope = (_bernstein(self._position(y).clamp(0.0, 1.0), self.order - 1) * steps).sum(-1)
        return (slope * (self.order / (self._high - self._low))).log() + self.axis.log_slope(y)

    def nll(self, raw: Raw, y: Tensor) -> Tensor:
        """-ln of the density of y, or of the probability of the lower end where y lies on it, (B,)."""
        h = self.h(raw, y.unsqueeze(-1)).squeeze(-1)
        return torch.where(y <= self.transform.lower, -log_ndtr(h), super().nll(raw, y))

    def point(self, raw: Raw) -> Tensor:
        # In double precision: coefficients of both signs cancel, and the order of a sum would show.
        first, steps = self._coefficients((raw[0].double(),))
        above = normal_cdf(-first - (self._basis * steps.unsqueeze(-2)).sum(-1))
        mean = self.transform.lower + torch.trapezoid(above, self._values.to(above.dtype))
        return mean.to(widen(raw[0]).dtype)

    def cdf(self, raw: Raw, v: Tensor) -> Tensor:
        low, high = self.transform.bounds
        return torch.where(v >= high, 1.0, torch.where(v < low, 0.0, super().cdf(raw, v)))

    def support(self, raw: Raw) -> tuple[Tensor, Tensor]:
        low, high = (torch.full_like(widen(raw[0])[:, 0], bound) for bound in self.transform.bounds)
        return low, high

    def prepare(self, y: Tensor) -> Self:
        check_targets(y)
        Identity(lower=self.axis.lower).check(y)
        lower = float(y.min()) if self.lower is None else self.lower
        # Constant targets still need a range.
        upper = max(float(y.max()), lower + spread(y[:1].double())) if self.upper is None else self.upper
        prepared = self.replace(lower=lower, upper=upper)
        prepared.transform.check(y)
        return prepared.with_grid(y)

    def initial_outputs(self, y: Tensor) -> Raw:
        level = middles(_START_QUANTILES)
        v = quantiles(y, level)
        # With ties, the share of targets up to and including the value.
        share = torch.searchsorted(y.double().sort().values, v, right=True).double() / len(y) - 0.5 / len(y)
        n = normal_quantile(share, like=share)
        # Least squares on Φ⁻¹, with the weight that a share has there in probit regression.
        weight = (-n.square()).exp() / (share * (1.0 - share))
        basis = torch.cat(
            (torch.ones(len(v), 1).double(), self._tails(_bernstein(self._position(v), self.order))), dim=-1
        )
        theta = _increasing(basis * weight.sqrt().unsqueeze(-1), n * weight.sqrt())
        return (torch.cat((theta[:1], inverse_softplus(theta[1:].clamp(min=1e-2)))).to(y.dtype),)

    def _coefficients(self, raw: Raw) -> tuple[Tensor, Tensor]:
        """The first coefficient (B, 1) and the steps from each to the next (B, order)."""
        values = widen(raw[0])
        return values[:, :1], softplus(values[:, 1:]) + _LEAST

    @staticmethod
    def _tails(basis: Tensor) -> Tensor:
        """The weight of each step in h, (…, order): the Bⱼ sum to one, and a step raises all later coefficients."""
        return 1.0 - basis[..., :-1].cumsum(-1)

    def _position(self, v: Tensor) -> Tensor:
        return (self.axis(v) - self._low) / (self._high - self._low)


class CLTM(TransformationModel):
    """P(y ≤ v | x) = Φ(α(x) + β(x)·h₀(v)), β > 0: a normal law on the axis h₀, with its own location and width per row.

    The linear transformation model: two outputs. With h₀ not yet made standard, ŷ = -α/β on `LinearAxis()` and
    ŷ = exp(-α/β + 1/(2β²)) - 1 on `LogAxis()`, the mean of the normal and of the lognormal law.

    Args:
        axis: h₀.
        criterion: `Likelihood()` is normal regression with a learned width: on `LinearAxis()` unbiased.
            `GridScore()` fits the distribution function at quantiles instead, with less regard for the tail.
        centre: mean of h₀(y) in training; None learns it.
        scale: its standard deviation; None learns it.
        upper: largest credible prediction; infinite learns ten times the largest training target.

    >>> from transun.heads.density import LinearAxis
    >>> head = CLTM(LinearAxis(), centre=10.0, scale=2.0)
    >>> raw = (torch.tensor([[-1.0, 0.5254]]),)  # α = -1, β = 0.01 + softplus(0.5254) = 1
    >>> round(head(raw).item(), 3), round(head.quantile(raw, 0.5).item(), 3)  # 10 + 2·1
    (12.0, 12.0)

    """

    def __init__(
        self,
        axis: Axis = LogAxis(),
        criterion: Criterion = Likelihood(),
        centre: float | None = None,
        scale: float | None = None,
        upper: float = math.inf,
    ) -> None:
        super().__init__(criterion)
        self.axis, self.centre, self.scale, self.upper = axis, centre, scale, upper
        self._centre, self._scale = centre or 0.0, 1.0 if scale is None else scale
        if not 0.0 < self._scale < math.inf:
            raise ValueError(f"CLTM needs a finite scale > 0, got {scale}")
        self.branches = (Branch(2),)
        self.transform = Identity(lower=axis.lower, upper=upper)

    def h(self, raw: Raw, v: Tensor) -> Tensor:
        alpha, beta = self._line(raw)
        return alpha.unsqueeze(-1) + beta.unsqueeze(-1) * self._standard(v)

    def log_slope(self, raw: Raw, y: Tensor) -> Tensor:
        return self._line(raw)[1].log() - math.log(self._scale) + self.axis.log_slope(y)

    def point(self, raw: Raw) -> Tensor:
        # In double precision: where β is small, two large numbers cancel.
        alpha, beta = self._line((raw[0].double(),))
        mean = self.axis.mean(self._centre - self._scale * alpha / beta, self._scale / beta)
        return mean.to(widen(raw[0]).dtype)

    def quantile(self, raw: Raw, level: float | Tensor) -> Tensor:
        """The v with Φ(h(v)) = level, (B,)."""
        alpha, beta = self._line(raw)
        return self.axis.inverse(self._centre + self._scale * (normal_quantile(level, like=alpha) - alpha) / beta)

    def support(self, raw: Raw) -> tuple[Tensor, Tensor]:
        alpha, beta = self._line(raw)
        low, high = (
            self.axis.inverse(self._centre + self._scale * (n - alpha) / beta) for n in (-NORMAL_REACH, NORMAL_REACH)
        )
        return low, high

    def prepare(self, y: Tensor) -> Self:
        check_targets(y)
        self.transform.check(y)
        u = self.axis(y.double())
        return self.replace(
            centre=float(u.mean()) if self.centre is None else self.centre,
            scale=self.scale or spread(u),
            upper=min(self.upper, _HEADROOM * float(y.abs().max()) or 1.0),
        ).with_grid(y)

    def initial_outputs(self, y: Tensor) -> Raw:
        alpha, beta = self.criterion.line(self._standard(self.grid.double()), self._standard(self.rounded_like_grid(y)))
        return (torch.stack((alpha, inverse_softplus((beta - _FLOOR).clamp(min=1e-3)))).to(y.dtype),)

    def _line(self, raw: Raw) -> tuple[Tensor, Tensor]:
        values = widen(raw[0])
        return values[:, 0], softplus(values[:, 1]) + _FLOOR

    def _standard(self, v: Tensor) -> Tensor:
        return (self.axis(v) - self._centre) / self._scale


def _bernstein(t: Tensor, order: int) -> Tensor:
    """The polynomials C(order, j)·tʲ·(1 - t)^(order - j), (…, order + 1), of t in [0, 1]."""
    powers = [math.comb(order, j) * t**j * (1.0 - t) ** (order - j) for j in range(order + 1)]
    return torch.stack(powers, dim=-1)


def _increasing(basis: Tensor, target: Tensor) -> Tensor:
    """Least squares with every coefficient but the first kept ≥ 0, by descent along one coordinate after another."""
    # A handful of coefficients: plain numbers are many times faster than tensors of one.
    gram, moment = (basis.T @ basis).tolist(), (basis.T @ target).tolist()
    theta = [0.0] * len(moment)
    for _ in range(_SWEEPS):
        for j, row in enumerate(gram):
            gap = moment[j] - sum(g * value for g, value in zip(row, theta, strict=True))
            theta[j] += gap / max(row[j], 1e-12)
            theta[j] = max(theta[j], 0.0) if j else theta[j]
    return torch.tensor(theta, dtype=basis.dtype)
