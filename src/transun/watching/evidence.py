"""Evidence of a change in a series, which may be looked at after every period: an e-process for an unknown moment.

A test that is repeated every day finds something by chance sooner or later. An e-process does not: it is a number that
begins at 1 and, while nothing has changed, is at most 1 in expectation at any time. By Ville's inequality it ever
exceeds 1/α with probability α at most, however often one looks.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from transun.support.arrays import Floats

__all__ = ["ChangeWatch", "Evidence", "recursive_residuals"]

# Points of the rule that integrates over the unknown standard deviation.
_POINTS = 20
# A history that scatters by less than this share of the smallest change that is looked for does so by rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Evidence:
    """What a series shows of a change after each watched period.

    Args:
        log_e: ln of the e-process after each watched period (n,).
        level: α, the probability of ever calling a change where there is none.
        begin: the index of the watched period since when a change is most likely.
        up: whether the change is most likely upwards.

    """

    log_e: Floats
    level: float
    begin: int
    up: bool

    @property
    def threshold(self) -> float:
        """The value of `log_e` from which on a change is called."""
        return -math.log(self.level)

    @property
    def alarm(self) -> int | None:
        """The index of the first watched period after which a change is called; None if it is not."""
        above = np.flatnonzero(self.log_e >= self.threshold)
        return int(above[0]) if len(above) else None


@dataclass(frozen=True)
class ChangeWatch:
    """Looks for a change of the mean of a series away from 0, at an unknown moment, by an unknown amount.

    The series is that of independent normal numbers x of mean 0 and unknown standard deviation σ. Under a change the
    mean is g·σ from period s on. For given s and g the evidence is the likelihood ratio

        E = e^(-kg²/2) ∫ e^(gSu) p(u) du,  S the sum and k the number of x from s on,

    where u = 1/σ has the law p that all numbers so far give it under the prior du/u: u²·Q is χ² with n degrees of
    freedom for n numbers of squared sum Q. This prior makes E exact for every σ (it is the t-test's e-process). The
    e-process is the mean of E over starts s and sizes g; a start that has not come yet contributes 1. Sums of many
    rows are normal enough, which paper/reports/watching.md checks on skewed amounts.

    Args:
        horizon: the number of periods that are watched, such as those of a year, after which the watch begins anew.
        step: periods between the starts that are tried. Fewer starts are quicker to convince, and less exact.
        sizes: sizes of a change that are looked for, in units of the series.
        level: α.
        signs: directions of a change that are looked for. If one alone is, the mean may lie on the other side of 0
            without ever causing more alarms than a mean of 0.

    >>> quiet = np.tile([0.1, -0.1], 20)
    >>> changed = np.concatenate([quiet, quiet + 0.2])
    >>> watch = ChangeWatch(horizon=40, step=5, sizes=(0.1, 0.2))
    >>> watch(quiet, quiet).alarm, watch(quiet, changed[40:]).alarm is not None
    (None, True)

    """

    horizon: int
    step: int = 7
    sizes: tuple[float, ...] = (0.05, 0.1)
    level: float = 0.05
    signs: tuple[float, ...] = (1.0, -1.0)

    def __post_init__(self) -> None:
        if self.horizon < 1 or self.step < 1:
            raise ValueError(f"ChangeWatch needs horizon and step >= 1, got {self.horizon} and {self.step}")
        if not self.sizes or min(self.sizes) <= 0.0:
            raise ValueError(f"ChangeWatch needs sizes above 0, got {self.sizes}")
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"ChangeWatch needs 0 < level < 1, got {self.level}")
        if not self.signs or not {*self.signs} <= {1.0, -1.0}:
            raise ValueError(f"ChangeWatch needs signs 1 and -1, or one of them, got {self.signs}")

    def scatters(self, history: Floats) -> bool:
        """Whether a history (m,) has a spread, beyond rounding, by which a change can be judged."""
        return len(history) > 1 and _ROUNDING * min(self.sizes) < _root_mean_square(history) < math.inf

    def __call__(self, history: Floats, watched: Floats) -> Evidence:
        """The evidence after each watched period.

        Args:
            history: the series before the watch (m,), at least two numbers, from which the spread is known.
            watched: the series since then (n,), up to the horizon.

        """
        if not self.scatters(history):
            raise ValueError("a watch needs at least two periods of history that are not all exactly as predicted")
        if len(watched) > self.horizon:
            raise ValueError(f"{len(watched)} periods are watched, and the horizon is {self.horizon}: begin anew")
        spread = _root_mean_square(history)
        starts = np.arange(0, self.horizon, self.step)
        effects = np.array([sign * size / spread for size in self.sizes for sign in self.signs])
        squares = float(history @ history) + np.cumsum(np.square(watched))
        running = np.concatenate([[0.0], np.cumsum(watched)])
        logs = np.zeros((len(watched), len(starts), len(effects)))
        for now in range(len(watched)):
            begun = starts <= now
            total, count = running[now + 1] - running[starts[begun]], now + 1 - starts[begun]
            nodes, weights = _chi_rule(len(history) + now + 1)
            slopes = total[:, None] * effects / math.sqrt(squares[now])  # u is χ/√Q
            logs[now, begun] = _log_mean_exp(slopes[..., None] * nodes, weights) - count[:, None] * effects**2 / 2.0
        flat = logs.reshape(len(watched), -1)
        top = flat.max(1, keepdims=True, initial=0.0)
        log_e = (top + np.log(np.exp(flat - top).mean(1, keepdims=True)))[:, 0]
        best = np.unravel_index(int(np.argmax(logs[-1])) if len(watched) else 0, logs.shape[1:])
        return Evidence(log_e, self.level, int(starts[best[0]]), bool(effects[best[1]] > 0.0))


def recursive_residuals(series: Floats) -> Floats:
    """Each number less the mean of those before it, scaled to equal variance: √((t-1)/t)·(x_t - mean of x_1…x_{t-1}).

    For independent normal numbers of any one mean they are independent, of mean 0 and of the same variance, so that a
    series whose usual level nobody knows can be watched. The first number has nothing before it and is left out.

    >>> recursive_residuals(np.array([5.0, 7.0, 6.0])).round(3).tolist()  # √½·2, √⅔·0
    [1.414, 0.0]
    """
    count = np.arange(1, len(series))
    before = np.cumsum(series)[:-1] / count
    return np.sqrt(count / (count + 1.0)) * (series[1:] - before)


@cache
def _chi_rule(freedom: int) -> tuple[Floats, Floats]:
    """Nodes and weights of a mean over the law of χ, whose square is χ² with so many degrees of freedom.

    The law is nearly normal, with mean about √n and variance ½: a Gauss-Hermite rule around it, weighted by the
    density.
    """
    z, weight = np.polynomial.hermite_e.hermegauss(_POINTS)
    centre = math.sqrt(max(freedom - 0.5, 0.25))
    nodes = centre + z / math.sqrt(2.0)
    inside = nodes > 0.0
    nodes, z, weight = nodes[inside], z[inside], weight[inside]
    log_density = (freedom - 1.0) * np.log(nodes) - np.square(nodes) / 2.0 + np.square(z) / 2.0 + np.log(weight)
    density = np.exp(log_density - log_density.max())
    return nodes, density / density.sum()


def _root_mean_square(values: Floats) -> float:
    return math.sqrt(float(np.mean(np.square(values))))


def _log_mean_exp(exponents: Floats, weights: Floats) -> Floats:
    top = exponents.max(-1, keepdims=True)
    return np.asarray((top + np.log((np.exp(exponents - top) * weights).sum(-1, keepdims=True)))[..., 0])
