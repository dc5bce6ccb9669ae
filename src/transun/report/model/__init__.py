"""A trained model, or several side by side, as a page, as Markdown and as JSON."""

from transun.report.model.comparison import Comparison, comparison_markdown, comparison_page
from transun.report.model.content import ModelReport, as_json, model_report
from transun.report.model.html import model_page
from transun.report.model.markdown import model_markdown
from transun.report.model.words import difference_table, metric_table, plan_table, segment_table, side_by_side

__all__ = [
    "Comparison",
    "ModelReport",
    "as_json",
    "comparison_markdown",
    "comparison_page",
    "difference_table",
    "metric_table",
    "model_markdown",
    "model_page",
    "model_report",
    "plan_table",
    "segment_table",
    "side_by_side",
]
