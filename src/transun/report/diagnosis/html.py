"""A diagnosis as one HTML file."""

from html import escape

import transun
from transun.diagnosis import Diagnosis
from transun.diagnosis.result import SegmentTable
from transun.report.diagnosis import charts, words
from transun.report.page import beside, figure, items, number, paragraph, section, share, table, whole_page

__all__ = ["diagnosis_page"]

_KINDS = {"biased": "biased", "uneven": "biased in places", "fine": "no bias found"}


def diagnosis_page(diagnosis: Diagnosis) -> str:
    """The whole page: verdict, what to do, numbers, where, why, what would help, and how it was computed."""
    body = "".join(
        (
            _verdict(diagnosis),
            _advice(diagnosis),
            section("Metrics", table(*words.metric_table(diagnosis))),
            _levels(diagnosis),
            *[_segments(one) for one in diagnosis.segments],
            _test(diagnosis),
            _cures(diagnosis),
            _shape(diagnosis),
            _how(diagnosis),
            _glossary(),
        )
    )
    footer = f"Made by transun {transun.__version__}, transun diagnose. This page loads nothing from anywhere."
    return whole_page("Are the predicted totals right?", words.subtitle(diagnosis), body, footer)


def _verdict(diagnosis: Diagnosis) -> str:
    verdict, pgr = diagnosis.verdict, diagnosis.metrics[0]
    facts = (
        (
            "predicted / actual total (PGR)",
            f"{pgr.value:.3f}",
            f"95 % interval {number(pgr.low)} to {number(pgr.high)}",
        ),
        ("predicted total", number(diagnosis.predicted), ""),
        ("actual total", number(diagnosis.actual), ""),
    )
    cards = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(more)}</small></dd></div>"
        for name, value, more in facts
    )
    return (
        f'<div class="verdict {verdict.kind}"><b>{_KINDS[verdict.kind]}</b>{escape(words.visible_line(verdict.text))}'
        f'</div><dl class="facts">{cards}</dl>'
    )


def _advice(diagnosis: Diagnosis) -> str:
    advice = diagnosis.advice
    return section(
        "What to do",
        f"<p><strong>Now.</strong> {escape(advice.now)}</p>",
        f"<p><strong>At the next training.</strong> {escape(advice.reason)} Use T = <code>{escape(advice.transform)}"
        f"</code> and κ = <code>{escape(advice.kappa)}</code>, as the head <code>{escape(advice.head)}</code>.</p>",
    )


def _levels(diagnosis: Diagnosis) -> str:
    picture = charts.calibration(diagnosis.levels, words.visible(diagnosis.source.target))
    caption = "Rows in ten groups by their prediction. On the dashed line the mean is right; above it, too little was "
    caption += "predicted. Bars are 95 % intervals; logarithmic axes where all values are positive."
    return section("By level of the prediction", beside(figure(picture, caption), table(*words.level_table(diagnosis))))


def _segments(found: SegmentTable) -> str:
    picture = charts.forest(
        [(words.visible(segment.value), segment.pgr) for segment in found.segments],
        f"predicted / actual by {words.visible(found.column)}",
    )
    caption = f"{words.sentence(found.how)} Bars are 95 % intervals of one segment; “biased” is judged over all "
    caption += "segments together."
    return section(
        f"By {words.visible(found.column)}", beside(figure(picture, caption), table(*words.segment_table(found)))
    )


def _test(diagnosis: Diagnosis) -> str:
    test = diagnosis.test
    return section(
        "Is it retransformation bias?",
        f"<p><strong>{escape(words.sentence(test.conclusion))}</strong> {escape(test.reason)}</p>",
        table(*words.candidate_table(diagnosis)),
        paragraph(
            "Ratios are actual / predicted. Drift is how much the mean residual changes with the prediction, in "
            "residual standard deviations; a transform fits if what it leaves over of the bias may be below 25 % and "
            "its drift may be below 0.4.",
            "note",
        ),
    )


def _cures(diagnosis: Diagnosis) -> str:
    if not diagnosis.cures:
        return section("What a correction would give", paragraph("Not tried: there are too few rows."))
    picture = charts.forest([(cure.name, cure.pgr) for cure in diagnosis.cures], "predicted / actual by correction")
    caption = "Each learned on four fifths of the rows and judged on the rest, five times. They see a row only through "
    caption += "its prediction; a model trained with GTS sees everything."
    return section(
        "What a correction would give", beside(figure(picture, caption), table(*words.cure_table(diagnosis)))
    )


def _shape(diagnosis: Diagnosis) -> str:
    shape = diagnosis.shape
    target = words.visible(diagnosis.source.target)
    cause = diagnosis.test.best or "a logarithm"
    values = charts.histogram(shape.values, f"{target} (logarithmic axis)", scale="log")
    residuals = charts.histogram(shape.residuals, f"T({target}) − T(prediction)", scale="linear")
    pair = figure(values, f"Targets above 0; {share(shape.zeros, 1)} of the rows are 0.") + figure(
        residuals, f"Residuals under T = {cause}: around 0 if the model was trained on it."
    )
    return section(
        "Shape of the target and the errors", f'<div class="pair">{pair}</div>', table(*words.shape_table(diagnosis))
    )


def _how(diagnosis: Diagnosis) -> str:
    sampled = diagnosis.sampled or ("Nothing was sampled: every number is of all rows.",)
    skipped = diagnosis.skipped or ("Nothing was left out.",)
    return section(
        "How this was computed, and what was left out",
        items(words.HOW),
        "<h3>Sampled</h3>",
        items(sampled),
        "<h3>Left out</h3>",
        items([words.visible_line(text) for text in skipped]),
    )


def _glossary() -> str:
    entries = "".join(f"<dt>{escape(term)}</dt><dd>{escape(text)}</dd>" for term, text in words.GLOSSARY.items())
    return section("Words", f'<dl class="words">{entries}</dl>')
