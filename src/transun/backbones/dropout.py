"""Dropout whose choice of units does not depend on how many ranks share a batch."""

from torch import Tensor, nn

from transun.backbones.backbone import Span

__all__ = ["Dropout"]


class Dropout(nn.Dropout):
    """Sets a share p of the numbers (B, ...) to zero in training, and divides the others by 1 - p.

    Where ranks share a batch, `span` says which of its rows are here. All ranks draw the same numbers for the whole
    batch and use those of their own rows, so that a training does not depend on the number of ranks. Drawing them all
    is the price.

    >>> Dropout(0.5).eval()(torch.ones(1, 2)).tolist()
    [[1.0, 1.0]]
    """

    def __init__(self, p: float) -> None:
        super().__init__(p)
        self.span = Span()

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.span.group.size == 1:
            return super().forward(x)
        kept = x.new_empty(self.span.rows, *x.shape[1:]).bernoulli_(1.0 - self.p).div_(1.0 - self.p)
        return x * kept[self.span.start : self.span.start + len(x)]
