"""Claims answered from reports: yes, no, or within noise."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from transun_paper.lab.compare import Difference, Reports, difference, paired_t, spread

# A difference counts when one as large would be this rare by chance.
LEVEL = 0.05
YES, NO, NOISE, UNKNOWN = "yes", "no", "within noise", "unknown"
_HIGHER = ("XAUC", "TopXAUC", "NDCG", "TopNDCG")


@dataclass(frozen=True)
class Finding:
    """Whether something holds, and the numbers that say so."""

    holds: str
    evidence: str


@dataclass(frozen=True)
class Answer:
    """A claim of the paper, where it was looked at, whether it holds there, and the numbers."""

    claim: str
    where: str
    holds: str
    evidence: str


@dataclass(frozen=True)
class TestRows:
    """Metrics of test rows; noise is that of the seeds and of the rows.

    Args:
        inside: where in a report they are; () is the report itself.

    """

    inside: tuple[str, ...] = ()
    __test__ = False  # its name is no invitation to pytest
    noise = "of seeds and test rows"

    def values(self, reports: Reports, metric: str) -> list[float | None]:
        """The metric of every seed."""
        return [report["metrics"][metric] for report in self._of(reports)]

    def spread(self, reports: Reports, metric: str) -> tuple[float, float]:
        """The mean over seeds and its standard error."""
        return spread(self._of(reports), metric)

    def minus(self, first: Reports, second: Reports, metric: str, factor: float = 1.0) -> Difference:
        """The metric of the first minus `factor` times that of the second."""
        scaled = [_scaled(report, metric, factor) for report in self._of(second)]
        return difference(self._of(first), scaled, metric)

    def _of(self, reports: Reports) -> Reports:
        for name in self.inside:
            reports = [report[name] for report in reports]
        return reports


@dataclass(frozen=True)
class TrainRows:
    """Metrics of training rows. How well they are fitted is a matter of these rows: the only noise is the seeds'."""

    noise = "of seeds"

    def values(self, reports: Reports, metric: str) -> list[float | None]:
        """The metric of every seed."""
        return [report["train"][metric] for report in reports]

    def spread(self, reports: Reports, metric: str) -> tuple[float, float]:
        """The mean over seeds and its standard error."""
        values = [report["train"][metric] for report in reports]
        return fmean(values), _error(values)

    def minus(self, first: Reports, second: Reports, metric: str, factor: float = 1.0) -> Difference:
        """The metric of the first minus `factor` times that of the second."""
        a = [report["train"][metric] for report in first]
        b = [factor * report["train"][metric] for report in second]
        gaps = [x - y for x, y in zip(a, b, strict=True)]
        return Difference(fmean(gaps), _error(gaps), paired_t(a, b))


Rows = TestRows | TrainRows


def able(*all_reports: Reports) -> bool:
    """Whether all of these methods were run and none failed."""
    return all(reports and not any("failed" in report for report in reports) for reports in all_reports)


def less(rows: Rows, first: Reports, second: Reports, metric: str, factor: float = 1.0) -> Finding:
    """Whether the first's metric is below `factor` times the second's; above it for metrics where more is better."""
    if not able(first, second) or not _finite(rows, first, second, metric):
        return Finding(UNKNOWN, "not run, or failed")
    gap = rows.minus(first, second, metric, factor)
    sign = -1.0 if metric in _HIGHER else 1.0
    a, b = rows.spread(first, metric)[0], rows.spread(second, metric)[0]
    change = f", {(a - b) / abs(b):+.0%}" if b and metric not in _HIGHER else ""
    return Finding(
        _verdict(sign * gap.value, gap.p), f"{metric} {_number(a)} against {_number(b)}{change}, {_chance(gap.p)}"
    )


def near(rows: Rows, first: Reports, second: Reports, metric: str, margin: float, share: float = 0.0) -> Finding:
    """Whether two methods' metrics are within `margin` + `share`·(the second's metric) of each other.

    Yes when the 95 % interval of the difference lies inside, no when it lies outside.
    """
    if not able(first, second) or not _finite(rows, first, second, metric):
        return Finding(UNKNOWN, "not run, or failed")
    gap = rows.minus(first, second, metric)
    allowed = margin + share * abs(rows.spread(second, metric)[0])
    reach = 1.96 * gap.error
    holds = YES if abs(gap.value) + reach < allowed else NO if abs(gap.value) - reach > allowed else NOISE
    return Finding(holds, f"{metric} differs by {gap.value:+.4f} ± {reach:.4f}, allowed {allowed:.4f}")


def every(findings: Sequence[Finding]) -> Finding:
    """All of them at once: no if one says no, yes if all say yes."""
    answers = [finding.holds for finding in findings]
    worst = next((answer for answer in (NO, UNKNOWN, NOISE) if answer in answers), YES)
    return Finding(worst, "; ".join(finding.evidence for finding in findings))


def either(better: Finding, equal: Finding) -> Finding:
    """Better or equal: the first if it says yes, else the second."""
    return better if better.holds == YES else equal


def best_of(rows: Rows, chosen: str, found: Mapping[str, Reports], metric: str) -> Finding:
    """Whether a method has the best metric of all: by more than noise (yes), within it, or beaten beyond it (no)."""
    able_ones = {name: reports for name, reports in found.items() if able(reports)}
    if chosen not in able_ones or len(able_ones) < 2:
        return Finding(UNKNOWN, "not run, or failed")
    sign = -1.0 if metric in _HIGHER else 1.0
    value = {name: sign * rows.spread(reports, metric)[0] for name, reports in able_ones.items()}
    rival = min((name for name in value if name != chosen), key=lambda name: value[name])
    gap = rows.minus(able_ones[chosen], able_ones[rival], metric)
    ours, theirs = (_number(sign * value[name]) for name in (chosen, rival))
    text = f"{metric}: {chosen} {ours}, best other {rival} {theirs}"
    return Finding(_verdict(sign * gap.value, gap.p), f"{text}, {_chance(gap.p)}")


def answers(claim: str, findings: Iterable[tuple[str, Finding]]) -> list[Answer]:
    """A claim with what was found in each place."""
    return [Answer(claim, where, finding.holds, finding.evidence) for where, finding in findings]


def _verdict(value: float, p: float) -> str:
    if p >= LEVEL or math.isnan(p):
        return NOISE
    return YES if value < 0 else NO


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 100 else f"{value:,.0f}"


def _chance(p: float) -> str:
    return f"p = {p:.2g}" if p >= 1e-4 else "p < 0.0001"


def _scaled(report: Mapping[str, Any], metric: str, factor: float) -> dict[str, Any]:
    return {
        "metrics": {metric: factor * report["metrics"][metric]},
        "left_out": {metric: [factor * value for value in report["left_out"][metric]]},
    }


def _finite(rows: Rows, first: Reports, second: Reports, metric: str) -> bool:
    return None not in (*rows.values(first, metric), *rows.values(second, metric))


def _error(values: Sequence[float]) -> float:
    mean, count = fmean(values), len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1) / count) if count > 1 else 0.0
