"""What a test compares: values per user and per impression, adjusted by what was known before, uncapped and capped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transun.experiments.user_log import LogColumns, UserLog
from transun.support.arrays import Floats
from transun.support.extras import need

__all__ = ["CAP", "Outcome", "cap_of", "joint_covariate", "outcomes_of"]

CAP = 0.999
"""The share of users whose values are left as they are where values are capped."""

# A variance over the squared mean that is nothing but rounding.
_NO_SPREAD = 1e-12


@dataclass(frozen=True)
class Outcome:
    """What is compared: Σ value / Σ per, or the mean of the values where `per` is None, of the users of a log.

    Attributes:
        name: of the outcome, such as "gmv per user".
        value: (users,).
        per: (users,); None counts every user once.
        covariate: (users,), known before the test; None adjusts nothing.
        is_capped: whether large values were cut.

    """

    name: str
    value: Floats
    per: Floats | None = None
    covariate: Floats | None = None
    is_capped: bool = False

    @property
    def how(self) -> str:
        """How the values were treated, such as "uncapped, adjusted"."""
        capped = "capped" if self.is_capped else "uncapped"
        return capped if self.covariate is None else f"{capped}, adjusted"

    def only(self, users: Any) -> "Outcome":
        """The part of some users, by a mask or by numbers."""
        return replace(
            self,
            value=self.value[users],
            per=None if self.per is None else self.per[users],
            covariate=None if self.covariate is None else self.covariate[users],
        )

    def adjusted(self, log: UserLog, names: Sequence[str]) -> "Outcome":
        """The outcome with covariates of the log taken into account (CUPED), where any are named.

        From the value of every user, θ·(covariate - its mean) is subtracted. The expected effect stays the same,
        because the covariate was known before the test and so has the same expectation in all arms; the noise that the
        covariate explains is gone. With a model's prediction as covariate this is called CUPAC.
        """
        if not names:
            return self
        covariate = joint_covariate(self, {name: log.covariates[name] for name in names}, log.arm)
        return replace(self, covariate=covariate)

    def capped(self, cap: float) -> "Outcome":
        """The outcome with the values of users cut at a cap.

        Capping takes the noise of the largest values away, and the effect on them: it answers another question. If an
        arm sells more to the largest buyers, the capped effect is too small, and it can have the other sign.
        """
        return replace(self, value=np.minimum(self.value, cap), is_capped=True)

    def metric(self, **options: Any) -> Any:
        """The metric of tea-tasting for this outcome, which takes its `summary`: Welch's test and the delta method."""
        per = None if self.per is None else "per"
        covariate = None if self.covariate is None else "covariate"
        settings = {"use_t": True, "equal_var": False, "alternative": "two-sided"} | options
        return need("tea_tasting").RatioOfMeans("value", per, covariate, None, **settings)

    def summary(self) -> Any:
        """Count, means, variances and covariances of the columns, as tea-tasting takes them."""
        columns = {"value": self.value, "per": self.per, "covariate": self.covariate}
        present = {name: column for name, column in columns.items() if column is not None}
        names, rows = list(present), np.stack(list(present.values()))
        moments = np.atleast_2d(np.cov(rows))
        pairs = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names))]
        return need("tea_tasting.aggr").Aggregates(
            count_=rows.shape[1],
            mean_=dict(zip(names, rows.mean(axis=1).tolist(), strict=True)),
            var_={name: float(moments[i, i]) for i, name in enumerate(names)},
            cov_={(names[i], names[j]): float(moments[i, j]) for i, j in pairs},
        )

    @property
    def variance(self) -> float:
        """The variance of a user's part in the outcome, by the delta method, less what the covariate explains."""
        data = self.summary()
        per = None if self.per is None else "per"
        variance = float(data.ratio_var("value", per))
        if self.covariate is None or not data.var("covariate") > 0.0:
            return variance
        return variance - float(data.ratio_cov("value", per, "covariate", None)) ** 2 / float(data.var("covariate"))

    @property
    def varies(self) -> bool:
        """Whether users differ, beyond what the covariate explains: without a spread there is no interval."""
        return len(self.value) > 1 and self.variance > _NO_SPREAD * self.mean**2

    @property
    def mean(self) -> float:
        """Σ value / Σ per, or the mean value."""
        return float(self.value.sum() / (len(self.value) if self.per is None else self.per.sum()))


def outcomes_of(log: UserLog, columns: LogColumns, cap: float | None = CAP) -> list[Outcome]:
    """The outcomes of a log: per user first, each adjusted by all covariates, then as logged, then capped.

    The first of each name is the one to decide by. It is fixed beforehand, because a choice of the largest effect among
    all of them is wrong more often than the level says.

    Args:
        log: the users.
        columns: which column is what.
        cap: the share of users whose values are left as they are; None caps nothing.

    """
    plain = [Outcome(f"{columns.value} per user", log.value)]
    if log.per is not None:
        plain.append(Outcome(f"{columns.value} per {columns.per}", log.value, log.per))
    names = columns.covariates
    outcomes = []
    for outcome in plain:
        outcomes += [outcome.adjusted(log, names), *([outcome] if names else [])]
        limit = cap_of(log, cap)
        if limit is not None:
            outcomes.append(outcome.capped(limit).adjusted(log, names))
    return outcomes


def cap_of(log: UserLog, share: float | None) -> float | None:
    """The value that a share of all users do not exceed; None if nothing is above it, or if it is 0."""
    limit = 0.0 if share is None else float(np.quantile(log.value, share))
    return limit if 0.0 < limit < log.value.max() else None


def joint_covariate(outcome: Outcome, covariates: Mapping[str, Floats], arm: Any) -> Floats:
    """The sum of covariates that explains an outcome best: least squares of the value of a user within the arms.

    For a ratio it explains value - R·per, by which the delta method measures a user. One covariate is returned as it
    is, because tea-tasting finds its factor itself.

    >>> a, b = np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0, 1.0])
    >>> joint = joint_covariate(Outcome("gmv", 2 * a + 4 * b + 1), {"a": a, "b": b}, np.zeros(4))
    >>> np.round(joint - joint.min(), 9).tolist()
    [2.0, 0.0, 6.0, 4.0]
    """
    if len(covariates) == 1:
        return next(iter(covariates.values()))
    per = np.ones_like(outcome.value) if outcome.per is None else outcome.per
    measured = outcome.value - outcome.value.sum() / per.sum() * per
    columns = np.stack([measured, *covariates.values()], axis=1)
    for index in np.unique(arm):
        columns[arm == index] -= columns[arm == index].mean(axis=0)
    factors = np.linalg.lstsq(columns[:, 1:], columns[:, 0], rcond=None)[0]
    joint: Floats = np.stack(list(covariates.values()), axis=1) @ factors
    return joint
