"""One output and a logarithmic link: Poisson, Gamma and Tweedie regression, unbiased in a single branch."""

import math
from abc import abstractmethod
from typing import Self

from torch import Tensor

from transun.heads.density import widen
from transun.heads.head import Head, Raw, check_targets
from transun.transforms import Identity

# ln ŷ stays within ±20 of ln scale: predictions between 2e-9 and 5e8 times the mean.
_MAX_LOG_RATIO = 20.0


class LogLink(Head):
    """Predicts μ = scale·eˢ and minimises a deviance of y / scale; a subclass writes the deviance.

    The gradient in s of the deviance of power p is μ^(1-p)·(μ - y): zero at the mean of y, whatever the law of y is.
    So these heads are unbiased without a second branch. What p decides is how much large targets count: p = 1 weighs
    an error as it is, p = 2 relative to μ.

    The raw output is bounded, s = 20·tanh(raw / 20), by the same function in the loss and in the prediction, so that
    the model predicts what it has learned.

    Args:
        scale: the unit of the target; None takes the mean of y in `prepare`, so that s = 0 predicts the mean.

    """

    transform = Identity(lower=0.0)

    def __init__(self, scale: float | None = None) -> None:
        super().__init__()
        if scale is not None and not 0.0 < scale < math.inf:
            raise ValueError(f"{type(self).__name__} needs a finite scale > 0, got {scale}")
        self.scale = scale
        self._unit = 1.0 if scale is None else scale

    @abstractmethod
    def deviance(self, s: Tensor, y: Tensor) -> Tensor:
        """Half the deviance of y (B,) from eˢ (B,), without the terms that depend on y alone."""

    def loss(self, raw: Raw, y: Tensor) -> dict[str, Tensor]:
        return {"deviance": self.deviance(self._log_mean(raw), y / self._unit)}

    def point(self, raw: Raw) -> Tensor:
        return self._unit * self._log_mean(raw).exp()

    def prepare(self, y: Tensor) -> Self:
        check_targets(y)
        self.transform.check(y)
        # Targets that are all zero have no unit.
        return self.replace(scale=self.scale or float(y.double().mean()) or 1.0)

    def initial_outputs(self, y: Tensor) -> Raw:
        s = (y.double().mean() / self._unit).log() / _MAX_LOG_RATIO
        return ((_MAX_LOG_RATIO * s.clamp(-1.0 + 1e-6, 1.0 - 1e-6).atanh()).to(y.dtype).reshape(1),)

    def _log_mean(self, raw: Raw) -> Tensor:
        return _MAX_LOG_RATIO * (widen(raw[0]).squeeze(-1) / _MAX_LOG_RATIO).tanh()


class Poisson(LogLink):
    """Poisson regression: predicts μ = scale·eˢ, minimises μ - y·s. Right when the variance grows like the mean.

    Unbiased for every y ≥ 0, counts or not. Between least squares and `Gamma` in how much the tail counts.

    >>> head = Poisson(scale=10.0)
    >>> raw = (torch.zeros(1, 1),)
    >>> head(raw).item(), head.loss(raw, torch.tensor([30.0]))["deviance"].item()  # 10·e⁰ and e⁰ - 3·0
    (10.0, 1.0)

    """

    def deviance(self, s: Tensor, y: Tensor) -> Tensor:
        return s.exp() - y * s


class Gamma(LogLink):
    """Gamma regression: predicts μ = scale·eˢ, minimises s + y·e⁻ˢ. Right when the noise is proportional to the amount.

    Weighs an error by 1/μ, like the ratio target of TranSUN: the single-branch rival that TranSUN must beat. Zeros
    are allowed, but a group of nothing but zeros is drawn to s = -20, not to an optimum.

    >>> head = Gamma(scale=10.0)
    >>> raw = (torch.zeros(1, 1),)
    >>> head(raw).item(), head.loss(raw, torch.tensor([30.0]))["deviance"].item()  # 10·e⁰ and 0 + 3·e⁰
    (10.0, 3.0)

    """

    def deviance(self, s: Tensor, y: Tensor) -> Tensor:
        return s + y * (-s).exp()


class Tweedie(LogLink):
    """Tweedie regression: predicts μ = scale·eˢ, minimises μ^(2-p)/(2-p) + y·μ^(1-p)/(p-1), in units of the scale.

    A Tweedie law with 1 < p < 2 is a Poisson number of Gamma amounts: zeros and a right tail, as in claims and spend.

    Args:
        power: p. Near 1 the head is `Poisson`, near 2 it is `Gamma`; lower values listen more to large targets.
        scale: the unit of the target; None takes the mean of y in `prepare`.

    >>> head = Tweedie(power=1.5, scale=10.0)
    >>> raw = (torch.zeros(1, 1),)
    >>> head(raw).item(), head.loss(raw, torch.tensor([30.0]))["deviance"].item()  # 1/½ + 3/½
    (10.0, 8.0)

    """

    def __init__(self, power: float = 1.5, scale: float | None = None) -> None:
        super().__init__(scale)
        if not 1.0 < power < 2.0:
            raise ValueError(f"Tweedie needs 1 < power < 2, got {power}; use Poisson() for 1 and Gamma() for 2")
        self.power = power

    def deviance(self, s: Tensor, y: Tensor) -> Tensor:
        rest = 2.0 - self.power
        return (rest * s).exp() / rest + y * ((1.0 - self.power) * s).exp() / (self.power - 1.0)
