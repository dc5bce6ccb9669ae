"""What to do: a correction for today, and T and κ for the next training, with the reason."""

import math
from collections.abc import Sequence

import numpy as np

from transun.diagnosis.candidates import Named, log_like, rounded
from transun.diagnosis.moments import Floats
from transun.diagnosis.result import Advice, Cure, Estimate
from transun.diagnosis.splits import quantile_edges
from transun.heads import GTS, PointHead
from transun.metrics.spread import skewness
from transun.schemes import PowerVariance
from transun.support.extras import need
from transun.support.text_form import dumps
from transun.transforms import Identity, Power

__all__ = ["advise", "choose", "variance_power"]

_BINS, _ROWS_PER_BIN, _FEWEST_BINS = 50, 30, 4
# Of the largest mean to the smallest: below this a slope over the means says nothing.
_RANGE = 2.0
# Fewer rows' worth of information than this in the error of the total: a slope that amplifies rows is a risk.
_HEAVY = 100.0


def variance_power(y: Floats, pred: Floats, weight: Floats) -> Estimate:
    """The power p in Var(y|ŷ) ∝ E[y|ŷ]^p, the slope of ln mean squared error on ln mean target over bins of ŷ.

    Bins and not rows, because for rare events most single errors are the mean itself, and their slope is 2 whatever
    p is. The errors are taken around the prediction scaled to each bin's mean, so a bias does not look like noise.
    NaN where the bins' means are within a factor of two.

    >>> rng = np.random.default_rng(0)
    >>> mean = rng.uniform(1.0, 100.0, 20_000)
    >>> power = variance_power(rng.poisson(mean).astype(float), mean, np.ones(20_000))
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
    left = v - v.mean() - slope * spread
    freedom = len(x) - 2
    error = math.sqrt(float(left @ left) / freedom / float(spread @ spread))
    half = float(need("scipy.special").stdtrit(freedom, 0.975)) * error
    return Estimate("variance power", slope, slope - half, slope + half)


def choose(y: Floats, pred: Floats, power: Estimate, deciding: float) -> tuple[Named, PowerVariance, str]:
    """T, κ and the reason. T' ∝ E[y]^(−p/2) makes the noise even: p = 0 keeps y, 1 is the root, 2 the logarithm."""
    plain, root, log = Named("y", Identity()), Named("√y", Power(0.5)), log_like(y)
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
    if p > 1.0 and deciding < _HEAVY:
        p = 1.0
        why += (
            f" κ is kept at power 1, because the total hangs on about {deciding:.0f} rows' worth of errors, which a "
            "steeper κ amplifies."
        )
    return named, PowerVariance(p, eps), why


def advise(
    named: Named, scheme: PowerVariance, reason: str, power: Estimate, cures: Sequence[Cure], biased: bool
) -> Advice:
    """The advice in one value."""
    head = GTS(PointHead(named.transform), scheme)
    return Advice(_now(cures, biased), dumps(named.transform), dumps(scheme), dumps(head), power, reason)


def _now(cures: Sequence[Cure], biased: bool) -> str:
    if not biased:
        return "Nothing: the total is right within its error."
    right = [cure for cure in cures[1:] if cure.pgr.low <= 1.0 <= cure.pgr.high]
    if not cures[1:]:
        return "Collect more rows: there are too few to learn a correction from."
    if not right:
        nearest = min(cures[1:], key=lambda cure: cure.tre.value)
        return f"Train again: no correction by the prediction alone gets the total right; nearest is {nearest.name}."
    best = min(right, key=lambda cure: cure.nrmse.value)
    return (
        f"Apply {best.name} to the predictions: held out, predicted / actual becomes {best.pgr.value:.3f} "
        f"({best.pgr.low:.3f} to {best.pgr.high:.3f}) and NRMSE {cures[0].nrmse.value:.3f} becomes "
        f"{best.nrmse.value:.3f}."
    )


def _by_skewness(y: Floats, options: Sequence[Named]) -> tuple[Named, str]:
    shown = {option.formula: skewness(option.forward(y)) for option in options}
    plain = options[0]
    if shown[plain.formula] < 1.0:
        return (
            plain,
            f"The target is not skewed to the right (skewness {shown[plain.formula]:.2f}): no transform needed.",
        )
    named = min(options, key=lambda option: abs(shown[option.formula]))
    return named, (
        "The predictions hardly differ, so T is chosen by the target alone: the skewness "
        f"{shown[plain.formula]:.1f} becomes {shown[named.formula]:.1f} under {named.formula}."
    )
