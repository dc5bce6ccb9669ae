"""GTS around other methods: WLR, ZILN, MDME and OptDist, each beside its host."""

from transun_paper.tables.debiasing import LEFT
from transun_paper.tables.judge import Answer, TestRows, answers, less, near
from transun_paper.tables.table import FIVE, Found, PaperTable, listed

_HOSTS = ("WLR", "ZILN", "MDME", "OptDist")
_TEST = TestRows()


def claims(found: Found, where: str) -> list[Answer]:
    """TRE and MRE of the host fall by 70 %, NRMSE and NMAE fall, XAUC stays."""
    pairs = {host: (found["GTS", host], found["host", host]) for host in _HOSTS}
    result = []
    for metric in ("TRE", "MRE"):
        result += answers(
            f"GTS cuts the {metric} of its host by 70 % or more",
            [(f"{where}, {host}", less(_TEST, *pair, metric, LEFT)) for host, pair in pairs.items()],
        )
    for metric in ("NRMSE", "NMAE"):
        result += answers(
            f"GTS lowers the {metric} of its host",
            [(f"{where}, {host}", less(_TEST, *pair, metric)) for host, pair in pairs.items()],
        )
    return result + answers(
        "GTS leaves the XAUC of its host within 0.002",
        [(f"{where}, {host}", near(_TEST, *pair, "XAUC", 0.002)) for host, pair in pairs.items()],
    )


TABLE = PaperTable(
    "extension",
    "GTS around WLR, ZILN, MDME and OptDist",
    ("apply_to_sota",),
    tuple(row for host in _HOSTS for row in (listed("host", host, host), listed("GTS", host, f"GTS of {host}"))),
    FIVE,
    claims,
    against={("GTS", host): ("host", host) for host in _HOSTS},
)
