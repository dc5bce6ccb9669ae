"""The content of a diagnosis as titles and rows, which the page, Markdown and the terminal share."""

import math
from collections.abc import Callable

from transun.diagnosis import Diagnosis
from transun.diagnosis.result import Estimate, SegmentTable
from transun.report.page import Cell, number, share

__all__ = [
    "GLOSSARY",
    "HOW",
    "candidate_table",
    "cell_text",
    "cure_table",
    "level_table",
    "metric_table",
    "segment_table",
    "sentence",
    "shape_table",
    "subtitle",
    "visible",
    "visible_line",
]

Table = tuple[list[str], list[list[Cell]]]

_LONGEST = 80

METRICS = {
    "PGR": "predicted / actual total (PGR)",
    "TRE": "total relative error (TRE)",
    "signed TRE": "signed total relative error",
    "MRE": "mean relative error (MRE)",
    "NRMSE": "error, root mean square (NRMSE)",
    "NMAE": "error, mean absolute (NMAE)",
    "XAUC": "ranking (XAUC)",
}

GLOSSARY = {
    "PGR": "Predicted / actual total. 1 is right, 0.7 means that the predictions add up to 70 % of what happened.",
    "TRE and signed TRE": "The gap of the totals over the predicted total, without and with its sign. 0 is right; a "
    "minus means too little was predicted.",
    "MRE": "The relative error of the average row, so small amounts count as much as large ones. 0 is right.",
    "NRMSE and NMAE": "How far a single prediction is off, over the mean actual value: by squares, which large rows "
    "decide, and by absolute values. Lower is better; 0 is never reached.",
    "XAUC": "The share of pairs of rows that the predictions order as the actual values do. 0.5 is chance, 1 perfect.",
    "95 % interval": "Where the true value lies, as far as these rows can tell. It widens where few rows decide.",
    "retransformation bias": "A model trained on a transformed target, such as a logarithm, predicts a typical value "
    "and not the mean. Transformed back, its totals are too low, however well it was trained.",
    "smearing": "A correction that averages the transformed-back residuals seen in other rows.",
    "isotonic": "A correction that replaces predictions by mean actual values at their level, keeping their order.",
    "GTS, T and κ": "A model with a second output z that learns y·κ. T is what the first output is trained on, κ "
    "(kappa) evens out the noise; z / κ has the right mean whatever T is.",
}

HOW = (
    "The interval of a ratio of totals is Hall's, corrected for skewness, with Student's quantiles for as many rows as "
    "the errors' kurtosis leaves; the total is called biased if the 99 % interval leaves 1 out.",
    "Segments are tested together by Holm's method over all columns: the probability of calling any fair segment "
    "biased is 1 % at most.",
    "Intervals of MRE, NRMSE, NMAE and XAUC are ± 1.96 standard errors. A row is taken as independent of the others.",
    "The test for retransformation bias removes the mean of T(actual) − T(predicted) at each level of the prediction "
    "and asks what ratio of totals the spread that remains makes by itself (Jensen's gap).",
    "Corrections are learned on four fifths of the rows and judged on the rest, five times.",
)


def visible(text: str) -> str:
    r"""Text from the data, fit to be shown: no control characters, and not too long.

    >>> visible("a\x1b[31mb\n")
    'a�[31mb�'
    """
    clean = visible_line(text)
    return clean if len(clean) <= _LONGEST else clean[: _LONGEST - 1] + "…"


def visible_line(text: str) -> str:
    """A sentence that may quote the data: of any length, without control characters."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def sentence(text: str) -> str:
    """The text with a capital and a full stop.

    >>> sentence("not biased")
    'Not biased.'
    """
    return f"{text[0].upper()}{text[1:]}."


def cell_text(cell: Cell) -> str:
    """A cell in one line."""
    return f"{cell.text} ({cell.more})" if cell.more else cell.text


def subtitle(diagnosis: Diagnosis) -> str:
    """Which rows and columns were looked at."""
    source = diagnosis.source
    left_out = f" of {source.rows:,}" if source.used < source.rows else ""
    weight = f" · weight {visible(source.weight)}" if source.weight is not None else ""
    return (
        f"{visible(source.name)} · {source.used:,}{left_out} rows · target {visible(source.target)} · "
        f"prediction {visible(source.pred)}{weight}"
    )


def metric_table(diagnosis: Diagnosis) -> Table:
    """Every metric with its interval."""
    rows = [[Cell(METRICS[one.name]), *_three(one)] for one in diagnosis.metrics]
    return ["metric", "value", "95 % from", "to"], rows


def level_table(diagnosis: Diagnosis) -> Table:
    """Mean predicted against mean actual by level of the prediction."""
    rows = [
        [
            Cell(f"from {number(level.lowest)}", level.lowest),
            Cell(f"{level.rows:,}", level.rows),
            _number(level.pred),
            _estimate(level.actual),
            Cell(_ratio(level.pgr.value), level.pgr.value, _side(level.pgr)),
        ]
        for level in diagnosis.levels
    ]
    return ["predictions", "rows", "mean predicted", "mean actual, 95 %", "PGR"], rows


def segment_table(table: SegmentTable) -> Table:
    """The segments of one column."""
    rows = [
        [
            Cell(visible(segment.value)),
            Cell(f"{segment.rows:,}", segment.rows),
            Cell(share(segment.share, 1), segment.share),
            Cell(_ratio(segment.pgr.value), segment.pgr.value, more=_interval(segment.pgr, _ratio)),
            Cell(_chance(segment.chance), segment.chance, *(("flag", "biased") if segment.biased else ())),
        ]
        for segment in table.segments
    ]
    return [visible(table.column), "rows", "of actual total", "PGR, 95 %", "chance (Holm)"], rows


def candidate_table(diagnosis: Diagnosis) -> Table:
    """The transforms that the model may have been trained on."""
    rows = [
        [
            Cell(one.name, None, "ok" if one.consistent else "", "fits" if one.consistent else "does not fit"),
            _number(one.predicted),
            _number(one.observed),
            Cell(share(one.misfit.value), one.misfit.value, more=_interval(one.misfit, share)),
            Cell(_ratio(one.drift.value), one.drift.value),
        ]
        for one in diagnosis.test.candidates
    ]
    return ["trained on", "by Jensen's gap", "observed", "left over, 95 %", "drift"], rows


def cure_table(diagnosis: Diagnosis) -> Table:
    """What each correction would give."""
    rows = [
        [
            Cell(cure.name, more=cure.how),
            Cell(_ratio(cure.pgr.value), cure.pgr.value, _side(cure.pgr), _interval(cure.pgr, _ratio)),
            Cell(_ratio(cure.tre.value), cure.tre.value, more=_interval(cure.tre, _ratio)),
            Cell(_ratio(cure.nrmse.value), cure.nrmse.value, more=_interval(cure.nrmse, _ratio)),
        ]
        for cure in diagnosis.cures
    ]
    return ["correction", "PGR, 95 %", "TRE, 95 %", "NRMSE, 95 %"], rows


def shape_table(diagnosis: Diagnosis) -> Table:
    """How the target and the errors are spread."""
    shape = diagnosis.shape
    rows = [
        ("mean of the target", shape.mean, number(shape.mean)),
        ("skewness of the target (0 symmetric, 2 exponential)", shape.skewness, number(shape.skewness)),
        ("skewness of the errors", shape.error_skewness, number(shape.error_skewness)),
        ("rows that are exactly 0", shape.zeros, share(shape.zeros, 1)),
        ("rows below 0", shape.negative, share(shape.negative, 1)),
        ("the largest 1 % of rows hold, of the total", shape.top, share(shape.top, 1)),
        ("rows' worth of errors that decide the total", shape.deciding, number(shape.deciding)),
        *[
            ("largest target" if part == 1.0 else f"{100 * part:g} % of targets are at most", value, number(value))
            for part, value in shape.quantiles
        ],
    ]
    return ["shape", "value"], [[Cell(name), Cell(text, value)] for name, value, text in rows]


def _three(estimate: Estimate) -> list[Cell]:
    return [_number(value) for value in (estimate.value, estimate.low, estimate.high)]


def _estimate(estimate: Estimate) -> Cell:
    return Cell(number(estimate.value), estimate.value, more=_interval(estimate, number))


def _interval(estimate: Estimate, show: Callable[[float], str]) -> str:
    return f"{show(estimate.low)} to {show(estimate.high)}"


def _ratio(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else number(value)


def _number(value: float) -> Cell:
    return Cell(number(value), value)


def _side(pgr: Estimate) -> str:
    return "ok" if pgr.low <= 1.0 <= pgr.high else "flag"


def _chance(probability: float) -> str:
    return "< 0.001" if probability < 0.001 else f"{probability:.3f}"
