"""`abtest`: from the log of an experiment to the effects of its arms, or the reason why the log cannot tell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transun.diagnosis.moments import RatioMoments
from transun.diagnosis.reading import ArrayRows
from transun.diagnosis.segmentation import choose_segmentation, holm
from transun.diagnosis.shape import effective_rows
from transun.experiments.effect import ArmComparison, Effect
from transun.experiments.outcomes import CAP, Outcome, cap_of, outcomes_of
from transun.experiments.planning import detectable_change
from transun.experiments.sequence import HORIZON
from transun.experiments.user_log import FEWEST_USERS, LogColumns, UserLog, read_user_log
from transun.support.counting import counted
from transun.support.extras import need, require
from transun.support.suggest import did_you_mean

__all__ = ["ABTest", "ArmTotals", "Covariate", "SegmentEffect", "abtest"]

# Sample ratios and covariates are checked at this level: an honest test fails one time in a thousand.
_BROKEN = 0.001
# Where the values of fewer users decide a total, a note says that its interval is uncertain.
_EFFECTIVE = 30.0


@dataclass(frozen=True)
class ArmTotals:
    """An arm: its users, the share of the users that was expected, and totals; `per` is None where there is none."""

    name: str
    users: int
    expected: float
    value: float
    per: float | None


@dataclass(frozen=True)
class Covariate:
    """What was known before the test: the share of the variance it explains, and the p-value of "alike in all arms"."""

    name: str
    explained: float
    p_value: float


@dataclass(frozen=True)
class SegmentEffect:
    """The effect in a segment of users, with the p-value of "no effect here" adjusted by Holm's method."""

    column: str
    segment: str
    effect: Effect
    p_value: float


@dataclass(frozen=True)
class ABTest:
    """The result of a test.

    Attributes:
        name: of the log.
        columns: which column is what.
        rows: of the log.
        control: the arm that others are compared with.
        arms: all arms, the control first.
        sample_ratio: the p-value of the expected shares of users.
        effects: by arm; of each the outcomes in the order of `outcomes_of`, so that the first of a name decides.
        p_values: by arm and outcome, of the effect that decides; adjusted by Holm's method over the arms.
        covariates: what was known before.
        cap: the value that capped outcomes are cut at; None where nothing is cut.
        segments: the first outcome by segment.
        detectable: the change of the first outcome by the first arm that such a test finds with a power of 0.8.
        level: of the intervals.
        horizon: users at which the always-valid interval is narrowest.
        notes: sentences on what the reader should know.

    """

    name: str
    columns: LogColumns
    rows: int
    control: str
    arms: tuple[ArmTotals, ...]
    sample_ratio: float
    effects: tuple[Effect, ...]
    p_values: Mapping[str, Mapping[str, float]]
    covariates: tuple[Covariate, ...]
    cap: float | None
    segments: tuple[SegmentEffect, ...]
    detectable: float
    level: float
    horizon: int
    notes: tuple[str, ...]

    @property
    def decisive(self) -> list[Effect]:
        """The effect that decides, for each arm and outcome: the first one."""
        first: dict[tuple[str, str], Effect] = {}
        for effect in self.effects:
            first.setdefault((effect.arm, effect.outcome), effect)
        return list(first.values())

    def p_value(self, effect: Effect) -> float:
        """The p-value of a decisive effect, adjusted for the number of arms."""
        return self.p_values[effect.arm][effect.outcome]


def abtest(
    source: Any,
    columns: LogColumns,
    *,
    control: str | None = None,
    shares: Mapping[str, float] | None = None,
    level: float = 0.95,
    horizon: int = HORIZON,
    cap: float | None = CAP,
    name: str = "log",
) -> ABTest:
    """The effects of the arms of an experiment on value per user and, where a count is named, on value per count.

    A log that cannot show an effect is refused: one with a user in two arms, with a single arm or with missing values;
    one whose shares of users chance does not explain (sample-ratio mismatch, where an arm has lost some of its users);
    and one with a covariate that differs between the arms, which therefore was not known before the test.

    Args:
        source: what `read_table` takes: a file, a folder, a frame or a dict of columns.
        columns: which column is what.
        control: the arm that the others are compared with; None takes the first in alphabetical order.
        shares: the users of an arm that were planned, relative to each other; None is equal shares.
        level: the level of all intervals.
        horizon: users at which the always-valid interval is narrowest; chosen before the test.
        cap: the share of users whose values are left as they are, in the capped outcomes; None caps nothing.
        name: of the log, in reports.

    >>> rng = np.random.default_rng(0)
    >>> arm = np.array(["old", "new"])[np.arange(4000) % 2]
    >>> gmv = rng.exponential(10.0, 4000) * np.where(arm == "new", 1.2, 1.0)
    >>> log = {"user": np.arange(4000), "arm": arm, "gmv": gmv}
    >>> result = abtest(log, LogColumns("user", "gmv", "arm"), control="old")
    >>> effect = result.decisive[0]
    >>> effect.arm, 0.2 in effect.change, effect.p_value < 0.001
    ('new', True, True)

    """
    require("tea_tasting")
    if columns.arm is None:
        raise ValueError("a test compares arms: name the column of the arms")
    if not 0.0 < level < 1.0:
        raise ValueError(f"the level of an interval lies strictly between 0 and 1, such as 0.95, got {level:g}")
    if cap is not None and not 0.0 < cap <= 1.0:
        raise ValueError(f"cap={cap} must lie in (0, 1]: it is the share of users whose values are not capped")
    log = read_user_log(source, columns)
    first = _control(log, control)
    expected = _expected_shares(log, shares)
    sample_ratio = _sample_ratio(log, expected)
    outcomes, sizes = outcomes_of(log, columns, cap), np.bincount(log.arm)
    others = [index for index in range(len(log.arms)) if index != first]
    covariates = tuple(_covariate(log, outcomes[0], covariate) for covariate in columns.covariates)
    comparison = ArmComparison(first, level, horizon)
    effects = [comparison.effect(outcome, log, arm) for arm in others for outcome in outcomes]
    result = ABTest(
        name=name,
        columns=columns,
        rows=log.rows,
        control=log.arms[first],
        arms=tuple(_totals(log, index, expected) for index in [first, *others]),
        sample_ratio=sample_ratio,
        effects=tuple(effects),
        p_values={},
        covariates=covariates,
        cap=cap_of(log, cap),
        segments=_segment_effects(log, columns, others, comparison),
        detectable=detectable_change(effects[0].error, sizes[others[0]] / sizes[first], level),
        level=level,
        horizon=horizon,
        notes=(*log.notes, *_tail_notes(log, columns)),
    )
    return replace(result, p_values=_adjusted(result.decisive))


def _control(log: UserLog, control: str | None) -> int:
    if control is None:
        return 0
    if control not in log.arms:
        hint = did_you_mean(control, list(log.arms)) or f"there are {', '.join(map(repr, log.arms))}"
        raise ValueError(f"there is no arm {control!r} to compare with: {hint}")
    return log.arms.index(control)


def _expected_shares(log: UserLog, shares: Mapping[str, float] | None) -> np.ndarray:
    if shares is None:
        return np.full(len(log.arms), 1.0 / len(log.arms))
    wrong = set(shares) ^ set(log.arms)
    if wrong:
        raise ValueError(
            f"shares are given for {', '.join(map(repr, shares))}, and the arms are {', '.join(map(repr, log.arms))}: "
            "give the share of every arm"
        )
    planned = np.array([shares[arm] for arm in log.arms], dtype=np.float64)
    if not (np.isfinite(planned).all() and (planned > 0.0).all()):
        raise ValueError(f"shares {planned.tolist()} must be above 0")
    return np.asarray(planned / planned.sum())


def _sample_ratio(log: UserLog, expected: np.ndarray) -> float:
    counts = np.bincount(log.arm, minlength=len(log.arms))
    small = int(np.argmin(counts))
    if counts[small] < FEWEST_USERS:
        raise ValueError(
            f"arm {log.arms[small]!r} has {counted(counts[small], 'user')}: a test needs {FEWEST_USERS} in every "
            "arm; wait for more users, or leave this arm out"
        )
    p_value = float(need("scipy.stats").chisquare(counts, expected * log.users).pvalue)
    if p_value < _BROKEN:
        lines = [
            f"{arm!r} has {counted(count, 'user')} where {share * log.users:,.0f} were expected"
            for arm, count, share in zip(log.arms, counts, expected, strict=True)
        ]
        raise ValueError(
            f"sample-ratio mismatch: arm {', '.join(lines)} (p = {p_value:.1g}). Users were lost or counted twice in "
            "an arm, which no analysis can repair: find the cause, or give the shares that were planned if they differ"
        )
    return p_value


def _totals(log: UserLog, index: int, expected: np.ndarray) -> ArmTotals:
    inside = log.arm == index
    per = None if log.per is None else float(log.per[inside].sum())
    return ArmTotals(log.arms[index], int(inside.sum()), float(expected[index]), float(log.value[inside].sum()), per)


def _covariate(log: UserLog, outcome: Outcome, name: str) -> Covariate:
    values = log.covariates[name]
    sides = [values[log.arm == index] for index in range(len(log.arms))]
    if all(side.std() == 0.0 for side in sides):
        raise ValueError(f"column {name!r} is the same for all users of an arm: it explains nothing; leave it out")
    stats = need("scipy.stats")
    # Welch's test of every other arm against the first, by Bonferroni where there are several.
    p_values = [stats.ttest_ind(sides[0], side, equal_var=False).pvalue for side in sides[1:]]
    p_value = min(1.0, len(p_values) * float(min(p_values)))
    if p_value < _BROKEN:
        means = ", ".join(f"{side.mean():,.4g} in {arm!r}" for arm, side in zip(log.arms, sides, strict=True))
        raise ValueError(
            f"column {name!r} differs between the arms ({means}; p = {p_value:.1g}), so that it was not known before "
            "the test or the arms were not drawn by chance: leave it out, or find the cause"
        )
    within = log.arm[None, :] == np.arange(len(log.arms))[:, None]
    x, y = (column - within.T @ (within @ column / within.sum(axis=1)) for column in (values, outcome.value))
    return Covariate(name, float((x @ y) ** 2 / max((x @ x) * (y @ y), 1e-300)), p_value)


def _segment_effects(
    log: UserLog, columns: LogColumns, others: Sequence[int], comparison: ArmComparison
) -> tuple[SegmentEffect, ...]:
    if log.segments is None:
        return ()
    source = ArrayRows(log.value, log.value, np.ones(log.users), log.segments)
    rows = source.rows()
    effects = []
    for column in columns.by:
        texts = rows.chunk.texts(column, rows.index).to_pylist()
        segmentation = choose_segmentation(column, texts, numeric=source.is_numeric(column))
        codes = segmentation.codes(rows, column)
        for code, title in enumerate(segmentation.titles):
            part = log.only(codes == code)
            outcome = outcomes_of(part, columns, cap=None)[0] if part.users else None
            for arm in others:
                if outcome is not None and _is_comparable(outcome, part, (arm, comparison.control)):
                    effects.append((column, title, comparison.effect(outcome, part, arm)))
    adjusted = holm([effect.p_value for _, _, effect in effects])
    return tuple(SegmentEffect(*effect, p) for effect, p in zip(effects, adjusted, strict=True))


def _is_comparable(outcome: Outcome, log: UserLog, arms: tuple[int, int]) -> bool:
    """Whether enough users of a segment are in both arms, bought something, and not all the same."""
    sides = [log.arm == arm for arm in arms]
    parts = [outcome.only(side) for side in sides]
    enough = all(len(part.value) >= FEWEST_USERS and part.mean > 0.0 for part in parts)
    return enough and any(part.varies for part in parts)


def _tail_notes(log: UserLog, columns: LogColumns) -> list[str]:
    worth = effective_rows(
        RatioMoments.of(log.value, np.ones(log.users), np.ones(log.users), np.zeros(log.users, int), 1)
    )
    if worth >= _EFFECTIVE:
        return []
    return [
        f"A few users decide the total of {columns.value}: the spread is known as well as that of {worth:.0f} users of "
        "a normal distribution. Intervals are then only about right: trust an effect that capped values show too."
    ]


def _adjusted(decisive: Sequence[Effect]) -> dict[str, dict[str, float]]:
    p_values: dict[str, dict[str, float]] = {effect.arm: {} for effect in decisive}
    for outcome in {effect.outcome for effect in decisive}:
        alike = [effect for effect in decisive if effect.outcome == outcome]
        for effect, p_value in zip(alike, holm([effect.p_value for effect in alike]), strict=True):
            p_values[effect.arm][outcome] = p_value
    return p_values
