"""How many users a test needs: computed from a log of the past, before the test."""

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from transun.experiments.outcomes import CAP, Outcome, outcomes_of
from transun.experiments.user_log import FEWEST_USERS, LogColumns, read_user_log
from transun.support.counting import counted
from transun.support.extras import require

__all__ = ["POWER", "TestPlan", "detectable_change", "plan_abtest"]

POWER = 0.8
"""The usual probability to find the effect that a test is planned for."""

# No test finds a smaller change: even of values that hardly differ it would take more users than there are people.
_SMALLEST_EFFECT = 1e-6


@dataclass(frozen=True)
class TestPlan:
    """What a test of an outcome needs, by how the values are treated.

    Attributes:
        outcome: its name.
        how: how the values are treated.
        users: of the log.
        mean: the outcome in the log.
        spread: the standard deviation of a user, over the mean.
        users_needed: users in all arms together that find the effect with the power asked for.
        power: the probability that a test with as many users as the log finds the effect.
        detectable: the relative effect that a test with as many users as the log finds with the power asked for.

    """

    __test__ = False  # pytest would take the class for a test

    outcome: str
    how: str
    users: int
    mean: float
    spread: float
    users_needed: int
    power: float
    detectable: float


def plan_abtest(
    source: Any,
    columns: LogColumns,
    effect: float,
    *,
    power: float = POWER,
    level: float = 0.95,
    ratio: float = 1.0,
    cap: float | None = CAP,
) -> list[TestPlan]:
    """The plans of a test of two arms, of every outcome and treatment of the values.

    The log is of the past, of as long a time as the test will take: the spread of a user's value depends on it. At 95 %
    and a power of 0.8, n = (1 + ratio)·(1 + (1 + effect)²/ratio)·(spread · (1.96 + 0.84) / effect)², which is about
    4·(spread · 2.80 / effect)² for arms of one size. The new arm's spread is taken to grow with its mean, as it does
    where an arm multiplies all values. Where a few users decide the spread, it is known badly, and so is n: look at the
    plan with capped values too.

    Args:
        source: what `read_table` takes.
        columns: which column is what; arms are not looked at.
        effect: the relative effect to be found, such as 0.01.
        power: the probability to find it.
        level: the level of the test, 1 - α.
        ratio: users of the new arm to one user of the control.
        cap: the share of users whose values are left as they are; None caps nothing.

    >>> rng = np.random.default_rng(0)
    >>> log = {"user": np.arange(10_000), "gmv": rng.exponential(size=10_000)}  # the spread is 1
    >>> plan = plan_abtest(log, LogColumns("user", "gmv"), 0.05, cap=None)[0]
    >>> 11_000 < plan.users_needed < 15_000  # 2 · (1 + 1.05²) · (2.80 / 0.05)² = 13,190
    True

    """
    require("tea_tasting")
    if not (-1.0 < effect < np.inf and abs(effect) >= _SMALLEST_EFFECT):
        raise ValueError(f"the change to be found is relative, such as 0.01 for 1 %, got {effect:g}")
    for name, share in (("power", power), ("level", level)):
        if not 0.0 < share < 1.0:
            raise ValueError(f"the {name} of a test lies strictly between 0 and 1, such as 0.8, got {share:g}")
    if not 0.0 < ratio < np.inf:
        raise ValueError(f"ratio={ratio}: name the users of the new arm to one of the control, such as 1")
    log = read_user_log(source, replace(columns, arm=None))
    if len(log.value) < FEWEST_USERS:
        raise ValueError(
            f"{counted(len(log.value), 'user')} cannot show how much values scatter: a plan needs {FEWEST_USERS} of "
            "them or more"
        )
    if not log.value.sum() > 0.0:
        raise ValueError(f"the total of {columns.value!r} is not above 0: a relative effect needs one that is")
    return [_plan(outcome, effect, power, level, ratio) for outcome in outcomes_of(log, columns, cap)]


def detectable_change(error: float, ratio: float, level: float, power: float = POWER) -> float:
    """The relative rise e that a test finds with a power; infinite where the noise grows faster than the rise.

    Where values of the new arm are (1 + e) times those of the control, the test finds e = q·s·√(1 + (1 + e)²/ratio), q
    being the sum of the quantiles of level and power, and s the standard error of the control's mean, over the mean.

    Args:
        error: standard error of ln(treatment / control), s·√(1 + 1/ratio).
        ratio: users of the new arm to one user of the control.
        level: the level of the test.
        power: the probability to find the rise.

    >>> round(detectable_change(0.001, 1.0, 0.95), 4)  # about (1.96 + 0.84) · 0.001
    0.0028

    """
    normal = NormalDist()
    k = (normal.inv_cdf(0.5 * (1.0 + level)) + normal.inv_cdf(power)) ** 2 * error**2 / (1.0 + 1.0 / ratio)
    # e² = k·(1 + (1 + e)²/ratio) is a quadratic equation.
    leading, middle, last = 1.0 - k / ratio, k / ratio, k * (1.0 + 1.0 / ratio)
    return (middle + math.sqrt(middle**2 + leading * last)) / leading if leading > 0.0 else math.inf


def _plan(outcome: Outcome, effect: float, power: float, level: float, ratio: float) -> TestPlan:
    if not outcome.varies:
        raise ValueError(f"{outcome.name} ({outcome.how}) is the same for every user: there is no noise to plan for")
    spread, users = math.sqrt(outcome.variance) / outcome.mean, len(outcome.value)
    normal = NormalDist()
    critical = normal.inv_cdf(0.5 * (1.0 + level))
    quantiles = critical + normal.inv_cdf(power)
    # Variances of both means over that of one user's value, times all users: (1 + ratio)·(1 + (1 + e)²/ratio).
    needed = (1.0 + ratio) * (1.0 + (1.0 + effect) ** 2 / ratio) * (spread * quantiles / effect) ** 2
    shift = quantiles * math.sqrt(users / needed)
    return TestPlan(
        outcome=outcome.name,
        how=outcome.how,
        users=users,
        mean=outcome.mean,
        spread=spread,
        users_needed=math.ceil(needed),
        power=normal.cdf(shift - critical) + normal.cdf(-shift - critical),
        detectable=detectable_change(spread * (1.0 + ratio) / math.sqrt(ratio * users), ratio, level, power),
    )
