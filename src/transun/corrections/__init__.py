"""Post-hoc corrections: from a trained point u to a prediction without the retransformation bias."""

from transun.corrections.correction import Correction
from transun.corrections.isotonic import SmoothIsotonic
from transun.corrections.multicalibration import Multicalibration
from transun.corrections.normal import NormalTheory, SecondOrder
from transun.corrections.slope_by_level import SlopeByLevel
from transun.corrections.smearing import BinnedSmearing, Smearing
from transun.corrections.totals import TotalRatio, TotalShift

__all__ = [
    "BinnedSmearing",
    "Correction",
    "Multicalibration",
    "NormalTheory",
    "SecondOrder",
    "SlopeByLevel",
    "Smearing",
    "SmoothIsotonic",
    "TotalRatio",
    "TotalShift",
]
