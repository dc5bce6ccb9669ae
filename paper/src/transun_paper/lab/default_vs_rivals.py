"""Is the default ahead? AutoSUN against every rival on the leaderboard, without each of its pieces, and how fast."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from statistics import fmean, stdev
from typing import Any

from transun.heads import GTS, TPM, AutoSUN, Blend, Head, PointHead, QuantileMean, RankPreserving, Scaled
from transun.heads.bins import leaf_means
from transun.schemes import PoissonOffset, ReciprocalTarget, Scheme
from transun.training.optimisers import Adam
from transun.transforms import Affine, Compose, Log1p
from transun_paper.datasets.public import PUBLIC
from transun_paper.lab.boards import FULL_BOARD, QUICK_BOARD, LeaderboardPlan
from transun_paper.lab.compare import Claim, Reports, difference, mean_with_error
from transun_paper.lab.methods import Method
from transun_paper.lab.protocol import Budget, Study
from transun_paper.lab.run import Run
from transun_paper.lab.store import Store, rounded

DEFAULT = "AutoSUN"
# The methods that the default is compared with.
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
# The rivals that estimate E[y|x] whatever the law of y: the others assume a law, or are calibrated on average only.
UNBIASED = ("MSE", "Poisson", "Gamma", "Tweedie 1.5", "LogSUN", "SqrtSUN")
# The method whose ranking is the reference.
ORDER = "LogMSE"
# How far a total may be off, and how much lower than the reference's an XAUC may be.
TOTAL_TOLERANCE, ORDER_TOLERANCE = 0.02, 0.005

MethodReports = Mapping[str, Reports]
Verdict = Mapping[str, Any]

_LOG = PointHead(Compose(Affine(100.0), Log1p()))
_QUANTILES, _BINS = QuantileMean(), TPM(leaf=leaf_means)
_OFFSET = PoissonOffset(0.01)


def _debiased(inner: Head, scheme: Scheme = _OFFSET) -> Head:
    return GTS(inner, scheme, shared=1)


def _two(first: Head, second: Head, share: float = 0.5) -> Head:
    return Scaled(Blend((first, second), (1.0 - share, share), shared=0))


def _three(first: Head, second: Head, third: Head) -> Head:
    return Scaled(Blend((first, second, third), shared=0))


# Where this is three fifths of the blend, a third of it keeps the order: a fifth of the whole, as in AutoSUN.
_ORDERED = RankPreserving(_debiased(_LOG), share=1.0 / 3.0)
# The default without one piece at a time.
PIECES: tuple[Method, ...] = (
    Method("one embedding for all", AutoSUN(shared=1), balanced=True),
    Method("no balance at the end", AutoSUN()),
    Method(
        "no ordered share",
        _three(_debiased(_LOG), _debiased(_QUANTILES), _debiased(_BINS)),
        balanced=True,
    ),
    Method("no log target", _two(_debiased(_QUANTILES), _debiased(_BINS)), balanced=True),
    Method("no quantiles", _two(_ORDERED, _debiased(_BINS), share=0.4), balanced=True),
    Method("no bins", _two(_ORDERED, _debiased(_QUANTILES), share=0.4), balanced=True),
    Method("no bias branches", _three(_LOG, _QUANTILES, _BINS), balanced=True),
    Method(
        "no ordered share, the paper's slope for the offset",
        _three(*(_debiased(inner, ReciprocalTarget()) for inner in (_LOG, _QUANTILES, _BINS))),
        balanced=True,
    ),
)


def ablation_board(quick: bool) -> LeaderboardPlan:
    """The default and its variants without each piece, by the leaderboard's protocol; tests pair the three seeds."""
    board = QUICK_BOARD if quick else FULL_BOARD
    protocol = replace(board.protocol, seeds=min(board.protocol.seeds, 3))
    return replace(board, protocol=protocol, methods=(Method(DEFAULT, AutoSUN(), balanced=True), *PIECES))


def small_board(board: LeaderboardPlan) -> LeaderboardPlan:
    """2,000 rows of every data set: if seven branches need more rows than that, it shows here."""
    protocol = replace(board.protocol, budgets={}, otherwise=Budget(64, 10), seeds=min(board.protocol.seeds, 3))
    return replace(board.only([DEFAULT, "MSE"]), protocol=protocol, rows=dict.fromkeys(PUBLIC, 2_000))


def studies_of(board: LeaderboardPlan, keys: Mapping[str, str], quick: bool) -> list[Study]:
    """All studies that the report needs on these data sets."""
    return [
        *board.only([DEFAULT, *RIVALS, ORDER]).studies(keys).values(),
        *ablation_board(quick).studies(keys).values(),
        *convergence_studies(board, keys).values(),
    ]


def compare_default(
    board: LeaderboardPlan, keys: Mapping[str, str], small: Mapping[str, str], store: Store, quick: bool
) -> dict[str, Any]:
    """The report: a verdict per data set, the pieces, convergence and small tables; methods without runs are left out.

    Args:
        board: the leaderboard.
        keys: cache keys of its data sets by name.
        small: cache keys of the data sets of `small_board`.
        store: where the reports are.
        quick: whether the runs only show that everything works.

    """
    reports = _reports(board.only([DEFAULT, *RIVALS, ORDER]), keys, store)
    verdicts = [
        dataset_verdict(name, methods) for name, methods in reports.items() if DEFAULT in methods and len(methods) > 2
    ]
    report: dict[str, Any] = rounded(
        {
            "protocol": board.protocol.statement,
            "verdicts": verdicts,
            "claims": [asdict(claim) for claim in default_claims(verdicts)],
            "pieces": [
                piece
                for name, methods in _reports(ablation_board(quick), keys, store).items()
                for piece in _pieces(name, methods)
            ],
            "convergence": convergence_table(convergence_studies(board, keys), store),
            "small": [
                {"dataset": name, "method": method, "NRMSE": fmean(seed["metrics"]["NRMSE"] for seed in seeds)}
                for name, methods in _reports(small_board(board), small, store).items()
                for method, seeds in methods.items()
            ],
        },
        5,
    )
    return report


def dataset_verdict(name: str, reports: MethodReports) -> Verdict:
    """How the default does on one data set, from the reports of the methods there."""
    default = reports[DEFAULT]
    total, total_error = mean_with_error(default, "STRE")
    rivals = {rival: reports[rival] for rival in RIVALS if rival in reports}
    best = min(rivals, key=lambda rival: mean_with_error(rivals[rival], "NRMSE")[0])
    unbiased = {rival: rivals[rival] for rival in UNBIASED if rival in rivals and _total_is_right(rivals[rival])}
    ranked = max(unbiased, key=lambda rival: mean_with_error(unbiased[rival], "XAUC")[0], default=None)
    return {
        "dataset": name,
        "total": {"value": total, "error": total_error},
        "right": _total_is_right(default),
        "nrmse": mean_with_error(default, "NRMSE")[0],
        "best": best,
        "gap": asdict(difference(default, rivals[best], "NRMSE")),
        "xauc": mean_with_error(default, "XAUC")[0],
        "ranked": ranked,
        "order": None if ranked is None else asdict(difference(default, unbiased[ranked], "XAUC")),
        "log_order": asdict(difference(default, reports[ORDER], "XAUC")) if ORDER in reports else None,
    }


def default_claims(verdicts: Iterable[Verdict]) -> list[Claim]:
    """What a default has to show, and whether this one does."""
    verdicts = list(verdicts)
    return [
        _claim("totals are right", verdicts, lambda v: v["right"], len(verdicts)),
        _claim(
            "NRMSE is not above the best rival's by more than one standard error",
            verdicts,
            lambda v: v["gap"]["value"] <= v["gap"]["error"],
            len(verdicts),
        ),
        _claim("NRMSE is below that of every rival", verdicts, lambda v: v["gap"]["value"] < 0.0, 3),
        _claim(
            "XAUC is at least that of the best unbiased rival whose totals are right",
            verdicts,
            lambda v: v["order"] is None or v["order"]["value"] >= 0.0,
            4,
        ),
        _claim(
            f"XAUC is within {ORDER_TOLERANCE} of that of {ORDER}",
            verdicts,
            lambda v: v["log_order"] is None or v["log_order"]["value"] >= -ORDER_TOLERANCE,
            len(verdicts),
        ),
    ]


def _claim(text: str, verdicts: Sequence[Verdict], holds: Callable[[Verdict], bool], needed: int) -> Claim:
    held = [v["dataset"] for v in verdicts if holds(v)]
    missed = [v["dataset"] for v in verdicts if not holds(v)]
    evidence = f"on {len(held)} of {len(verdicts)}" + (f", not on {', '.join(missed)}" if missed else "")
    where = "everywhere" if needed == len(verdicts) else f"on {needed} data sets or more"
    return Claim(f"{text}, {where}", len(held) >= needed, evidence)


def _total_is_right(reports: Reports) -> bool:
    value, error = mean_with_error(reports, "STRE")
    return abs(value) <= max(2.0 * error, TOTAL_TOLERANCE)


def _pieces(name: str, reports: MethodReports) -> list[dict[str, Any]]:
    """How the metrics change where a piece is missing."""
    return [
        {
            "dataset": name,
            "piece": piece.name,
            "total": mean_with_error(reports[piece.name], "STRE")[0],
            **{
                metric: asdict(difference(reports[piece.name], reports[DEFAULT], metric))
                for metric in ("NRMSE", "XAUC")
            },
        }
        for piece in PIECES
        if piece.name in reports and DEFAULT in reports
    ]


def _reports(board: LeaderboardPlan, keys: Mapping[str, str], store: Store) -> dict[str, dict[str, Reports]]:
    """Finished reports by data set and method; methods that failed are left out."""
    by_dataset: dict[str, dict[str, Reports]] = {}
    for (name, method), study in board.studies(keys).items():
        reports = study.reports(store)
        if reports and not any("failed" in report for report in reports):
            by_dataset.setdefault(name, {})[method] = reports
    return by_dataset


# One learning rate for all methods, so that a step is worth the same; validation checks per epoch; and the factor of
# the last validation NRMSE within which a method counts as converged.
_RATE, _CHECKS, _CONVERGED = 1e-3, 10, 1.02
_CONVERGENCE_METHODS = (DEFAULT, "MSE", "LogMSE", "Gamma")


def convergence_studies(board: LeaderboardPlan, keys: Mapping[str, str]) -> dict[tuple[str, str], Study]:
    """Trainings to the last epoch with many checks of the validation rows, by data set and method."""
    methods = board.only(_CONVERGENCE_METHODS).methods
    return {(name, method.name): _study(board, keys[name], method) for name in board.datasets for method in methods}


def _study(board: LeaderboardPlan, key: str, method: Method) -> Study:
    training = replace(board.protocol.training_for(key, Adam(_RATE)), checks_per_epoch=_CHECKS, patience=None)
    seeds = min(board.protocol.seeds, 2)
    return Study((Run(key, method.head, training, balanced=method.balanced),), tuple(range(seeds)))


def convergence_table(studies: Mapping[tuple[str, str], Study], store: Store) -> list[dict[str, Any]]:
    """Steps until the validation NRMSE stays within 1.02 times its last value, per data set and method.

    `steps` is the mean over seeds, `spread` their standard deviation, `all` the length of the training. A last NRMSE
    that is worse than an earlier one is taken as it is: a method that overfits is close to its end early.
    """
    rows = []
    for (name, method), study in studies.items():
        reports = [report for report in study.reports(store) if "failed" not in report]
        if reports:
            steps = [steps_to_converge(report["looks"]) for report in reports]
            rows.append(
                {
                    "dataset": name,
                    "method": method,
                    "steps": fmean(steps),
                    "spread": stdev(steps) if len(steps) > 1 else 0.0,
                    "all": reports[0]["steps"],
                    "last": fmean(report["looks"][-1][1] for report in reports),
                }
            )
    return rows


def steps_to_converge(checks: Sequence[Sequence[float]], factor: float = _CONVERGED) -> float:
    """The first step from which a curve of checks (step, value) stays within `factor` times its last value.

    >>> steps_to_converge([(10, 5.0), (20, 1.01), (30, 1.5), (40, 1.01), (50, 1.0)])
    40
    """
    first, last = checks[-1]
    for step, value in reversed(checks):
        if value > factor * last:
            break
        first = step
    return first
