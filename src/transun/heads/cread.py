"""CREAD: is the target above each of many thresholds? The answers add up to its expectation."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad, relu, softplus

from transun.heads.bins import EAD, Binned, Binning, odds
from transun.heads.density import widen
from transun.heads.head import Branch, Raw
from transun.losses import Huber, PointLoss
from transun.support.arguments import require_count

Restoration = Callable[[Tensor, Tensor], Tensor]
"""(φ (B, M + 1) from φ_0 = 1 to φ_M = 0, thresholds t (M + 1,)) -> the expectation (B,)."""


def trapezoid(survival: Tensor, thresholds: Tensor) -> Tensor:
    """t_0 + Σ ½(φ_{m-1} + φ_m)·(t_m - t_{m-1}): each bin at its midpoint, what the paper's numbers come from.

    >>> survival, thresholds = torch.tensor([[1.0, 0.5, 0.0]]), torch.tensor([1.0, 3.0, 9.0])
    >>> trapezoid(survival, thresholds).tolist()  # half at 2, half at 6
    [4.0]
    """
    return thresholds[0] + (0.5 * (survival[:, :-1] + survival[:, 1:]) * thresholds.diff()).sum(-1)


def left_sum(survival: Tensor, thresholds: Tensor) -> Tensor:
    """t_0 + Σ φ_{m-1}·(t_m - t_{m-1}): each bin counts at its upper end, always too high.

    >>> survival, thresholds = torch.tensor([[1.0, 0.5, 0.0]]), torch.tensor([1.0, 3.0, 9.0])
    >>> left_sum(survival, thresholds).tolist()  # half at 3, half at 9
    [6.0]
    """
    return thresholds[0] + (survival[:, :-1] * thresholds.diff()).sum(-1)


@dataclass(frozen=True)
class RightSum:
    """Σ φ_m·(t_m - t_{m-1}) with t_0 = `origin`: CREAD as published. Each bin counts at its lower end: always too low.

    Args:
        origin: where targets begin. The published zero is wrong for negative targets.

    >>> survival, thresholds = torch.tensor([[1.0, 0.5, 0.0]]), torch.tensor([1.0, 3.0, 9.0])
    >>> RightSum()(survival, thresholds).tolist()  # half at 0, half at 3
    [1.5]

    """

    origin: float = 0.0

    def __call__(self, survival: Tensor, thresholds: Tensor) -> Tensor:
        """The expectation, (B,)."""
        begun = torch.cat((torch.full_like(thresholds[:1], self.origin), thresholds[1:]))
        return self.origin + (survival[:, 1:] * begun.diff()).sum(-1)


class CREAD(Binned):
    """Predicts a sum over φ_m = P(y > t_m), minimises the mean binary cross-entropy of y > t_m over the thresholds.

    One logit for each of the bins - 1 inner thresholds. Nothing forces φ to fall with m; the sum stays meaningful where
    it does not, and the law (`cdf`) takes its running minimum. The prediction never leaves the training range, and what
    a bin contributes depends on its ends alone, not on where in it the targets lie: biased, less with more bins.

    Args:
        bins: M. More of them shrink the bias; each threshold is one more output.
        binning: where the thresholds lie; `EAD(0.5)` refines the tail.
        restoration: how the answers become an expectation: `trapezoid`, the published `RightSum()`, or `left_sum`.
        error: weight of the criterion between prediction and target. Public code has 1, on targets scaled to [0, 1].
        criterion: in units of the target; inside `Scaled` in units of the scale.
        order: weight of Σ relu(φ_{m+1} - φ_m), which keeps φ falling. Public code has 2e-5.

    >>> head = CREAD(bins=2, binning=EAD(0.0)).prepare(torch.tensor([0.0, 1.0, 4.0]))
    >>> raw = (torch.zeros(1, 1),)  # φ = 1, 1/2, 0 at the thresholds 0, 1, 4
    >>> head(raw).item()  # half at 0.5, half at 2.5
    1.5
    >>> round(head.loss(raw, torch.tensor([4.0]))["thresholds"].item(), 4)  # ln 2
    0.6931

    """

    def __init__(
        self,
        bins: int = 16,
        binning: Binning = EAD(),
        restoration: Restoration = trapezoid,
        error: float = 0.0,
        criterion: PointLoss = Huber(),
        order: float = 0.0,
    ) -> None:
        require_count("CREAD", least=2, bins=bins)
        if not (error >= 0.0 and order >= 0.0):
            raise ValueError(f"CREAD needs error >= 0 and order >= 0, got error={error}, order={order}")
        super().__init__(bins, binning)
        self.bins, self.restoration, self.error, self.criterion, self.order = bins, restoration, error, criterion, order
        self.branches = (Branch(bins - 1),)

    def survival(self, raw: Raw) -> Tensor:
        """φ (B, bins + 1), with the ends φ_0 = 1 and φ_M = 0 that need no learning."""
        return pad(pad(widen(raw[0]).sigmoid(), (1, 0), value=1.0), (0, 1), value=0.0)

    def shares(self, raw: Raw) -> Tensor:
        return -self.survival(raw).cummin(-1).values.diff()

    def point(self, raw: Raw) -> Tensor:
        survival = self.survival(raw)
        return self.restoration(survival, self.edges.to(survival))

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        logits = widen(raw[0])
        cost = softplus(logits) - self._above(y.to(logits.device)).to(logits.dtype) * logits
        terms = {"thresholds": cost.mean(-1)}
        if self.error:
            terms["error"] = self.error * self.criterion(self.point(raw), y)
        if self.order:
            terms["order"] = self.order * relu(logits.sigmoid().diff()).sum(-1)
        return terms

    def initial_outputs(self, y: Tensor) -> Raw:
        above = self._above(y).sum(0, dtype=torch.float64)
        return (odds(above, torch.full_like(above, len(y))).to(y.dtype),)

    def _above(self, y: Tensor) -> Tensor:
        """1[y > t_m] (B, bins - 1); both sides are rounded alike, see `Binned`."""
        return y.to(self.edges.dtype).unsqueeze(-1) > self.edges[1:-1].to(y.device)
