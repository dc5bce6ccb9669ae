"""The page about a total: the number, its interval, the segments, and what the numbers rest on."""

import math
from dataclasses import dataclass

import transun
from transun.metrics import Estimate
from transun.report.assessment import forest
from transun.report.document import (
    Block,
    Cell,
    Chart,
    Document,
    Facts,
    Figure,
    Glossary,
    Items,
    Paragraph,
    Section,
    Table,
    VerdictBox,
)
from transun.report.formatting import as_json, number, ratio, sentence, share, visible
from transun.support.counting import counted
from transun.totals import SegmentTotals, Total, Totals

__all__ = ["TotalReport", "total_document", "total_json"]

_TERMS = {
    "total": "What all new rows add up to: the predictions, scaled by the tuning factor, plus what labelled rows of "
    "the same kind say that predictions miss.",
    "interval": "In 95 of 100 cases like this one, a 95 % interval contains the total that comes. Its two sides "
    "differ, because amounts have no upper end: a large one that was not seen yet would raise the total.",
    "labelled rows": "Rows whose amounts are known and that the model has not learned from. They must be of the same "
    "kind as the new ones: rows of last summer say little about this winter.",
    "tuning factor": "The factor of the predictions that fits the labelled rows best. It is near 1 for a good model.",
    "share of the largest error": "How much of the uncertainty comes from a single labelled row or customer. Above a "
    "half, one amount decides, and the interval is as good as that one amount is typical.",
    "tail index": "How slowly the largest amounts fall off, relative to what was predicted for them. Below 0.5 their "
    "variance is finite, and a total has an interval; from 0.5 on the next amount may outweigh all others.",
    "customers, households": "Rows of one customer resemble each other. Where customers are named with --cluster, they "
    "are counted instead of rows; otherwise the interval is too narrow.",
}


@dataclass(frozen=True)
class TotalReport:
    """Totals with the names of what they were computed from."""

    model: str
    new: str
    labelled: str
    target: str
    totals: Totals


def total_json(report: TotalReport) -> str:
    """Every number of the page as JSON."""
    return as_json({"transun": transun.__version__, **vars(report)}, indent=1)


def total_document(report: TotalReport) -> Document:
    """The page: the total in a sentence, the few numbers behind it, segments, assumptions and words."""
    totals = report.totals
    whole = totals.whole
    tone, label = ("good", "a total with an interval") if whole.answered else ("bad", "no interval")
    box = VerdictBox(tone, label, whole.sentence())
    facts = Facts(_facts(totals))
    # A refusal names its remedy itself.
    narrower = [Paragraph([_narrower(whole)])] if whole.answered else []
    return Document(
        "What will these rows add up to?",
        f"{visible(report.new)} · {counted(whole.rows, 'row')} · target {visible(report.target)} · "
        f"model {visible(report.model)}",
        [box, facts],
        [
            *[_section(table) for table in totals.segments],
            *([Section("How to make it narrower", narrower)] if narrower else []),
            Section("What this rests on", [Items(_assumptions(report))]),
            Section("Words", [Glossary(_TERMS)]),
        ],
        [
            box,
            facts,
            *[block for table in totals.segments for block in (_table(table), *_refusals(table))],
            *narrower,
        ],
        "transun total",
    )


def _facts(totals: Totals) -> list[tuple[str, str, str]]:
    whole = totals.whole
    interval = f"{number(whole.low)} to {number(whole.high)}"
    rows = "row" if whole.labelled == 1 else "rows"
    units = "" if totals.cluster is None else f" of {counted(whole.units, 'value')} of {visible(totals.cluster)}"
    return [
        (
            "total",
            number(whole.value),
            f"{100 * whole.level:g} % interval {interval}" if whole.answered else "no interval",
        ),
        ("sum of the predictions", number(whole.predicted), f"{ratio(_of_predicted(whole))} times that is the total"),
        ("new rows", f"{whole.rows:,}", ""),
        ("labelled", f"{whole.labelled:,}", f"{rows}{units}"),
        ("tuning factor", ratio(whole.tuning), "1 for a good model"),
        ("share of the largest error", share(whole.largest_share), "of the uncertainty"),
    ]


def _section(table: SegmentTotals) -> Section:
    points = [
        (visible(name), Estimate("total", *(_of_predicted(each, end) for end in (each.value, each.low, each.high))))
        for name, each in table.totals.items()
    ]
    figure = Figure(
        forest(points, f"total / sum of the predictions by {visible(table.column)}", "total / sum of the predictions"),
        "Where a bar crosses the dashed line, the predictions may add up as they are.",
    )
    words = (
        f"{sentence(table.how)} Each segment is estimated from its own labelled rows, so that the segments need not "
        "add up to the total. Each interval holds by itself; among many, some miss."
    )
    return Section(
        f"By {visible(table.column)}", [Paragraph([words]), Chart([figure], _table(table)), *_refusals(table)]
    )


def _refusals(table: SegmentTotals) -> list[Block]:
    """Why some segments have no interval; segments of one reason, such as the tail of all rows, are named together."""
    reasons: dict[str, list[str]] = {}
    for name, each in table.totals.items():
        if not each.answered:
            reasons.setdefault(each.refusal, []).append(visible(name))
    lines = []
    for reason, names in reasons.items():
        remedies = [each.remedy for each in table.totals.values() if each.refusal == reason and each.remedy]
        # A remedy has the numbers of its own segment, so that it is said of a single one only.
        remedy = f" {remedies[0][0].upper()}{remedies[0][1:]}." if len(names) == 1 and remedies else ""
        lines.append(f"{', '.join(names)}: no interval, because {reason}.{remedy}")
    return [Items(lines)] if lines else []


def _table(table: SegmentTotals) -> Table:
    rows = []
    for name, each in table.totals.items():
        interval = f"{number(each.low)} to {number(each.high)}" if each.answered else "no interval"
        rows.append(
            [
                Cell(visible(name)),
                Cell(number(each.value), each.value, "" if each.answered else "flag", interval),
                Cell(number(each.predicted), each.predicted),
                Cell(f"{each.rows:,}", each.rows),
                Cell(f"{each.labelled:,}", each.labelled),
            ]
        )
    level = next(iter(table.totals.values())).level
    header = [visible(table.column), f"total, {100 * level:g} %", "predictions", "new rows", "labelled"]
    return Table(header, rows)


def _narrower(whole: Total) -> str:
    if math.isinf(whole.units_to_halve):
        return (
            "More labels would not halve the interval: most of it is the luck of the new rows themselves, which nobody "
            "can know before they come."
        )
    return (
        f"About {whole.units_to_halve:,.0f} labelled instead of {whole.units:,} would halve the interval; so would a "
        "model with half the error."
    )


def _assumptions(report: TotalReport) -> list[str]:
    totals = report.totals
    lines = [
        f"The labelled rows ({visible(report.labelled)}) are of the same kind as the new ones, and the model was not "
        "trained on them; that it was not is checked.",
        "The model need not be right: what its predictions miss on labelled rows is added.",
        "The interval is corrected for skewness and for the largest amount that may still come; over simulated worlds "
        "of each kind of finite variance, about 95 of 100 had their total in it; see the guide on totals.",
        _variance(totals),
    ]
    if totals.cluster is None:
        lines.append("Rows are taken to be independent of each other. Name customers or households with --cluster.")
    else:
        lines.append(f"Rows with the same {visible(totals.cluster)} belong together, and are counted as one.")
    if math.isfinite(totals.cap):
        lines.append(
            f"Amounts above {number(totals.cap)} count as {number(totals.cap)}: this is a total of capped ones."
        )
    if totals.weight is not None:
        lines.append(f"Rows count as often as {visible(totals.weight)} says.")
    if totals.expected:
        lines.append("It is the total that so many rows of this kind have on average, and not that of these rows.")
    lines += totals.warnings()
    return lines + [f"Unlike the rows of training: {visible(remark)}" for remark in totals.remarks]


def _variance(totals: Totals) -> str:
    tail = totals.tail
    known = "" if math.isnan(tail.index) else f" (tail index {tail.index:.2f} ± {tail.error:.2f})"
    if totals.shown:
        return f"The rows whose amounts are known show that the variance of the amounts is finite{known}, below 0.5."
    if not totals.whole.answered:
        return f"Nothing proves that the variance of the amounts is finite{known}; with an index below 0.5 it is."
    return (
        f"The interval supposes that the variance of the amounts is finite, which the rows whose amounts are known do "
        f"not prove{known}. Were it infinite, such intervals would miss far more often than they promise."
    )


def _of_predicted(total: Total, value: float | None = None) -> float:
    return (total.value if value is None else value) / total.predicted if total.predicted else math.nan
