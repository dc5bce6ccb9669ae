"""The model report as Markdown."""

from collections.abc import Sequence

import transun
from transun.report import markdown
from transun.report.diagnosis.markdown import plain
from transun.report.diagnosis.words import cell_text
from transun.report.model import words
from transun.report.model.content import ModelReport
from transun.report.page import Cell, number

__all__ = ["model_markdown", "text_table"]


def model_markdown(report: ModelReport) -> str:
    """The content of the page, without its pictures."""
    _, text = words.verdict(report.assessment)
    parts = [
        "# Model report",
        plain(f"{report.name} · target {report.target}"),
        f"**{plain(text)}**",
        f"Head `{report.head}`: {plain(report.why)}.",
        "## Metrics of the held-out rows",
        text_table(*words.metric_table(report.assessment)),
        "## By level of the prediction",
        text_table(*words.bin_table(report.assessment.bins)),
    ]
    if report.assessment.segments:
        parts += ["## By segment", text_table(*words.segment_table(report.assessment.segments))]
    parts += ["## Training", _ends(report)]
    parts += ["## Feature plan", text_table(*words.plan_table(report.plan))]
    parts += ["## Target of the training rows", text_table(*words.target_table(report))]
    parts += ["## Cost and settings", text_table(*words.cost_table(report)), text_table(*words.settings_table(report))]
    parts += ["## How this was computed", "\n".join(f"- {line}" for line in words.HOW)]
    parts.append(f"Made by transun {transun.__version__}.")
    return "\n\n".join(parts) + "\n"


def text_table(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Cells as a Markdown table, texts from the data made harmless."""
    return markdown.table(
        [plain(title) for title in header], [[plain(cell_text(cell)) for cell in row] for row in rows]
    )


def _ends(report: ModelReport) -> str:
    """Where every curve began and ended."""
    rows = [[name, number(points[0][1]), number(points[-1][1])] for name, points in report.curves.items()]
    for name in ("PGR", "NRMSE"):
        values = [check.values[name] for check in report.checks if name in check.values]
        if values:
            rows.append([f"{name}, validation rows", number(values[0]), number(values[-1])])
    return markdown.table(["curve", "at first", "at last"], [[plain(cell) for cell in row] for row in rows])
