"""A head times a factor that a second head learns beside it."""

from typing import Self

import torch
from torch import Tensor

from transun.heads.blend import joined
from transun.heads.head import Head, RankingPairs, Raw, Wrapper
from transun.transforms import Identity

# Amounts are raised to this before a target is divided by them, so that the quotient is finite.
_LEAST = 1e-20


class Adjusted(Wrapper):
    """Predicts ŷ·r: the amount ŷ of `inner` times the ratio r that a second head predicts, for y ≥ 0.

    The ratio head learns y/ŷ with the weight ŷ, which is detached, so that the inner head is trained as if it were
    alone. The Poisson deviance of the ratio with this weight is that of the amount, so that its optimum is
    E[y|x] / ŷ(x): wherever the inner head is wrong by a factor, the ratio head can put it right. `multicalibrate` puts
    boosted trees in its place, which find the segments that a trained model gets wrong.

    Args:
        inner: the head of the amounts.
        ratio: the head of the ratios, such as `Poisson()`.
        least: amounts below this are raised to it, because no factor could lift an amount of zero.

    >>> head = Adjusted(PointHead(), PointHead())
    >>> raw = (torch.tensor([[4.0]]), torch.tensor([[1.5]]))
    >>> head(raw).item()  # 4·1.5
    6.0
    >>> head.loss(raw, torch.tensor([8.0]))["ratio.point"].item()  # 4·(1.5 - 8/4)²
    1.0

    """

    def __init__(self, inner: Head, ratio: Head, least: float = 0.0) -> None:
        super().__init__(inner)
        if not 0.0 <= least < float("inf"):
            raise ValueError(f"Adjusted needs a finite least >= 0, got {least}")
        self.ratio, self.least = ratio, least
        count = len(inner.branches)
        self.branches = (*inner.branches, *(joined(branch, count, 0) for branch in ratio.branches))
        self.transform = Identity(lower=max(inner.transform.lower, 0.0), upper=inner.transform.upper)

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        inner_raw, ratio_raw = self._split(raw)
        amount = self.inner(inner_raw).detach().clamp(min=max(self.least, _LEAST))
        terms = {f"inner.{name}": term for name, term in self.inner.loss(inner_raw, y).items()}
        ratios = self.ratio.loss(ratio_raw, y / amount)
        return terms | {f"ratio.{name}": amount * term for name, term in ratios.items()}

    def point(self, raw: Raw) -> Tensor:
        inner_raw, ratio_raw = self._split(raw)
        amount: Tensor = self.inner(inner_raw)
        ratio: Tensor = self.ratio(ratio_raw)
        return amount.clamp(min=self.least) * ratio

    def undebiased(self, raw: Raw) -> Tensor:
        return self.inner.undebiased(self._split(raw)[0])

    def kappa(self, raw: Raw) -> Tensor | None:
        return self.inner.kappa(self._split(raw)[0])

    @property
    def rowwise(self) -> bool:
        return self.inner.rowwise and self.ratio.rowwise

    def ranking_pairs(self, raw: Raw, y: Tensor) -> RankingPairs:
        return self.inner.ranking_pairs(self._split(raw)[0], y)

    def prepare(self, y: Tensor) -> Self:
        prepared = super().prepare(y)
        return prepared.replace(ratio=self.ratio.prepare(_ratios(y)))

    def outputs_beside(self, trained: Raw, y: Tensor) -> Raw:
        inner = self.inner.outputs_beside(self._split(trained)[0], y)
        return (*inner, *self.ratio.initial_outputs(_ratios(y)))

    def _split(self, raw: Raw) -> tuple[Raw, Raw]:
        count = len(self.inner.branches)
        return raw[:count], raw[count:]


def _ratios(y: Tensor) -> Tensor:
    """The ratios of the targets to their mean, which an untrained inner head predicts."""
    return y / y.double().mean().to(y.dtype).clamp(min=torch.finfo(torch.float32).tiny)
