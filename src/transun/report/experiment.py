"""The report of an A/B test, and that of a plan for one."""

import math
from collections.abc import Sequence

from transun.experiments.analysis import ABTest, ArmTotals
from transun.experiments.effect import Effect
from transun.experiments.planning import TestPlan
from transun.report.assessment import cut
from transun.report.document import (
    Block,
    Cell,
    Chart,
    Document,
    Figure,
    Glossary,
    Items,
    Paragraph,
    Section,
    Table,
    VerdictBox,
)
from transun.report.formatting import number, p_value_text, share, visible
from transun.report.svg import Canvas, linear_scale
from transun.support.counting import counted

__all__ = ["abtest_document", "change", "effect_chart", "plan_document", "verdict_on"]

_HOW = (
    "The unit is the user: rows of one user are summed, since the user was assigned to an arm. Means are compared by "
    "Welch's test, ratios of sums by the delta method (tea-tasting); intervals are of the ratio of the two arms.",
    "“Capped” cuts the largest values. It is the effect on the values of ordinary users, and leaves out that on the "
    "largest, so that it does not answer what the total gains.",
    "The interval for one look holds if the number of users was fixed before the test. The always-valid interval "
    "(asymptotic confidence sequence, arXiv 2103.06476) holds however often one looks and whenever one stops.",
)
_ADJUSTED = (
    "“Adjusted” subtracts from every user what was known before the test (CUPED): the expected effect is the same, "
    "and the interval narrower. The adjusted and uncapped effect decides; it was chosen before the result was known."
)
_UNADJUSTED = (
    "The uncapped effect decides; this was chosen before the result was known. A column of what each user was worth "
    "before the test (--before) would make the interval narrower."
)
_TERMS = {
    "sample-ratio mismatch": "more or fewer users in an arm than chance explains. The log is refused below p = 0.001.",
    "CUPED, CUPAC": "adjustment by the value before the test, or by a model's prediction made before the test.",
    "delta method": "the variance of a ratio Σ value / Σ count over users, from that of value − ratio · count.",
    "power": "the probability that a test finds an effect of a given size.",
    "Holm's method": "p-values that stay valid when several arms or segments are tested together.",
}


def abtest_document(test: ABTest) -> Document:
    """The report: the verdict, the effects that decide, all effects, arms, covariates and segments."""
    verdicts = [_verdict(test, effect) for effect in test.decisive]
    decisive, arms = _effect_table(test, test.decisive), _arm_table(test.arms)
    figures = [
        Figure(effect_chart([effect for effect in test.effects if effect.outcome == outcome]), _caption(test, outcome))
        for outcome in dict.fromkeys(effect.outcome for effect in test.effects)
    ]
    sections = [
        Section("Effects", [decisive, Paragraph([_power_sentence(test)], "note")]),
        Section(
            "How the values were treated",
            [Chart(figures, _effect_table(test, test.effects)), Paragraph([_treatment_sentence(test)], "note")],
        ),
        Section("Arms", [arms, Paragraph([_ratio_sentence(test)], "note")]),
    ]
    if test.covariates:
        sections.append(Section("What was known before", [_covariate_table(test)]))
    if test.segments:
        sections.append(Section("By segment", [_segment_table(test)]))
    how = Items([*_HOW, _ADJUSTED if test.covariates else _UNADJUSTED])
    sections += [Section("How this was computed", [how]), Section("Words", [Glossary(_TERMS)])]
    notes: list[Block] = [Items(test.notes)] if test.notes else []
    return Document(
        "A/B test",
        f"{visible(test.name)} · {counted(test.rows, 'row')} · "
        f"{counted(sum(arm.users for arm in test.arms), 'user')} · "
        f"value {visible(test.columns.value)} · control {visible(test.control)}",
        [*verdicts, *notes],
        sections,
        [*verdicts, decisive, arms, *notes],
        "transun abtest",
    )


def plan_document(plans: Sequence[TestPlan], *, effect: float, power: float, level: float, name: str) -> Document:
    """The report of a plan: users needed, and what a test of as many users as the log has would find."""
    first, users = plans[0], plans[0].users
    sentence = (
        f"To find a change of {change(effect)} in {visible(first.outcome)} with a power of {share(power)}, the arms "
        f"need {first.users_needed:,} users together."
    )
    header = [
        "outcome",
        "users needed",
        f"power with {users:,} users",
        f"change found with {users:,} users",
        "mean",
        "spread / mean",
    ]
    rows = [
        [
            Cell(visible(plan.outcome), more=visible(plan.how)),
            Cell(f"{plan.users_needed:,}", plan.users_needed),
            Cell(share(plan.power), plan.power),
            Cell(change(plan.detectable), plan.detectable),
            Cell(number(plan.mean), plan.mean),
            Cell(number(plan.spread), plan.spread),
        ]
        for plan in plans
    ]
    opening: list[Block] = [VerdictBox("neutral", "users needed", sentence)]
    table = Table(header, rows)
    how = (
        f"Tests are two-sided at level {share(level)}. The spread of a user is that of this log: take a log of as many "
        "days as the test will last.",
        "The first line of an outcome is what the test should be decided by; fix it before the test begins.",
    )
    return Document(
        "Plan of an A/B test",
        f"{visible(name)} · {counted(users, 'user')}",
        opening,
        [Section("Users and power", [table]), Section("How this was computed", [Items(how)])],
        [*opening, table],
        "transun abtest --plan",
    )


def verdict_on(test: ABTest, effect: Effect) -> str:
    """The effect of an arm on an outcome in a sentence."""
    p_value, change_, level = test.p_value(effect), effect.change, share(test.level)
    ends = f"{level} interval {change(change_.low)} to {change(change_.high)}, p {_p(p_value)}"
    outcome, arm = visible(effect.outcome), visible(effect.arm)
    if p_value < 1.0 - test.level:
        verb = "raises" if change_.value > 0.0 else "lowers"
        lasting = (
            ""
            if 0.0 not in effect.always
            else (
                "; had one looked more than once, it would not be shown yet (always-valid interval "
                f"{change(effect.always.low)} to {change(effect.always.high)})"
            )
        )
        return f"{arm} {verb} {outcome} by {change(abs(change_.value)).lstrip('+')} ({ends}){lasting}."
    return f"No effect of {arm} on {outcome} is shown: the change is {change(change_.value)} ({ends})."


def change(value: float) -> str:
    """A relative change in per cent.

    >>> change(0.0123), change(-0.5), change(0.00012)
    ('+1.23 %', '−50.0 %', '+0.01 %')
    """
    if not math.isfinite(value):
        return number(value)
    digits = 1 if abs(value) >= 0.1 else 2
    return f"{100 * value:+.{digits}f} %".replace("-", "−")


def effect_chart(effects: Sequence[Effect]) -> str:
    """Relative effects with their intervals, one line each, and 0 as a dashed line; thin intervals are always valid."""
    left, right, top, step = 128.0, 350.0, 8.0, 24.0
    bottom = top + step * len(effects)
    canvas = Canvas(bottom + 38.0, "relative effects")
    ends = [0.0, *[100.0 * end for effect in effects for end in (effect.change.low, effect.change.high)]]
    several = len({effect.arm for effect in effects}) > 1
    margin = 0.35 * (max(ends) - min(ends))
    x = linear_scale(min(ends) - margin, max(ends) + margin, left, right)
    canvas.x_axis(x, top, bottom, (left + right) / 2, "change, %")
    canvas.line([(x.position(0.0), top), (x.position(0.0), bottom)], "even")
    for index, effect in enumerate(effects):
        name = f"{effect.arm}: {effect.how}" if several else effect.how
        middle = top + step * (index + 0.5)
        style = "" if 0.0 in effect.change else " bad"
        canvas.text(left - 8, middle + 4, cut(name, 19), "end", "name", f"{effect.outcome}, {name}")
        for interval, line in ((effect.always, "grid"), (effect.change, f"range{style}")):
            canvas.line([(x.clamped(100.0 * end), middle) for end in (interval.low, interval.high)], line)
        title = f"{effect.outcome}, {name}: {change(effect.change.value)}"
        canvas.dot(x.clamped(100.0 * effect.change.value), middle, f"dot{style}", title)
    return canvas.svg()


def _verdict(test: ABTest, effect: Effect) -> VerdictBox:
    if test.p_value(effect) >= 1.0 - test.level:
        tone, label = "neutral", "no effect shown"
    else:
        tone, label = ("good", "higher") if effect.change.value > 0.0 else ("bad", "lower")
    return VerdictBox(tone, label, verdict_on(test, effect))


def _effect_table(test: ABTest, effects: Sequence[Effect]) -> Table:
    level = share(test.level)
    rows = [
        [
            Cell(visible(effect.outcome), more=visible(f"{effect.arm}, {effect.how}")),
            Cell(number(effect.control), effect.control),
            Cell(number(effect.treatment), effect.treatment),
            Cell(
                change(effect.change.value),
                effect.change.value,
                more=f"{change(effect.change.low)} to {change(effect.change.high)}",
            ),
            Cell(f"{change(effect.always.low)} to {change(effect.always.high)}", effect.always.low),
            Cell(p_value_text(effect.p_value), effect.p_value),
        ]
        for effect in effects
    ]
    return Table(["outcome", "control", "arm", f"change, {level}", f"always valid, {level}", "p-value"], rows)


def _arm_table(arms: Sequence[ArmTotals]) -> Table:
    users = sum(arm.users for arm in arms)
    rows = [
        [
            Cell(visible(arm.name), more="control" if index == 0 else ""),
            Cell(f"{arm.users:,}", arm.users, more=f"{share(arm.users / users, 2)}, {share(arm.expected, 2)} expected"),
            Cell(number(arm.value), arm.value),
            *([] if arm.per is None else [Cell(number(arm.per), arm.per)]),
        ]
        for index, arm in enumerate(arms)
    ]
    return Table(["arm", "users", "total value", *([] if arms[0].per is None else ["total count"])], rows)


def _covariate_table(test: ABTest) -> Table:
    rows = [
        [
            Cell(visible(covariate.name)),
            Cell(share(covariate.explained, 1), covariate.explained),
            Cell(p_value_text(covariate.p_value), covariate.p_value),
        ]
        for covariate in test.covariates
    ]
    return Table(["known before", "of the variance explained", "p-value of “alike in all arms”"], rows)


def _segment_table(test: ABTest) -> Table:
    rows = [
        [
            Cell(f"{visible(line.column)} {visible(line.segment)}", more=visible(line.effect.arm)),
            Cell(f"{line.effect.users:,}", line.effect.users),
            Cell(
                change(line.effect.change.value),
                line.effect.change.value,
                more=f"{change(line.effect.change.low)} to {change(line.effect.change.high)}",
            ),
            Cell(p_value_text(line.p_value), line.p_value),
        ]
        for line in test.segments
    ]
    return Table(["segment", "users", f"change, {share(test.level)}", "p-value (Holm)"], rows)


def _caption(test: ABTest, outcome: str) -> str:
    level = share(test.level)
    return f"Change in {visible(outcome)}: bars are {level} intervals for one look, thin lines always-valid ones."


def _treatment_sentence(test: ABTest) -> str:
    adjusted = f"Adjusted by {' and '.join(visible(name) for name in test.columns.covariates)}. "
    capped = f"Capped at {number(test.cap)}." if test.cap is not None else "No value was large enough to be capped."
    return (adjusted if test.covariates else "") + capped


def _power_sentence(test: ABTest) -> str:
    return (
        f"A test of this size finds a change of {change(test.detectable)} in {visible(test.decisive[0].outcome)} in "
        "four of five cases; smaller ones mostly go unnoticed."
    )


def _ratio_sentence(test: ABTest) -> str:
    return f"Shares of users are as expected (sample-ratio check, p {_p(test.sample_ratio)})."


def _p(p_value: float) -> str:
    text = p_value_text(p_value)
    return text if text.startswith("<") else f"= {text}"
