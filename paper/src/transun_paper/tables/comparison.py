"""All methods of the paper on test rows: errors and XAUC, and how they rank by NDCG."""

from transun_paper.lab.compare import Reports
from transun_paper.tables.judge import NO, UNKNOWN, YES, Answer, Finding, TestRows, able, answers, best_of, less
from transun_paper.tables.table import ERRORS, FIVE, Found, PaperTable, listed

_TEST = TestRows()
_NAMES = ("MSE", "MAE", "LogMSE", "SqrtMSE", "WLR", "ZILN", "MDME", "TPM", "CREAD", "OptDist", "LogSUN", "SqrtSUN")
_RANKED = tuple(name for name in _NAMES if name not in ("SqrtMSE", "SqrtSUN"))
_OURS = ("LogSUN", "SqrtSUN")


def error_claims(found: Found, where: str) -> list[Answer]:
    """TranSUN is best in every error; it costs a little XAUC."""
    by_name = {method: reports for (method, _), reports in found.items()}
    result = []
    for metric in ERRORS:
        ours = _better(by_name, metric)
        rivals = {name: reports for name, reports in by_name.items() if name not in _OURS or name == ours}
        result += answers(
            f"LogSUN or SqrtSUN has the best {metric} of all methods", [(where, best_of(_TEST, ours, rivals, metric))]
        )
    for ours, theirs in (("LogSUN", "LogMSE"), ("SqrtSUN", "SqrtMSE")):
        # More is better for XAUC, so that "less" asks whether the first has more: the T-MSE, according to the paper.
        finding = less(_TEST, by_name[theirs], by_name[ours], "XAUC")
        result += answers(f"{ours} has a lower XAUC than {theirs}", [(where, finding)])
    return result


def ranking_claims(found: Found, where: str) -> list[Answer]:
    """LogSUN is best where it matters, at the top; it stands better by NDCG than by XAUC."""
    by_name = {method: reports for (method, _), reports in found.items()}
    return [
        *answers(
            "LogSUN has the best NDCG@10 % of all methods", [(where, best_of(_TEST, "LogSUN", by_name, "TopNDCG"))]
        ),
        *answers("LogSUN ranks no lower by NDCG@All than by XAUC", [(where, _places(by_name))]),
    ]


def _better(by_name: dict[str, Reports], metric: str) -> str:
    """Which of our two has the lower error."""
    able_ones = [name for name in _OURS if able(by_name[name])]
    return min(able_ones, key=lambda name: _TEST.spread(by_name[name], metric)[0], default=_OURS[0])


def _places(by_name: dict[str, Reports]) -> Finding:
    able_ones = {name: reports for name, reports in by_name.items() if able(reports)}
    if "LogSUN" not in able_ones:
        return Finding(UNKNOWN, "not run, or failed")
    place = {}
    for metric in ("NDCG", "XAUC"):
        value = {name: _TEST.spread(reports, metric)[0] for name, reports in able_ones.items()}
        place[metric] = 1 + sum(other > value["LogSUN"] for other in value.values())
    holds = YES if place["NDCG"] <= place["XAUC"] else NO
    text = f"place {place['NDCG']} by NDCG and {place['XAUC']} by XAUC of {len(able_ones)}; noise is not tested"
    return Finding(holds, text)


COMPARISON = PaperTable(
    "comparison",
    "All methods on test rows",
    ("comp_sota_pub",),
    tuple(listed(name, "-", name) for name in _NAMES),
    FIVE,
    error_claims,
    against={(name, "-"): ("LogSUN", "-") for name in _NAMES if name != "LogSUN"},
)
RANKING = PaperTable(
    "ranking",
    "All methods by NDCG",
    ("ndcg",),
    tuple(listed(name, "-", name) for name in _RANKED),
    ("NDCG", "TopNDCG", "XAUC"),
    ranking_claims,
    against={(name, "-"): ("LogSUN", "-") for name in _RANKED if name != "LogSUN"},
)
