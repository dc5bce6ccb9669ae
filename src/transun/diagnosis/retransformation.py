"""Is the bias what Jensen's gap predicts?  A test of each transform that the model may have been trained on.

A model trained by squared error on T(y) predicts p = T⁻¹(E[T(y)|x]). Then the residuals r = T(y) - T(p) average zero
at every level of the prediction, and yet Σy ≠ Σp, because T⁻¹ is curved: the gap is decided by the spread of r alone.

The statistic. Let r̄ be the mean residual of a row's decile of the prediction. Had r averaged zero in each decile, the
actual total would be J = Σ T⁻¹(T(y) - r̄): the residuals keep their spread, whatever it is at each level, and lose
their offset. So J/Σp is the ratio that Jensen's gap alone makes, and L = Σy/J is what it leaves unexplained; training
on T makes L = 1. For the logarithm ln L is nearly the mean of r. Its standard error is the delta method's, with r̄
taken as estimated. The part left over is |ln L| / |ln(Σy/Σp)|.

T is consistent with the bias if the part left over may be below a quarter, and if r̄ may drift with the prediction
by less than 0.4 of a residual standard deviation. Both allow for a model that is not fitted perfectly, since with
enough rows L = 1 would always be rejected: a network trained on ln(1 + y) for two epochs left 0.17 and drifted by 0.28
after 48,000 orders of the simulated log, 0.04 and 0.01 after 160,000. Where the part left over may also be above
60 %, the rows are too few to tell.

A model that is merely scaled by a constant looks like one trained on some T only if the factor happens to be T's own
Jensen gap at each level of the prediction; then no data can tell the two apart. The transforms tried are concave, as
those in use are, so totals that are too high are never laid to them.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from transun.diagnosis.candidates import NamedTransform
from transun.diagnosis.result import Test, TransformCandidate
from transun.diagnosis.segmentation import quantile_edges
from transun.metrics import Estimate
from transun.support.arrays import Floats
from transun.support.text_form import dumps

__all__ = ["retransformation_test"]

_TOLERANCE, _DRIFT = 0.25, 0.4
_SURE = 0.6
_LEVELS = 10


@dataclass(frozen=True)
class _Gap:
    """ln L, its standard error, ln(Σy/Σp), and the drift of the mean residual over the deciles."""

    log_left: float
    error: float
    log_ratio: float
    drift: Estimate


def retransformation_test(named: list[NamedTransform], y: Floats, pred: Floats, weight: Floats, biased: bool) -> Test:
    """The conclusion over all candidates: one of "not biased", "consistent with training on …", "biased but not …".

    Args:
        named: the transforms to try.
        y: targets of the rows.
        pred: predictions.
        weight: importance weights.
        biased: whether the total is biased at all; without bias there is nothing to explain.

    """
    gaps = [_gap(each, y, pred, weight) for each in named]
    tried = tuple(_candidate(each, gap) for each, gap in zip(named, gaps, strict=True))
    if not biased:
        return Test("not biased", "The total is not shown to be biased: there is nothing to explain.", None, tried)
    fitting = [candidate for candidate in tried if candidate.consistent]
    if fitting:
        nearest = min(fitting, key=lambda candidate: candidate.misfit.value)
        # Those that cannot be told apart, as ln y and ln(1 + y) for large targets: the more usual one comes first.
        best = next(candidate for candidate in fitting if candidate.misfit.low <= nearest.misfit.high)
        also = [candidate.name for candidate in fitting if candidate is not best]
        reason = (
            f"If the model was trained on {best.name}, Jensen's gap alone makes actual / predicted "
            f"{best.predicted:.3f}; it is {best.observed:.3f}."
            + (f" {' and '.join(also)} would fit too." if also else "")
            + " A model scaled by just this factor would look the same."
        )
        return Test(f"consistent with training on {best.name}", reason, best.name, tried)
    if any(_possible(candidate) for candidate in tried):
        return Test(
            "biased, cause unclear", "There are too few rows to tell Jensen's gap from another cause.", None, tried
        )
    if gaps[0].log_ratio < 0.0:
        reason = (
            "Training on a logarithm or a root makes totals too low, never too high. Look for other causes: rows "
            "counted twice, another population, a wrong unit, a correction applied on top of another."
        )
        return Test("biased, but not by retransformation", reason, None, tried)
    nearest = min(tried, key=lambda candidate: candidate.misfit.value)
    reason = (
        f"No transform explains it by itself. Nearest is {nearest.name}: Jensen's gap alone would make actual / "
        f"predicted {nearest.predicted:.3f}, and it is {nearest.observed:.3f}"
        + (", and the mean residual drifts with the prediction." if nearest.drift.low > _DRIFT else ".")
        + " Look for other causes: old data, another population, a wrong unit, too much regularisation."
    )
    return Test("biased, but not by retransformation alone", reason, None, tried)


def _candidate(named: NamedTransform, gap: _Gap) -> TransformCandidate:
    """A transform T with the test of whether training on it explains the gap."""
    whole = abs(gap.log_ratio) or math.inf
    misfit, half = abs(gap.log_left) / whole, 1.96 * gap.error / whole
    left = Estimate("misfit", misfit, max(misfit - half, 0.0), misfit + half)
    predicted, observed = math.exp(gap.log_ratio - gap.log_left), math.exp(gap.log_ratio)
    candidate = TransformCandidate(named.formula, dumps(named.transform), predicted, observed, left, gap.drift, False)
    return replace(candidate, consistent=_possible(candidate) and left.high <= _SURE)


def _possible(candidate: TransformCandidate) -> bool:
    return candidate.misfit.low <= _TOLERANCE and candidate.drift.low <= _DRIFT


def _gap(named: NamedTransform, y: Floats, pred: Floats, weight: Floats) -> _Gap:
    level = np.searchsorted(quantile_edges(pred, weight, _LEVELS), pred, side="right")
    mass = np.bincount(level, weight)
    at = named.forward(y)
    residual = at - named.forward(pred)
    mean = np.bincount(level, weight * residual) / mass
    centred = at - mean[level]
    alike, slope = named.inverse(centred), named.slope(centred)
    actual, explained, predicted = weight @ y, weight @ alike, weight @ pred
    if not (actual > 0.0 and explained > 0.0 and predicted > 0.0):
        return _Gap(math.inf, math.inf, math.nan, Estimate("drift", math.inf, math.inf, math.inf))
    # Influence of each row on ln Σy - ln J, through the row itself and through the mean residual of its decile.
    pull = np.bincount(level, weight * slope) / mass / explained
    spread = residual - mean[level]
    influence = weight * (y / actual - alike / explained + pull[level] * spread)
    error = math.sqrt(float(influence @ influence))
    noise = np.bincount(level, (weight * spread) ** 2) / mass**2
    variance = max(float(weight @ spread**2 / weight.sum()), math.ulp(0.0))
    # Squares of means are too large by their noise, which has a spread of its own.
    part = mass / mass.sum()
    excess, half = float(part @ (mean**2 - noise)), 1.96 * math.sqrt(2.0 * float(part**2 @ noise**2))
    ends = [math.sqrt(max(value, 0.0) / variance) for value in (excess, excess - half, excess + half)]
    return _Gap(math.log(actual / explained), error, math.log(actual / predicted), Estimate("drift", *ends))
