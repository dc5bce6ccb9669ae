"""The paper's optimiser: MSE, LogMSE and the three schemes by SGD, with every rate at which one of them diverges."""

from transun.heads import LogSUN
from transun_paper.tables.ablations import SCHEMES
from transun_paper.tables.findings import Answer, Side, TestRows, better
from transun_paper.tables.table import COSTLY, FIVE, BySGD, PaperRow, PaperTable, RowReports, leaderboard_row

_TEST = TestRows()


def sgd_claims(reports: RowReports, where: str) -> list[Answer]:
    """By SGD the unit of a loss matters: S0 keeps the tail of y, S2 does not."""
    s0, s1, s2 = (Side(label, reports["LogSUN", label]) for label in SCHEMES)
    mse = Side("MSE", reports["MSE", "-"])
    return [
        Answer.of("By SGD S2 has a lower NRMSE than S0", where, better(_TEST, s2, s0, "NRMSE")),
        Answer.of("By SGD S2 has a lower TRE than S1", where, better(_TEST, s2, s1, "TRE")),
        Answer.of("By SGD LogSUN has a lower NRMSE than MSE", where, better(_TEST, s2, mse, "NRMSE")),
    ]


BY_SGD = PaperTable(
    "sgd",
    "By SGD, the paper's optimiser: which methods converge, and at which rates they diverge",
    (),
    (
        leaderboard_row("MSE", "-", "MSE"),
        leaderboard_row("LogMSE", "-", "LogMSE"),
        *(PaperRow("LogSUN", label, LogSUN(scheme)) for label, scheme in SCHEMES.items()),
    ),
    FIVE,
    sgd_claims,
    tuning=BySGD(),
    against={("LogSUN", rival): ("LogSUN", "S2") for rival in ("S0", "S1")},
    skipped=COSTLY,
    remarks=(
        "The paper names SGD for its public data. A run that ends in NaN is listed with its rate, and never left "
        "out silently. Output biases start at the best constants, and MSE is trained in units of the mean; from "
        "zero and in the unit of the file MSE diverges at smaller rates still.",
    ),
)
