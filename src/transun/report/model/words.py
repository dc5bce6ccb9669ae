"""The content of a model report as titles and rows, which the page, Markdown and the terminal share."""

import math
from collections.abc import Mapping, Sequence

from transun.diagnosis.assessment import Assessment, Bin, SegmentMetrics
from transun.diagnosis.result import Cure, Estimate
from transun.metrics.paired import PairedDifference
from transun.report.diagnosis.words import visible
from transun.report.model.content import ModelReport
from transun.report.page import Cell, number, share

__all__ = [
    "HOW",
    "bin_table",
    "cost_table",
    "cure_table",
    "difference_table",
    "metric_table",
    "plan_table",
    "segment_table",
    "settings_table",
    "side_by_side",
    "target_table",
    "verdict",
]

Table = tuple[list[str], list[list[Cell]]]

METRICS = {
    "TRE": "total relative error (TRE)",
    "STRE": "signed total relative error (STRE)",
    "PGR": "predicted / actual total (PGR)",
    "MRE": "mean relative error (MRE)",
    "NRMSE": "error, root mean square (NRMSE)",
    "NMAE": "error, mean absolute (NMAE)",
    "XAUC": "ranking (XAUC)",
    "FLOORED": "predictions at 0 (FLOORED)",
}
_SIDE = ("STRE", "PGR", "MRE", "NRMSE", "XAUC")
HOW = (
    "All numbers are of rows held out: neither the weights nor early stopping have seen them.",
    "Intervals are 95 %: of TRE, STRE and PGR Hall's, which hold for skewed errors; of the others ± 1.96 standard "
    "errors. A row is taken as independent of the others.",
    "The total is called biased if its 99 % interval leaves the right one out. Segments are judged together by Holm's "
    "method: the probability of calling any fair one biased is 1 % at most.",
)


def verdict(assessment: Assessment, rows: str = "the held-out rows") -> tuple[str, str]:
    """A class for the look, and the total of the rows, so called, in one sentence; a second if nothing is ranked."""
    kind, total = _total(assessment, rows)
    return kind, total + _unranked(assessment)


def _unranked(assessment: Assessment) -> str:
    """A sentence where the order of the predictions may be chance: the right total alone is no model."""
    ranking = next((one for one in assessment.metrics if one.name == "XAUC"), None)
    if ranking is None or not ranking.low <= 0.5:
        return ""
    ends = f"XAUC is {ranking.value:.3f}, 95 % interval {ranking.low:.3f} to {ranking.high:.3f}, and chance has 0.5"
    return f" Nothing shows that predictions order the rows: {ends}."


def _total(assessment: Assessment, rows: str) -> tuple[str, str]:
    pgr = next(one for one in assessment.metrics if one.name == "PGR")
    if math.isnan(pgr.value):
        return "uneven", "The predicted total is not above 0, so that a ratio of totals means nothing here."
    off = f"{abs(pgr.value - 1.0):.1%} {'high' if pgr.value > 1.0 else 'low'}"
    ends = f"predicted / actual is {pgr.value:.3f}, 95 % interval {pgr.low:.3f} to {pgr.high:.3f}"
    biased = [one for one in assessment.segments if one.biased]
    if assessment.biased:
        return "biased", f"Totals of {rows} are {off}: {ends}."
    if biased:
        names = ", ".join(f"{visible(one.column)} {visible(one.value)}" for one in biased[:3])
        return "uneven", f"No clear bias of the total of {rows} found ({ends}), but of {names}."
    unseen = max(pgr.high - 1.0, 1.0 - pgr.low)
    least = f"; in these rows a bias of less than {unseen:.0%} cannot be told from chance" if unseen < math.inf else ""
    return "fine", f"No clear bias of the total of {rows} found: {ends}{least}."


def metric_table(assessment: Assessment) -> Table:
    """Every metric with its interval."""
    rows = [
        [Cell(METRICS.get(one.name, one.name)), *(Cell(number(v), v) for v in (one.value, one.low, one.high))]
        for one in assessment.metrics
    ]
    return ["metric", "value", "95 % from", "to"], rows


def segment_table(segments: Sequence[SegmentMetrics]) -> Table:
    """Segments of all columns."""
    rows = []
    for one in segments:
        found = {metric.name: metric for metric in one.metrics}
        flag = ("flag", "biased") if one.biased else ("", "")
        rows.append(
            [
                Cell(f"{visible(one.column)} {visible(one.value)}"),
                Cell(f"{one.rows:,}", one.rows),
                _with_interval(found["PGR"]),
                _with_interval(found["STRE"]),
                _with_interval(found["MRE"]),
                Cell(f"{one.chance:.3f}", one.chance, *flag),
            ]
        )
    return ["segment", "rows", "PGR", "signed TRE", "MRE", "chance (Holm)"], rows


def bin_table(bins: Sequence[Bin]) -> Table:
    """Signed TRE by level of the prediction."""
    sloped = any(one.slope is not None for one in bins)
    rows = []
    for one in bins:
        half = 1.96 * one.error
        ends = f"{_signed(one.stre - half)} to {_signed(one.stre + half)}"
        row = [
            Cell(f"from {number(one.lowest)}", one.lowest),
            Cell(f"{one.rows:,}", one.rows),
            Cell(number(one.pred), one.pred),
            Cell(number(one.actual), one.actual),
            Cell(_signed(one.stre), one.stre, more=ends if math.isfinite(half) else ""),
        ]
        rows.append(row + ([Cell(number(one.slope or 0.0), one.slope)] if sloped else []))
    header = ["predictions", "rows", "mean predicted", "mean actual", "signed TRE, 95 %"]
    return header + (["mean slope κ"] if sloped else []), rows


def plan_table(plan: Sequence[Sequence[str]]) -> Table:
    """What became of every column."""
    rows = [[Cell(visible(text), None, "words") for text in row] for row in plan]
    return ["column", "kind", "becomes", "missing", "why"], rows


def target_table(report: ModelReport) -> Table:
    """The target of the training rows."""
    found = report.summary
    rows = [
        ("mean", number(found.mean), found.mean),
        ("median", number(found.median), found.median),
        ("99 % are at most", number(found.p99), found.p99),
        ("largest", number(found.largest), found.largest),
        ("exactly 0", share(found.zeros, 1), found.zeros),
        ("below 0", share(found.negative, 1), found.negative),
        ("skewness (0 symmetric, 2 exponential)", number(found.skewness), found.skewness),
    ]
    return ["target", "value"], [[Cell(name), Cell(text, value)] for name, text, value in rows]


def cost_table(report: ModelReport) -> Table:
    """What the training took."""
    cost = report.cost
    rows = [
        ("parameters", f"{cost.parameters:,}", float(cost.parameters)),
        ("seconds of training", number(cost.seconds), cost.seconds),
        ("rows a second", number(cost.rows_per_second), cost.rows_per_second),
        ("steps", f"{cost.steps:,}", float(cost.steps)),
        ("best step", "–" if cost.best_step is None else f"{cost.best_step:,}", float(cost.best_step or 0)),
        *[(f"{part} rows", f"{count:,}", float(count)) for part, count in report.rows.items()],
    ]
    return ["cost", "value"], [[Cell(name), Cell(text, value)] for name, text, value in rows]


def settings_table(report: ModelReport) -> Table:
    """The recipe of the training, a setting a row, and the share of rows held out."""
    rows = [[Cell(name.replace("_", " ")), Cell(text)] for name, text in report.recipe.items()]
    return ["setting", "value"], [*rows, [Cell("test share"), Cell(f"{report.test_share:g}", report.test_share)]]


def side_by_side(models: Mapping[str, Assessment]) -> Table:
    """A row a model, with the metrics that decide."""
    rows = []
    for name, assessment in models.items():
        found = {one.name: one for one in assessment.metrics}
        rows.append([Cell(visible(name)), *[_with_interval(found[metric]) for metric in _SIDE]])
    return ["model", "signed TRE", "PGR", "MRE", "NRMSE", "XAUC"], rows


def difference_table(differences: Sequence[PairedDifference]) -> Table:
    """Paired differences, with what noise alone would make of them."""
    rows = [
        [
            Cell(f"{visible(one.model)} − {visible(one.against)}"),
            Cell(one.metric),
            Cell(_signed(one.value, 4), one.value, more=f"{_signed(one.low, 4)} to {_signed(one.high, 4)}"),
            Cell("< 0.001" if one.p < 0.001 else f"{one.p:.3f}", one.p),
        ]
        for one in differences
    ]
    return ["difference", "metric", "value, 95 %", "chance"], rows


def cure_table(outcomes: Sequence[Cure]) -> Table:
    """What each correction gives out of fold."""
    rows = [[Cell(one.name), *map(_with_interval, (one.pgr, one.tre, one.nrmse))] for one in outcomes]
    return ["correction", "PGR", "TRE", "NRMSE"], rows


def _with_interval(one: Estimate) -> Cell:
    if math.isnan(one.value):
        return Cell("–", None)
    return Cell(_short(one.value), one.value, more=f"{_short(one.low)} to {_short(one.high)}")


def _short(value: float) -> str:
    return f"{value:.3f}".replace("-", "−") if math.isfinite(value) else number(value)


def _signed(value: float, digits: int = 3) -> str:
    return f"{value:+.{digits}f}".replace("-", "−") if math.isfinite(value) else number(value)
