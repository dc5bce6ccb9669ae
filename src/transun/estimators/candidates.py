"""Candidates of the automatic choice: ways to predict the mean by models of folds, which they share where they can."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from transun.corrections import Correction, SmoothIsotonic
from transun.estimators.composition import Composition, CorrectedMean, WeightedMean
from transun.estimators.cross_fitting import CrossFit, NewRows
from transun.estimators.fitting import takes_weights, with_deviance
from transun.estimators.gts import RatioFormula, RatioGuard, mean_slope
from transun.estimators.target import slope_at, to_tensor
from transun.schemes import PowerVariance
from transun.support.arrays import Floats, Integers
from transun.transforms import Transform


class Predictor(Protocol):
    """A fitted candidate."""

    @property
    def held_out(self) -> Floats:
        """The prediction (n,) of each training row by models that were not fitted to it."""

    def predict(self, rows: NewRows, shares: Floats) -> Floats:
        """The predictions of new rows: means over the models of all folds, with these shares (folds,)."""

    def composition(self, shares: Floats) -> Composition:
        """The models, and the same mean as a formula."""


class Candidate(Protocol):
    """A way to predict the mean with a given base regressor.

    The models of the folds predict held-out rows for the comparison, and their mean predicts new rows. So there is no
    last fit to all rows, which would cost one more fit per regressor. On ten tables such a fit was better by about one
    per cent for squares, Tweedie deviance and z, and worse by four for Poisson deviance.
    """

    @property
    def name(self) -> str:
        """The name in the table of the choice."""

    def cost(self, cross_fit: CrossFit) -> int:
        """The number of fits that `fit` takes."""

    def fit(self, cross_fit: CrossFit) -> Predictor:
        """Fit the models that others have not fitted already."""


@dataclass(frozen=True)
class PlainCandidate:
    """The regressor itself fitted to y, by squares or by a deviance."""

    name: str
    regressor: Any

    def cost(self, cross_fit: CrossFit) -> int:
        return len(cross_fit.folds)

    def fit(self, cross_fit: CrossFit) -> Predictor:
        out_of_fold = cross_fit.fit(self.regressor, cross_fit.y)
        return _Mean(out_of_fold.predictions, out_of_fold.models)


@dataclass(frozen=True)
class _Mean:
    held_out: Floats
    models: Sequence[Any]

    def predict(self, rows: NewRows, shares: Floats) -> Floats:
        return np.asarray(shares @ rows.predict(self.models))

    def composition(self, shares: Floats) -> Composition:
        return Composition(self.models, WeightedMean(shares))


@dataclass(frozen=True)
class IsotonicCandidate:
    """The regressor fitted to T(y), its points mapped to means by isotonic regression: no fit beside those of T(y).

    It sees x through the point alone, and is right on average over rows with the same point; where rows are few or
    the noise is large, more can often not be learned.
    """

    transform: Transform

    @property
    def name(self) -> str:
        return f"{type(self.transform).__name__} + isotonic"

    def cost(self, cross_fit: CrossFit) -> int:
        return cross_fit.points_cost(self.transform)

    def fit(self, cross_fit: CrossFit) -> Predictor:
        points, pred = cross_fit.points(self.transform), np.empty_like(cross_fit.y)
        for fitted, held_out in cross_fit.folds:
            pred[held_out] = _correct(self._learn(cross_fit, fitted), points.predictions[held_out])
        correction = self._learn(cross_fit, np.arange(len(cross_fit.y)))
        return _Corrected(pred, points.models, correction)

    def _learn(self, cross_fit: CrossFit, rows: Integers) -> Correction:
        weight = cross_fit.weights_of(rows)
        return (
            SmoothIsotonic()
            .double()
            .fit(
                to_tensor(cross_fit.points(self.transform).predictions[rows]),
                to_tensor(cross_fit.y[rows]),
                self.transform,
                None if weight is None else to_tensor(weight),
            )
        )


@dataclass(frozen=True)
class _Corrected:
    held_out: Floats
    models: Sequence[Any]
    correction: Correction

    def predict(self, rows: NewRows, shares: Floats) -> Floats:
        return np.asarray(shares @ _correct(self.correction, rows.predict(self.models)))

    def composition(self, shares: Floats) -> Composition:
        return Composition(self.models, CorrectedMean(self.correction, shares))


def _correct(correction: Correction, points: Floats) -> Floats:
    with torch.no_grad():
        return np.asarray(correction(to_tensor(points.ravel())).numpy()).reshape(points.shape)


@dataclass(frozen=True)
class GTSCandidate:
    """GTS: z learns y·κ(u), with u out of fold, and the prediction is the mean of z over the mean of κ.

    z of fold k learns from rows outside fold k, each with the slope of the model that has not seen it. So over the
    folds the mean of z tends to E[y|x] times the mean of κ(u_k(x)), and the ratio of the means to E[y|x]. A held-out
    row of fold k is predicted by z_k / κ(u_k), the only models that have not seen its target. The slopes that z_k
    learned with come from models that saw fold k; as slopes cancel from the mean, this is a matter of second order, and
    saves the fits that would leave out two folds each.

    Args:
        transform: T with its bounds learned.
        power: the power of the slope.
        bias_regressor: the regressor that learns z.
        emphasis: see `GTSRegressor`.
        loss: the name of the loss of z in the table.

    """

    transform: Transform
    power: float
    bias_regressor: Any
    emphasis: float = 0.0
    loss: str = "MSE"

    @property
    def name(self) -> str:
        return f"GTS {type(self.transform).__name__}, p = {self.power:g}, {self.loss} of z"

    def cost(self, cross_fit: CrossFit) -> int:
        return len(cross_fit.folds) + cross_fit.points_cost(self.transform)

    def fit(self, cross_fit: CrossFit) -> Predictor:
        points = cross_fit.points(self.transform)
        y, slope = cross_fit.y, PowerVariance(self.power)
        slopes = slope_at(points.predictions, slope, self.transform)
        emphasis = slopes**-self.emphasis
        bias = cross_fit.fit(self.bias_regressor, y * slopes, emphasis if self.emphasis else None)
        counts = emphasis if cross_fit.weight is None else emphasis * cross_fit.weight
        pred = np.empty_like(y)
        for fitted, held_out in cross_fit.folds:
            guard = RatioGuard.learn(slopes[fitted], y[fitted], counts[fitted])
            pred[held_out], _ = guard.divide(bias.predictions[held_out], slopes[held_out])
        guard = RatioGuard.learn(slopes, y, counts)
        return _Ratio(pred, points.models, bias.models, self.transform, slope, self.emphasis, guard)


@dataclass(frozen=True)
class _Ratio:
    held_out: Floats
    point_models: Sequence[Any]
    bias_models: Sequence[Any]
    transform: Transform
    slope: PowerVariance
    emphasis: float
    guard: RatioGuard

    def predict(self, rows: NewRows, shares: Floats) -> Floats:
        slopes = np.stack([slope_at(point, self.slope, self.transform) for point in rows.predict(self.point_models)])
        slope = mean_slope(slopes, shares, self.emphasis)
        pred, _ = self.guard.divide(shares @ rows.predict(self.bias_models), np.asarray(slope))
        return pred

    def composition(self, shares: Floats) -> Composition:
        formula = RatioFormula(self.transform, self.slope, shares, shares, self.emphasis, self.guard)
        return Composition([*self.point_models, *self.bias_models], formula)


# Below this ratio of the largest mean of a bin to the smallest, the power of the variance cannot be told.
_LEAST_RANGE = 1.01
# The variance power for which each loss is efficient: Var[y|x] ∝ m(x)^p.
_VARIANCE_POWERS = {"MSE": 0.0, "Poisson": 1.0, "Tweedie": 1.5, "Gamma": 2.0}


def make_candidates(
    cross_fit: CrossFit, transforms: Sequence[Transform], powers: Sequence[float]
) -> Iterator[Candidate]:
    """The candidates that suit these targets, the most useful first; a budget cuts the list off.

    First, for each transform, its calibrated points; they also show how the variance of y grows with its mean, and so
    which loss is efficient for y itself. That loss comes next, then GTS, whose z is learned by Poisson deviance where
    the regressor can, and then the other losses. These differ little from the first one, while calibrated points and
    GTS err elsewhere: one of each kind is a better mixture than three losses. Gamma deviance is last, whatever the
    variance: a booster that minimises it may predict any amount where it has seen few rows.
    """
    regressor, y = cross_fit.fitting.regressor, cross_fit.y
    calibrated = [IsotonicCandidate(transform) for transform in transforms]
    yield from calibrated
    deviances = ["poisson", "tweedie"] if y.min() >= 0.0 < y.max() else []
    deviances += ["gamma"] if y.min() > 0.0 else []
    minimisers = {name: changed for name in deviances if (changed := with_deviance(regressor, name)) is not None}
    losses = {"MSE": regressor} | {name.capitalize(): minimiser for name, minimiser in minimisers.items()}
    power = variance_power(calibrated[0].fit(cross_fit).held_out, y, cross_fit.weight) if calibrated else 1.0
    names = sorted(losses, key=lambda name: (name == "Gamma", abs(_VARIANCE_POWERS[name] - power)))
    yield PlainCandidate(names[0], losses[names[0]])
    by_deviance = "poisson" in minimisers and takes_weights(regressor)
    z = (minimisers["poisson"], 1.0, "Poisson") if by_deviance else (regressor, 0.0, "MSE")
    for transform in transforms:
        for slope_power in powers:
            yield GTSCandidate(transform, slope_power, *z)
    for name in names[1:]:
        yield PlainCandidate(name, losses[name])


def variance_power(base: Floats, y: Floats, weight: Floats | None = None, bins: int = 20) -> float:
    """The p in Var[y|x] ∝ m(x)^p, from predictions `base` that are right up to a factor; between 0 and 2.

    Rows are put into bins of equal frequency by `base`. The estimate is the slope of log mean (y - m)² against log m
    over the bins, with m the base times the factor that makes the total right. It takes means within bins, not
    logarithms of single residuals, since these would follow the small residuals and not the variance. Where the means
    of the bins lie within 1 % of each other no slope can be told, and the answer is 1.

    >>> base = np.repeat([1.0, 2.0, 4.0, 8.0], 100)
    >>> sign = np.tile([1.0, -1.0], 200)
    >>> round(variance_power(base, base + 0.5 * sign * base**0.75, bins=4), 3)  # an sd like m^0.75
    1.5
    """
    weight = np.ones_like(y) if weight is None else weight
    actual, predicted = float(weight @ y), float(weight @ base)
    usable = (base > 0.0) & (weight > 0.0)
    if actual <= 0.0 or predicted <= 0.0 or usable.sum() < 2:
        return 1.0
    mean, y, weight = (base * actual / predicted)[usable], y[usable], weight[usable]
    edges = np.unique(np.quantile(mean, np.arange(1, bins) / bins))
    bin_of_row = np.searchsorted(edges, mean, side="right")
    bin_weight = np.bincount(bin_of_row, weight)
    filled = bin_weight > 0.0
    bin_weight = bin_weight[filled]
    bin_mean = np.bincount(bin_of_row, weight * mean)[filled] / bin_weight
    bin_variance = np.bincount(bin_of_row, weight * (y - mean) ** 2)[filled] / bin_weight
    varies = bin_variance > 0.0
    if varies.sum() < 2:
        return 1.0
    log_mean, log_variance, bin_weight = np.log(bin_mean[varies]), np.log(bin_variance[varies]), bin_weight[varies]
    if np.ptp(log_mean) < np.log(_LEAST_RANGE):
        return 1.0
    distance = log_mean - np.average(log_mean, weights=bin_weight)
    slope = float(bin_weight * distance @ log_variance / (bin_weight * distance @ distance))
    return min(max(slope, 0.0), 2.0)
