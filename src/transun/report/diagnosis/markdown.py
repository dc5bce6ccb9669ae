"""A diagnosis as Markdown."""

from collections.abc import Sequence

import transun
from transun.diagnosis import Diagnosis
from transun.report import markdown
from transun.report.diagnosis import words
from transun.report.page import Cell, number

__all__ = ["diagnosis_markdown", "plain"]

# As entities, which mean the letter itself wherever they stand, in tables and outside.
_SPECIAL = {char: f"&#{ord(char)};" for char in "&<>`*_[]\\~#"}


def plain(text: str) -> str:
    """Text from the data, with nothing in it that Markdown or HTML would act on.

    >>> plain("<b>*x*")
    '&#60;b&#62;&#42;x&#42;'
    """
    return "".join(_SPECIAL.get(char, char) for char in words.visible_line(text))


def diagnosis_markdown(diagnosis: Diagnosis) -> str:
    """The content of the page, without its pictures."""
    advice, test = diagnosis.advice, diagnosis.test
    parts = [
        "# Are the predicted totals right?",
        plain(words.subtitle(diagnosis)),
        f"**{plain(diagnosis.verdict.text)}**",
        f"Predicted {number(diagnosis.predicted)}, actual {number(diagnosis.actual)}.",
        "## What to do",
        f"**Now.** {plain(advice.now)}",
        f"**At the next training.** {plain(advice.reason)} Use T = `{advice.transform}` and κ = `{advice.kappa}`, as "
        f"the head `{advice.head}`.",
        "## Metrics",
        _table(*words.metric_table(diagnosis)),
        "## By level of the prediction",
        _table(*words.level_table(diagnosis)),
    ]
    for found in diagnosis.segments:
        parts += [
            f"## By {plain(found.column)}",
            plain(words.sentence(found.how)),
            _table(*words.segment_table(found)),
        ]
    parts += [
        "## Is it retransformation bias?",
        f"**{plain(words.sentence(test.conclusion))}** {plain(test.reason)}",
        _table(*words.candidate_table(diagnosis)),
    ]
    if diagnosis.cures:
        parts += ["## What a correction would give", _table(*words.cure_table(diagnosis))]
    parts += ["## Shape of the target and the errors", _table(*words.shape_table(diagnosis))]
    parts += ["## How this was computed, and what was left out", _list(words.HOW)]
    if diagnosis.sampled:
        parts += ["Sampled:", _list(diagnosis.sampled)]
    if diagnosis.skipped:
        parts += ["Left out:", _list(diagnosis.skipped)]
    parts += ["## Words", "\n".join(f"- **{term}**: {text}" for term, text in words.GLOSSARY.items())]
    parts.append(f"Made by transun {transun.__version__}, `transun diagnose`.")
    return "\n\n".join(parts) + "\n"


def _table(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    shown = [[plain(words.cell_text(cell)) for cell in row] for row in rows]
    return markdown.table([plain(title) for title in header], shown)


def _list(texts: Sequence[str]) -> str:
    return "\n".join(f"- {plain(text)}" for text in texts)
