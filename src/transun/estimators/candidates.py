"""Candidates for the automatic choice: each can be judged out of fold, and built for good."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from transun.corrections import SmoothIsotonic
from transun.estimators.corrected import CorrectedRegressor
from transun.estimators.deviances import with_deviance
from transun.estimators.gts import GTSRegressor
from transun.estimators.support import Support
from transun.estimators.target import slope_at, tensor
from transun.estimators.trial import Trial, variance_power
from transun.schemes import PowerVariance
from transun.transforms import Transform

Array = NDArray[np.float64]


class Candidate(Protocol):
    """A way to predict the mean with a given base regressor."""

    @property
    def name(self) -> str:
        """What the table of the choice calls it."""

    def cost(self, trial: Trial) -> float:
        """What settling and judging it costs, in fits to all rows."""

    def settle(self, trial: Trial) -> Self:
        """The same with what it leaves open learned from the rows."""

    def judge(self, trial: Trial) -> Array:
        """Predictions (n,) of rows that nothing in them has seen."""

    def build(self, trial: Trial) -> Any:
        """The unfitted regressor that predicts so."""


@dataclass(frozen=True)
class Direct:
    """The regressor itself, on y: by squares, or by a deviance."""

    name: str
    regressor: Any

    def cost(self, trial: Trial) -> float:
        return trial.cost

    def settle(self, trial: Trial) -> Self:
        return self

    def judge(self, trial: Trial) -> Array:
        return trial.predict(replace(trial.fitting, regressor=self.regressor))

    def build(self, trial: Trial) -> Any:
        return self.regressor


@dataclass(frozen=True)
class Ratio:
    """GTS: z learns y·κ, and the prediction is z / κ̄.

    Args:
        transform: T, with its bounds known.
        power: of the slope; None takes the variance power that the rows show.
        bias_regressor: what learns z.
        emphasis: see `GTSRegressor`.
        loss: what the table calls the loss of z.

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

    def cost(self, trial: Trial) -> float:
        return trial.cost + trial.points_cost(self.transform)

    def settle(self, trial: Trial) -> Self:
        if self.power is not None:
            return self
        return replace(self, power=round(variance_power(trial.base(self.transform), trial.y, trial.weight), 1))

    def judge(self, trial: Trial) -> Array:
        points, pred = trial.points(self.transform), np.empty_like(trial.y)
        fitting = replace(trial.fitting, regressor=self.bias_regressor)
        for index, (fitted, held) in enumerate(trial.folds):
            slopes, y = self._slopes(points[fitted, index]), trial.y[fitted]
            z = fitting(trial.X, y * slopes, fitted, slopes**-self.emphasis if self.emphasis else None)
            models = np.delete(points[held], index, axis=1)
            mean_slope = np.mean([self._slopes(point) for point in models.T], axis=0)
            support = Support.of(slopes, y, None if trial.weight is None else trial.weight[fitted])
            pred[held], _ = support(trial.held_out(z, held), mean_slope)
        return pred

    def build(self, trial: Trial) -> Any:
        return GTSRegressor(
            trial.fitting.regressor,
            self.bias_regressor,
            target_transform=self.transform,
            slope=self._slope(),
            emphasis=self.emphasis,
            cv=trial.folds,
            n_jobs=trial.n_jobs,
        )

    def _slopes(self, point: Array) -> Array:
        return slope_at(np.ascontiguousarray(point), self._slope(), self.transform)

    def _slope(self) -> PowerVariance:
        if self.power is None:
            raise ValueError("settle a candidate before it is judged: its power is not known yet")
        return PowerVariance(self.power)


@dataclass(frozen=True)
class Calibrated:
    """The regressor on T(y), its points mapped to means by isotonic regression: no further fit of the regressor.

    It sees x through the point alone, and is right on average over rows with the same point; where rows are few or
    the noise large, that is often all that can be learned.
    """

    transform: Transform

    @property
    def name(self) -> str:
        return f"{type(self.transform).__name__} + isotonic"

    def cost(self, trial: Trial) -> float:
        return trial.points_cost(self.transform)

    def settle(self, trial: Trial) -> Self:
        return self

    def judge(self, trial: Trial) -> Array:
        points, pred = trial.points(self.transform), np.empty_like(trial.y)
        for index, (fitted, held) in enumerate(trial.folds):
            weight = None if trial.weight is None else tensor(trial.weight[fitted])
            learned = SmoothIsotonic().double()
            learned = learned.fit(tensor(points[fitted, index]), tensor(trial.y[fitted]), self.transform, weight)
            models = np.delete(points[held], index, axis=1)
            pred[held] = learned(tensor(models.ravel())).numpy().reshape(models.shape).mean(axis=1)
        return pred

    def build(self, trial: Trial) -> Any:
        return CorrectedRegressor(
            trial.fitting.regressor,
            target_transform=self.transform,
            bias_correction="isotonic",
            cv=trial.folds,
            n_jobs=trial.n_jobs,
        )


def candidates(
    regressor: Any, y: Array, transforms: Sequence[Transform], powers: Sequence[float]
) -> Iterator[Candidate]:
    """What is worth a trial for these targets, the most promising first.

    Squares always; the deviances that the regressor can minimise and the targets allow; for each transform its
    calibrated points, GTS with the power that the data show, with Poisson deviance as the loss of z, and with the
    given powers.
    """
    yield Direct("MSE", regressor)
    deviances = ["poisson", "tweedie"] if y.min() >= 0.0 < y.max() else []
    deviances += ["gamma"] if y.min() > 0.0 else []
    able = {name: changed for name in deviances if (changed := with_deviance(regressor, name)) is not None}
    for name, changed in able.items():
        yield Direct(name.capitalize(), changed)
    for transform in transforms:
        yield Calibrated(transform)
        yield Ratio(transform, None, regressor)
        if "poisson" in able:
            yield Ratio(transform, 2.0, able["poisson"], 1.0, "Poisson")
        for power in powers:
            yield Ratio(transform, power, regressor)
