"""The figure of signed TRE and the mean slope, bin by bin."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

from transun_paper.lab.compare import Reports
from transun_paper.tables.figure import RunFigure
from transun_paper.tables.judge import NO, YES, Answer, Finding, able, answers
from transun_paper.tables.table import listed, tuned


def _bins(found: Mapping[str, Reports]) -> dict[str, Any]:
    """Means over seeds of every bin, by target and by prediction."""
    return {
        by: {
            label: {
                name: [fmean(column) for column in zip(*(report["bins"][by][name] for report in reports), strict=True)]
                for name in reports[0]["bins"][by]
            }
            for label, reports in found.items()
            if len({len(report["bins"][by]["count"]) for report in reports}) == 1
        }
        for by in ("target", "prediction")
    }


def _bin_claims(found: Mapping[str, Reports], where: str) -> list[Answer]:
    usable = {label: reports for label, reports in found.items() if able(reports)}
    if len(usable) < 2:
        return []
    by = _bins(usable)
    result = []
    for kind in ("target", "prediction"):
        worst = {label: _largest(bins["stre"]) for label, bins in by[kind].items()}
        if len(worst) == 2:
            finding = Finding(
                YES if worst["LogSUN"] < worst["LogMSE"] else NO,
                f"largest |signed TRE| of a bin {worst['LogSUN']:.3f} against {worst['LogMSE']:.3f}",
            )
            result += answers(f"LogSUN is less biased than LogMSE in the worst bin by {kind}", [(where, finding)])
    slope = by["target"].get("LogSUN", {}).get("slope")
    if slope:
        falls = sum(b <= a for a, b in pairwise(slope))
        finding = Finding(YES if slope[-1] < slope[0] else NO, f"falls in {falls} of {len(slope) - 1} steps")
        result += answers("The mean slope falls from the lowest to the highest target bin", [(where, finding)])
    return result


def _largest(values: Sequence[float]) -> float:
    return max(abs(value) for value in values)


BINS = RunFigure(
    "fig_bins",
    "Signed TRE and the mean slope by bin",
    "Test rows in 20 bins of equal frequency, means over seeds; tuned as on the leaderboard. By ascending target, as "
    "in the paper, even E[y|x] itself is not 0 (errata E22): the bins by prediction are what calibration claims need.",
    (listed("", "LogMSE", "LogMSE"), listed("", "LogSUN", "LogSUN")),
    tuned,
    _bins,
    _bin_claims,
)
