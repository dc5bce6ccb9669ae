"""Probabilistic GTS: the bias branch of GTS with a width of its own, as a law of y|x."""

from typing import Self

from torch import Tensor
from torch.nn.functional import softplus

from transun.heads.density import NORMAL_REACH, inverse_softplus, normal_quantile, widen
from transun.heads.head import Branch, Head, RankingPairs, Raw, Sharing, Wrapper, check_unit, rows_at_start
from transun.heads.transformation import GridScore, TransformationModel
from transun.schemes import ReciprocalTarget, Slope
from transun.transforms import Identity

# Least s: a standard deviation of y·κ of at most ten thousand.
_FLOOR = 1e-4


class ProbabilisticGTS(Wrapper, TransformationModel):
    """P(y ≤ v | x) = Φ(-z + v·s·κ(u)): GTS whose noise 1/s > 0 is learned too. Probabilistic, not unbiased.

    Two branches, z and s, beside `inner`, whose point u is detached: y·κ(u)|x is modelled as normal with mean z/s and
    standard deviation 1/s, by the grid score of the paper's appendix. The point z/(s·κ) is the mean of that fitted
    normal law. Under skew it is not E[y|x]: 7 % too low on a Gamma(2, 1), 36 % on the paper's RS-BU. Take `GTS` for
    totals and this head for intervals, and read the intervals as those of a normal law: they may reach below zero.

    Args:
        inner: the head that supplies u, trained exactly as without the wrapper.
        slope: κ. The law is normal in y·κ, so κ should leave y·κ equally noisy everywhere.
        points: grid points of the score, quantiles of the training targets.
        shared: leading stages of the network that both new branches share with the first one.

    >>> head = ProbabilisticGTS(PointHead(Log1p()))
    >>> raw = (torch.tensor([[3.0]]).log(), torch.tensor([[2.0]]), torch.tensor([[0.5413]]))  # κ = 1/3, z = 2, s = 1
    >>> round(head(raw).item(), 3), round(head.cdf(raw, torch.tensor([6.0])).item(), 3)  # 2 / (1·⅓), and half below it
    (5.999, 0.5)
    >>> [round(v.item(), 2) for v in head.interval(raw, 0.6827)]  # one standard deviation of 3 either side
    [3.0, 9.0]

    """

    def __init__(self, inner: Head, slope: Slope = ReciprocalTarget(), points: int = 25, shared: Sharing = 0) -> None:
        TransformationModel.__init__(self, GridScore(points))
        self.inner, self.slope, self.points, self.shared = inner, slope, points, shared
        self.branches = (*inner.branches, Branch(shared=shared), Branch(shared=shared))
        self.transform = Identity(lower=inner.transform.lower, upper=inner.transform.upper)

    def h(self, raw: Raw, v: Tensor) -> Tensor:
        z, rate = self._law(raw)
        return v * rate.unsqueeze(-1) - z.unsqueeze(-1)

    def log_slope(self, raw: Raw, y: Tensor) -> Tensor:
        return self._law(raw)[1].log()

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        terms = {f"inner.{name}": term for name, term in self.inner.loss(raw[:-2], y).items()}
        return terms | {"law": self.criterion(self, raw, y)}

    def point(self, raw: Raw) -> Tensor:
        z, rate = self._law(raw)
        return z / rate

    def undebiased(self, raw: Raw) -> Tensor:
        return self.inner.undebiased(raw[:-2])

    def kappa(self, raw: Raw) -> None:
        """None: the label of the last branch is not a multiple of the target."""

    def ranking_pairs(self, raw: Raw, y: Tensor) -> RankingPairs:
        inner = {f"inner.{name}": pair for name, pair in self.inner.ranking_pairs(raw[:-2], y).items()}
        return inner | {"law": (self.point(raw), y)}

    def quantile(self, raw: Raw, level: float | Tensor) -> Tensor:
        """The v with Φ(h(v)) = level, (B,)."""
        z, rate = self._law(raw)
        return (z + normal_quantile(level, like=z)) / rate

    def support(self, raw: Raw) -> tuple[Tensor, Tensor]:
        z, rate = self._law(raw)
        return (z - NORMAL_REACH) / rate, (z + NORMAL_REACH) / rate

    def prepare(self, y: Tensor) -> Self:
        prepared = super().prepare(y)
        check_unit(y)  # s is a slope in units of the target
        u = prepared.inner.point(rows_at_start(prepared.inner.initial_outputs(y), ())).expand_as(y)
        return prepared.replace(slope=self.slope.prepare(y, u, prepared.inner.transform)).with_grid(y)

    def wrap(self, base: Head) -> Self:
        head = super().wrap(base)
        head.grid.copy_(self.grid)
        return head

    def outputs_beside(self, trained: Raw, y: Tensor) -> Raw:
        inner = self.inner.outputs_beside(trained, y)
        u = self.inner.point(rows_at_start(inner, trained))
        kappa = self.slope.kappa(u, self.inner.transform).double().mean()
        intercept, slope = self.criterion.line(self.grid.double() * kappa, self.rounded_like_grid(y) * kappa)
        s = inverse_softplus((slope - _FLOOR).clamp(min=_FLOOR))
        return (*inner, (-intercept).to(y.dtype).reshape(1), s.to(y.dtype).reshape(1))

    def _law(self, raw: Raw) -> tuple[Tensor, Tensor]:
        """z and s·sg[κ(u)], each (B,): h(v) = -z + v·s·κ."""
        *inner, z, s = raw
        u = self.inner.point(tuple(inner)).detach()
        rate = (softplus(widen(s).squeeze(-1)) + _FLOOR) * self.slope.kappa(u, self.inner.transform)
        return widen(z).squeeze(-1), rate
