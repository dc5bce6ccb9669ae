"""Advice: a correction to apply now, and T and κ for the next training, with the reason."""

import math
from collections.abc import Sequence

import numpy as np

from transun.diagnosis.candidates import NamedTransform, log_like, rounded
from transun.diagnosis.correction_trials import right_total_least_error
from transun.diagnosis.result import Advice, CorrectionResult, Verdict
from transun.diagnosis.segmentation import quantile_edges
from transun.heads import GTS, PointHead
from transun.metrics import Estimate
from transun.metrics.spread import skewness
from transun.schemes import PowerVariance
from transun.support.arrays import Floats
from transun.support.extras import need
from transun.support.text_form import dumps
from transun.transforms import Identity, Power

__all__ = ["advise", "choose_head", "variance_power_by_bins"]

_BINS, _ROWS_PER_BIN, _FEWEST_BINS = 50, 30, 4
# Ratio of the largest mean to the smallest: below this a slope over the means cannot be estimated.
_RANGE = 2.0
# With fewer effective rows in the error of the total, a κ that amplifies single rows is a risk.
_HEAVY = 100.0
# What to do now where the total is not shown to be biased, by the kind of the verdict.
_NOT_BIASED = {
    "fine": "Nothing: the total is right within its error.",
    "unclear": "Collect more rows: these cannot tell a right total from a wrong one.",
    "uneven": "Correct by segment: the total is not shown to be biased, but a segment is.",
    "undefined": "Judge by the mean error: where a total is not above 0 there is no ratio to correct.",
}


def variance_power_by_bins(y: Floats, pred: Floats, weight: Floats) -> Estimate:
    """The power p in Var(y|ŷ) ∝ E[y|ŷ]^p, the slope of ln mean squared error on ln mean target over bins of ŷ.

    Bins and not rows, because for rare events most single errors are the mean itself, and their slope is 2 whatever
    p is. The errors are taken around the prediction scaled to each bin's mean, so a bias does not look like noise.
    NaN where the bins' means are within a factor of two.

    >>> rng = np.random.default_rng(0)
    >>> mean = rng.uniform(1.0, 100.0, 20_000)
    >>> power = variance_power_by_bins(rng.poisson(mean).astype(float), mean, np.ones(20_000))
    >>> abs(power.value - 1.0) < 0.1
    True
    """
    bins = min(_BINS, len(y) // _ROWS_PER_BIN)
    unknown = Estimate("variance power", math.nan, math.nan, math.nan)
    if bins < _FEWEST_BINS:
        return unknown
    level = np.searchsorted(quantile_edges(pred, weight, bins), pred, side="right")
    mass = np.bincount(level, weight)
    actual, predicted = np.bincount(level, weight * y), np.bincount(level, weight * pred)
    scale = np.divide(actual, predicted, out=np.zeros_like(actual), where=predicted > 0.0)
    variance = np.bincount(level, weight * (y - scale[level] * pred) ** 2) / mass
    fine = (actual > 0.0) & (predicted > 0.0) & (variance > 0.0)
    if fine.sum() < _FEWEST_BINS:
        return unknown
    x, v = np.log(actual[fine] / mass[fine]), np.log(variance[fine])
    if x.max() - x.min() < math.log(_RANGE):
        return unknown
    spread = x - x.mean()
    slope = float(spread @ v / (spread @ spread))
    residual = v - v.mean() - slope * spread
    freedom = len(x) - 2
    error = math.sqrt(float(residual @ residual) / freedom / float(spread @ spread))
    half = float(need("scipy.special").stdtrit(freedom, 0.975)) * error
    return Estimate("variance power", slope, slope - half, slope + half)


def choose_head(
    y: Floats, pred: Floats, power: Estimate, effective_rows: float
) -> tuple[NamedTransform, PowerVariance, str]:
    """T, κ and the reason for them.

    T' ∝ E[y]^(-p/2) makes the noise even, p being the variance power: p = 0 keeps y, 1 is the root, 2 the logarithm.
    """
    plain, root, log = NamedTransform("y", Identity()), NamedTransform("√y", Power(0.5)), log_like(y)
    middle = log if y.min() < 0.0 else root
    eps = rounded(max(0.1 * float(np.median(np.abs(pred))), 1e-3 * float(np.mean(np.abs(y)))))
    if math.isnan(power.value):
        named, why = _by_skewness(y, [plain, middle, log])
        p = 1.0
    else:
        p = min(max(round(2.0 * power.value) / 2.0, 0.0), 2.0)
        named = plain if p < 0.5 else middle if p < 1.5 else log
        why = (
            f"The error variance grows like the mean to the power {power.value:.2f} "
            f"({power.low:.2f} to {power.high:.2f}), and T = {named.formula} makes it most nearly even."
        )
    if p > 1.0 and effective_rows < _HEAVY:
        p = 1.0
        why += (
            f" κ is kept at power 1, because the total depends on about {effective_rows:.0f} rows' worth of errors, "
            "which a steeper κ amplifies."
        )
    return named, PowerVariance(p, eps), why


def advise(
    named: NamedTransform,
    scheme: PowerVariance,
    reason: str,
    power: Estimate,
    corrections: Sequence[CorrectionResult],
    verdict: Verdict,
) -> Advice:
    """The advice: the best correction now, and the head to train next."""
    head = GTS(PointHead(named.transform), scheme)
    return Advice(_now(corrections, verdict), dumps(named.transform), dumps(scheme), dumps(head), power, reason)


def _now(corrections: Sequence[CorrectionResult], verdict: Verdict) -> str:
    if not verdict.biased:
        return _NOT_BIASED[verdict.kind]
    if not corrections[1:]:
        return "Collect more rows: there are too few to learn a correction from."
    best = right_total_least_error(corrections)
    if best is None:
        nearest = min(corrections[1:], key=lambda result: result.tre.value)
        return f"Train again: no correction by the prediction alone gets the total right; nearest is {nearest.name}."
    return (
        f"Apply {best.name} to the predictions: held out, predicted / actual becomes {best.pgr.value:.3f} "
        f"({best.pgr.low:.3f} to {best.pgr.high:.3f}) and NRMSE {corrections[0].nrmse.value:.3f} becomes "
        f"{best.nrmse.value:.3f}."
    )


def _by_skewness(y: Floats, options: Sequence[NamedTransform]) -> tuple[NamedTransform, str]:
    skewnesses = {option.formula: skewness(option.forward(y)) for option in options}
    plain = options[0]
    if skewnesses[plain.formula] < 1.0:
        return (
            plain,
            f"The target is not skewed to the right (skewness {skewnesses[plain.formula]:.2f}): no transform needed.",
        )
    named = min(options, key=lambda option: abs(skewnesses[option.formula]))
    return named, (
        "The predictions hardly differ, so T is chosen by the target alone: the skewness "
        f"{skewnesses[plain.formula]:.1f} becomes {skewnesses[named.formula]:.1f} under {named.formula}."
    )
