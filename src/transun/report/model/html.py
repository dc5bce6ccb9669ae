"""The model report as one self-contained page."""

from html import escape

import transun
from transun.report.diagnosis.words import visible, visible_line
from transun.report.model import charts, words
from transun.report.model.content import ModelReport
from transun.report.page import beside, figure, items, paragraph, section, table, whole_page

__all__ = ["model_page"]

_KINDS = {"biased": "Biased", "uneven": "Uneven", "fine": "Fine"}


def model_page(report: ModelReport) -> str:
    """HTML that loads nothing: verdict, metrics, bias by level and segment, training, plan and cost."""
    kind, text = words.verdict(report.assessment)
    body = (
        f'<div class="verdict {kind}"><b>{_KINDS[kind]}</b>{escape(visible_line(text))}</div>'
        f"<p>Head <code>{escape(report.head)}</code>: {escape(visible_line(report.why))}.</p>"
        + section("Metrics of the held-out rows", table(*words.metric_table(report.assessment)))
        + _levels(report)
        + _segments(report)
        + _training(report)
        + section("Feature plan", table(*words.plan_table(report.plan)))
        + section("Target of the training rows", table(*words.target_table(report)))
        + section(
            "Cost and settings",
            '<div class="pair"><div>',
            table(*words.cost_table(report)),
            "</div><div>",
            table(*words.settings_table(report)),
            "</div></div>",
        )
        + section("How this was computed", items(words.HOW))
    )
    rows = sum(report.rows.values())
    weight = f" · weight {visible(report.weight)}" if report.weight is not None else ""
    subtitle = f"{visible(report.name)} · {rows:,} rows · target {visible(report.target)}{weight}"
    return whole_page("Model report", subtitle, body, f"Made by transun {transun.__version__}.")


def _levels(report: ModelReport) -> str:
    bins = report.assessment.bins
    pictures = figure(charts.signed_errors(bins), "Bins of equally many rows by prediction, with 95 % intervals.")
    if any(one.slope is not None for one in bins):
        pictures += figure(charts.slope_line(bins), "κ scales the target of the bias branch: z learns y·κ.")
    return section("By level of the prediction", beside(f"<div>{pictures}</div>", table(*words.bin_table(bins))))


def _segments(report: ModelReport) -> str:
    found = report.assessment.segments
    return section("By segment", table(*words.segment_table(found))) if found else ""


def _training(report: ModelReport) -> str:
    pictures = [
        figure(charts.curve(points, "step", f"loss term {name}"), f"{name}: mean over neighbouring batches.")
        for name, points in report.curves.items()
    ]
    for name, rule, text in (
        ("PGR", 1.0, "predicted / actual total of the validation rows; 1 is right"),
        ("NRMSE", None, "error of the validation rows, by which the best weights are chosen"),
    ):
        points = [(float(check.step), check.values[name]) for check in report.checks if name in check.values]
        if points:
            pictures.append(figure(charts.curve(points, "step", f"{name}, validation rows", rule), text))
    stopped = "Stopped early: the validation error no longer fell." if report.cost.stopped_early else ""
    return section("Training", f'<div class="pair">{"".join(pictures)}</div>', paragraph(stopped) if stopped else "")
