"""Target transforms T, each with the range of credible targets and one clamped inverse."""

from transun.transforms.bounded import Arctan, Tanh
from transun.transforms.boxcox import BoxCox
from transun.transforms.linear import Affine, Compose, Identity
from transun.transforms.transform import Transform
from transun.transforms.unbounded import Asinh, Log1p, Power

__all__ = ["Affine", "Arctan", "Asinh", "BoxCox", "Compose", "Identity", "Log1p", "Power", "Tanh", "Transform"]
