"""Corrections tried on the data: each is learned on four fifths of the rows and applied to the rest, five times."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from transun.backbones import Trees
from transun.corrections import (
    BinnedSmearing,
    Correction,
    Multicalibration,
    SlopeByLevel,
    Smearing,
    SmoothIsotonic,
)
from transun.diagnosis.candidates import NamedTransform
from transun.diagnosis.interval import differs_from_one, metric_estimate, ratio_interval, total_estimates
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
    "TrialRows",
    "TriedCorrection",
    "corrected",
    "correction_trials",
    "fit_folds",
    "out_of_fold",
    "right_total_least_error",
    "run_trials",
    "segment_trial",
]

FOLDS = 5
# With fewer rows a bin of a correction has too few to estimate a mean.
FEWEST = 200
_ROWS_PER_BIN = 200
# Smearing evaluates T⁻¹ at some hundred residuals a row: this many rows at a time need 8 MB.
_ROWS_AT_A_TIME = 4096


@dataclass(frozen=True)
class TrialRows:
    """Rows to try corrections on: targets, predictions and weights (n,), and encoded columns of segments, if any."""

    y: Floats
    pred: Floats
    weight: Floats
    x: Mapping[str, Tensor] = field(default_factory=dict)

    def take(self, chosen: np.ndarray) -> "TrialRows":
        """Some of the rows, by a mask (n,)."""
        columns = {name: column[torch.from_numpy(chosen)] for name, column in self.x.items()}
        return TrialRows(self.y[chosen], self.pred[chosen], self.weight[chosen], columns)


@dataclass(frozen=True)
class CorrectionTrial:
    """A correction to try, the space it works in, and its name and description for the reader."""

    name: str
    how: str
    correction: Correction
    space: NamedTransform

    def fit(self, rows: TrialRows) -> Correction:
        """The correction learned from some rows; it takes predictions in `space`."""
        u, y, weight = map(torch.from_numpy, (self.space.forward(rows.pred), rows.y, rows.weight))
        return self.correction.fit(u, y, self.space.transform, weight, rows.x)


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


def segment_trial(inputs: Trees, seed: int) -> CorrectionTrial:
    """The correction by segments of the columns that `inputs` names."""
    correction = Multicalibration(inputs, seed)
    how = f"a factor by segments of {', '.join(correction.columns)} and of the prediction, found by trees"
    return CorrectionTrial("multicalibration", how, correction, NamedTransform("y", Identity()))


def fit_folds(trial: CorrectionTrial, rows: TrialRows, fold: np.ndarray) -> tuple[Correction, ...]:
    """The correction learned without each fold."""
    return tuple(trial.fit(rows.take(fold != index)) for index in range(FOLDS))


def out_of_fold(trial: CorrectionTrial, folds: Sequence[Correction], rows: TrialRows, fold: np.ndarray) -> Floats:
    """Corrected predictions (n,), each from the correction that was learned without its fold."""
    result = np.empty_like(rows.pred)
    for index, correction in enumerate(folds):
        held_out = fold == index
        result[held_out] = corrected(correction, trial.space, rows.take(held_out))
    return result


@torch.no_grad()
def corrected(correction: Correction, space: NamedTransform, rows: TrialRows) -> Floats:
    """The predictions (n,) of rows after a correction that was learned in this space."""
    u = torch.from_numpy(space.forward(rows.pred))
    starts = range(0, len(u), _ROWS_AT_A_TIME)
    parts = [
        correction(
            u[start : start + _ROWS_AT_A_TIME],
            {name: column[start : start + _ROWS_AT_A_TIME] for name, column in rows.x.items()},
        )
        for start in starts
    ]
    return torch.cat(parts).double().numpy() if parts else np.empty(0)


@dataclass(frozen=True)
class TriedCorrection:
    """What came of a correction out of fold, and what was learned without each fold; nothing, of no correction."""

    result: CorrectionResult
    folds: tuple[Correction, ...] = ()


def run_trials(
    trials: Sequence[CorrectionTrial], rows: TrialRows, fold: np.ndarray, show: bool | None
) -> tuple[TriedCorrection, ...]:
    """The predictions without a correction, then every correction."""
    tried = [TriedCorrection(_result("as it is", "no correction", rows, rows.pred))]
    with Progress("trying corrections", len(trials), show) as bar:
        for index, trial in enumerate(trials):
            folds = fit_folds(trial, rows, fold)
            result = _result(trial.name, trial.how, rows, out_of_fold(trial, folds, rows, fold))
            tried.append(TriedCorrection(result, folds))
            bar.advance(index + 1)
    return tuple(tried)


def right_total_least_error(results: Sequence[CorrectionResult]) -> CorrectionResult | None:
    """The correction of least NRMSE among those that get the total right within its error; None if none does.

    The first result is that of no correction, and is not considered. Where predictions are a multiple of the amounts,
    the errors of a correction are those of rounding, and so is its interval.
    """
    right = [result for result in results[1:] if 1.0 in result.pgr or not differs_from_one(result.pgr.value)]
    return min(right, key=lambda result: result.nrmse.value, default=None)


def _result(name: str, how: str, rows: TrialRows, pred: Floats) -> CorrectionResult:
    y, weight = rows.y, rows.weight
    moments = RatioMoments.of(y, pred, weight, np.zeros(len(y), dtype=np.int64), 1)
    totals = total_estimates(moments.ratio(), ratio_interval(moments))
    nrmse = metric_estimate(NRMSE, NRMSE(pred, y, weight), NRMSE.standard_error(pred, y, weight))
    return CorrectionResult(name, how, totals["PGR"], totals["TRE"], nrmse)
