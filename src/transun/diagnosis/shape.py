"""How the target and the residuals are spread, from the sample and from the sums over all rows."""

import math

import numpy as np

from transun.diagnosis.candidates import NamedTransform
from transun.diagnosis.moments import RatioMoments
from transun.diagnosis.result import Histogram, Shape
from transun.support.arrays import Floats

__all__ = ["effective_rows", "shape_of"]

_SHARES = (0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0)
_BARS = 40


def effective_rows(moments: RatioMoments) -> float:
    """2n / (kurtosis - 1) of the errors: rows of a normal sample whose variance would be known as precisely.

    A total that depends on a few huge rows has few effective rows, however many rows there are.
    """
    errors = moments.studentised(ratio=moments.ratio())
    return min(errors.count, 2.0 * errors.count / max(errors.kurtosis - 1.0, 1e-9))


def shape_of(moments: RatioMoments, y: Floats, pred: Floats, weight: Floats, named: NamedTransform) -> Shape:
    """The shape; mean, skewness and effective rows are of all rows, the rest is of the sample given."""
    order = np.argsort(y)
    running = np.cumsum(weight[order]) / weight.sum()
    quantiles = [
        (share, float(y[order][min(int(np.searchsorted(running, share * (1 - 1e-12))), len(y) - 1)]))
        for share in _SHARES
    ]
    large = running > 0.99
    positive = y > 0.0
    residual = named.forward(y) - named.forward(pred)
    return Shape(
        mean=moments.actual() / float(moments.weight[0]),
        skewness=moments.studentised(ratio=0.0).skewness,
        zeros=float(weight[y == 0.0].sum() / weight.sum()),
        negative=float(weight[y < 0.0].sum() / weight.sum()),
        quantiles=tuple(quantiles),
        top=float((weight * y)[order][large].sum() / (weight @ y)),
        effective_rows=effective_rows(moments),
        error_skewness=moments.studentised(ratio=moments.ratio()).skewness,
        values=_histogram(np.log10(y[positive]), weight[positive], weight.sum(), 10.0),
        residuals=_histogram(residual, weight, weight.sum(), math.nan),
    )


def _histogram(values: Floats, weight: Floats, total: float, base: float) -> Histogram:
    """Bars from the 0.1 % to the 99.9 % quantile, the outer ones with all beyond; edges are base^edge if given."""
    if not len(values):
        return Histogram((), ())
    low, high = np.quantile(values, [0.001, 0.999])
    if not high > low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, _BARS + 1)
    bar = np.clip(((values - low) / (high - low) * _BARS).astype(np.int64), 0, _BARS - 1)
    shares = np.bincount(bar, weight, _BARS) / total
    shown = edges if math.isnan(base) else base**edges
    return Histogram(tuple(shown.tolist()), tuple(shares.tolist()))
