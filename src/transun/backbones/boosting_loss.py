"""What an ensemble of boosted trees learns to be close to, and how each library calls it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["BoostingLoss", "SquaredLogs", "TweedieDeviance"]

Array = NDArray[Any]


class BoostingLoss(ABC):
    """The loss of an ensemble whose sum of leaves is the logarithm of an amount.

    Attributes:
        name: what a person calls it.
        lightgbm: the parameters that LightGBM takes for it.
        scikit_learn: the name that scikit-learn has for it.

    """

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def lightgbm(self) -> Mapping[str, Any]: ...

    @property
    @abstractmethod
    def scikit_learn(self) -> str: ...

    @abstractmethod
    def nearest_in_scikit_learn(self) -> Self:
        """The nearest loss of this kind that scikit-learn has."""

    @abstractmethod
    def learned(self, amount: Array) -> Array:
        """What a library fits trees to, for amounts (n,) in units of their mean."""

    @abstractmethod
    def errors(self, pred: Array, learned: Array) -> Array:
        """What each row (n,) adds to the error that ends the boosting, for a library's own predictions."""

    @abstractmethod
    def amounts(self, pred: Array) -> Array:
        """The exponential of the sum of leaves of each row (n,), for a library's own predictions."""


@dataclass(frozen=True)
class TweedieDeviance(BoostingLoss):
    """The deviance of amounts whose variance grows as the power p of their mean; trees then estimate the mean.

    Args:
        power: p; 1 is the Poisson deviance. The larger, the less the largest targets decide.
        stop_by: whether the squared errors or the Poisson deviance of the validation rows end the boosting.

    >>> TweedieDeviance(1.7).name, TweedieDeviance().name
    ('Tweedie 1.7', 'Poisson')

    """

    power: float = 1.0
    stop_by: Literal["squares", "deviance"] = "squares"

    @property
    def name(self) -> str:
        return "Poisson" if self.power == 1.0 else f"Tweedie {self.power:g}"

    @property
    def lightgbm(self) -> Mapping[str, Any]:
        loss = {"objective": "tweedie", "tweedie_variance_power": self.power}
        metric = {"squares": "rmse", "deviance": "poisson"}[self.stop_by]
        return {**(loss if self.power > 1.0 else {"objective": "poisson"}), "metric": metric}

    @property
    def scikit_learn(self) -> str:
        return "poisson"

    def nearest_in_scikit_learn(self) -> Self:
        return replace(self, power=1.0)

    def learned(self, amount: Array) -> Array:
        return amount

    def errors(self, pred: Array, learned: Array) -> Array:
        return pred - learned * np.log(pred) if self.stop_by == "deviance" else (pred - learned) ** 2

    def amounts(self, pred: Array) -> Array:
        return pred


@dataclass(frozen=True)
class SquaredLogs(BoostingLoss):
    """Squared errors of ln(y + least): trees order rows as their typical amounts do, and their totals are wrong.

    A typical amount is what most pairs of rows are ordered by, and no single huge target moves it. It is no mean: what
    is done about that is up to the caller, such as a correction learned from rows that were held out.

    Args:
        least: amounts are raised by this, in units of their mean, which tells zero from small amounts.

    >>> SquaredLogs(least=1.0).learned(np.array([0.0, np.e - 1.0])).tolist()
    [0.0, 1.0]

    """

    least: float = 0.01

    @property
    def name(self) -> str:
        return "ln y"

    @property
    def lightgbm(self) -> Mapping[str, Any]:
        return {"objective": "regression", "metric": "rmse"}

    @property
    def scikit_learn(self) -> str:
        return "squared_error"

    def nearest_in_scikit_learn(self) -> Self:
        return self

    def learned(self, amount: Array) -> Array:
        return np.log(amount + self.least)

    def errors(self, pred: Array, learned: Array) -> Array:
        return (pred - learned) ** 2

    def amounts(self, pred: Array) -> Array:
        return np.exp(pred)
