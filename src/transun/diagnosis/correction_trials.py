"""Corrections tried on the data: each is learned on four fifths of the rows and applied to the rest, five times."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from transun.corrections import BinnedSmearing, Correction, SlopeByLevel, Smearing, SmoothIsotonic
from transun.diagnosis.candidates import NamedTransform
from transun.diagnosis.interval import metric_estimate, ratio_interval, total_estimates
from transun.diagnosis.moments import RatioMoments
from transun.diagnosis.result import CorrectionResult
from transun.metrics import NRMSE
from transun.schemes import PowerVariance
from transun.support.arrays import Floats
from transun.support.progress import Progress
from transun.transforms import Identity

__all__ = [
    "FEWEST",
    "FOLDS",
    "CorrectionTrial",
    "correction_trials",
    "out_of_fold",
    "right_total_least_error",
    "run_trials",
]

FOLDS = 5
# With fewer rows a bin of a correction has too few to estimate a mean.
FEWEST = 200
_ROWS_PER_BIN = 200
# Smearing evaluates T⁻¹ at some hundred residuals a row: this many rows at a time need 8 MB.
_ROWS_AT_A_TIME = 4096


@dataclass(frozen=True)
class CorrectionTrial:
    """A correction to try, the space it works in, and its name and description for the reader."""

    name: str
    how: str
    correction: Correction
    space: NamedTransform

    def fit(self, y: Floats, pred: Floats, weight: Floats) -> Correction:
        """The correction learned from some rows; it takes predictions in `space`."""
        u = torch.from_numpy(self.space.forward(pred))
        return self.correction.fit(u, torch.from_numpy(y), self.space.transform, torch.from_numpy(weight))


def correction_trials(named: NamedTransform, scheme: PowerVariance, rows: int) -> list[CorrectionTrial]:
    """The corrections to try: constant and binned smearing under T, isotonic, and GTS by the prediction."""
    bins = max(2, min(50, rows // _ROWS_PER_BIN))
    plain = NamedTransform("y", Identity())
    trials = [
        CorrectionTrial("smearing", f"one factor from the residuals of {named.formula}", Smearing(), named),
        CorrectionTrial(
            "binned smearing",
            f"residuals of {named.formula} by level of the prediction",
            BinnedSmearing(min(10, bins)),
            named,
        ),
        CorrectionTrial("isotonic", "mean actual by level, order kept", SmoothIsotonic(bins), plain),
    ]
    powers = dict.fromkeys([scheme.power, 2.0])
    for power in powers:
        slope = PowerVariance(power, scheme.eps)
        how = f"z / κ with κ = (ŷ + {scheme.eps:g})^-{power / 2:g}, z by level of the prediction"
        trials.append(CorrectionTrial(f"GTS by level, p = {power:g}", how, SlopeByLevel(slope, bins), plain))
    return trials


def out_of_fold(trial: CorrectionTrial, y: Floats, pred: Floats, weight: Floats, fold: np.ndarray) -> Floats:
    """Corrected predictions (n,), each from a correction that was learned without its fold."""
    u = torch.from_numpy(trial.space.forward(pred))
    result = torch.empty_like(u)
    for index in range(FOLDS):
        held_out = torch.from_numpy(fold == index)
        if not bool(held_out.any()):
            continue
        rest = fold != index
        fitted = trial.fit(y[rest], pred[rest], weight[rest])
        result[held_out] = torch.cat([fitted(part).double() for part in torch.split(u[held_out], _ROWS_AT_A_TIME)])
    return result.numpy()


def run_trials(
    trials: Sequence[CorrectionTrial], y: Floats, pred: Floats, weight: Floats, fold: np.ndarray, show: bool | None
) -> tuple[CorrectionResult, ...]:
    """The result of the predictions without a correction, then of every correction out of fold."""
    results = [_result("as it is", "no correction", y, pred, weight)]
    with Progress("trying corrections", len(trials), show) as bar:
        for index, trial in enumerate(trials):
            corrected = out_of_fold(trial, y, pred, weight, fold)
            results.append(_result(trial.name, trial.how, y, corrected, weight))
            bar.advance(index + 1)
    return tuple(results)


def right_total_least_error(results: Sequence[CorrectionResult]) -> CorrectionResult | None:
    """The correction of least NRMSE among those that get the total right within its error; None if none does.

    The first result is that of no correction, and is not considered.
    """
    right = [result for result in results[1:] if 1.0 in result.pgr]
    return min(right, key=lambda result: result.nrmse.value, default=None)


def _result(name: str, how: str, y: Floats, pred: Floats, weight: Floats) -> CorrectionResult:
    moments = RatioMoments.of(y, pred, weight, np.zeros(len(y), dtype=np.int64), 1)
    totals = total_estimates(moments.ratio(), ratio_interval(moments))
    nrmse = metric_estimate(NRMSE, NRMSE(pred, y, weight), NRMSE.standard_error(pred, y, weight))
    return CorrectionResult(name, how, totals["PGR"], totals["TRE"], nrmse)
