"""Three ways to model the bias: additive (S0), inverse ratio (S1) and TranSUN's ratio (S2)."""

from transun.heads import LogSUN
from transun.schemes import Additive, InverseRatio, ReciprocalTarget
from transun_paper.tables.judge import Answer, TestRows, answers, less
from transun_paper.tables.table import COSTLY, FIVE, Found, PaperTable, Row, fixed

SCHEMES = {"S0": Additive(), "S1": InverseRatio(), "S2": ReciprocalTarget()}
_TEST = TestRows()


def claims(found: Found, where: str) -> list[Answer]:
    """S2 beats S0 and S1, metric by metric; S1 predicts too little."""
    ours = found["LogSUN", "S2"]
    return [
        answer
        for rival in ("S0", "S1")
        for metric in FIVE
        for answer in answers(
            f"S2 beats {rival} in {metric}", [(where, less(_TEST, ours, found["LogSUN", rival], metric))]
        )
    ]


TABLE = PaperTable(
    "schemes",
    "Three schemes of the bias branch",
    ("compare_bias_model",),
    tuple(Row("LogSUN", label, LogSUN(scheme)) for label, scheme in SCHEMES.items()),
    FIVE,
    claims,
    recipe=fixed,
    against={("LogSUN", rival): ("LogSUN", "S2") for rival in ("S0", "S1")},
    skipped=COSTLY,
)
