"""A single output f trained by a point loss on T(y): MSE, MAE and every transformed version of them."""

import math
from typing import Self

import torch
from torch import Tensor

from transun.heads.head import Head, Raw, check_targets, check_unit
from transun.losses import PointLoss, absolute, squared
from transun.transforms import Identity, Log1p, Transform

# Rows that the search for a starting value looks at; its error is far below what training moves.
_ENOUGH = 1_000_000


class PointHead(Head):
    """Predicts T⁻¹(f), minimises criterion(f, T(y)): the T-MSE of the paper when the criterion is `squared`.

    Learns a point of the law of T(y)|x, not the mean of y|x: with a concave T and `squared` the back-transformed
    totals come out too low (ln, sqrt), with a convex T too high. That is the retransformation bias; wrap the head in
    `GTS` to remove it.

    Args:
        transform: T. Identity makes it plain regression, unbiased with `squared` and slow on a heavy tail.
        criterion: which point of the law is learned; see `transun.losses`.

    >>> head = PointHead(Log1p())
    >>> raw = (torch.tensor([[0.0], [1.0]]),)
    >>> [round(v, 3) for v in head(raw).tolist()]  # eᶠ - 1
    [0.0, 1.718]
    >>> head.loss(raw, torch.tensor([0.0, 0.0]))["point"].tolist()
    [0.0, 1.0]

    """

    def __init__(self, transform: Transform = Identity(), criterion: PointLoss = squared) -> None:
        super().__init__()
        if not isinstance(transform, Transform):
            raise TypeError(f"{type(self).__name__} needs a transform, such as Log1p(), got {transform!r}")
        self.transform = transform
        self.criterion = criterion

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        return {"point": self.criterion(self.point(raw), self.transform(y))}

    def point(self, raw: Raw) -> Tensor:
        return raw[0].squeeze(-1)

    def prepare(self, y: Tensor) -> Self:
        check_targets(y)
        check_unit(y)
        return self.replace(transform=self.transform.prepare(y))

    def initial_outputs(self, y: Tensor) -> Raw:
        return (best_constant(self.criterion, self.transform(y)).to(y.dtype).reshape(1),)


def MSE() -> PointHead:  # noqa: N802 - a method keeps the name of its paper
    """Least squares on y itself: unbiased, but slow and noisy on a heavy tail. `Scaled(MSE())` is the fair rival."""
    return PointHead()


def MAE() -> PointHead:  # noqa: N802
    """Least absolute deviation on y: learns the median, too low on right-skewed targets."""
    return PointHead(criterion=absolute)


def LogMSE() -> PointHead:  # noqa: N802
    """Least squares on ln(1 + y): the usual practice, and the usual under-prediction of totals."""
    return PointHead(Log1p())


def LogMAE() -> PointHead:  # noqa: N802
    """Least absolute deviation on ln(1 + y): the median again, since medians survive a transform."""
    return PointHead(Log1p(), absolute)


def best_constant(loss: PointLoss, target: Tensor) -> Tensor:
    """The constant c that minimises the mean of loss(c, target), by golden-section search; a float64 scalar.

    Works for every loss that is unimodal in c, hence for a user's own. Exact to about 1e-8 of the spread.

    >>> round(best_constant(squared, torch.tensor([1.0, 2.0, 6.0])).item(), 6)
    3.0
    """
    target = target.double()[:: max(1, len(target) // _ENOUGH)]
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    low, high = target.min(), target.max()
    inner = [high - ratio * (high - low), low + ratio * (high - low)]

    def cost(c: Tensor) -> Tensor:
        return loss(c.expand_as(target), target).mean()

    costs = [cost(c) for c in inner]
    for _ in range(60):
        if costs[0] <= costs[1]:
            high, inner[1], costs[1] = inner[1], inner[0], costs[0]
            inner[0] = high - ratio * (high - low)
            costs[0] = cost(inner[0])
        else:
            low, inner[0], costs[0] = inner[0], inner[1], costs[1]
            inner[1] = low + ratio * (high - low)
            costs[1] = cost(inner[1])
    return torch.stack((low, high)).mean()
