"""Generalized TranSUN: any head plus one branch that learns its bias under stop-gradient."""

from typing import Self

from torch import Tensor

from transun.heads.head import Branch, Head, RankingPairs, Raw, Sharing, Wrapper, check_unit, rows_at_start
from transun.heads.point import PointHead
from transun.schemes import ReciprocalTarget, Scheme
from transun.transforms import Identity, Log1p, Power, Transform


class GTS(Wrapper):
    """A head made unbiased: z learns y·κ(u) beside `inner`, and ŷ = z / κ(u) estimates E[y|x].

    The point u of the inner head is detached in the cost (z - y·sg[κ(u)])², so the bias branch never trains the
    inner one, and at the optimum z(x) = E[y|x]·κ(u(x)) whatever u is. What κ decides is how hard z is to learn:
    y·κ should have about the same spread everywhere.

    Args:
        inner: the head to debias, trained exactly as without the wrapper.
        scheme: how z encodes the target: a `Slope` keeps the mean; see `transun.schemes`.
        shared: leading stages of the network that the new branch shares with the first one. 0 doubles the network and
            keeps the two losses apart; 1 shares the tables and adds a second tower beside the first; all of them add
            one output. More sharing costs less, in training and in every prediction, and couples the losses more.

    >>> head = GTS(PointHead(Log1p()))
    >>> raw = (torch.tensor([[3.0]]).log(), torch.tensor([[1.5]]))  # T⁻¹(f) = 2, κ = 1/3, z = 1.5
    >>> round(head(raw).item(), 4)
    4.5
    >>> round(head.loss(raw, torch.tensor([6.0]))["bias"].item(), 4)  # (1.5 - 6/3)²
    0.25

    """

    def __init__(self, inner: Head, scheme: Scheme = ReciprocalTarget(), shared: Sharing = 0) -> None:
        super().__init__(inner)
        self.scheme, self.shared = scheme, shared
        self.branches = (*inner.branches, Branch(shared=shared))
        # z / κ is already in units of the target; what remains is the credible range of the inner head and the scheme.
        self.transform = Identity(lower=max(inner.transform.lower, scheme.min_target), upper=inner.transform.upper)

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        inner_raw, z = raw[:-1], raw[-1].squeeze(-1)
        u = self.inner.point(inner_raw).detach()
        terms = {f"inner.{name}": term for name, term in self.inner.loss(inner_raw, y).items()}
        return terms | {"bias": self.scheme.cost(z, y, u, self.inner.transform)}

    def point(self, raw: Raw) -> Tensor:
        return self.scheme.decode(raw[-1].squeeze(-1), self.inner.point(raw[:-1]), self.inner.transform)

    def undebiased(self, raw: Raw) -> Tensor:
        return self.inner.undebiased(raw[:-1])

    @property
    def bias_branches(self) -> tuple[int, ...]:
        return (*self.inner.bias_branches, len(self.inner.branches))

    def kappa(self, raw: Raw) -> Tensor | None:
        return self.scheme.kappa(self.inner.point(raw[:-1]), self.inner.transform)

    def ranking_pairs(self, raw: Raw, y: Tensor) -> RankingPairs:
        inner_raw, z = raw[:-1], raw[-1].squeeze(-1)
        u = self.inner.point(inner_raw).detach()
        pairs = {f"inner.{name}": pair for name, pair in self.inner.ranking_pairs(inner_raw, y).items()}
        return pairs | {"bias": (z, self.scheme.encode(y, u, self.inner.transform))}

    def prepare(self, y: Tensor) -> Self:
        prepared = super().prepare(y)
        check_unit(y)  # the ε of a scheme is in units of the target, whatever the unit of the inner head
        u = prepared.inner.point(rows_at_start(prepared.inner.initial_outputs(y), ())).expand_as(y)
        return prepared.replace(scheme=self.scheme.prepare(y, u, prepared.inner.transform))

    def outputs_beside(self, trained: Raw, y: Tensor) -> Raw:
        inner = self.inner.outputs_beside(trained, y)
        u = self.inner.point(rows_at_start(inner, trained)).expand_as(y)
        return (*inner, self.scheme.initial_z(y, u, self.inner.transform).reshape(1))


def TranSUN(  # noqa: N802 - a method keeps the name of its paper
    transform: Transform = Log1p(), scheme: Scheme = ReciprocalTarget(), shared: Sharing = 0
) -> GTS:
    """The paper's method: `GTS` around least squares on T(y), with κ = 1 / (|T⁻¹(f)| + ε).

    >>> len(TranSUN().branches)  # f and z
    2
    """
    return GTS(PointHead(transform), scheme, shared)


def LogSUN(scheme: Scheme = ReciprocalTarget(), shared: Sharing = 0) -> GTS:  # noqa: N802
    """TranSUN with T(y) = ln(1 + y), the paper's recommended instance."""
    return TranSUN(Log1p(), scheme, shared)


def SqrtSUN(scheme: Scheme = ReciprocalTarget(), shared: Sharing = 0) -> GTS:  # noqa: N802
    """TranSUN with T(y) = √y, gentler than the logarithm on targets near zero."""
    return TranSUN(Power(0.5), scheme, shared)
