"""One number that makes the total right: a factor, or a shift."""

import torch
from torch import Tensor

from transun.corrections.correction import PointCorrection


class TotalRatio(PointCorrection):
    """ŷ = c·T⁻¹(u) with c = Σy / ΣT⁻¹(u): the factor that makes the total of the rows it learns from right.

    The simplest correction, and scikit-learn's proposed "multiplicative" one. It keeps the order of predictions.
    Where the noise changes with x it moves error from one end to the other: right in total, wrong for most rows.
    Where the sum of T⁻¹(u) is not positive, no factor is right and none is applied.

    >>> correction = TotalRatio().fit(torch.tensor([1.0, 3.0]), torch.tensor([4.0, 16.0]), Power(0.5))
    >>> correction(torch.tensor([1.0, 3.0])).tolist()  # 20 / (1 + 9) = 2
    [2.0, 18.0]
    """

    factor: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("factor", torch.ones(()))

    def _learn(self, u: Tensor, y: Tensor, weight: Tensor) -> dict[str, Tensor]:
        predicted = (self.transform.inverse(u) * weight).sum()
        return {"factor": (y * weight).sum() / predicted if predicted > 0.0 else torch.ones_like(predicted)}

    def _correct(self, u: Tensor) -> Tensor:
        return self.factor * self.transform.inverse(u)


class TotalShift(PointCorrection):
    """ŷ = T⁻¹(u) + c with c the mean of y - T⁻¹(u): the shift that makes the total of the rows it learns from right.

    Scikit-learn's proposed "additive" correction. It suits a bias that is the same amount for every row, which
    amounts seldom have: small ones get the tail of the large ones added.

    >>> correction = TotalShift().fit(torch.tensor([1.0, 3.0]), torch.tensor([4.0, 16.0]), Power(0.5))
    >>> correction(torch.tensor([1.0, 3.0])).tolist()  # the mean of 4 - 1 and 16 - 9 is 5
    [6.0, 14.0]
    """

    shift: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("shift", torch.zeros(()))

    def _learn(self, u: Tensor, y: Tensor, weight: Tensor) -> dict[str, Tensor]:
        return {"shift": ((y - self.transform.inverse(u)) * weight).sum() / weight.sum()}

    def _correct(self, u: Tensor) -> Tensor:
        return self.transform.inverse(u) + self.shift
