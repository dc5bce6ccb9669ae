"""Ablations of LogSUN at one learning rate: schemes of the bias branch, point losses and slopes, shared layers."""

from typing import Any

from transun.heads import GTS, LogSUN, PointHead
from transun.losses import PointLoss, absolute, absolute_percentage, squared, squared_percentage
from transun.schemes import Additive, InverseRatio, Magnitude, ReciprocalPoint, ReciprocalTarget, Slope
from transun.transforms import Log1p
from transun_paper.lab.store import Store, rounded
from transun_paper.tables.efficiency import SHARING, costs, efficiency_claims
from transun_paper.tables.findings import Answer, Side, TestRows, better, every, near
from transun_paper.tables.table import COSTLY, FIVE, FixedRate, Keys, PaperRow, PaperTable, RowReports

_TEST = TestRows()

# Three ways to model the bias: additive, inverse ratio, and TranSUN's ratio.
SCHEMES = {"S0": Additive(), "S1": InverseRatio(), "S2": ReciprocalTarget()}


def scheme_claims(reports: RowReports, where: str) -> list[Answer]:
    """S2 beats S0 and S1, metric by metric."""
    return [
        Answer.of(
            f"S2 beats {rival} in {metric}",
            where,
            better(_TEST, Side("S2", reports["LogSUN", "S2"]), Side(rival, reports["LogSUN", rival]), metric),
        )
        for rival in ("S0", "S1")
        for metric in FIVE
    ]


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
            f"MSE is a better point loss than {loss} ({metric})",
            where,
            better(_TEST, ours, Side(loss, reports[loss, _TRANSUN_SLOPE]), metric),
        )
        for loss in ("MAE", "MSPE", "MAPE")
        for metric in ("TRE", "NRMSE")
    ]
    slopes = [
        Answer.of(
            f"TranSUN's slope beats κ = {slope} in {metric}",
            where,
            better(_TEST, sloped, Side(slope, reports["MSE", slope]), metric),
        )
        for slope in _OTHER_SLOPES
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
                f"{where}, {label}",
                better(_TEST, base, Side(label, reports["LogSUN", label]), metric),
            )
            for metric in ("TRE", "NRMSE")
            for label in _MORE_SHARED
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
