"""The layer that `Dice` builds: an activation that follows the statistics of its input, with its own backward pass."""

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import Function, once_differentiable

from transun.backbones.backbone import Span
from transun.support.group import Group

# As the released code of DIN: small beside the variance of any activation that moves at all.
_EPSILON = 1e-9
# A running mean of about this many batches, as in the released code.
_BATCHES = 100


class DiceLayer(nn.Module):
    """x·(α + (1 - α)·p), p = sigmoid(β·(x - mean) / std).

    Not `nn.BatchNorm1d`, which knows no padding and refuses a batch of one row. A compiled training step reads its
    input twice forward and twice backward: once for sums over the batch, once to write.

    Where ranks share a batch, `span` names them while they train: the statistics are those of all their rows, and a
    row's gradient includes what it does to the rows of other ranks.

    Args:
        width: units, each with statistics, α and β of its own.
        beta: β before training.

    """

    mean: Tensor
    variance: Tensor
    batches: Tensor

    def __init__(self, width: int, beta: float) -> None:
        super().__init__()
        self.span = Span()
        self.alpha = nn.Parameter(torch.zeros(width))
        self.beta = nn.Parameter(torch.full((width,), beta))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("variance", torch.ones(width))
        # One number in a list: torch.compile takes a single float64 for a constant of Python, and would not count.
        self.register_buffer("batches", torch.zeros(1))

    def forward(self, x: Tensor, present: Tensor | None = None) -> Tensor:
        if not self.training:
            return _dice(x, self.alpha, self.beta, self.mean, (self.variance + _EPSILON).rsqrt())
        rows = x.flatten(0, -2)
        mean, variance, share = self._update_statistics(
            rows.detach(), None if present is None else present.flatten(0, -2)
        )
        precision = (variance + _EPSILON).rsqrt()
        activated = _DiceFunction.apply(rows, self.alpha, self.beta, mean, precision, share, self.span.group)  # type: ignore[no-untyped-call]
        return cast(Tensor, activated).view_as(x)

    @torch.no_grad()
    def _update_statistics(self, rows: Tensor, present: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """The batch's mean and variance and each row's share in them; the running ones move towards them."""
        weight = self.mean.new_ones(1, 1) if present is None else present.to(self.mean.dtype)
        count = weight.sum() * (len(rows) if present is None else 1)
        # Sums of squares lose their digits far from zero: subtract the running mean first, or in the first batch a row.
        origin = torch.where(self.batches > 0.0, self.mean, (rows[:1] * weight[:1]).sum(0))
        centred = rows - origin if present is None else (rows - origin) * weight
        size = count.clamp(min=1.0)
        shift, square = centred.sum(0) / size, centred.square_().sum(0) / size
        mean, variance = origin + shift, (square - shift.square()).clamp(min=0.0)
        if self.span.group.size > 1:
            count, mean, variance = _pool(count, mean, variance, self.span.group)
            size = count.clamp(min=1.0)
        # By arithmetic, not by `if`, which would break a compiled graph.
        enough = count > 1.0
        used = torch.where(enough, mean, self.mean), torch.where(enough, variance, self.variance)
        self.batches.add_(enough)
        # A plain mean at first, so that after a short training the zeros and ones of the start no longer count.
        rate = enough / self.batches.clamp(1.0, _BATCHES)
        self.mean.lerp_(mean, rate)
        self.variance.lerp_(variance * count / (count - 1.0).clamp(min=1.0), rate)
        # Running statistics pass no gradient to the rows of the batch.
        return *used, weight * (enough / size)


def _pool(count: Tensor, mean: Tensor, variance: Tensor, group: Group) -> tuple[Tensor, Tensor, Tensor]:
    """Count, mean and variance of the rows of all ranks, from those of each.

    The variance is the mean of the variances plus the variance of the means, which keeps its digits where a difference
    of sums of squares would not.
    """
    parts = torch.stack(group.gather(torch.cat([count.reshape(1), mean, variance])))
    counts, means, variances = parts[:, :1], *parts[:, 1:].chunk(2, 1)
    total = counts.sum()
    share = counts / total.clamp(min=1.0)
    mean = (share * means).sum(0)
    return total, mean, (share * (variances + (means - mean).square())).sum(0)


def _dice(x: Tensor, alpha: Tensor, beta: Tensor, mean: Tensor, precision: Tensor) -> Tensor:
    p = torch.sigmoid((x - mean) * (beta * precision))
    activated = torch.addcmul(alpha, p, 1.0 - alpha) * x
    # In the precision of the input: the next layer's product would round to it anyway. Where nothing is to be rounded,
    # no operation may come last that returns its own argument, such as `to` or one in place: torch 2.11 compiles such a
    # forward pass of a `Function` into one whose gradients are all zero.
    return activated if activated.dtype == x.dtype else activated.to(x.dtype)


class _DiceFunction(Function):
    """The activation of rows (n, d), and its gradient by formula.

    With g the gradient of what comes out, s = 1/std, b = g·x·(1 - p)·p and w a row's share in mean and variance, all
    gradients of a unit are three sums over rows and one more pass:

        dα = Σ g·x·(1 - p),  dβ = s·(1 - α)·Σ b·(x - mean),
        dx = g·(α + (1 - α)·p) + β·s·(1 - α)·(b - w·(Σ b + (x - mean)·s²·Σ b·(x - mean)))

    Autograd would compute the same in more passes, and store p besides x. Of the sums, those inside dx are over the
    rows of all ranks; dα and dβ are of this rank's rows and added up with all other gradients.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, alpha: Tensor, beta: Tensor, mean: Tensor, precision: Tensor, share: Tensor, group: Group
    ) -> Tensor:
        ctx.save_for_backward(x, alpha, beta, mean, precision, share)
        ctx.group = group
        return _dice(x, alpha, beta, mean, precision)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, alpha, beta, mean, precision, share = ctx.saved_tensors
        g, scale, rest = gradient.to(mean.dtype), beta * precision, 1.0 - alpha
        centred = x - mean
        p = (centred * scale).sigmoid_()
        dx = torch.addcmul(alpha, p, rest).mul_(g)
        b = g * x
        b.addcmul_(b, p, value=-1.0)
        of_alpha = b.sum(0)
        b.mul_(p)
        total, moment = b.sum(0), (b * centred).sum(0)
        of_beta = precision * rest * moment
        if ctx.group.size > 1:
            total, moment = ctx.group.sum(torch.stack([total, moment])).unbind()
        dx.addcmul_(b, scale * rest)
        dx.addcmul_(torch.addcmul(total, centred, precision.square() * moment), share * (scale * rest), value=-1.0)
        return dx.to(x.dtype), of_alpha, of_beta, None, None, None, None
