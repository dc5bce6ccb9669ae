"""The figures of the paper that are drawn from finished runs or from formulas: bins, ε, densities."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any

import torch

from transun.heads import LogSUN
from transun.schemes import ReciprocalTarget
from transun_paper.datasets.distributions import DISTRIBUTIONS, Distribution
from transun_paper.lab.compare import Reports, seed_mean
from transun_paper.lab.computation import Computation
from transun_paper.lab.protocol import Study
from transun_paper.lab.store import Store, rounded
from transun_paper.tables.findings import NO, YES, Answer, Finding, Side, TestRows, able, better, every, near
from transun_paper.tables.table import (
    COSTLY,
    OTHERS,
    FixedRate,
    Keys,
    PaperRow,
    StudiedRows,
    Tuned,
    Tuning,
    kept,
    leaderboard_row,
    protocol_of,
)

_TEST = TestRows()
LabelReports = Mapping[str, Reports]
"""Reports by label of a row."""


@dataclass(frozen=True)
class RunFigure(StudiedRows):
    """A figure drawn from reports of runs, one panel per data set.

    Args:
        name: the name of its report.
        title: the title of its page.
        about: what it shows and how it was made.
        rows: the methods.
        tuning: how learning rates are chosen.
        panel: what is drawn of one data set, from the reports by label.
        claims: answers from the reports of one data set; the second argument is the data set's name.
        skipped: data sets left out because of what they cost, unless there are no others.

    """

    name: str
    title: str
    about: str
    rows: tuple[PaperRow, ...]
    tuning: Tuning
    panel: Callable[[LabelReports], Any]
    claims: Callable[[LabelReports, str], list[Answer]]
    skipped: tuple[str, ...] = OTHERS

    def report(self, store: Store, keys: Keys, quick: bool = False) -> dict[str, Any]:
        """The panels and the answers."""
        protocol = protocol_of(quick)
        panels, claims = [], []
        for name in kept(keys, self.skipped):
            reports = {row.label: self.tuning.study(protocol, keys[name], row).reports(store) for row in self.rows}
            panels.append({"dataset": name, **self.panel(_usable(reports))})
            claims += self.claims(reports, name)
        return figure_report(self.name, self.title, self.about, panels, claims)


def figure_report(name: str, title: str, about: str, panels: Any, claims: Sequence[Answer]) -> dict[str, Any]:
    """The report of a figure: the numbers that are drawn, one panel per data set, and the answers."""
    report = {
        "name": name,
        "title": title,
        "about": about,
        "panels": panels,
        "claims": [asdict(claim) for claim in claims],
    }
    plain: dict[str, Any] = rounded(report, 5)
    return plain


def _usable(reports: LabelReports) -> dict[str, Reports]:
    return {label: seeds for label, seeds in reports.items() if able(seeds)}


def mean_bins(reports: LabelReports) -> dict[str, Any]:
    """Means over seeds of every bin, by target and by prediction."""
    return {
        by: {
            label: {
                name: [fmean(column) for column in zip(*(report["bins"][by][name] for report in seeds), strict=True)]
                for name in seeds[0]["bins"][by]
            }
            for label, seeds in reports.items()
            if len({len(report["bins"][by]["count"]) for report in seeds}) == 1
        }
        for by in ("target", "prediction")
    }


def bin_answers(reports: LabelReports, where: str) -> list[Answer]:
    """Whether LogSUN is less biased than LogMSE in the worst bin, and whether the slope falls with the target."""
    usable = _usable(reports)
    if len(usable) < 2:
        return []
    bins = mean_bins(usable)
    answers = []
    for by in ("target", "prediction"):
        worst = {label: max(map(abs, columns["stre"])) for label, columns in bins[by].items()}
        if len(worst) == 2:
            finding = Finding(
                YES if worst["LogSUN"] < worst["LogMSE"] else NO,
                f"largest |signed TRE| of a bin: LogSUN {worst['LogSUN']:.3f}, LogMSE {worst['LogMSE']:.3f}",
            )
            answers.append(Answer.of(f"LogSUN is less biased than LogMSE in the worst bin by {by}", where, finding))
    slope = bins["target"].get("LogSUN", {}).get("slope")
    if slope:
        falls = sum(b <= a for a, b in pairwise(slope))
        finding = Finding(YES if slope[-1] < slope[0] else NO, f"falls in {falls} of {len(slope) - 1} steps")
        answers.append(Answer.of("The mean slope falls from the lowest to the highest target bin", where, finding))
    return answers


BINS = RunFigure(
    "fig_bins",
    "Signed TRE and the mean slope by bin",
    "Test rows in 20 bins of equal frequency, means over seeds; tuned as on the leaderboard. By ascending target, as "
    "in the paper, even E[y|x] itself is not 0 (errata E22): claims about calibration need the bins by prediction.",
    (leaderboard_row("", "LogMSE", "LogMSE"), leaderboard_row("", "LogSUN", "LogSUN")),
    Tuned(),
    mean_bins,
    bin_answers,
)

_EPSILONS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)


def _epsilon_panel(reports: LabelReports) -> dict[str, Any]:
    # Every ε is tested on the same rows, so their noise is common to all: the error is that of the seeds alone.
    return {
        "points": [
            {
                "eps": float(label),
                **{
                    metric: seed_mean([report["metrics"][metric] for report in seeds])
                    for metric in ("TRE", "MRE", "NRMSE", "XAUC")
                },
            }
            for label, seeds in reports.items()
        ]
    }


def _epsilon_claims(reports: LabelReports, where: str) -> list[Answer]:
    sides = {label: Side(f"ε = {label}", seeds) for label, seeds in reports.items()}
    base = sides["1"]
    flat = every(
        [
            finding
            for label in ("0.01", "0.1")
            for finding in (
                near(_TEST, sides[label], base, "TRE", 0.02),
                near(_TEST, sides[label], base, "NRMSE", 0.0, share=0.01),
            )
        ]
    )
    return [
        Answer.of("ε between 0.01 and 1 is flat: TRE within 0.02 and NRMSE within 1 % of ε = 1", where, flat),
        *[
            Answer.of(f"ε = {label} is worse than ε = 1 (TRE)", where, better(_TEST, base, sides[label], "TRE"))
            for label in ("0.0001", "1000")
        ],
    ]


EPSILON = RunFigure(
    "fig_epsilon",
    "Sensitivity of LogSUN to ε",
    "Test rows; Adam 0.001 for all, everything else as on the leaderboard. ε is in units of the target. Bars are "
    "1.96 standard errors over seeds; all ε share the test rows.",
    tuple(PaperRow("LogSUN", f"{eps:g}", LogSUN(ReciprocalTarget(eps))) for eps in _EPSILONS),
    FixedRate(),
    _epsilon_panel,
    _epsilon_claims,
    skipped=COSTLY,
)


@dataclass(frozen=True)
class DensityFigure:
    """The densities of the eight distributions of the synthetic tables."""

    name: str = "fig_densities"
    title: str = "Densities of the eight distributions"
    points: int = 241

    def datasets(self, available: Iterable[str]) -> list[str]:
        """None."""
        return []

    def studies(self, keys: Keys, quick: bool = False) -> list[Study]:
        """None."""
        return []

    def computations(self, keys: Keys, quick: bool = False) -> list[Computation]:
        """None: the figure is a formula."""
        return []

    def report(self, store: Store, keys: Keys, quick: bool = False) -> dict[str, Any]:
        """Density on a grid, mean, variance and skewness of each."""
        about = (
            "The laws themselves, not samples. The zeros of RS-ZIG are a point of mass 0.8, drawn as a bar. The paper "
            "prints the variance of the uniform for SM-TN (errata E13); here it is that of SM-TN."
        )
        panels = [_density(distribution, self.points) for distribution in DISTRIBUTIONS]
        return figure_report(self.name, self.title, about, panels, [])


def _density(distribution: Distribution, points: int) -> dict[str, Any]:
    low, high = distribution.quantile(1e-4), distribution.quantile(1.0 - 1e-3)
    margin = 0.06 * (high - low)
    v = torch.linspace(max(0.0, low - margin), high + margin, points, dtype=torch.float64)
    return {
        "dataset": distribution.name,
        "title": distribution.title,
        "v": v.tolist(),
        "density": distribution.density(v).tolist(),
        "at_zero": distribution.cdf(0.0),
        "mean": distribution.mean,
        "variance": distribution.variance,
        "skewness": distribution.skewness,
    }


DENSITIES = DensityFigure()
