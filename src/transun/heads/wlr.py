"""Weighted logistic regression: the odds of a weighted classifier as the prediction of an amount."""

import math
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import softplus

from transun.heads.head import Branch, Head, Raw, Sharing, check_unit
from transun.heads.ziln import binary_cross_entropy, check_amounts, logit
from transun.transforms import Identity
from transun.transforms.transform import LARGEST

# Odds are unbounded; those beyond this many times the largest training target are a runaway logit.
_HEADROOM = 100.0
# Fewer zeros than this share would be too few negatives for a classifier of zeros.
_ENOUGH_ZEROS = 0.01
# Where there are no zeros to separate, the targets above this quantile are the positives (D2Q).
_QUANTILE = 0.6


class Odds(Head):
    """A head that predicts the odds eˢ = p / (1 - p) of its first output s, at most `upper`."""

    def __init__(self, upper: float = math.inf) -> None:
        super().__init__()
        self.upper = upper
        self.transform = Identity(lower=0.0, upper=upper)

    def point(self, raw: Raw) -> Tensor:
        # From the logit itself: p / (1 - p) divides by zero long before the odds overflow.
        return raw[0].squeeze(-1).clamp(max=math.log(self.transform.bounds[1])).exp()

    def prepare(self, y: Tensor) -> Self:
        check_amounts(self, y)
        check_unit(y)
        self.transform.check(y)
        if math.isfinite(self.upper):
            return self.replace()
        # Targets that are all zero have no scale.
        return self.replace(upper=min(_HEADROOM * (float(y.max()) or 1.0), LARGEST))


class WLR(Odds):
    """Classifies y > threshold, each positive weighted by y: y·softplus(-s) or softplus(s); predicts the odds eˢ.

    The odds tend to E[y; y > threshold] / P(y ≤ threshold). With rare positives and a threshold of 0 that is nearly
    the mean; in general it is too high by p₊/(1 - p₊), the odds of a positive, and without zeros it is wrong
    in either direction. `SoftWLR` keeps the idea and drops the bias. The gradient grows with y: `Scaled(WLR())` trains
    on targets of order one, and its odds scale back exactly.

    Args:
        threshold: what a target must exceed to be a positive. None is learned by `prepare`: the quantile of the
            training targets that `quantile` names; without one 0, the original method, where at least 1 % of them
            are zero, else their 60 % quantile (D2Q).
        upper: where the prediction stops; infinite is learned as 100 times the largest training target.
        quantile: a level between 0 and 1. `WLR(quantile=0.6)` is D2Q on any data, also where there are zeros.

    >>> WLR(quantile=0.5).prepare(torch.tensor([0.0, 0.0, 1.0, 4.0, 9.0])).threshold
    1.0
    >>> head = WLR(threshold=0.0)
    >>> raw = (torch.tensor([[3.0], [3.0]]).log(),)  # odds of 3: p = ¾
    >>> [round(v, 4) for v in head(raw).tolist()]
    [3.0, 3.0]
    >>> [round(v, 4) for v in head.loss(raw, torch.tensor([0.0, 2.0]))["odds"].tolist()]  # -ln ¼ and -2·ln ¾
    [1.3863, 0.5754]

    """

    def __init__(self, threshold: float | None = None, upper: float = math.inf, quantile: float | None = None) -> None:
        super().__init__(upper)
        if threshold is not None and not 0.0 <= threshold < math.inf:
            raise ValueError(f"{type(self).__name__} needs a finite threshold >= 0, got {threshold}")
        if quantile is not None and not 0.0 < quantile < 1.0:
            raise ValueError(f"{type(self).__name__} needs 0 < quantile < 1, got {quantile}")
        self.threshold, self.quantile = threshold, quantile

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        s = raw[0].squeeze(-1)
        return {"odds": torch.where(self._positive(y), y * softplus(-s), softplus(s))}

    def prepare(self, y: Tensor) -> Self:
        prepared = super().prepare(y)
        if self.threshold is None:
            prepared = prepared.replace(threshold=_threshold(y, self.quantile))
        positive = prepared._positive(y)
        for missing, side in ((not positive.any(), "above"), (bool(positive.all()), "at or below")):
            if missing:
                raise ValueError(
                    f"no target is {side} the threshold {prepared.threshold:g}, so {type(self).__name__} has only one "
                    "class to learn from; use SoftWLR, which needs no classes"
                )
        return prepared

    def initial_outputs(self, y: Tensor) -> Raw:
        positive = self._positive(y)
        return (_log(y.double()[positive].sum() / (~positive).sum().clamp(min=1)).to(y.dtype),)

    def _positive(self, y: Tensor) -> Tensor:
        # A target equal to the threshold is a negative, as zeros are.
        return y > (self.threshold or 0.0)


class PriorWLR(WLR):
    """`WLR` times the share of negatives: predicts eˢ·(1 - sigmoid(r)), r a second, unweighted logit of the class.

    Takes the factor 1/P(y ≤ threshold) out of the odds, which leaves E[y; y > threshold]: exact for a threshold of 0,
    too low otherwise, since what lies below the threshold is lost.

    Args:
        threshold: as in `WLR`.
        upper: as in `WLR`.
        shared: leading stages that the branch of r reuses from the branch of s.
        quantile: as in `WLR`.

    >>> head = PriorWLR(threshold=0.0)
    >>> raw = (torch.tensor([[3.0]]).log(), torch.tensor([[0.0]]))  # odds of 3, a negative with probability ½
    >>> round(head(raw).item(), 4)
    1.5

    """

    def __init__(
        self,
        threshold: float | None = None,
        upper: float = math.inf,
        shared: Sharing = 0,
        quantile: float | None = None,
    ) -> None:
        super().__init__(threshold, upper, quantile)
        self.shared = shared
        self.branches = (Branch(), Branch(shared=shared))

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        return super().loss(raw, y) | {"prior": binary_cross_entropy(raw[1].squeeze(-1), self._positive(y))}

    def point(self, raw: Raw) -> Tensor:
        return super().point(raw) * (-raw[1].squeeze(-1)).sigmoid()

    def initial_outputs(self, y: Tensor) -> Raw:
        share = self._positive(y).double().mean()
        return (*super().initial_outputs(y), logit(share).to(y.dtype).reshape(1))


class SoftWLR(Odds):
    """Every target is a positive of weight y and a negative of weight 1: y·softplus(-s) + softplus(s); predicts eˢ.

    The odds tend to E[y], whatever the law: it is the likelihood of a geometric law of mean eˢ, a regression with
    variance μ + μ². The unbiased member of the family, and a fair rival of `GTS` with a single branch.

    Args:
        upper: where the prediction stops; infinite is learned as 100 times the largest training target.

    >>> head = SoftWLR()
    >>> raw = (torch.tensor([[0.0]]),)
    >>> head(raw).item()
    1.0
    >>> round(head.loss(raw, torch.tensor([2.0]))["odds"].item(), 4)  # 2·ln 2 + ln 2
    2.0794

    """

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        s = raw[0].squeeze(-1)
        return {"odds": y * softplus(-s) + softplus(s)}

    def initial_outputs(self, y: Tensor) -> Raw:
        return (_log(y.double().mean()).to(y.dtype),)


def _threshold(y: Tensor, quantile: float | None) -> float:
    if quantile is None and (y == 0.0).double().mean() >= _ENOUGH_ZEROS:
        return 0.0
    # By sorting: torch.quantile refuses more than 2²⁴ targets.
    ordered = y.double().sort().values
    position = (_QUANTILE if quantile is None else quantile) * (len(y) - 1)
    low, high = ordered[math.floor(position)].item(), ordered[math.ceil(position)].item()
    return low + (position - math.floor(position)) * (high - low)


def _log(value: Tensor) -> Tensor:
    """Its logarithm as a starting constant (1,); targets that are all zero start at odds of 1e-6, not at -∞."""
    return value.clamp(min=1e-6).log().reshape(1)
