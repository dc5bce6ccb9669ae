"""Ablations of LogSUN at one learning rate: schemes of the bias branch, point losses and slopes, shared layers."""

from typing import Any

from transun.heads import GTS, LogSUN, PointHead
from transun.losses import PointLoss, absolute, absolute_percentage, squared, squared_percentage
from transun.schemes import Additive, InverseRatio, Magnitude, ReciprocalPoint, ReciprocalTarget, Slope
from transun.transforms import Log1p
from transun_paper.lab.store import Store, rounded
from transun_paper.tables.causes import asks_for_the_median, changed, holds_on_training_rows
from transun_paper.tables.efficiency import SHARING, costs, efficiency_claims
from transun_paper.tables.findings import PROTOCOL, Answer, Cause, Finding, Side, TestRows, able, better, every, near
from transun_paper.tables.table import (
    COSTLY,
    FIVE,
    BySGD,
    FixedRate,
    Keys,
    PaperRow,
    PaperTable,
    RowReports,
    Witness,
    constant_row,
)

_TEST = TestRows()

# Three ways to model the bias: additive, inverse ratio, and TranSUN's ratio.
SCHEMES = {"S0": Additive(), "S1": InverseRatio(), "S2": ReciprocalTarget()}


def scheme_claims(reports: RowReports, where: str) -> list[Answer]:
    """S2 beats S0 and S1, metric by metric."""
    answers = []
    for rival in ("S0", "S1"):
        sides = Side("S2", reports["LogSUN", "S2"]), Side(rival, reports["LogSUN", rival])
        by_sgd = [Side(label, reports.get(_by_sgd(label), [])) for label in ("S2", rival)]
        for metric in FIVE:
            finding = better(_TEST, *sides, metric)
            causes = _causes(reports, *sides, metric)
            answers.append(
                Answer.of(f"S2 beats {rival} in {metric}", where, finding, *causes, _sgd(by_sgd, finding, metric))
            )
    return answers


def _causes(reports: RowReports, first: Side, second: Side, metric: str) -> list[Cause | None]:
    """Why a row is not better than another in a metric."""
    constants = [Side(name, reports.get(constant_row(name), [])) for name in ("mean", "median")]
    return [
        asks_for_the_median(_TEST, first, second, *constants) if metric == "NMAE" else None,
        holds_on_training_rows(first, second, metric),
    ]


def _by_sgd(label: str) -> tuple[str, str]:
    return "by SGD", label


def _sgd(sides: list[Side], original: Finding, metric: str) -> Cause | None:
    """By the paper's optimiser the claim holds, or the rival does not train at all."""
    ours, rival = sides
    failed = sum("failed" in report for report in rival.reports)
    if failed and able(ours.reports):
        # A study whose every rate fails has a single run.
        how = f"with {failed} of {len(rival.reports)} seeds" if len(rival.reports) > 1 else "at every rate"
        return Cause(
            PROTOCOL, f"by SGD, the paper's optimiser, {rival.name} diverges {how} and {ours.name} with no seed"
        )
    other = better(_TEST, ours, rival, metric)
    return changed("by SGD, the paper's optimiser,", original, other, other)


SCHEME_TABLE = PaperTable(
    "schemes",
    "Three schemes of the bias branch",
    ("compare_bias_model",),
    tuple(PaperRow("LogSUN", label, LogSUN(scheme)) for label, scheme in SCHEMES.items()),
    FIVE,
    scheme_claims,
    tuning=FixedRate(),
    against={("LogSUN", rival): ("LogSUN", "S2") for rival in ("S0", "S1")},
    skipped=COSTLY,
    witnesses=tuple(Witness(PaperRow(*_by_sgd(label), LogSUN(scheme)), BySGD()) for label, scheme in SCHEMES.items()),
)

SLOPES: dict[str, Slope] = {
    "1/(|T⁻¹(u)|+ε)": ReciprocalTarget(),
    "1/(|u|+ε)": ReciprocalPoint(),
    "|u|": Magnitude(),
}
_LOSSES: dict[str, PointLoss] = {
    "MSE": squared,
    "MAE": absolute,
    "MSPE": squared_percentage,
    "MAPE": absolute_percentage,
}
_TRANSUN_SLOPE, *_OTHER_SLOPES = SLOPES
# The paper's six instances: every loss under TranSUN's slope, every slope under squared error.
_INSTANCES = tuple(
    PaperRow(loss, slope, GTS(PointHead(Log1p(), _LOSSES[loss]), SLOPES[slope]))
    for loss, slope in [*[(loss, _TRANSUN_SLOPE) for loss in _LOSSES], *[("MSE", slope) for slope in _OTHER_SLOPES]]
)


def instance_claims(reports: RowReports, where: str) -> list[Answer]:
    """Squared error is the best point loss, TranSUN's slope the best slope."""
    ours = Side("MSE", reports["MSE", _TRANSUN_SLOPE])
    sloped = ours._replace(name=_TRANSUN_SLOPE)
    losses = [
        Answer.of(
            f"MSE is a better point loss than {rival.name} ({metric})",
            where,
            better(_TEST, ours, rival, metric),
            *_causes(reports, ours, rival, metric),
        )
        for rival in (Side(loss, reports[loss, _TRANSUN_SLOPE]) for loss in ("MAE", "MSPE", "MAPE"))
        for metric in ("TRE", "NRMSE")
    ]
    slopes = [
        Answer.of(
            f"TranSUN's slope beats κ = {rival.name} in {metric}",
            where,
            better(_TEST, sloped, rival, metric),
            *_causes(reports, sloped, rival, metric),
        )
        for rival in (Side(slope, reports["MSE", slope]) for slope in _OTHER_SLOPES)
        for metric in FIVE
    ]
    return losses + slopes


INSTANCE_TABLE = PaperTable(
    "gts_instances",
    "GTS instances: point losses and slopes",
    ("lcltm_compare_rw",),
    _INSTANCES,
    FIVE,
    instance_claims,
    tuning=FixedRate(),
    against={row.id: ("MSE", _TRANSUN_SLOPE) for row in _INSTANCES[1:]},
    skipped=COSTLY,
)

_NOTHING_SHARED, _EMBEDDING_SHARED, *_MORE_SHARED = SHARING


def sharing_claims(reports: RowReports, where: str) -> list[Answer]:
    """A shared embedding does no harm; every further layer does."""
    base, alone = (Side(label, reports["LogSUN", label]) for label in (_EMBEDDING_SHARED, _NOTHING_SHARED))
    harmless = every([near(_TEST, base, alone, "TRE", 0.02), near(_TEST, base, alone, "NRMSE", 0.0, share=0.01)])
    return [
        Answer.of("Sharing the embedding changes TRE by less than 0.02 and NRMSE by less than 1 %", where, harmless),
        *[
            Answer.of(
                f"Sharing more layers hurts: worse {metric} than with the embedding alone",
                f"{where}, {more.name}",
                better(_TEST, base, more, metric),
                *_causes(reports, base, more, metric),
            )
            for metric in ("TRE", "NRMSE")
            for more in (Side(label, reports["LogSUN", label]) for label in _MORE_SHARED)
        ],
    ]


class SharingTable(PaperTable):
    """The table of metrics, and the table of memory and operations, which needs no run."""

    def report(self, store: Store, keys: Keys, quick: bool = False) -> dict[str, Any]:
        """The metrics of every way to share, then its costs."""
        report = super().report(store, keys, quick)
        report["costs"] = rounded(costs(), 9)
        report["claims"] += rounded(efficiency_claims())
        return report


SHARING_TABLE = SharingTable(
    "sharing",
    "Five ways of sharing layers between the branches",
    ("arch_sens", "efficiency"),
    tuple(PaperRow("LogSUN", label, LogSUN(shared=shared)) for label, shared in SHARING.items()),
    FIVE,
    sharing_claims,
    tuning=FixedRate(),
    against={("LogSUN", label): ("LogSUN", _NOTHING_SHARED) for label in SHARING if label != _NOTHING_SHARED},
    skipped=COSTLY,
)
