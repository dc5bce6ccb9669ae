"""The figure of LogSUN's sensitivity to ε."""

from collections.abc import Mapping
from statistics import fmean, stdev
from typing import Any

from transun.heads import LogSUN
from transun.schemes import ReciprocalTarget
from transun_paper.lab.compare import Reports
from transun_paper.tables.figure import RunFigure
from transun_paper.tables.judge import Answer, TestRows, answers, every, less, near
from transun_paper.tables.table import COSTLY, Row, fixed

_TEST = TestRows()
_EPSILONS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)


def _eps_panel(found: Mapping[str, Reports]) -> dict[str, Any]:
    return {
        "points": [
            {"eps": float(label), **{metric: _by_seed(reports, metric) for metric in ("TRE", "MRE", "NRMSE", "XAUC")}}
            for label, reports in found.items()
        ]
    }


def _by_seed(reports: Reports, metric: str) -> tuple[float, float]:
    """Mean and standard error over seeds: every ε is tested on the same rows, so that their noise is common to all."""
    values = [report["metrics"][metric] for report in reports]
    return fmean(values), stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


def _eps_claims(found: Mapping[str, Reports], where: str) -> list[Answer]:
    base = found["1"]
    flat = every(
        [
            finding
            for label in ("0.01", "0.1")
            for finding in (
                near(_TEST, found[label], base, "TRE", 0.02),
                near(_TEST, found[label], base, "NRMSE", 0.0, share=0.01),
            )
        ]
    )
    result = answers("ε between 0.01 and 1 is flat: TRE within 0.02 and NRMSE within 1 % of ε = 1", [(where, flat)])
    for label in ("0.0001", "1000"):
        result += answers(f"ε = {label} is worse than ε = 1 (TRE)", [(where, less(_TEST, base, found[label], "TRE"))])
    return result


EPSILON = RunFigure(
    "fig_epsilon",
    "Sensitivity of LogSUN to ε",
    "Test rows; Adam 0.001 for all, everything else as on the leaderboard. ε is in units of the target. Bars are "
    "1.96 standard errors over seeds; all ε share the test rows.",
    tuple(Row("LogSUN", f"{eps:g}", LogSUN(ReciprocalTarget(eps))) for eps in _EPSILONS),
    fixed,
    _eps_panel,
    _eps_claims,
    skipped=COSTLY,
)
