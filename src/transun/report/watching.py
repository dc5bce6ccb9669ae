"""The page of a watch: has anything changed, what, since when, and how sure that is."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import transun
from transun.report.document import (
    Block,
    Cell,
    Document,
    Facts,
    Figure,
    Gallery,
    Glossary,
    Items,
    Paragraph,
    Section,
    Table,
    VerdictBox,
)
from transun.report.formatting import as_json, number, ratio, share, visible
from transun.report.svg import Canvas, linear_scale
from transun.watching.reading import Calendar
from transun.watching.watch import LEVEL, WatchedSeries, WatchResult

__all__ = ["WatchReport", "watch_document", "watch_json"]

_KINDS = {"total": "the total", "delay": "how late amounts arrive", "inputs": "the inputs x"}

_TERMS = {
    "expected": "What was predicted, times the share of it that had usually arrived after so long.",
    "evidence": "An e-value: how many times better a change explains the periods so far than no change does. If "
    "nothing changes it is 1 on average, however often one looks; it reaches 1/α with probability α at most.",
    "alarm": "The evidence has reached what this series needs. All series together give a false alarm in at most "
    f"{share(LEVEL)} of years in which nothing changes.",
    "delay curve": "The share of an amount that has arrived so many periods after its prediction, learned from the "
    "time before the watch.",
}


@dataclass(frozen=True)
class WatchReport:
    """A watch with the names that a reader knows its parts by.

    Args:
        name: of the model or the certificate.
        target: what is predicted.
        result: what watching has shown.
        calendar: names the periods.
        certified: the predicted / actual total that the certificate promises with its 99 % interval, or None.
        skipped: what was left out, in sentences.

    """

    name: str
    target: str
    result: WatchResult
    calendar: Calendar
    certified: tuple[float, float, float] | None = None
    skipped: tuple[str, ...] = ()

    def verdict(self) -> str:
        """What has changed, in a few sentences."""
        result = self.result
        if not result.alarm:
            came = f"what came is {ratio(result.total.ratio)} times what was expected"
            begin = self.calendar.name(result.since)
            if result.total.wrong_before:
                return (
                    f"No change found since {begin}, but the predictions were wrong before: {came}, and was "
                    f"{ratio(result.total.ratio_before)} times before the watch. Changes that are smaller than that "
                    "error cannot be found: correct the predictions first, by transun debias or a new training."
                )
            return f"No change found since {begin}: {came}, which is within the usual scatter."
        delay, inputs = result.delay, result.inputs
        amounts = [("total", result.total), *((visible(name), series) for name, series in result.segments)]
        sentences = [self._amount(name, series) for name, series in amounts if series.changed]
        if delay is not None and delay.changed:
            begin = self.calendar.name(delay.since)
            direction = "later" if delay.evidence.up else "earlier"
            if sentences:
                sentences.append("As long as the delay is not the usual one, totals may be off for that reason alone.")
            sentences.insert(0, f"Amounts arrive {direction} than they used to, probably since {begin}.")
        if inputs is not None and inputs.changed:
            begin, up = self.calendar.name(inputs.since), inputs.evidence.up
            sentences.append(
                f"The rows themselves have changed, probably since {begin}: they are predicted "
                f"{'higher' if up else 'lower'} on average. That alone does not make a prediction wrong."
            )
        return " ".join(sentences)

    def _amount(self, name: str, series: WatchedSeries) -> str:
        return (
            f"In {name}, {share(abs(series.ratio - 1.0), 1)} {'more' if series.ratio > 1.0 else 'less'} comes than was "
            f"expected, probably since {self.calendar.name(series.since)}."
        )


def watch_json(report: WatchReport) -> str:
    """The outcome for a program that alerts."""
    result = report.result
    return as_json(
        {
            "transun": transun.__version__,
            "model": report.name,
            "target": report.target,
            "alarm": result.alarm,
            "verdict": report.verdict(),
            "since": report.calendar.name(result.since),
            "until": report.calendar.name(result.periods - 1),
            "false_alarms_per_year": LEVEL,
            "series": [_entry(report, *watched) for watched in result.series()],
            "delay_curve": result.curve.arrived.tolist(),
            "skipped": [*report.skipped, *result.skipped],
        },
        indent=1,
    )


def _entry(report: WatchReport, kind: str, segment: str, series: WatchedSeries) -> dict[str, Any]:
    evidence, alarm = series.evidence, series.evidence.alarm
    return {
        "what": kind,
        "segment": segment,
        "changed": series.changed,
        "alarm_at": None if alarm is None else report.calendar.name(int(series.periods[alarm])),
        "probably_since": report.calendar.name(series.since) if series.changed else None,
        "ratio": series.ratio,
        "ratio_before": series.ratio_before if kind in ("total", "segment") else None,
        "log_evidence": float(evidence.log_e.max()),
        "needed": evidence.threshold,
    }


def watch_document(report: WatchReport) -> Document:
    """The page: verdict, what came by period, everything that is watched, the delay, and how it was computed."""
    result = report.result
    tone, label = ("warn", "wrong before") if result.total.wrong_before else ("good", "no change found")
    if result.alarm:
        tone, label = "bad", "something changed"
    verdict = VerdictBox(tone, label, report.verdict())
    table = _table(report)
    brief: list[Block] = [verdict, table]
    skipped = [*report.skipped, *result.skipped]
    sections = [
        Section("Everything that is watched", [table]),
        Section("What came, against what was expected", [_chart(report, result.total)]),
        *([_delay(report)] if len(result.curve.arrived) > 1 else []),
        Section("How this was computed, and what was left out", [Items(_how(report)), *_left_out(skipped)]),
        Section("Words", [Glossary(_TERMS)]),
    ]
    calendar = report.calendar
    subtitle = (
        f"{visible(report.name)} · target {visible(report.target)} · watched from {calendar.name(result.since)} to "
        f"{calendar.name(result.periods - 1)}"
    )
    return Document(
        "Is the model still right?",
        subtitle,
        [verdict, _facts(report)],
        sections,
        [*brief, *_left_out(skipped)],
        "transun watch",
    )


def _facts(report: WatchReport) -> Facts:
    total = report.result.total
    facts = [
        ("came / expected", ratio(float(total.actual.sum() / total.expected.sum())), "over the whole watch"),
        ("came", number(float(total.actual.sum())), ""),
        ("expected by now", number(float(total.expected.sum())), ""),
    ]
    if report.certified is not None:
        value, low, high = report.certified
        facts.append(("certified predicted / actual", ratio(value), f"99 % interval {ratio(low)} to {ratio(high)}"))
    return Facts(facts)


def _table(report: WatchReport) -> Table:
    rows = []
    for kind, segment, series in report.result.series():
        evidence = series.evidence
        reached = float(evidence.log_e.max()) / evidence.threshold
        flag = ("flag", "changed") if series.changed else ()
        since = report.calendar.name(series.since) if series.changed else "–"
        name = visible(segment) or _KINDS[kind]
        shown = "–" if kind in ("delay", "inputs") else ratio(series.ratio)
        rows.append(
            [
                Cell(name),
                Cell(shown, series.ratio),
                Cell(number(math.exp(min(float(evidence.log_e[-1]), 700.0))), float(evidence.log_e[-1])),
                Cell(share(max(min(reached, 9.99), 0.0)), reached, *flag),
                Cell(since),
            ]
        )
    return Table(["watched", "came / expected", "evidence now", "of what an alarm needs", "changed since"], rows)


def _chart(report: WatchReport, series: WatchedSeries) -> Gallery:
    """Came over expected by period, summed over a few periods where there are many."""
    together = max(1, len(series.periods) // 40)
    starts = np.arange(0, len(series.periods), together)
    actual, expected = (np.add.reduceat(each, starts) for each in (series.actual, series.expected))
    values = actual / expected
    left, right, top, bottom = 44.0, 350.0, 24.0, 200.0
    canvas = Canvas(244.0, "what came over what was expected, by period")
    low, high = min(0.9, float(values.min())), max(1.1, float(values.max()))
    x = linear_scale(0.0, float(max(len(starts) - 1, 1)), left + 8, right - 4)
    y = linear_scale(low, high, bottom, top)
    canvas.y_axis(y, left, right, "came / expected")
    canvas.line([(left, y.position(1.0)), (right, y.position(1.0))], "even")
    names = [report.calendar.name(int(series.periods[start])) for start in starts]
    for index, value in enumerate(values.tolist()):
        bad = series.changed and starts[index] >= series.evidence.begin
        title = f"from {names[index]}: {ratio(value)}"
        canvas.dot(x.position(float(index)), y.position(value), "dot bad" if bad else "dot", title)
    for index, anchor in ((0, "start"), (len(names) - 1, "end")):
        canvas.text(x.position(float(index)), bottom + 16, names[index], anchor)
    caption = (
        f"A dot is {together} {report.calendar.every}{'s' if together > 1 else ''}. On the dashed line as much came as "
        "was expected by then. Dots since a probable change are marked."
    )
    rows = [
        [Cell(name), Cell(number(float(a)), float(a)), Cell(number(float(e)), float(e)), Cell(ratio(v), v)]
        for name, a, e, v in zip(names, actual, expected, values.tolist(), strict=True)
    ]
    table = Table(["from", "came", "expected", "ratio"], rows)
    return Gallery(
        [Figure(canvas.svg(), caption)], {f"What came, {together} {report.calendar.every}s at a time": table}
    )


def _delay(report: WatchReport) -> Section:
    curve = report.result.curve
    at = sorted({0, curve.half, *np.searchsorted(curve.arrived, [0.8, 0.95, 0.99]).tolist()})
    rows = [
        [
            Cell(f"{delay} {report.calendar.every}s", delay),
            Cell(share(float(curve.arrived[delay]), 1), curve.arrived[delay]),
        ]
        for delay in at
        if delay < len(curve.arrived)
    ]
    text = (
        "How much of an amount had arrived so long after its prediction, before the watch; what is expected follows it."
    )
    return Section("How late amounts arrive", [Paragraph([text]), Table(["after", "arrived"], rows)])


def _how(report: WatchReport) -> list[str]:
    result = report.result
    return [
        f"The {result.since} {report.calendar.every}s before the watch show how late amounts arrive and how much "
        "totals scatter; the model is not compared with them.",
        f"In a year in which nothing changes, the probability of any alarm is at most {share(LEVEL)}, however often "
        "one looks: half of it is for the total, a quarter for all segments together, an eighth each for delay and "
        "inputs.",
        "A change of amounts moves early and late arrivals alike; a change of the delay moves them apart; a change of "
        "the inputs moves predictions before any amount arrives.",
        "Periods are taken to be independent of each other, and totals of a period to be about normal.",
    ]


def _left_out(sentences: list[str]) -> list[Block]:
    return [Items(sentences, "Left out")] if sentences else []
