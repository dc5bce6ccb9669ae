"""How much the bias branch shares with the first: the five schemes, with what they cost."""

from typing import Any

from transun.heads import LogSUN
from transun_paper.lab.store import Store, rounded
from transun_paper.tables.efficiency import SHARING, costs, efficiency_claims
from transun_paper.tables.judge import Answer, TestRows, answers, every, less, near
from transun_paper.tables.table import COSTLY, FIVE, Found, Keys, PaperTable, Row, fixed

_TEST = TestRows()
_NONE, _EMBEDDING, *_MORE = SHARING


def claims(found: Found, where: str) -> list[Answer]:
    """A shared embedding does no harm; every further layer does, and all of them together most."""
    base = found["LogSUN", _EMBEDDING]
    harmless = every(
        [
            near(_TEST, base, found["LogSUN", _NONE], "TRE", 0.02),
            near(_TEST, base, found["LogSUN", _NONE], "NRMSE", 0.0, share=0.01),
        ]
    )
    result = answers(
        "Sharing the embedding changes TRE by less than 0.02 and NRMSE by less than 1 %", [(where, harmless)]
    )
    for metric in ("TRE", "NRMSE"):
        result += answers(
            f"Sharing more layers hurts: worse {metric} than with the embedding alone",
            [(f"{where}, {label}", less(_TEST, base, found["LogSUN", label], metric)) for label in _MORE],
        )
    return result


class SharingTable(PaperTable):
    """The table of metrics, and that of memory and operations, which needs no run."""

    def report(self, store: Store, keys: Keys, quick: bool = False) -> dict[str, Any]:
        """The metrics of every scheme, then its costs."""
        report = super().report(store, keys, quick)
        report["costs"] = rounded(costs(), 9)
        report["claims"] += rounded(efficiency_claims())
        return report


TABLE = SharingTable(
    "sharing",
    "Five ways of sharing layers between the branches",
    ("arch_sens", "efficiency"),
    tuple(Row("LogSUN", label, LogSUN(shared=shared)) for label, shared in SHARING.items()),
    FIVE,
    claims,
    recipe=fixed,
    against={("LogSUN", label): ("LogSUN", _NONE) for label in SHARING if label != _NONE},
    skipped=COSTLY,
)
