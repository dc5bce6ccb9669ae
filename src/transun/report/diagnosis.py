"""The report of a diagnosis: whether the predicted totals are right, where not, why, and what would help."""

import transun
from transun.diagnosis import Diagnosis
from transun.diagnosis.result import Histogram
from transun.report.assessment import (
    HOW_INTERVALS,
    CalibrationPoint,
    calibration_axes,
    correction_table,
    draw_point,
    estimate_cell,
    forest,
    level_table,
    metric_glossary,
    metric_table,
    metric_text,
    metric_title,
    segment_section,
    verdict_box,
)
from transun.report.document import (
    Block,
    Cell,
    Chart,
    Code,
    Document,
    Facts,
    Figure,
    Gallery,
    Glossary,
    Items,
    Paragraph,
    Section,
    Strong,
    Table,
)
from transun.report.formatting import Unit, as_json, number, ratio, sentence, share, visible
from transun.report.svg import Canvas, linear_scale, log_scale
from transun.support.counting import counted

__all__ = ["diagnosis_document", "diagnosis_json"]

_HOW = (
    "The test for retransformation bias removes the mean of T(actual) − T(predicted) at each level of the prediction "
    "and computes the ratio of totals that the remaining spread makes by itself (Jensen's gap).",
    "Corrections are learned on four fifths of the rows and applied to the rest, five times.",
)

_TERMS = {
    "99 % interval": "Where the true value lies, as far as these rows can show. It is wide where few rows decide.",
    "p-value": "How often chance alone would make a difference at least this large if there were no bias.",
    "retransformation bias": "A model trained on a transformed target, such as a logarithm, predicts a typical value "
    "and not the mean. Transformed back, its totals are too low, however well it was trained.",
    "smearing": "A correction that averages the transformed-back residuals of other rows.",
    "isotonic": "A correction that replaces predictions by mean actual values at their level, keeping their order.",
    "GTS, T and κ": "A model with a second output z that learns y·κ. T is what the first output is trained on, κ "
    "(kappa) evens out the noise; z / κ has the right mean whatever T is.",
}


def diagnosis_json(diagnosis: Diagnosis) -> str:
    """Every number of the diagnosis as JSON."""
    return as_json({"transun": transun.__version__, **vars(diagnosis)}, indent=1)


def diagnosis_document(diagnosis: Diagnosis, unit: Unit = Unit()) -> Document:
    """The report: verdict, advice, metrics, levels, segments, cause, corrections, shape, and how it was computed."""
    verdict, table = verdict_box(diagnosis), metric_table(diagnosis)
    corrections = [correction_table(diagnosis.corrections)] if diagnosis.corrections else []
    brief: list[Block] = [verdict, table, *corrections, Paragraph([diagnosis.advice.now])]
    if diagnosis.skipped:
        brief.append(Items(diagnosis.skipped))
    return Document(
        "Are the predicted totals right?",
        _subtitle(diagnosis),
        [verdict, _facts(diagnosis, unit)],
        [
            _advice(diagnosis),
            Section("Metrics", [table]),
            Section("By level of the prediction", [_levels(diagnosis, unit)]),
            *[segment_section(table) for table in diagnosis.segments],
            _test(diagnosis),
            Section("What a correction would give", [_corrections(diagnosis)]),
            _shape(diagnosis, unit),
            _how(diagnosis),
            Section("Words", [Glossary({**metric_glossary(), **_TERMS})]),
        ],
        brief,
        "transun diagnose",
    )


def _subtitle(diagnosis: Diagnosis) -> str:
    source = diagnosis.source
    left_out = f" of {source.rows:,}" if source.used < source.rows else ""
    weight = f" · weight {visible(source.weight)}" if source.weight is not None else ""
    exposure = f" · per unit of {visible(source.exposure)}" if source.exposure is not None else ""
    return (
        f"{visible(source.name)} · {source.used:,}{left_out} rows · target {visible(source.target)} · "
        f"prediction {visible(source.pred)}{weight}{exposure}"
    )


def _facts(diagnosis: Diagnosis, unit: Unit) -> Facts:
    pgr = diagnosis.metric("PGR")
    return Facts(
        [
            (
                metric_title("PGR"),
                metric_text("PGR", pgr.value),
                f"99 % interval {metric_text('PGR', pgr.low)} to {metric_text('PGR', pgr.high)}",
            ),
            ("predicted total", unit.amount(diagnosis.predicted), ""),
            ("actual total", unit.amount(diagnosis.actual), ""),
        ]
    )


def _advice(diagnosis: Diagnosis) -> Section:
    advice = diagnosis.advice
    return Section(
        "What to do",
        [
            Paragraph([Strong("Now."), f" {advice.now}"]),
            Paragraph(
                [
                    Strong("At the next training."),
                    f" {advice.reason} Use T = ",
                    Code(advice.transform),
                    " and κ = ",
                    Code(advice.kappa),
                    ", as the head ",
                    Code(advice.head),
                    ".",
                ]
            ),
        ],
    )


def _levels(diagnosis: Diagnosis, unit: Unit) -> Chart:
    points = [
        CalibrationPoint(
            level.pred,
            level.actual.value,
            level.actual.low,
            level.actual.high,
            f"{counted(level.rows, 'row')}: predicted {unit.amount(level.pred)}, "
            f"actual {unit.amount(level.actual.value)}",
        )
        for level in diagnosis.levels
    ]
    canvas = Canvas(320.0, "mean actual against mean predicted value by level of the prediction")
    x, y = calibration_axes(canvas, points, unit.title(visible(diagnosis.source.target)))
    for point in points:
        draw_point(canvas, x, y, point, "" if point.low <= point.pred <= point.high else " bad")
    caption = (
        "Rows in ten groups by their prediction. On the dashed line the mean is right; above it, too little was "
        "predicted. Bars are 99 % intervals; axes are logarithmic where all values are positive."
    )
    return Chart([Figure(canvas.svg(), caption)], level_table(diagnosis.levels, unit))


def _test(diagnosis: Diagnosis) -> Section:
    test = diagnosis.test
    rows = [
        [
            Cell(
                candidate.name,
                None,
                "ok" if candidate.consistent else "",
                "fits" if candidate.consistent else "does not fit",
            ),
            Cell(number(candidate.predicted), candidate.predicted),
            Cell(number(candidate.observed), candidate.observed),
            estimate_cell(candidate.misfit, share),
            Cell(ratio(candidate.drift.value), candidate.drift.value),
        ]
        for candidate in test.candidates
    ]
    note = (
        "Ratios are actual / predicted. Drift is how much the mean residual changes with the prediction, in residual "
        "standard deviations; a transform fits if the part of the bias that it leaves over may be below 25 % and its "
        "drift may be below 0.4."
    )
    return Section(
        "Is it retransformation bias?",
        [
            Paragraph([Strong(sentence(test.conclusion)), f" {test.reason}"]),
            Table(["trained on", "by Jensen's gap", "observed", "left over, 95 %", "drift"], rows),
            Paragraph([note], "note"),
        ],
    )


def _corrections(diagnosis: Diagnosis) -> Block:
    if not diagnosis.corrections:
        return Paragraph(["Not tried: there are too few rows."])
    points = [(result.name, result.pgr) for result in diagnosis.corrections]
    caption = (
        "Each correction is learned on four fifths of the rows and applied to the rest, five times. It sees a row only "
        "through its prediction; a model trained with GTS sees everything."
    )
    figure = Figure(forest(points, "predicted / actual by correction"), caption)
    return Chart([figure], correction_table(diagnosis.corrections))


def _shape(diagnosis: Diagnosis, unit: Unit) -> Section:
    shape, target = diagnosis.shape, visible(diagnosis.source.target)
    cause = diagnosis.test.best or "a logarithm"
    figures = [
        Figure(
            _histogram(shape.values, f"{unit.title(target)} (logarithmic axis)", logarithmic=True),
            f"Targets above 0; {share(shape.zeros, 1)} of the rows are 0.",
        ),
        Figure(
            _histogram(shape.residuals, f"T({target}) − T(prediction)", logarithmic=False),
            f"Residuals under T = {cause}: around 0 if the model was trained on it.",
        ),
    ]
    rows = [
        ("mean of the target", shape.mean, unit.amount(shape.mean)),
        ("skewness of the target (0 symmetric, 2 exponential)", shape.skewness, number(shape.skewness)),
        ("skewness of the errors", shape.error_skewness, number(shape.error_skewness)),
        ("rows that are exactly 0", shape.zeros, share(shape.zeros, 1)),
        ("rows below 0", shape.negative, share(shape.negative, 1)),
        ("the largest 1 % of rows hold, of the total", shape.top, share(shape.top, 1)),
        ("rows' worth of errors that decide the total", shape.effective_rows, number(shape.effective_rows)),
        *[
            ("largest target" if part == 1.0 else f"{100 * part:g} % of targets are at most", value, unit.amount(value))
            for part, value in shape.quantiles
        ],
    ]
    table = Table(["shape", "value"], [[Cell(name), Cell(text, value)] for name, value, text in rows])
    return Section("Shape of the target and the errors", [Gallery(figures, {}), table])


def _histogram(bars: Histogram, unit: str, *, logarithmic: bool) -> str:
    """Shares of rows by value."""
    if not bars.shares:
        return ""
    left, right, top, bottom = 40.0, 350.0, 24.0, 150.0
    canvas = Canvas(190.0, f"histogram of {unit}")
    x = (log_scale if logarithmic else linear_scale)(bars.edges[0], bars.edges[-1], left, right)
    y = linear_scale(0.0, 100.0 * max(bars.shares), bottom, top, ticks=4)
    canvas.y_axis(y, left, right, "% of rows")
    canvas.x_axis(x, bottom, bottom, (left + right) / 2, unit)
    for start, end, part in zip(bars.edges[:-1], bars.edges[1:], bars.shares, strict=True):
        a, b = x.position(start), x.position(end)
        title = f"{number(start)} to {number(end)}: {part:.2%}"
        height = bottom - y.position(100.0 * part)
        canvas.bar(a + 0.4, bottom - height, max(b - a - 0.8, 0.6), height, "fill", title)
    return canvas.svg()


def _how(diagnosis: Diagnosis) -> Section:
    return Section(
        "How this was computed, and what was left out",
        [
            Items([*HOW_INTERVALS, *_HOW]),
            Items(diagnosis.sampled or ("Nothing was sampled: every number is of all rows.",), "Sampled"),
            Items(diagnosis.skipped or ("Nothing was left out.",), "Left out"),
        ],
    )
