"""A share of the prediction that keeps the order of what a head predicted before any debiasing."""

from torch import Tensor

from transun.heads.head import Branch, Head, RankingPairs, Raw, Wrapper, rows_at_start
from transun.schemes import PoissonOffset
from transun.transforms import Identity


class RankPreserving(Wrapper):
    """ŷ = (1 - share)·ŷ_inner + share·(b + eps)·eʷ: b is the base of `inner`, w a linear function of its last layer.

    A branch that learns a bias from x adds noise, and noise costs ranking quality; log-trained points rank better than
    any debiased prediction made from them. The logarithm w of the factor is linear in the same activation as the point
    of b, and its loss does not train that activation: the inner head is trained as if the branch were not there. So the
    factor has little freedom to change the order, and with Poisson deviance as its cost the totals are right. The sum
    is unbiased where the inner prediction is and the factor can follow E[y|x] / b; where it cannot, `share` trades
    error for order. Costs one output. For y ≥ 0.

    Args:
        inner: the head whose undebiased prediction ranks well: for a `GTS` that is the prediction of its inner head.
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
        inner_raw, w = raw[:-1], raw[-1].squeeze(-1)
        terms = {f"inner.{name}": term for name, term in self.inner.loss(inner_raw, y).items()}
        base = self.inner.undebiased(inner_raw).detach()
        return terms | {"order": self._scheme.cost(w, y, base, Identity())}

    def point(self, raw: Raw) -> Tensor:
        inner: Tensor = self.inner(raw[:-1])
        ordered = self._scheme.decode(raw[-1].squeeze(-1), self.undebiased(raw), Identity())
        return inner + self.share * (ordered - inner)

    def undebiased(self, raw: Raw) -> Tensor:
        return self.inner.undebiased(raw[:-1])

    @property
    def bias_branches(self) -> tuple[int, ...]:
        return (*self.inner.bias_branches, len(self.inner.branches))

    def kappa(self, raw: Raw) -> None:
        """None: the label of the last branch is not a multiple of the target."""

    def ranking_pairs(self, raw: Raw, y: Tensor) -> RankingPairs:
        inner = self.inner.ranking_pairs(raw[:-1], y)
        return {f"inner.{name}": pair for name, pair in inner.items()} | {"order": (self.point(raw), y)}

    def outputs_beside(self, trained: Raw, y: Tensor) -> Raw:
        inner = self.inner.outputs_beside(trained, y)
        base = self.inner.undebiased(rows_at_start(inner, trained)).expand_as(y)
        return (*inner, self._scheme.initial_z(y, base, Identity()).reshape(1))
