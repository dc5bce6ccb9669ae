"""Transforms that a model may have been trained on, as far as the targets allow them."""

from dataclasses import dataclass

import numpy as np
import torch

from transun.diagnosis.moments import Floats
from transun.transforms import Affine, Asinh, BoxCox, Compose, Log1p, Power, Transform

__all__ = ["Named", "candidates", "log_like", "rounded"]


@dataclass(frozen=True)
class Named:
    """A transform and its formula for people."""

    formula: str
    transform: Transform

    def forward(self, values: Floats) -> Floats:
        """T(values), where values outside the domain are taken for its nearest end."""
        low, high = self.transform.bounds
        return self.transform(torch.from_numpy(values).clamp(low, high)).numpy()

    def inverse(self, u: Floats) -> Floats:
        """T⁻¹(u)."""
        return self.transform.inverse(torch.from_numpy(u)).numpy()

    def slope(self, u: Floats) -> Floats:
        """The derivative of T⁻¹ at u."""
        at = torch.from_numpy(u).requires_grad_()
        (gradient,) = torch.autograd.grad(self.transform.inverse(at).sum(), at)
        return gradient.numpy()


def candidates(y: Floats, pred: Floats) -> tuple[list[Named], list[str]]:
    """The transforms that can be tested on these rows, and why others cannot."""
    if y.min() < 0.0:
        scale = rounded(float(np.median(np.abs(y[y != 0.0]))))
        return [Named(f"arsinh(y / {scale:g})", Asinh(scale))], [
            "logarithm and root were not tested: the target has values below 0"
        ]
    found = [
        Named("ln(1 + y)", Log1p()),
        Named("√y", Power(0.5)),
    ]
    least = float(min(y.min(), pred.min()))
    if least > 0.0:
        return [*found, Named("ln y", BoxCox(0.0, 0.0, lower=least))], []
    return found, ["ln y was not tested: there are targets or predictions that are not positive"]


def log_like(y: Floats) -> Named:
    """A logarithm that bends within the range of the targets, whatever their unit and sign.

    ln(1 + y) is a straight line for targets far below 1; these are divided by their median first.
    """
    scale = rounded(float(np.median(np.abs(y[y != 0.0]))))
    if y.min() < 0.0:
        return Named(f"arsinh(y / {scale:g})", Asinh(scale))
    if scale < 0.3:
        return Named(f"ln(1 + y / {scale:g})", Compose(Affine(1.0 / scale), Log1p()))
    return Named("ln(1 + y)", Log1p())


def rounded(value: float) -> float:
    """One significant digit: a unit, not a measurement.

    >>> rounded(0.0372), rounded(1843.0)
    (0.04, 2000.0)
    """
    return float(f"{value:.0e}")
