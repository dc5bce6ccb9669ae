"""What corrections would give on this data: each learned on four fifths of the rows and judged on the rest."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from transun.corrections import BinnedSmearing, Correction, SlopeByLevel, Smearing, SmoothIsotonic
from transun.diagnosis.candidates import Named
from transun.diagnosis.interval import ratio_interval
from transun.diagnosis.moments import Floats, RatioMoments
from transun.diagnosis.result import Cure, Estimate
from transun.metrics import NRMSE
from transun.metrics.metric import Interval
from transun.schemes import PowerVariance
from transun.support.progress import Progress
from transun.transforms import Identity

__all__ = ["FEWEST", "FOLDS", "Treatment", "cross_fitted", "inverted", "treatments", "try_cures"]

FOLDS = 5
# Below this a bin of a correction has too few rows to have a mean.
FEWEST = 200
_PER_BIN = 200
# Smearing evaluates T⁻¹ at some hundred residuals a row: this many rows at a time need 8 MB.
_ROWS = 4096


@dataclass(frozen=True)
class Treatment:
    """A correction with the space it works in, and its words for people."""

    name: str
    how: str
    correction: Correction
    space: Named


def treatments(named: Named, scheme: PowerVariance, rows: int) -> list[Treatment]:
    """The corrections to try: constant and binned smearing under T, isotonic, and GTS by the prediction."""
    bins = max(2, min(50, rows // _PER_BIN))
    plain = Named("y", Identity())
    found = [
        Treatment("smearing", f"one factor from the residuals of {named.formula}", Smearing(), named),
        Treatment(
            "binned smearing",
            f"residuals of {named.formula} by level of the prediction",
            BinnedSmearing(min(10, bins)),
            named,
        ),
        Treatment("isotonic", "mean actual by level, order kept", SmoothIsotonic(bins), plain),
    ]
    powers = dict.fromkeys([scheme.power, 2.0])
    for power in powers:
        slope = PowerVariance(power, scheme.eps)
        how = f"z / κ with κ = (ŷ + {scheme.eps:g})^-{power / 2:g}, z by level of the prediction"
        found.append(Treatment(f"GTS by level, p = {power:g}", how, SlopeByLevel(slope, bins), plain))
    return found


def cross_fitted(treatment: Treatment, y: Floats, pred: Floats, weight: Floats, fold: np.ndarray) -> Floats:
    """Corrected predictions, each from a correction that has not seen its row."""
    u = torch.from_numpy(treatment.space.forward(pred))
    target, mass = torch.from_numpy(y), torch.from_numpy(weight)
    result = torch.empty_like(u)
    for index in range(FOLDS):
        held_out = torch.from_numpy(fold == index)
        if not bool(held_out.any()):
            continue
        rest = ~held_out
        fitted = treatment.correction.fit(u[rest], target[rest], treatment.space.transform, mass[rest])
        result[held_out] = torch.cat([fitted(part).double() for part in torch.split(u[held_out], _ROWS)])
    return result.numpy()


def try_cures(
    chosen: Sequence[Treatment], y: Floats, pred: Floats, weight: Floats, fold: np.ndarray, show: bool | None
) -> tuple[Cure, ...]:
    """The outcome of every correction, after that of the predictions as they are."""
    found = [_outcome("as it is", "no correction", y, pred, weight)]
    with Progress("trying corrections", len(chosen), show) as bar:
        for index, treatment in enumerate(chosen):
            corrected = cross_fitted(treatment, y, pred, weight, fold)
            found.append(_outcome(treatment.name, treatment.how, y, corrected, weight))
            bar.advance(index + 1)
    return tuple(found)


def inverted(ratio: float, interval: Interval) -> tuple[Estimate, Estimate]:
    """PGR = 1/R and TRE = |1 − R| of a ratio R of actual to predicted, with their intervals."""
    low = 1.0 / interval.high if interval.high > 0.0 else math.nan
    high = 1.0 / interval.low if interval.low > 0.0 else math.inf
    pgr = Estimate("PGR", 1.0 / ratio if ratio > 0.0 else math.nan, low, high)
    ends = sorted((abs(1.0 - interval.low), abs(1.0 - interval.high)))
    tre = Estimate("TRE", abs(1.0 - ratio), 0.0 if interval.low <= 1.0 <= interval.high else ends[0], ends[1])
    return pgr, tre


def _outcome(name: str, how: str, y: Floats, pred: Floats, weight: Floats) -> Cure:
    moments = RatioMoments.of(y, pred, weight, np.zeros(len(y), dtype=np.int64), 1)
    pgr, tre = inverted(moments.ratio(), ratio_interval(moments))
    error, half = NRMSE(pred, y, weight), 1.96 * NRMSE.standard_error(pred, y, weight)
    return Cure(name, how, pgr, tre, Estimate("NRMSE", error, max(error - half, 0.0), error + half))
