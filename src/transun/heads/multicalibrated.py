"""The head of multicalibration: a branch for ln(y/ŷ) beside any head, and how far unseen rows believe it."""

import math
from typing import Self

import torch
from torch import Tensor

from transun.heads.gts import GTS
from transun.heads.head import Head, Raw, Sharing, Wrapper
from transun.heads.point import PointHead
from transun.heads.wrappers import Scaled
from transun.schemes import PoissonOffset
from transun.transforms import Identity, Log1p

# In units of the mean target: the branch could lift smaller amounts by no factor.
_LEAST_SHARE = 0.01
# Each halves the interval that the credibility is searched in: 2⁻⁵⁰ is the precision of a float64 near 1.
_HALVINGS = 50


def Multicalibrated(  # noqa: N802 - named like the heads that it builds
    inner: Head = PointHead(Log1p()), shared: Sharing = 0
) -> Head:
    """A head with a branch that learns the log ratio of y to its prediction, by Poisson deviance with ln ŷ as offset.

    The gradient of this deviance in a segment is predicted less actual total, so that training ends where no segment
    that the branch can describe has a wrong total. The inner head is trained as if it were alone. It is `GTS` with the
    scheme `PoissonOffset`, in units of the mean target; `transun.training.shrink` then says how far the ratios are to
    be believed. `MulticalibratedRegressor` and `multicalibrate` do the same by trees, for models that are trained.

    Args:
        inner: the head whose totals are put right, for y ≥ 0.
        shared: leading stages that the new branch shares with the first one; see `GTS`.

    >>> len(Multicalibrated().branches)
    2

    """
    return Scaled(GTS(inner, PoissonOffset(_LEAST_SHARE), shared))


class Credible(Wrapper):
    """Predicts factor·b·(d/b)^c: between the base b and the debiased prediction d, as far as the ratio d/b is credible.

    A branch that learns by what factor the base is off learns noise too. One number c says how much of the ratio is to
    be believed: 1 predicts as the inner head does, 0 predicts the base with its total put right. `calibrate` learns it
    from rows that decided nothing else, where it minimises the Poisson deviance, so that on these rows the result is no
    worse than either end. For y ≥ 0.

    Args:
        inner: a debiased head, such as `Multicalibrated()`.
        credibility: c, 0 to 1.
        factor: makes the total right.

    >>> head = Credible(GTS(PointHead(Identity())), credibility=0.5)
    >>> raw = (torch.tensor([[3.0]]), torch.tensor([[3.0]]))  # b = 3 and d = 3·(3 + 1) = 12
    >>> round(head(raw).item(), 4)  # 3·√4
    6.0

    """

    def __init__(self, inner: Head, credibility: float = 1.0, factor: float = 1.0) -> None:
        super().__init__(inner)
        if not inner.debiased:
            raise ValueError("Credible is about a bias branch, and the inner head has none: wrap it, as GTS does")
        if not 0.0 <= credibility <= 1.0:
            raise ValueError(f"Credible needs 0 <= credibility <= 1, got {credibility}")
        if not 0.0 < factor < math.inf:
            raise ValueError(f"Credible needs a finite factor > 0, got {factor}")
        self.credibility, self.factor = credibility, factor
        self.transform = Identity(lower=0.0, upper=inner.transform.upper)

    def point(self, raw: Raw) -> Tensor:
        base, log_ratio = self._ratio(raw)
        return self.factor * base * (self.credibility * log_ratio).exp()

    def prepare(self, y: Tensor) -> Self:
        prepared = super().prepare(y)
        return prepared.replace(credibility=1.0, factor=1.0)

    def calibrate(self, raw: Raw, y: Tensor, weight: Tensor | None = None) -> Self:
        """The head with its credibility learned from rows that the network was not trained on.

        For every c the best factor makes the total right, and what remains of the deviance is Y·ln Σ b·(d/b)^c less
        c·Σ y·ln(d/b), Y = Σy: convex in c, so that its slope is halved down.

        Args:
            raw: outputs of the trained network in evaluation mode, (n, width) per branch.
            y: targets (n,), not negative and not all zero.
            weight: what each row counts (n,); None counts every row once.

        """
        base, log_ratio = (values.double() for values in self._ratio(raw))
        counts = torch.ones_like(base) if weight is None else weight.double()
        total, wanted = (counts * y).sum(), (counts * y * log_ratio).sum()
        if bool((y < 0.0).any()) or not total > 0.0:
            raise ValueError("credibility is learned from amounts: targets are not negative, and some are above 0")

        def predicted(credibility: float) -> Tensor:
            return counts * base * (credibility * log_ratio).exp()

        low, high = 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            amounts = predicted(middle)
            falls = total * (amounts * log_ratio).sum() / amounts.sum() < wanted
            low, high = (middle, high) if falls else (low, middle)
        credibility = 0.5 * (low + high)
        factor = float(total / predicted(credibility).sum())
        return self.replace(credibility=credibility, factor=factor)

    def _ratio(self, raw: Raw) -> tuple[Tensor, Tensor]:
        """The base (n,), and the logarithm of the ratio of the debiased prediction to it."""
        both = self.inner.undebiased(raw), self.inner(raw)
        base, debiased = (values.clamp(min=torch.finfo(values.dtype).tiny) for values in both)
        return base, debiased.log() - base.log()
