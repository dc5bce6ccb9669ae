"""The effect of an arm on a value per user or per impression, by tea-tasting: delta method, covariates, intervals."""

import math
from dataclasses import dataclass
from statistics import NormalDist

from transun.experiments.outcomes import Outcome
from transun.experiments.sequence import HORIZON, always_valid_errors
from transun.experiments.user_log import UserLog
from transun.metrics import Estimate
from transun.metrics.metric import Interval

__all__ = ["ArmComparison", "Effect"]


@dataclass(frozen=True)
class Effect:
    """The effect of an arm on an outcome, relative to the control.

    Attributes:
        outcome: its name.
        how: how the values were treated.
        arm: the arm that is compared with the control.
        control: the outcome in the control.
        treatment: the outcome in the arm.
        change: treatment / control - 1, with the interval for one look.
        always: an interval that stays valid however often one looks.
        p_value: of "no effect", for one look.
        error: the standard error of ln(treatment / control).
        users: of both arms.

    """

    outcome: str
    how: str
    arm: str
    control: float
    treatment: float
    change: Estimate
    always: Interval
    p_value: float
    error: float
    users: int


@dataclass(frozen=True)
class ArmComparison:
    """Compares the arms of a log with its control.

    Args:
        control: the index of the arm that others are compared with.
        level: of all intervals.
        horizon: users at which the always-valid interval is narrowest.

    """

    control: int
    level: float = 0.95
    horizon: int = HORIZON

    def effect(self, outcome: Outcome, log: UserLog, arm: int) -> Effect:
        """The effect of an arm against the control.

        The p-value is Welch's, of the difference of the means. The interval is that of their ratio on a logarithmic
        scale, so that both ends are possible. The variance of a ratio Σ value / Σ per is that of value - R·per by the
        delta method: users are independent, rows of a user are not.
        """
        sides = {index: outcome.only(log.arm == index) for index in (self.control, arm)}
        for index, side in sides.items():
            if side.per is not None and not side.per.sum() > 0.0:
                raise ValueError(
                    f"nothing was counted in arm {log.arms[index]!r}, so that it has no {outcome.name}: correct the "
                    "counts, or leave this arm out"
                )
            if not side.mean > 0.0:
                raise ValueError(
                    f"the {outcome.name} is {side.mean:,.6g} in arm {log.arms[index]!r}: a relative effect needs a "
                    "value above 0 in both arms; correct the values, or leave this arm out"
                )
        if not any(side.varies for side in sides.values()):
            known = "" if outcome.covariate is None else ", given a column that cannot have been known before the test"
            raise ValueError(
                f"{outcome.name} ({outcome.how}) is the same for every user{known}: without a spread there is no "
                "interval; name another column"
            )
        base, new = (side.summary() for side in sides.values())
        result = outcome.metric(confidence_level=self.level).analyze_aggregates(base, new)
        # The same by normal quantiles: from the interval follows the standard error, which depends on no level.
        normal = outcome.metric(confidence_level=self.level, use_t=False).analyze_aggregates(base, new)
        ratio, users = 1.0 + result.rel_effect_size, int(base.count() + new.count())
        quantile = NormalDist().inv_cdf(0.5 * (1.0 + self.level))
        error = math.log((1.0 + normal.rel_effect_size_ci_upper) / ratio) / quantile
        margin = error * always_valid_errors(users, self.level, self.horizon)
        change = Estimate(
            outcome.name, ratio - 1.0, float(result.rel_effect_size_ci_lower), float(result.rel_effect_size_ci_upper)
        )
        return Effect(
            outcome=outcome.name,
            how=outcome.how,
            arm=log.arms[arm],
            control=float(result.control),
            treatment=float(result.treatment),
            change=change,
            always=Interval(ratio * math.exp(-margin) - 1.0, ratio * math.exp(margin) - 1.0),
            p_value=float(result.pvalue),
            error=error,
            users=users,
        )
