"""Heads around heads that do not add a branch: a target scale, ranking terms, fusion by a threshold."""

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import softplus

from transun.heads.head import Head, RankingPairs, Raw, Wrapper, check_targets
from transun.support.arguments import listed
from transun.transforms import Affine, Compose, Identity


class Scaled(Wrapper):
    """Trains `inner` on y / scale and predicts scale·ŷ, with the scale learned from the training targets.

    An optimiser with one learning rate needs outputs of order one. Every mean-unbiased head is equivariant, so scaling
    changes the path and not the goal. Constants of the inner head such as ε or Huber's δ are then in units of the
    scale.

    Args:
        inner: the head to scale.
        scale: the unit; None takes the mean of |y| in `prepare`.

    >>> head = Scaled(PointHead(), scale=10.0)
    >>> head((torch.tensor([[2.0]]),)).item()
    20.0
    >>> head.loss((torch.tensor([[2.0]]),), torch.tensor([30.0]))["point"].item()
    1.0

    """

    def __init__(self, inner: Head, scale: float | None = None) -> None:
        super().__init__(inner)
        if scale is not None and not 0.0 < scale < float("inf"):
            raise ValueError(f"Scaled needs a finite scale > 0, got {scale}")
        self.scale = scale
        self._unit = 1.0 if scale is None else scale
        self.transform = Compose(Affine(1.0 / self._unit), inner.transform)

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        return self.inner.loss(raw, y / self._unit)

    def undebiased(self, raw: Raw) -> Tensor:
        return self._unit * self.inner.undebiased(raw)

    def kappa(self, raw: Raw) -> Tensor | None:
        kappa = self.inner.kappa(raw)
        return None if kappa is None else kappa / self._unit

    def ranking_pairs(self, raw: Raw, y: Tensor) -> RankingPairs:
        return self.inner.ranking_pairs(raw, y / self._unit)

    def prepare(self, y: Tensor) -> Self:
        check_targets(y)
        # Targets that are all zero have no unit.
        scale = self.scale or float(y.abs().double().mean()) or 1.0
        return self.replace(inner=self.inner.prepare(y / scale), scale=scale)

    def outputs_beside(self, trained: Raw, y: Tensor) -> Raw:
        return self.inner.outputs_beside(trained, y / self._unit)


class Ranked(Wrapper):
    """Adds pairwise logistic terms: the mean of softplus(-(sᵢ - sⱼ)) over pairs whose labels say i above j.

    TranSUN can lose some of the order that its log-trained inner head had. The paper's remedy is a ranking loss on z
    against its label (`"bias"`), on f against y (`"inner.point"`), or both. Costs B² pairs a batch. A batch without
    an ordered pair adds exactly 0. A pair carries the sample weight of its higher row.

    Args:
        inner: the head whose `ranking_pairs` are ordered.
        on: names of the pairs to order; empty means all pairs of the head.
        strength: factor of the ranking terms.

    >>> head = Ranked(PointHead())
    >>> terms = head.loss((torch.tensor([[0.0], [0.0]]),), torch.tensor([1.0, 2.0]))
    >>> [round(v, 4) for v in terms["rank.point"].tolist()]  # one pair of two rows: mean = ln 2
    [0.0, 1.3863]

    """

    def __init__(self, inner: Head, on: Sequence[str] = (), strength: float = 1.0) -> None:
        super().__init__(inner)
        if not strength >= 0.0:
            raise ValueError(f"Ranked needs strength >= 0, got {strength}")
        self.on, self.strength = tuple(listed("on", on)), strength

    @property
    def rowwise(self) -> bool:
        """False: a ranking term compares rows."""
        return False

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        terms = self.inner.loss(raw, y)
        pairs = self.inner.ranking_pairs(raw, y)
        for name in self.on or tuple(pairs):
            if name not in pairs:
                raise ValueError(f"Ranked: {name!r} is not a score of the inner head; it has {', '.join(pairs)}")
            terms[f"rank.{name}"] = self.strength * pairwise_logistic(*pairs[name])
        return terms


class ThresholdFusion(Wrapper):
    """Predicts the base where it is below `threshold` and the debiased value above: order for small, totals for large.

    Biased by construction below the threshold, so keep it out of bias experiments. The paper uses it online to keep the
    ranking of cheap orders, whose totals hardly matter. `transun.training.fuse` chooses the threshold.

    Args:
        inner: a debiased head, such as a GTS.
        threshold: in units of the target, compared with the base prediction.

    >>> head = ThresholdFusion(GTS(PointHead(Log1p())), threshold=3.0)
    >>> z = torch.tensor([[1.5], [1.5]])
    >>> [round(v, 3) for v in head((torch.tensor([[3.0], [9.0]]).log(), z)).tolist()]  # bases 2 and 8
    [2.0, 13.5]

    """

    def __init__(self, inner: Head, threshold: float) -> None:
        super().__init__(inner)
        self.threshold = threshold
        self.transform = Identity()

    def point(self, raw: Raw) -> Tensor:
        base = self.inner.undebiased(raw)
        return torch.where(base < self.threshold, base, self.inner(raw))


def pairwise_logistic(score: Tensor, label: Tensor) -> Tensor:
    """Per-sample ranking cost (B,) whose mean is the mean of softplus(-(sᵢ - sⱼ)) over pairs with labelᵢ > labelⱼ.

    >>> pairwise_logistic(torch.tensor([1.0, 2.0]), torch.tensor([5.0, 5.0])).tolist()  # no ordered pair
    [0.0, 0.0]
    """
    above = label.unsqueeze(1) > label.unsqueeze(0)
    cost = softplus(score.unsqueeze(0) - score.unsqueeze(1)) * above
    return cost.sum(1) * (len(label) / above.sum().clamp(min=1).to(cost.dtype))
