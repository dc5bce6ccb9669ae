"""All methods of the paper on test rows: errors and XAUC, and how they rank by NDCG."""

from transun_paper.lab.compare import Reports
from transun_paper.tables.findings import NO, NOT_RUN, YES, Answer, Finding, Side, TestRows, able, best_of, better
from transun_paper.tables.table import (
    ERRORS,
    FIVE,
    OUR_VARIANTS,
    PaperTable,
    RowReports,
    paper_row,
    variant_rows,
)

_TEST = TestRows()
_NAMES = ("MSE", "MAE", "LogMSE", "SqrtMSE", "WLR", "ZILN", "MDME", "TPM", "CREAD", "OptDist", "LogSUN", "SqrtSUN")
_RANKED = tuple(name for name in _NAMES if name not in ("SqrtMSE", "SqrtSUN"))
_OURS = ("LogSUN", "SqrtSUN")
_VARIANTS = (
    "WLR, ZILN, MDME and OptDist are those of the paper: D2Q's threshold, no classifier of zeros, the likeliest "
    "bucket. The last rows are the same methods as we would use them; claims are about the paper's."
)


def error_claims(reports: RowReports, where: str) -> list[Answer]:
    """TranSUN is best in every error; it costs a little XAUC."""
    by_name = _of_the_paper(reports)
    answers = []
    for metric in ERRORS:
        ours = _better_of_ours(by_name, metric)
        rivals = {name: seeds for name, seeds in by_name.items() if name not in _OURS or name == ours}
        finding = best_of(_TEST, ours, rivals, metric)
        answers.append(Answer.of(f"LogSUN or SqrtSUN has the best {metric} of all methods", where, finding))
    for ours, theirs in (("LogSUN", "LogMSE"), ("SqrtSUN", "SqrtMSE")):
        finding = better(_TEST, Side(theirs, by_name[theirs]), Side(ours, by_name[ours]), "XAUC")
        answers.append(Answer.of(f"{ours} has a lower XAUC than {theirs}", where, finding))
    return answers


def ranking_claims(reports: RowReports, where: str) -> list[Answer]:
    """LogSUN is best at the top of the ranking; its place by NDCG is no lower than by XAUC."""
    by_name = _of_the_paper(reports)
    top = best_of(_TEST, "LogSUN", by_name, "TopNDCG")
    return [
        Answer.of("LogSUN has the best NDCG@10 % of all methods", where, top),
        Answer.of("LogSUN ranks no lower by NDCG@All than by XAUC", where, _places(by_name)),
    ]


def _of_the_paper(reports: RowReports) -> dict[str, Reports]:
    """Reports by name, without our variants of the paper's methods."""
    return {method: seeds for (method, _), seeds in reports.items() if method not in OUR_VARIANTS.values()}


def _better_of_ours(by_name: dict[str, Reports], metric: str) -> str:
    """Which of LogSUN and SqrtSUN has the lower error."""
    usable = [name for name in _OURS if able(by_name[name])]
    return min(usable, key=lambda name: _TEST.mean_with_error(by_name[name], metric)[0], default=_OURS[0])


def _places(by_name: dict[str, Reports]) -> Finding:
    usable = {name: seeds for name, seeds in by_name.items() if able(seeds)}
    if "LogSUN" not in usable:
        return NOT_RUN
    places = {}
    for metric in ("NDCG", "XAUC"):
        value = {name: _TEST.mean_with_error(seeds, metric)[0] for name, seeds in usable.items()}
        places[metric] = 1 + sum(other > value["LogSUN"] for other in value.values())
    holds = YES if places["NDCG"] <= places["XAUC"] else NO
    text = f"place {places['NDCG']} by NDCG and {places['XAUC']} by XAUC of {len(usable)}; noise is not tested"
    return Finding(holds, text)


COMPARISON = PaperTable(
    "comparison",
    "All methods on test rows",
    ("comp_sota_pub",),
    (*map(paper_row, _NAMES), *variant_rows()),
    FIVE,
    error_claims,
    against={(name, "-"): ("LogSUN", "-") for name in (*_NAMES, *OUR_VARIANTS.values()) if name != "LogSUN"},
    remarks=(_VARIANTS,),
)
RANKING = PaperTable(
    "ranking",
    "All methods by NDCG",
    ("ndcg",),
    (*map(paper_row, _RANKED), *variant_rows()),
    ("NDCG", "TopNDCG", "XAUC"),
    ranking_claims,
    against={(name, "-"): ("LogSUN", "-") for name in (*_RANKED, *OUR_VARIANTS.values()) if name != "LogSUN"},
    remarks=(_VARIANTS,),
)
