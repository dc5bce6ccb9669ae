"""All methods of the paper on test rows: errors and XAUC, and how they rank by NDCG."""

from transun_paper.lab.compare import Reports
from transun_paper.tables.causes import (
    asks_for_the_median,
    changed,
    holds_on_training_rows,
    order_of_the_mean_is_free,
)
from transun_paper.tables.findings import (
    NO,
    NOT_RUN,
    SIZE,
    UNDECIDED,
    YES,
    Answer,
    Cause,
    Finding,
    Side,
    TestRows,
    able,
    best_of,
    best_rival,
    better,
)
from transun_paper.tables.table import (
    ERRORS,
    FIVE,
    OUR_VARIANTS,
    PaperTable,
    RowReports,
    Tuned,
    Witness,
    constant_row,
    leaderboard_row,
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


# LogSUN with two epochs of z alone at the end, which shows what z lacks in short training.
_FINISHED = ("LogSUN, z finished", "-")


def error_claims(reports: RowReports, where: str) -> list[Answer]:
    """TranSUN is best in every error; it costs a little XAUC."""
    by_name = _of_the_paper(reports)
    answers = []
    for metric in ERRORS:
        ours = _better_of_ours(by_name, metric)
        rivals = {name: seeds for name, seeds in by_name.items() if name not in _OURS or name == ours}
        finding = best_of(_TEST, ours, rivals, metric)
        causes = _causes_of_defeat(reports, finding, ours, rivals, metric)
        answers.append(Answer.of(f"LogSUN or SqrtSUN has the best {metric} of all methods", where, finding, *causes))
    mse = Side("MSE", by_name["MSE"])
    for ours, theirs in (("LogSUN", "LogMSE"), ("SqrtSUN", "SqrtMSE")):
        base = Side(theirs, by_name[theirs])
        finding = better(_TEST, base, Side(ours, by_name[ours]), "XAUC")
        free = order_of_the_mean_is_free(_TEST, mse, base)
        answers.append(Answer.of(f"{ours} has a lower XAUC than {theirs}", where, finding, free))
    return answers


def ranking_claims(reports: RowReports, where: str) -> list[Answer]:
    """LogSUN is best at the top of the ranking; its place by NDCG is no lower than by XAUC."""
    by_name = _of_the_paper(reports)
    top = best_of(_TEST, "LogSUN", by_name, "TopNDCG")
    causes = _causes_of_defeat(reports, top, "LogSUN", by_name, "TopNDCG")
    return [
        Answer.of("LogSUN has the best NDCG@10 % of all methods", where, top, *causes),
        Answer.of("LogSUN ranks no lower by NDCG@All than by XAUC", where, _places(by_name)),
    ]


def _causes_of_defeat(
    reports: RowReports, finding: Finding, ours: str, rivals: dict[str, Reports], metric: str
) -> list[Cause | None]:
    """Why another method is better than ours: the metric asks for medians, z is not finished, or we overfit."""
    rival = best_rival(_TEST, ours, rivals, metric)
    if rival is None:
        return []
    sides = Side(ours, rivals[ours]), Side(rival, rivals[rival])
    finished = Side("z finished", reports.get(_FINISHED, []))
    others = {name: seeds for name, seeds in rivals.items() if name != ours}
    again = best_of(_TEST, finished.name, others | {finished.name: finished.reports}, metric)
    constants = [Side(name, reports.get(constant_row(name), [])) for name in ("mean", "median")]
    return [
        asks_for_the_median(_TEST, *sides, *constants) if metric == "NMAE" else None,
        changed("with two epochs of z alone", finding, again, better(_TEST, finished, sides[0], metric)),
        holds_on_training_rows(*sides, metric),
    ]


def _of_the_paper(reports: RowReports) -> dict[str, Reports]:
    """Reports of the paper's methods by name, without our variants, witnesses and constants."""
    return {name: reports[name, "-"] for name in _NAMES if (name, "-") in reports}


def _better_of_ours(by_name: dict[str, Reports], metric: str) -> str:
    """Which of LogSUN and SqrtSUN has the lower error."""
    usable = [name for name in _OURS if able(by_name[name])]
    return min(usable, key=lambda name: _TEST.mean_with_error(by_name[name], metric)[0], default=_OURS[0])


def _places(by_name: dict[str, Reports]) -> Finding:
    """The places of LogSUN by NDCG and by XAUC, each from the best to the worst that noise allows."""
    usable = {name: seeds for name, seeds in by_name.items() if able(seeds)}
    if "LogSUN" not in usable:
        return NOT_RUN
    ours = Side("LogSUN", usable.pop("LogSUN"))
    best, worst = {}, {}
    for metric in ("NDCG", "XAUC"):
        answers = [better(_TEST, Side(name, seeds), ours, metric).holds for name, seeds in usable.items()]
        best[metric], worst[metric] = 1 + answers.count(YES), 1 + len(answers) - answers.count(NO)
    holds = YES if worst["NDCG"] <= best["XAUC"] else NO if best["NDCG"] > worst["XAUC"] else UNDECIDED
    places = {metric: f"{best[metric]} to {worst[metric]}" for metric in best}
    text = f"place {places['NDCG']} by NDCG and {places['XAUC']} by XAUC of {1 + len(usable)}, as far as noise tells"
    unsure = Cause(SIZE, "noise leaves more than one place to LogSUN") if holds == UNDECIDED else None
    return Finding(holds, text, unsure)


_FINISH = Witness(leaderboard_row(*_FINISHED, "LogSUN, z finished"), Tuned())
COMPARISON = PaperTable(
    "comparison",
    "All methods on test rows",
    ("comp_sota_pub",),
    (*map(paper_row, _NAMES), *variant_rows()),
    FIVE,
    error_claims,
    against={(name, "-"): ("LogSUN", "-") for name in (*_NAMES, *OUR_VARIANTS.values()) if name != "LogSUN"},
    remarks=(_VARIANTS,),
    witnesses=(_FINISH,),
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
    witnesses=(_FINISH,),
)
