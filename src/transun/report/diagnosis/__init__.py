"""A diagnosis as a page, as Markdown, as JSON and as a table on a terminal."""

from transun.report.diagnosis.data import diagnosis_json
from transun.report.diagnosis.html import diagnosis_page
from transun.report.diagnosis.markdown import diagnosis_markdown
from transun.report.diagnosis.words import cell_text, cure_table, metric_table, visible, visible_line

__all__ = [
    "cell_text",
    "cure_table",
    "diagnosis_json",
    "diagnosis_markdown",
    "diagnosis_page",
    "metric_table",
    "visible",
    "visible_line",
]
