"""The parts that every report of predictions shares: tables and charts of an assessment."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from transun import metrics
from transun.diagnosis.interval import TOTALS
from transun.diagnosis.result import Assessment, CorrectionResult, Level, Segment, SegmentTable
from transun.metrics import Estimate, Metric
from transun.report.document import Cell, Chart, Figure, Paragraph, Section, Table, VerdictBox
from transun.report.formatting import Unit, number, p_value_text, ratio, sentence, share, signed, visible
from transun.report.svg import Canvas, Scale, linear_scale, log_scale
from transun.support.counting import counted_are

__all__ = [
    "HOW_INTERVALS",
    "CalibrationPoint",
    "calibration_axes",
    "correction_table",
    "cut",
    "draw_point",
    "dropped_sentence",
    "estimate_cell",
    "fair_value",
    "forest",
    "level_table",
    "metric_glossary",
    "metric_table",
    "metric_text",
    "metric_title",
    "seen_warning",
    "segment_section",
    "segment_table",
    "side_by_side_table",
    "verdict_box",
]

# How every assessment is computed, for the reader.
HOW_INTERVALS = (
    "The interval of a ratio of totals (PGR, TRE and signed TRE) is Hall's, corrected for skewness, with Student's "
    "quantiles for as many rows as the errors' kurtosis leaves; the total is called biased if it excludes 1, and "
    "right if it lies within 10 % of 1.",
    "Segments are tested together by Holm's method over all columns: the probability of calling any fair segment "
    "biased is 1 % at most.",
    "Intervals of all other metrics are ± 2.58 standard errors. Rows are assumed to be independent of each other, "
    "unless whole groups were held out: the intervals of totals then count groups.",
)

_LABEL_LENGTH = 19


# The tone and the label of each kind of verdict.
_VERDICTS = {
    "biased": ("bad", "biased"),
    "uneven": ("warn", "biased in places"),
    "fine": ("good", "no bias found"),
    "unclear": ("neutral", "not enough rows to tell"),
    "undefined": ("bad", "no ratio of totals"),
}


def verdict_box(assessment: Assessment) -> VerdictBox:
    """The verdict."""
    return VerdictBox(*_VERDICTS[assessment.verdict.kind], assessment.verdict.text)


def dropped_sentence(dropped: int) -> str:
    """How many rows are left out, because their target is missing or infinite.

    >>> dropped_sentence(1), dropped_sentence(2)
    ('1 row without a finite target is left out.', '2 rows without a finite target are left out.')
    """
    return f"{counted_are(dropped, 'row without a finite target', 'rows without a finite target')} left out."


def seen_warning(model: str, seen: float) -> str:
    """A sentence for rows of which the share `seen` were training rows of a model.

    >>> seen_warning("the model", 0.8)
    'About 80 % of these rows are training rows of the model, on which it looks better than on new ones.'
    """
    return f"About {share(seen)} of these rows are training rows of {model}, on which it looks better than on new ones."


def metric_title(name: str) -> str:
    """The title of a metric; the name itself if it is not in the standard list.

    >>> metric_title("PGR")
    'predicted / actual total (PGR)'
    """
    metric = _standard().get(name)
    return name if metric is None else metric.title


def metric_text(name: str, value: float) -> str:
    """A value with the decimals of its metric.

    >>> metric_text("PGR", 0.98765), metric_text("STRE", -0.5)
    ('0.988', '−0.500')
    """
    metric = _standard().get(name)
    return (ratio(value) if metric is None else metric.format(value)).replace("-", "−")


def fair_value(name: str) -> float | None:
    """The value of a metric at a fair model: 1 of a ratio, 0 of a signed error; None if there is no such value.

    >>> fair_value("PGR"), fair_value("STRE"), fair_value("NRMSE")
    (1.0, 0.0, None)
    """
    metric = _standard().get(name)
    return None if metric is None else {"one": 1.0, "zero": 0.0}.get(metric.better)


def _standard() -> dict[str, Metric]:
    return {metric.name: metric for metric in metrics.STANDARD}


def metric_glossary() -> dict[str, str]:
    """The metrics and what they mean."""
    return {metric.name: metric.meaning for metric in metrics.STANDARD if metric.meaning}


def metric_table(assessment: Assessment) -> Table:
    """Every metric with its interval."""
    rows = [
        [
            Cell(metric_title(estimate.name)),
            *(
                Cell(metric_text(estimate.name, value), value)
                for value in (estimate.value, estimate.low, estimate.high)
            ),
        ]
        for estimate in assessment.metrics
    ]
    return Table(["metric", "value", "99 % from", "to"], rows)


def level_table(levels: Sequence[Level], unit: Unit = Unit()) -> Table:
    """Mean predicted against mean actual by level of the prediction, and the mean slope κ where it is known."""
    rows = []
    for level in levels:
        row = [
            Cell(f"from {number(level.lowest)}", level.lowest),
            Cell(f"{level.rows:,}", level.rows),
            Cell(number(level.pred), level.pred),
            estimate_cell(level.actual, number),
            Cell(ratio(level.pgr.value), level.pgr.value, _fairness(level.pgr)),
            estimate_cell(level.stre, signed),
        ]
        rows.append(row + ([] if level.kappa is None else [Cell(number(level.kappa), level.kappa)]))
    means = [unit.title("mean predicted"), f"{unit.title('mean actual')}, 99 %"]
    header = [unit.title("predictions"), "rows", *means, "PGR", "signed TRE, 99 %"]
    return Table(header + (["mean κ"] if any(level.kappa is not None for level in levels) else []), rows)


def segment_table(tables: Sequence[SegmentTable], *, named: bool = False) -> Table:
    """The segments, with every metric that they have; `named` puts the name of the column before each value."""
    rows, others = [], _other_metrics(tables)
    for table in tables:
        for segment in table.segments:
            value = f"{visible(table.column)} {visible(segment.value)}" if named else visible(segment.value)
            rows.append([Cell(value), *_segment_cells(segment), *_metric_cells(segment, others)])
    first = "segment" if named else visible(tables[0].column)
    header = [first, "rows", "of actual total", "PGR, 99 %", "p-value (Holm)"]
    return Table(header + [f"{name}, 99 %" for name in others], rows, narrow=len(header))


def segment_section(table: SegmentTable) -> Section:
    """Predicted / actual total by segment of one column, as a picture beside its table."""
    title = f"By {visible(table.column)}"
    points = [(visible(segment.value), segment.metric("PGR")) for segment in table.segments]
    figure = Figure(
        forest(points, f"predicted / actual {title[0].lower()}{title[1:]}"),
        "Bars are 99 % intervals of one segment; “biased” is tested over all segments together.",
    )
    return Section(title, [Paragraph([sentence(table.how)]), Chart([figure], segment_table([table]))])


def correction_table(results: Sequence[CorrectionResult]) -> Table:
    """The total and the error of the predictions without and with each correction."""
    rows = [
        [
            Cell(result.name, more=result.how),
            estimate_cell(result.pgr, ratio, _fairness(result.pgr)),
            estimate_cell(result.tre, ratio),
            estimate_cell(result.nrmse, ratio),
        ]
        for result in results
    ]
    return Table(["correction", "PGR, 99 %", "TRE, 99 %", "NRMSE, 99 %"], rows)


def side_by_side_table(assessments: Mapping[str, Assessment]) -> Table:
    """One row per metric and one column per model."""
    names = [estimate.name for estimate in next(iter(assessments.values())).metrics]
    rows = [
        [
            Cell(metric_title(name)),
            *[
                estimate_cell(assessment.metric(name), partial(metric_text, name))
                for assessment in assessments.values()
            ],
        ]
        for name in names
    ]
    return Table(["metric, 99 %", *map(visible, assessments)], rows)


def estimate_cell(estimate: Estimate, show: Callable[[float], str], style: str = "") -> Cell:
    """A value, with its interval in the second line."""
    if math.isnan(estimate.value):
        return Cell("–", math.nan)
    ends = "" if math.isnan(estimate.low) else f"{show(estimate.low)} to {show(estimate.high)}"
    return Cell(show(estimate.value), estimate.value, style, ends)


def _segment_cells(segment: Segment) -> list[Cell]:
    flag = ("flag", "biased") if segment.biased else ()
    return [
        Cell(f"{segment.rows:,}", segment.rows),
        Cell(share(segment.share, 1), segment.share),
        estimate_cell(segment.metric("PGR"), ratio),
        Cell(p_value_text(segment.p_value), segment.p_value, *flag),
    ]


def _other_metrics(tables: Sequence[SegmentTable]) -> list[str]:
    """The metrics that every segment has, besides those that follow from PGR."""
    segments = [segment for table in tables for segment in table.segments]
    return [estimate.name for estimate in segments[0].metrics if estimate.name not in TOTALS]


def _metric_cells(segment: Segment, names: Sequence[str]) -> list[Cell]:
    return [estimate_cell(segment.metric(name), partial(metric_text, name)) for name in names]


def _fairness(pgr: Estimate) -> str:
    return "ok" if 1.0 in pgr else "flag"


def forest(rows: Sequence[tuple[str, Estimate]], label: str, axis: str = "") -> str:
    """Ratios of several groups with intervals, one line each, against the dashed line at 1.

    Args:
        rows: name and ratio of each group.
        label: what the picture shows, for those who cannot see it.
        axis: the title of the axis; by default that of predicted / actual total.

    """
    shown = [(name, pgr) for name, pgr in rows if 0.0 < pgr.value < math.inf]
    if not shown:
        return ""
    left, right, top, step = 128.0, 350.0, 8.0, 21.0
    bottom = top + step * len(shown)
    canvas = Canvas(bottom + 38.0, label)
    low, high = _forest_limits([pgr for _, pgr in shown])
    x = log_scale(low, high, left, right)
    canvas.x_axis(x, top, bottom, (left + right) / 2, axis or metric_title("PGR"))
    canvas.line([(x.position(1.0), top), (x.position(1.0), bottom)], "even")
    for index, (name, pgr) in enumerate(shown):
        middle = top + step * (index + 0.5)
        style = "" if 1.0 in pgr else " bad"
        ends = [min(max(end, low), high) if not math.isnan(end) else low for end in (pgr.low, pgr.high)]
        canvas.text(left - 8, middle + 4, cut(name, _LABEL_LENGTH), "end", "name", name)
        canvas.line([(x.position(end), middle) for end in ends], f"range{style}")
        title = f"{name}: {number(pgr.value)} ({number(pgr.low)} to {number(pgr.high)})"
        canvas.dot(x.position(min(max(pgr.value, low), high)), middle, f"dot{style}", title)
    return canvas.svg()


def _forest_limits(pgrs: Sequence[Estimate]) -> tuple[float, float]:
    """The range of the values and 1, and of those ends of intervals that lie within a factor of two of it."""
    values = [1.0, *[pgr.value for pgr in pgrs]]
    low, high = min(values) / 2.0, max(values) * 2.0
    ends = [end for pgr in pgrs for end in (pgr.low, pgr.high) if low <= end <= high]
    everything = [*values, *ends]
    margin = max((max(everything) / min(everything)) ** 0.05, 1.01)
    return min(everything) / margin, max(everything) * margin


def cut(text: str, length: int) -> str:
    """Text of at most so many characters, for a picture.

    >>> cut("country", 5)
    'coun…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


@dataclass(frozen=True)
class CalibrationPoint:
    """Rows of similar predictions: mean prediction, and mean actual value with its interval."""

    pred: float
    actual: float
    low: float
    high: float
    title: str = ""


def calibration_axes(canvas: Canvas, points: Sequence[CalibrationPoint], unit: str) -> tuple[Scale, Scale]:
    """Draw the axes of mean actual against mean predicted value, and the dashed line of right totals.

    The axes are logarithmic where all means are positive. An interval that is very wide, or that reaches 0, does not
    stretch them.
    """
    left, right, top, bottom = 44.0, 350.0, 24.0, canvas.height - 40.0
    means = [mean for point in points for mean in (point.pred, point.actual)]
    reach = 20.0 * max(map(abs, means))
    ends = [end for point in points for end in (point.low, point.high) if abs(end) < reach]
    if min(means) > 0.0:
        positive = [value for value in [*means, *ends] if value > 0.0]
        low, high = max(min(positive), min(means) / 3.0) / 1.1, max(positive) * 1.1
        x, y = log_scale(low, high, left, right), log_scale(low, high, bottom, top)
    else:
        low, high = min(0.0, *means, *ends), max([*means, *ends])
        x, y = linear_scale(low, high, left, right), linear_scale(low, high, bottom, top)
    canvas.x_axis(x, top, bottom, (left + right) / 2, f"mean predicted {cut(unit, 28)}")
    canvas.y_axis(y, left, right, f"mean actual {cut(unit, 28)}")
    canvas.line([(left, bottom), (right, top)], "even")
    return x, y


def draw_point(canvas: Canvas, x: Scale, y: Scale, point: CalibrationPoint, style: str) -> None:
    """Draw a point and its interval, cut at the ends of the axis."""
    at = x.position(point.pred)
    canvas.line([(at, y.clamped(end)) for end in (point.low, point.high) if not math.isnan(end)], f"range{style}")
    canvas.dot(at, y.clamped(point.actual), f"dot{style}", point.title)
