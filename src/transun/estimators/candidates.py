"""Candidates of the automatic choice: each predicts the mean out of fold for comparison, and builds a final model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from transun.corrections import SmoothIsotonic
from transun.estimators.corrected import CorrectedRegressor
from transun.estimators.cross_fitting import CrossFit
from transun.estimators.fitting import with_deviance
from transun.estimators.gts import GTSRegressor, RatioGuard
from transun.estimators.target import slope_at, to_tensor
from transun.schemes import PowerVariance
from transun.transforms import Transform

Array = NDArray[np.float64]


class Candidate(Protocol):
    """A way to predict the mean with a given base regressor."""

    @property
    def name(self) -> str:
        """The name in the table of the choice."""

    def cost(self, cross_fit: CrossFit) -> float:
        """The cost of `estimate` and `predict`, in fits to all rows."""

    def estimate(self, cross_fit: CrossFit) -> Self:
        """The same candidate with its open parameters estimated from the rows."""

    def predict(self, cross_fit: CrossFit) -> Array:
        """Out-of-fold predictions (n,): no model or constant behind a prediction depends on the row's target."""

    def build(self, cross_fit: CrossFit) -> Any:
        """The unfitted regressor that predicts in this way."""


@dataclass(frozen=True)
class PlainCandidate:
    """The regressor itself fitted to y, by squares or by a deviance."""

    name: str
    regressor: Any

    def cost(self, cross_fit: CrossFit) -> float:
        return cross_fit.cost

    def estimate(self, cross_fit: CrossFit) -> Self:
        return self

    def predict(self, cross_fit: CrossFit) -> Array:
        return cross_fit.predict(replace(cross_fit.fitting, regressor=self.regressor))

    def build(self, cross_fit: CrossFit) -> Any:
        return self.regressor


@dataclass(frozen=True)
class GTSCandidate:
    """GTS: z learns y·κ, and the prediction is z / κ̄.

    Args:
        transform: T with its bounds learned.
        power: the power of the slope; None takes the variance power that is estimated from the rows.
        bias_regressor: the regressor that learns z.
        emphasis: see `GTSRegressor`.
        loss: the name of the loss of z in the table.

    """

    transform: Transform
    power: float | None
    bias_regressor: Any
    emphasis: float = 0.0
    loss: str = "MSE"

    @property
    def name(self) -> str:
        power = "estimated" if self.power is None else f"{self.power:g}"
        return f"GTS {type(self.transform).__name__}, p = {power}, {self.loss} of z"

    def cost(self, cross_fit: CrossFit) -> float:
        return cross_fit.cost + cross_fit.points_cost(self.transform)

    def estimate(self, cross_fit: CrossFit) -> Self:
        if self.power is not None:
            return self
        biased = cross_fit.biased_predictions(self.transform)
        return replace(self, power=round(variance_power(biased, cross_fit.y, cross_fit.weight), 1))

    def predict(self, cross_fit: CrossFit) -> Array:
        points, pred = cross_fit.points(self.transform), np.empty_like(cross_fit.y)
        fitting = replace(cross_fit.fitting, regressor=self.bias_regressor)
        for index, (fitted, held_out) in enumerate(cross_fit.folds):
            slopes, y = self._slopes(points[fitted, index]), cross_fit.y[fitted]
            model = fitting(cross_fit.X, y * slopes, fitted, slopes**-self.emphasis if self.emphasis else None)
            z = cross_fit.predict_rows(model, held_out)
            other_points = np.delete(points[held_out], index, axis=1)
            mean_slope = np.mean([self._slopes(point) for point in other_points.T], axis=0)
            guard = RatioGuard.learn(slopes, y, None if cross_fit.weight is None else cross_fit.weight[fitted])
            pred[held_out], _ = guard.divide(z, mean_slope)
        return pred

    def build(self, cross_fit: CrossFit) -> Any:
        return GTSRegressor(
            cross_fit.fitting.regressor,
            self.bias_regressor,
            target_transform=self.transform,
            slope=self._slope(),
            emphasis=self.emphasis,
            cv=cross_fit.folds,
            n_jobs=cross_fit.n_jobs,
        )

    def _slopes(self, point: Array) -> Array:
        return slope_at(np.ascontiguousarray(point), self._slope(), self.transform)

    def _slope(self) -> PowerVariance:
        if self.power is None:
            raise ValueError("call estimate() before predict() or build(): the power of the slope is not known yet")
        return PowerVariance(self.power)


@dataclass(frozen=True)
class IsotonicCandidate:
    """The regressor fitted to T(y), its points mapped to means by isotonic regression: no further fit of the regressor.

    It sees x through the point alone, and is right on average over rows with the same point; where rows are few or
    the noise is large, more can often not be learned.
    """

    transform: Transform

    @property
    def name(self) -> str:
        return f"{type(self.transform).__name__} + isotonic"

    def cost(self, cross_fit: CrossFit) -> float:
        return cross_fit.points_cost(self.transform)

    def estimate(self, cross_fit: CrossFit) -> Self:
        return self

    def predict(self, cross_fit: CrossFit) -> Array:
        points, pred = cross_fit.points(self.transform), np.empty_like(cross_fit.y)
        for index, (fitted, held_out) in enumerate(cross_fit.folds):
            weight = None if cross_fit.weight is None else to_tensor(cross_fit.weight[fitted])
            u, y = to_tensor(points[fitted, index]), to_tensor(cross_fit.y[fitted])
            correction = SmoothIsotonic().double().fit(u, y, self.transform, weight)
            other_points = np.delete(points[held_out], index, axis=1)
            corrected = correction(to_tensor(other_points.ravel())).numpy().reshape(other_points.shape)
            pred[held_out] = corrected.mean(axis=1)
        return pred

    def build(self, cross_fit: CrossFit) -> Any:
        return CorrectedRegressor(
            cross_fit.fitting.regressor,
            target_transform=self.transform,
            bias_correction="isotonic",
            cv=cross_fit.folds,
            n_jobs=cross_fit.n_jobs,
        )


def make_candidates(
    regressor: Any, y: Array, transforms: Sequence[Transform], powers: Sequence[float]
) -> Iterator[Candidate]:
    """The candidates that suit these targets, the most promising first.

    Squares always; the deviances that the regressor can minimise and the targets allow; for each transform its
    calibrated points, GTS with the power that the data show, with Poisson deviance as the loss of z, and with the
    given powers.
    """
    yield PlainCandidate("MSE", regressor)
    deviances = ["poisson", "tweedie"] if y.min() >= 0.0 < y.max() else []
    deviances += ["gamma"] if y.min() > 0.0 else []
    minimisers = {name: changed for name in deviances if (changed := with_deviance(regressor, name)) is not None}
    for name, minimiser in minimisers.items():
        yield PlainCandidate(name.capitalize(), minimiser)
    for transform in transforms:
        yield IsotonicCandidate(transform)
        yield GTSCandidate(transform, None, regressor)
        if "poisson" in minimisers:
            yield GTSCandidate(transform, 2.0, minimisers["poisson"], 1.0, "Poisson")
        for power in powers:
            yield GTSCandidate(transform, power, regressor)


def variance_power(base: Array, y: Array, weight: Array | None = None, bins: int = 20) -> float:
    """The p in Var[y|x] ∝ m(x)^p, from predictions `base` that are right up to a factor; between 0 and 2.

    Rows are put into bins of equal frequency by `base`. The estimate is the slope of log mean (y - m)² against log m
    over the bins, with m the base times the factor that makes the total right. It takes means within bins, not
    logarithms of single residuals, since these would follow the small residuals and not the variance.

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
    if varies.sum() < 2 or np.ptp(bin_mean[varies]) == 0.0:
        return 1.0
    log_mean, log_variance = np.log(bin_mean[varies]), np.log(bin_variance[varies])
    slope = np.polyfit(log_mean, log_variance, 1, w=np.sqrt(bin_weight[varies]))[0]
    return float(np.clip(slope, 0.0, 2.0))
