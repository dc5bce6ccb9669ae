"""Is the default ahead? AutoSUN against every rival on the leaderboard, criterion by criterion."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from statistics import fmean
from typing import Any

from transun_paper.datasets.public import PUBLIC
from transun_paper.lab.ablation import PIECES, WHOLE, ablation_board
from transun_paper.lab.boards import Board
from transun_paper.lab.compare import Difference, Reports, difference, spread
from transun_paper.lab.convergence import convergence_studies, convergence_table
from transun_paper.lab.protocol import Budget, Study
from transun_paper.lab.store import Store, rounded

# Whom the default has to meet.
RIVALS = (
    "MSE",
    "Poisson",
    "Gamma",
    "Tweedie 1.5",
    "ZILN",
    "TPM",
    "CREAD",
    "MDME",
    "OptDist",
    "LogSUN",
    "SqrtSUN",
    "LogMSE + smearing",
    "LogMSE + isotonic",
)
# Those of them that estimate E[y|x] whatever the law of y: the others assume one, or are calibrated on average only.
UNBIASED = ("MSE", "Poisson", "Gamma", "Tweedie 1.5", "LogSUN", "SqrtSUN")
ORDER = "LogMSE"
# What a total may be off by, and what order may be worse than that of LogMSE.
TOTAL, WORSE = 0.02, 0.005
Found = Mapping[str, Reports]


def small_board(board: Board) -> Board:
    """2,000 rows of every data set: too few for seven branches, if that were to harm."""
    protocol = replace(board.protocol, budgets={}, otherwise=Budget(64, 10), seeds=min(board.protocol.seeds, 3))
    return replace(board.only([WHOLE, "MSE"]), protocol=protocol, rows=dict.fromkeys(PUBLIC, 2_000))


def studies_of(board: Board, keys: Mapping[str, str], quick: bool) -> list[Study]:
    """All runs that the report needs on these data sets."""
    wanted = board.only([WHOLE, *RIVALS, ORDER])
    return [
        *wanted.studies(keys).values(),
        *ablation_board(quick).studies(keys).values(),
        *convergence_studies(board, keys).values(),
    ]


def ahead(board: Board, keys: Mapping[str, str], small: Mapping[str, str], store: Store, quick: bool) -> dict[str, Any]:
    """The report: verdicts, the pieces, convergence and small tables, from the store; what is missing is left out.

    Args:
        board: the leaderboard.
        keys: keys of its data sets by name.
        small: keys of the data sets of `small_board`.
        store: where the reports are.
        quick: whether these are runs to see that everything works.

    """
    found = _reports(board.only([WHOLE, *RIVALS, ORDER]), keys, store)
    verdicts = [verdict(name, reports) for name, reports in found.items() if WHOLE in reports and len(reports) > 2]
    report: dict[str, Any] = rounded(
        {
            "protocol": board.protocol.statement,
            "verdicts": verdicts,
            "claims": claims(verdicts),
            "pieces": [
                piece
                for name, reports in _reports(ablation_board(quick), keys, store).items()
                for piece in _pieces(name, reports)
            ],
            "convergence": convergence_table(convergence_studies(board, keys), store),
            "small": [
                {"dataset": name, "method": method, "NRMSE": fmean(one["metrics"]["NRMSE"] for one in reports)}
                for name, of in _reports(small_board(board), small, store).items()
                for method, reports in of.items()
            ],
        },
        5,
    )
    return report


def verdict(name: str, found: Found) -> dict[str, Any]:
    """How the default does on one data set."""
    total, total_error = spread(found[WHOLE], "STRE")
    rivals = {rival: found[rival] for rival in RIVALS if rival in found}
    best = min(rivals, key=lambda rival: spread(rivals[rival], "NRMSE")[0])
    unbiased = {rival: rivals[rival] for rival in UNBIASED if rival in rivals and _is_right(rivals[rival])}
    ranked = max(unbiased, key=lambda rival: spread(unbiased[rival], "XAUC")[0], default=None)
    return {
        "dataset": name,
        "total": {"value": total, "error": total_error},
        "right": _is_right(found[WHOLE]),
        "nrmse": spread(found[WHOLE], "NRMSE")[0],
        "best": best,
        "gap": _gap(difference(found[WHOLE], rivals[best], "NRMSE")),
        "xauc": spread(found[WHOLE], "XAUC")[0],
        "ranked": ranked,
        "order": None if ranked is None else _gap(difference(found[WHOLE], unbiased[ranked], "XAUC")),
        "log_order": _gap(difference(found[WHOLE], found[ORDER], "XAUC")) if ORDER in found else None,
    }


def claims(verdicts: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What a default has to show, and whether it does."""
    all_of = list(verdicts)
    return [
        _claim("totals are right", all_of, lambda v: v["right"], len(all_of)),
        _claim(
            "NRMSE is not above the best rival's by more than one standard error",
            all_of,
            lambda v: v["gap"]["value"] <= v["gap"]["error"],
            len(all_of),
        ),
        _claim("NRMSE is below that of every rival", all_of, lambda v: v["gap"]["value"] < 0.0, 3),
        _claim(
            "XAUC is at least that of the best unbiased rival whose totals are right",
            all_of,
            lambda v: v["order"] is None or v["order"]["value"] >= 0.0,
            4,
        ),
        _claim(
            f"XAUC is within {WORSE} of that of {ORDER}",
            all_of,
            lambda v: v["log_order"] is None or v["log_order"]["value"] >= -WORSE,
            len(all_of),
        ),
    ]


def _claim(text: str, verdicts: list[Mapping[str, Any]], holds: Any, needed: int) -> dict[str, Any]:
    there = [v["dataset"] for v in verdicts if holds(v)]
    missed = [v["dataset"] for v in verdicts if not holds(v)]
    evidence = f"on {len(there)} of {len(verdicts)}" + (f", not on {', '.join(missed)}" if missed else "")
    wanted = "everywhere" if needed == len(verdicts) else f"on {needed} data sets or more"
    return {"text": f"{text}, {wanted}", "holds": len(there) >= needed, "evidence": evidence}


def _is_right(reports: Reports) -> bool:
    value, error = spread(reports, "STRE")
    return abs(value) <= max(2.0 * error, TOTAL)


def _pieces(name: str, found: Found) -> list[dict[str, Any]]:
    """What the metrics change by where a piece is missing."""
    return [
        {
            "dataset": name,
            "piece": piece.name,
            "total": spread(found[piece.name], "STRE")[0],
            **{metric: _gap(difference(found[piece.name], found[WHOLE], metric)) for metric in ("NRMSE", "XAUC")},
        }
        for piece in PIECES
        if piece.name in found and WHOLE in found
    ]


def _gap(found: Difference) -> dict[str, float]:
    return {"value": found.value, "error": found.error, "p": found.p}


def _reports(board: Board, keys: Mapping[str, str], store: Store) -> dict[str, dict[str, Reports]]:
    """Finished reports by data set and method, without those of methods that failed."""
    found: dict[str, dict[str, Reports]] = {}
    for (name, method), study in board.studies(keys).items():
        reports = study.reports(store)
        if reports and not any("failed" in report for report in reports):
            found.setdefault(name, {})[method] = reports
    return found
