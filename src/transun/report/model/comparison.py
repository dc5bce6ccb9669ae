"""Several models on the same rows, side by side."""

from collections.abc import Mapping
from dataclasses import dataclass

import transun
from transun.diagnosis.assessment import Assessment
from transun.metrics.paired import PairedDifference
from transun.report.diagnosis.charts import forest
from transun.report.diagnosis.markdown import plain
from transun.report.diagnosis.words import visible
from transun.report.model import charts, words
from transun.report.model.markdown import text_table
from transun.report.page import Cell, beside, figure, items, section, table, whole_page

__all__ = ["Comparison", "comparison_markdown", "comparison_page"]

_HOW = (
    "Every model predicts the same rows. Rows that one of them was trained on flatter it: compare on rows that none "
    "has seen.",
    "Differences are paired, so what the rows have in common cancels: the delete-a-group jackknife over 20 blocks, "
    "with Student's t.",
    words.HOW[1],
)


@dataclass(frozen=True)
class Comparison:
    """Assessments by model, paired differences to the first, and per model its head and size."""

    name: str
    target: str
    rows: int
    models: Mapping[str, Assessment]
    heads: Mapping[str, str]
    parameters: Mapping[str, int]
    seconds: Mapping[str, float | None]
    differences: tuple[PairedDifference, ...]


def comparison_page(found: Comparison) -> str:
    """HTML that loads nothing."""
    pgrs = [(visible(name), {one.name: one for one in each.metrics}["PGR"]) for name, each in found.models.items()]
    picture = figure(forest(pgrs, "predicted / actual by model"), "Predicted / actual total with 95 % intervals.")
    bins = "".join(
        figure(charts.signed_errors(each.bins), f"{visible(name)}: signed TRE by level of its prediction")
        for name, each in found.models.items()
    )
    body = (
        section("Side by side", beside(picture, table(*words.side_by_side(found.models))))
        + section("Paired differences", table(*words.difference_table(found.differences)))
        + section("By level of the prediction", f'<div class="pair">{bins}</div>')
        + section("Models and their cost", table(*_cost(found)))
        + section("How this was computed", items(_HOW))
    )
    subtitle = f"{visible(found.name)} · {found.rows:,} rows · target {visible(found.target)}"
    return whole_page("Models side by side", subtitle, body, f"Made by transun {transun.__version__}.")


def comparison_markdown(found: Comparison) -> str:
    """The content of the page, without its pictures."""
    parts = [
        "# Models side by side",
        plain(f"{found.name} · {found.rows:,} rows · target {found.target}"),
        text_table(*words.side_by_side(found.models)),
        "## Paired differences",
        text_table(*words.difference_table(found.differences)),
    ]
    for name, each in found.models.items():
        parts += [f"## {plain(name)} by level of its prediction", text_table(*words.bin_table(each.bins))]
    parts += ["## Models and their cost", text_table(*_cost(found))]
    parts += ["## How this was computed", "\n".join(f"- {line}" for line in _HOW)]
    return "\n\n".join([*parts, f"Made by transun {transun.__version__}."]) + "\n"


def _cost(found: Comparison) -> words.Table:
    rows = [
        [
            Cell(visible(name)),
            Cell(found.heads[name], None, "words"),
            Cell(f"{found.parameters[name]:,}", float(found.parameters[name])),
            Cell("–" if (seconds := found.seconds[name]) is None else f"{seconds:.1f}", seconds),
        ]
        for name in found.models
    ]
    return ["model", "head", "parameters", "seconds of training"], rows
