"""A trained head with a post-hoc correction of its predictions."""

from typing import Self

from torch import Tensor

from transun.corrections import Correction
from transun.heads.density import Density
from transun.heads.head import Head, Raw, Wrapper
from transun.transforms import Identity


class Corrected(Wrapper):
    """Trains as `inner` and predicts correction(u), u being the point of `inner`.

    The rivals of GTS: no branch, no training, one pass over held-out rows. They see x only through u, and depend on
    what they assume about the residuals. Until `calibrate` the prediction is the inner head's, so that a model can be
    trained and validated inside the wrapper; `prepare`, which begins a training, resets the correction. The learned
    numbers are buffers: they are saved in the `state_dict` and in an exported graph.

    Args:
        inner: the head to correct.
        correction: how; see `transun.corrections`.

    >>> head = Corrected(LogMSE(), Smearing())
    >>> raw = (torch.tensor([[3.0], [3.0]]).log(),)
    >>> [round(v, 4) for v in head(raw).tolist()]  # nothing learned yet: eᵘ - 1
    [2.0, 2.0]
    >>> [round(v, 4) for v in head.calibrate(raw, torch.tensor([1.0, 7.0]))(raw).tolist()]  # the mean
    [4.0, 4.0]

    """

    def __init__(self, inner: Head, correction: Correction) -> None:
        super().__init__(inner)
        self.correction = correction.on(inner.transform)
        # A correction predicts in units of the target already; what remains is the credible range of the inner head.
        self.transform = Identity(lower=inner.transform.lower, upper=inner.transform.upper)

    def point(self, raw: Raw) -> Tensor:
        return self.correction(self.inner.point(raw))  # type: ignore[no-any-return]

    @property
    def distribution(self) -> Density | None:
        """That of the inner head: a correction knows about the mean alone."""
        return self.inner.distribution

    def prepare(self, y: Tensor) -> Self:
        return self.replace(inner=self.inner.prepare(y), correction=self.correction.unfitted())

    def calibrate(self, raw: Raw, y: Tensor, weight: Tensor | None = None) -> Self:
        """The head with its correction learned from rows that the network was not trained on.

        Args:
            raw: outputs of the trained network in evaluation mode, (n, width) per branch.
            y: targets (n,).
            weight: what each row counts (n,); None counts every row once.

        """
        u = self.inner.point(raw)
        return self.replace(correction=self.correction.fit(u, y, self.inner.transform, weight))
