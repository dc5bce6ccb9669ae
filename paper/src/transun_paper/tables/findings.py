"""Claims of the paper answered from reports: yes, no, undecided, or unknown; and why, where runs show it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from transun.metrics import metric_named
from transun_paper.lab.compare import (
    SIGNIFICANCE,
    Difference,
    Reports,
    difference,
    mean_with_error,
    paired_t,
    seed_mean,
)

# Undecided: noise alone could make a difference as large, so that these seeds and rows cannot tell.
YES, NO, UNDECIDED, UNKNOWN = "yes", "no", "undecided", "unknown"
# What a claim can fail by: the data differ from the paper's, the training does, there are too few rows or seeds, or the
# metric asks for something other than the mean.
DATA, PROTOCOL, SIZE, METRIC = "data", "protocol", "size", "metric"
# Beyond so many times the rows and seeds, a number of them says nothing more.
_MOST_TIMES = 1000.0


@dataclass(frozen=True)
class Cause:
    """Why a claim does not hold: `DATA`, `PROTOCOL`, `SIZE` or `METRIC`, and the numbers of runs that show it."""

    kind: str
    evidence: str


@dataclass(frozen=True)
class Finding:
    """Whether something holds, the numbers that show it, and why it does not hold, where the same runs tell."""

    holds: str
    evidence: str
    cause: Cause | None = None


NOT_RUN = Finding(UNKNOWN, "not run yet")


class Side(NamedTuple):
    """A method in a comparison: its name, and its reports, one per seed."""

    name: str
    reports: Reports


@dataclass(frozen=True)
class Answer:
    """A claim of the paper, the data set where it was checked, whether it holds there, the numbers, and the cause."""

    claim: str
    where: str
    holds: str
    evidence: str
    cause: Cause | None = None

    @classmethod
    def of(cls, claim: str, where: str, finding: Finding, *causes: Cause | None) -> "Answer":
        """The answer that a finding gives to a claim.

        Args:
            claim: of the paper.
            where: the data set.
            finding: whether it holds.
            *causes: what further runs show about a claim that fails or is undecided, None where one shows nothing; the
                first one counts. Without any it is the finding's own.

        """
        judged = () if finding.holds in (YES, UNKNOWN) else causes
        shown = [cause for cause in (*judged, finding.cause) if cause is not None]
        cause = shown[0] if shown and finding.holds != YES else None
        return cls(claim, where, finding.holds, finding.evidence, cause)


@dataclass(frozen=True)
class TestRows:
    """Metrics of test rows; their noise is that of the seeds and of the rows.

    Args:
        inside: the keys under which they are in a report; () is the report itself.

    """

    inside: tuple[str, ...] = ()
    __test__ = False  # pytest would take the class for a test
    noise = "of seeds and test rows"

    def measures(self, report: Mapping[str, Any]) -> Mapping[str, float | None]:
        """All metrics of one seed, by name."""
        (within,) = self._within([report])
        metrics: Mapping[str, float | None] = within["metrics"]
        return metrics

    def values(self, reports: Reports, metric: str) -> list[float | None]:
        """The metric of every seed."""
        return [self.measures(report)[metric] for report in reports]

    def floored(self, reports: Reports) -> list[float]:
        """The share of rows of every seed whose prediction is below the floor of MRE."""
        return [self.measures(report).get("FLOORED") or 0.0 for report in reports]

    def mean_with_error(self, reports: Reports, metric: str) -> tuple[float, float]:
        """The mean over seeds and its standard error."""
        return mean_with_error(self._within(reports), metric)

    def minus(self, first: Reports, second: Reports, metric: str, factor: float = 1.0) -> Difference:
        """The metric of the first minus `factor` times that of the second."""
        scaled = [_scaled(report, metric, factor) for report in self._within(second)]
        return difference(self._within(first), scaled, metric)

    def _within(self, reports: Reports) -> Reports:
        for key in self.inside:
            reports = [report[key] for report in reports]
        return reports


@dataclass(frozen=True)
class TrainRows:
    """Metrics of training rows. The fit of these rows concerns no others, so their only noise is that of the seeds."""

    noise = "of seeds"

    def measures(self, report: Mapping[str, Any]) -> Mapping[str, float | None]:
        """All metrics of one seed, by name."""
        metrics: Mapping[str, float | None] = report["train"]
        return metrics

    def values(self, reports: Reports, metric: str) -> list[float | None]:
        """The metric of every seed."""
        return [self.measures(report)[metric] for report in reports]

    def floored(self, reports: Reports) -> list[float]:
        """The share of rows of every seed whose prediction is below the floor of MRE."""
        return [self.measures(report).get("FLOORED") or 0.0 for report in reports]

    def mean_with_error(self, reports: Reports, metric: str) -> tuple[float, float]:
        """The mean over seeds and its standard error."""
        return seed_mean([report["train"][metric] for report in reports])

    def minus(self, first: Reports, second: Reports, metric: str, factor: float = 1.0) -> Difference:
        """The metric of the first minus `factor` times that of the second."""
        a = [report["train"][metric] for report in first]
        b = [factor * report["train"][metric] for report in second]
        gaps = [x - y for x, y in zip(a, b, strict=True)]
        return Difference(*seed_mean(gaps), paired_t(a, b))


Rows = TestRows | TrainRows


def able(*all_reports: Reports) -> bool:
    """Whether all of these methods were run and none failed."""
    return all(reports and not any("failed" in report for report in reports) for reports in all_reports)


def better(rows: Rows, first: Side, second: Side, metric: str, factor: float = 1.0) -> Finding:
    """Whether the first's metric is below `factor` times the second's; above it for metrics where more is better."""
    obstacle = _obstacle(rows, (first, second), metric)
    if obstacle is not None:
        return obstacle
    gap = rows.minus(first.reports, second.reports, metric, factor)
    a, b = (rows.mean_with_error(side.reports, metric)[0] for side in (first, second))
    change = f", {(a - b) / abs(b):+.0%}" if b and not _more_is_better(metric) else ""
    holds = _holds(metric, gap)
    leaning = _leaning(holds, (gap.value > 0) == _more_is_better(metric))
    numbers = f"{metric}: {first.name} {_apart(a, b)}, {second.name} {_apart(b, a)}"
    return Finding(holds, f"{numbers}{change}, {_chance(gap.p)}{leaning}", _noise(holds, gap, gap.value))


def near(rows: Rows, first: Side, second: Side, metric: str, margin: float, share: float = 0.0) -> Finding:
    """Whether two methods' metrics are within `margin` + `share`·(the second's metric) of each other.

    Yes when the 95 % interval of the difference lies inside, no when it lies outside.
    """
    obstacle = _obstacle(rows, (first, second), metric)
    if obstacle is not None:
        return obstacle
    gap = rows.minus(first.reports, second.reports, metric)
    allowed = margin + share * abs(rows.mean_with_error(second.reports, metric)[0])
    reach = 1.96 * gap.error
    holds = YES if abs(gap.value) + reach < allowed else NO if abs(gap.value) - reach > allowed else UNDECIDED
    leaning = _leaning(holds, abs(gap.value) < allowed)
    numbers = f"{metric} of {first.name} minus {second.name} {gap.value:+.4f} ± {reach:.4f}, allowed {allowed:.4f}"
    return Finding(holds, numbers + leaning, _noise(holds, gap, allowed - abs(gap.value)))


def gains(rows: Rows, first: Side, second: Side, metric: str, least: float) -> Finding:
    """Whether the first's metric is above the second's by more than `least`: by the 95 % interval of the difference."""
    obstacle = _obstacle(rows, (first, second), metric)
    if obstacle is not None:
        return obstacle
    gap = rows.minus(first.reports, second.reports, metric)
    reach = 1.96 * gap.error
    holds = YES if gap.value - reach > least else NO if gap.value + reach < least else UNDECIDED
    numbers = f"{metric} of {first.name} minus {second.name} {gap.value:+.4f} ± {reach:.4f}, the claim is {least:+g}"
    return Finding(holds, numbers + _leaning(holds, gap.value > least), _noise(holds, gap, gap.value - least))


def below(first: Sequence[float], second: Sequence[float], evidence: str) -> Finding:
    """Whether values are below others, by a t-test paired by seed; the p-value is appended to the evidence."""
    p = paired_t(first, second)
    value, error = seed_mean([a - b for a, b in zip(first, second, strict=True)])
    holds = UNDECIDED if p >= SIGNIFICANCE else YES if value < 0.0 else NO
    text = f"{evidence}, p = {p:.2g} over {len(first)} seeds{_leaning(holds, value < 0.0)}"
    return Finding(holds, text, _noise(holds, Difference(value, error, p), value))


def every(findings: Sequence[Finding]) -> Finding:
    """All findings at once: no if one of them is no, yes if all of them are."""
    answers = [finding.holds for finding in findings]
    worst = next((answer for answer in (NO, UNKNOWN, UNDECIDED) if answer in answers), YES)
    cause = next((finding.cause for finding in findings if finding.holds == worst and finding.cause is not None), None)
    return Finding(worst, "; ".join(finding.evidence for finding in findings), cause)


def either(better: Finding, equal: Finding) -> Finding:
    """Better or equal: the first finding if it is yes, else the second."""
    return better if better.holds == YES else equal


def best_of(rows: Rows, chosen: str, reports: Mapping[str, Reports], metric: str) -> Finding:
    """Whether a method has the best metric of all: by more than noise (yes), undecided, or beaten beyond noise (no)."""
    usable = _comparable(rows, reports, metric)
    rival = best_rival(rows, chosen, reports, metric)
    if chosen not in usable or rival is None:
        return NOT_RUN
    value = {name: rows.mean_with_error(usable[name], metric)[0] for name in (chosen, rival)}
    badness = metric_named(metric).badness
    gap = rows.minus(usable[chosen], usable[rival], metric)
    obstacle = _obstacle(rows, (Side(chosen, usable[chosen]), Side(rival, usable[rival])), metric)
    if obstacle is not None:
        return obstacle
    holds = _holds(metric, gap)
    leaning = _leaning(holds, badness(value[chosen]) < badness(value[rival]))
    own, other = _apart(value[chosen], value[rival]), _apart(value[rival], value[chosen])
    numbers = f"{metric}: {chosen} {own}, best other {rival} {other}"
    return Finding(holds, f"{numbers}, {_chance(gap.p)}{leaning}", _noise(holds, gap, gap.value))


def best_rival(rows: Rows, chosen: str, reports: Mapping[str, Reports], metric: str) -> str | None:
    """The name of the method with the best metric of all but one; None where no other was run."""
    value = {
        name: rows.mean_with_error(seeds, metric)[0]
        for name, seeds in _comparable(rows, reports, metric).items()
        if name != chosen
    }
    badness = metric_named(metric).badness
    return min(value, key=lambda name: badness(value[name]), default=None)


def _comparable(rows: Rows, reports: Mapping[str, Reports], metric: str) -> dict[str, Reports]:
    """The methods that have the metric: one that is not finite, as of predictions that are all equal, beats nothing."""
    return {name: seeds for name, seeds in reports.items() if able(seeds) and None not in rows.values(seeds, metric)}


def _more_is_better(metric: str) -> bool:
    return metric_named(metric).better == "higher"


def _holds(metric: str, gap: Difference) -> str:
    """Whether a difference of a metric is an improvement."""
    if gap.p >= SIGNIFICANCE or math.isnan(gap.p):
        return UNDECIDED
    return YES if (gap.value > 0) == _more_is_better(metric) else NO


def _apart(value: float, other: float) -> str:
    """A number with four decimals, or as many more as tell it from another one.

    >>> _apart(0.5, 0.6), _apart(0.73241, 0.73238), _apart(1234.5, 1.0)
    ('0.5000', '0.73241', '1,234')
    """
    if abs(value) >= 100:
        return f"{value:,.0f}"
    texts = ((f"{value:.{digits}f}", f"{other:.{digits}f}") for digits in range(4, 8))
    return next((text for text, second in texts if text != second), f"{value:.4f}")


def _chance(p: float) -> str:
    return f"p = {p:.2g}" if p >= 1e-4 else "p < 0.0001"


def _scaled(report: Mapping[str, Any], metric: str, factor: float) -> dict[str, Any]:
    return {
        "metrics": {metric: factor * report["metrics"][metric]},
        "left_out": {metric: [factor * value for value in report["left_out"][metric]]},
    }


def _obstacle(rows: Rows, sides: Sequence[Side], metric: str) -> Finding | None:
    """Why two methods cannot be compared: one was not run or diverged, or has no relative errors; else None."""
    for side in sides:
        if not side.reports:
            return NOT_RUN
        failed = [report["failed"] for report in side.reports if "failed" in report]
        if failed:
            text = f"{side.name} failed with {len(failed)} of {len(side.reports)} seeds: {failed[0]}"
            return Finding(UNKNOWN, text, Cause(PROTOCOL, f"{side.name} diverges in this training"))
        if None in rows.values(side.reports, metric):
            text = f"{metric} of {side.name} is not finite"
            return Finding(UNKNOWN, text, Cause(METRIC, f"{metric} has no value for what {side.name} predicts"))
        floored = max(rows.floored(side.reports)) if metric == "MRE" else 0.0
        if floored > 0.0:
            return Finding(
                UNKNOWN,
                f"not judged: {side.name} predicts 0 in {floored:.2%} of the rows, where MRE divides by its floor",
                Cause(METRIC, "MRE divides by the prediction, so that it has no value where a method predicts 0"),
            )
    return None


def _noise(holds: str, gap: Difference, distance: float) -> Cause | None:
    """Why an undecided claim is undecided: how much noise there is, what makes it, and how much less would decide.

    Noise falls with the square root of rows and seeds, so a distance d from the border between yes and no needs
    (1.96·error / d)² times as many of them, if it stays.
    """
    if holds != UNDECIDED or not math.isfinite(gap.error) or gap.error <= 0.0:
        return None
    times = (1.96 * gap.error / distance) ** 2 if distance else math.inf
    if times > _MOST_TIMES:
        needed = f"more than {_MOST_TIMES:,.0f} times"
    else:
        # A test of few seeds asks for more than 1.96 errors, so that small factors are not known well.
        needed = f"about {times:.1f} times" if times >= 2.0 else "at most about twice"
    source = f", {gap.of_rows:.0%} of its square from test rows and the rest from seeds" if gap.of_rows else ""
    what = "test rows and seeds" if gap.of_rows else "seeds"
    return Cause(
        SIZE,
        f"{abs(distance):.4f} from the border between yes and no, with a standard error of {gap.error:.4f}{source}: "
        f"{needed} as many {what} would decide",
    )


def _leaning(holds: str, would_hold: bool) -> str:
    """On which side the means are, where noise leaves a claim undecided."""
    return f"; the means say {YES if would_hold else NO}" if holds == UNDECIDED else ""
