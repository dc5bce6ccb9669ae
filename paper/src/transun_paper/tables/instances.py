"""GTS instances: point losses and slopes, T(y) = ln(1 + y)."""

from transun.heads import GTS, PointHead
from transun.losses import PointLoss, absolute, absolute_percentage, squared, squared_percentage
from transun.schemes import Magnitude, ReciprocalPoint, ReciprocalTarget, Slope
from transun.transforms import Log1p
from transun_paper.tables.judge import Answer, TestRows, answers, less
from transun_paper.tables.table import COSTLY, FIVE, Found, PaperTable, Row, fixed

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
_TEST = TestRows()
_OWN = next(iter(SLOPES))
# The paper's six: every loss under TranSUN's slope, every slope under squared error.
_ROWS = tuple(
    Row(loss, slope, GTS(PointHead(Log1p(), _LOSSES[loss]), SLOPES[slope]))
    for loss, slope in [*[(loss, _OWN) for loss in _LOSSES], *[("MSE", slope) for slope in SLOPES if slope != _OWN]]
)


def claims(found: Found, where: str) -> list[Answer]:
    """Squared error is the best point loss, TranSUN's slope the best slope."""
    ours = found["MSE", _OWN]
    result = []
    for loss in ("MAE", "MSPE", "MAPE"):
        for metric in ("TRE", "NRMSE"):
            finding = less(_TEST, ours, found[loss, _OWN], metric)
            result += answers(f"MSE is a better point loss than {loss} ({metric})", [(where, finding)])
    for slope in [slope for slope in SLOPES if slope != _OWN]:
        for metric in FIVE:
            finding = less(_TEST, ours, found["MSE", slope], metric)
            result += answers(f"TranSUN's slope beats κ = {slope} in {metric}", [(where, finding)])
    return result


TABLE = PaperTable(
    "gts_instances",
    "GTS instances: point losses and slopes",
    ("lcltm_compare_rw",),
    _ROWS,
    FIVE,
    claims,
    recipe=fixed,
    against={row.id: ("MSE", _OWN) for row in _ROWS[1:]},
    skipped=COSTLY,
)
