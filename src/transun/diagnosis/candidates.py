"""The transforms that a model may have been trained on, given the range of the targets."""

from dataclasses import dataclass

import numpy as np
import torch

from transun.support.arrays import Floats
from transun.transforms import Affine, Asinh, BoxCox, Compose, Log1p, Power, Transform

__all__ = ["NamedTransform", "candidates", "log_like", "rounded"]


@dataclass(frozen=True)
class NamedTransform:
    """A transform T and its formula for the reader."""

    formula: str
    transform: Transform

    def forward(self, values: Floats) -> Floats:
        """T(values); a value outside the domain is replaced by the nearest end of the domain."""
        low, high = self.transform.bounds
        return self.transform(torch.tensor(values).clamp(low, high)).numpy()

    def inverse(self, u: Floats) -> Floats:
        """T⁻¹(u)."""
        return self.transform.inverse(torch.from_numpy(u)).numpy()

    def slope(self, u: Floats) -> Floats:
        """The derivative of T⁻¹ at u."""
        at = torch.from_numpy(u).requires_grad_()
        (gradient,) = torch.autograd.grad(self.transform.inverse(at).sum(), at)
        return gradient.numpy()


def candidates(y: Floats, pred: Floats) -> tuple[list[NamedTransform], list[str]]:
    """The transforms that can be tested on these rows, and a sentence on each that cannot."""
    if y.min() < 0.0:
        scale = rounded(float(np.median(np.abs(y[y != 0.0]))))
        return [NamedTransform(f"arsinh(y / {scale:g})", Asinh(scale))], [
            "logarithm and root were not tested: the target has values below 0"
        ]
    always = [NamedTransform("ln(1 + y)", Log1p()), NamedTransform("√y", Power(0.5))]
    least = float(min(y.min(), pred.min()))
    if least > 0.0:
        return [*always, NamedTransform("ln y", BoxCox(0.0, 0.0, lower=least))], []
    return always, ["ln y was not tested: there are targets or predictions that are not positive"]


def log_like(y: Floats) -> NamedTransform:
    """A logarithm that bends within the range of the targets, whatever their unit and sign.

    ln(1 + y) is a straight line for targets far below 1; these are divided by their median first.
    """
    scale = rounded(float(np.median(np.abs(y[y != 0.0]))))
    if y.min() < 0.0:
        return NamedTransform(f"arsinh(y / {scale:g})", Asinh(scale))
    if scale < 0.3:
        return NamedTransform(f"ln(1 + y / {scale:g})", Compose(Affine(1.0 / scale), Log1p()))
    return NamedTransform("ln(1 + y)", Log1p())


def rounded(value: float) -> float:
    """One significant digit: a unit, not a measurement.

    >>> rounded(0.0372), rounded(1843.0)
    (0.04, 2000.0)
    """
    return float(f"{value:.0e}")
