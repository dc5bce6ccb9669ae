"""A share of the prediction that keeps the order of what a head predicted before any debiasing."""

from torch import Tensor

from transun.heads.head import Branch, Head, RankingPairs, Raw, Wrapper
from transun.schemes import PoissonOffset
from transun.transforms import Identity


class RankPreserving(Wrapper):
    """ŷ = (1 - share)·ŷ_inner + share·(b + eps)·eʷ: b is the base of `inner`, w a linear function of its last layer.

    A branch that learns a bias from x has noise of its own, and noise costs order; log-trained points rank better than
    any debiased prediction made from them. The factor eʷ here is linear in the activation that b itself is linear in.
    It only reads it: the inner head is trained as if nobody looked. So it has little freedom to change the order, and
    with Poisson deviance as its cost the totals are right. The sum is unbiased where the inner prediction is and the
    linear factor can follow E[y|x] / b; its error there is what `share` trades for order. Costs one output. For y ≥ 0.

    Args:
        inner: the head, with a base worth keeping the order of: that of a `GTS` is its inner head's prediction.
        share: of the prediction that keeps the order.
        eps: in units of the target; keeps b off zero, where no factor could lift it.

    >>> head = RankPreserving(GTS(PointHead(Log1p())), share=0.25, eps=1.0)
    >>> raw = (torch.tensor([[3.0]]).log(), torch.tensor([[2.0]]), torch.zeros(1, 1))  # b = 2, ŷ_inner = 2·3
    >>> round(head(raw).item(), 4)  # ¾·6 + ¼·(2 + 1)
    5.25

    """

    def __init__(self, inner: Head, share: float = 0.2, eps: float = 0.01) -> None:
        super().__init__(inner)
        if not 0.0 < share < 1.0:
            raise ValueError(f"RankPreserving needs 0 < share < 1, got {share}")
        self.share, self.eps = share, eps
        self._scheme = PoissonOffset(eps)
        self.branches = (*inner.branches, Branch(shared="all", trains_shared=False))
        self.transform = Identity(
            lower=max(inner.transform.lower, self._scheme.min_target), upper=inner.transform.upper
        )

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        *host, w = raw
        terms = {f"inner.{name}": term for name, term in self.inner.loss(tuple(host), y).items()}
        base = self.inner.undebiased(tuple(host)).detach()
        return terms | {"order": self._scheme.cost(w.squeeze(-1), y, base, Identity())}

    def point(self, raw: Raw) -> Tensor:
        *host, w = raw
        inner: Tensor = self.inner(tuple(host))
        return inner + self.share * (self._scheme.decode(w.squeeze(-1), self.undebiased(raw), Identity()) - inner)

    def undebiased(self, raw: Raw) -> Tensor:
        return self.inner.undebiased(raw[:-1])

    def kappa(self, raw: Raw) -> None:
        """None: the label of the last branch is not a multiple of the target."""

    def ranking_pairs(self, raw: Raw, y: Tensor) -> RankingPairs:
        inner = self.inner.ranking_pairs(raw[:-1], y)
        return {f"inner.{name}": pair for name, pair in inner.items()} | {"order": (self.point(raw), y)}

    def initial_outputs(self, y: Tensor) -> Raw:
        host = self.inner.initial_outputs(y)
        base = self.inner.undebiased(tuple(value.unsqueeze(0) for value in host)).expand_as(y)
        return (*host, self._scheme.initial_z(y, base, Identity()).reshape(1))
