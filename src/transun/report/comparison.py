"""The report of several models on the same rows, side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from transun.diagnosis.result import Assessment
from transun.metrics.paired import PairedDifference
from transun.models.head_summary import summarise_head
from transun.report.assessment import HOW_INTERVALS, forest, level_table, seen_warning, side_by_side_table
from transun.report.document import Cell, Chart, Document, Figure, Gallery, Items, Paragraph, Section, Table
from transun.report.formatting import p_value_text, signed, visible
from transun.report.model import signed_error_chart
from transun.support.counting import counted

__all__ = ["Comparison", "comparison_document", "difference_table"]

_HOW = (
    "Every model predicts the same rows. A model looks too good on rows that it was trained on: compare on rows that "
    "no model has seen.",
    "Differences are paired, so what the rows have in common cancels: the delete-a-group jackknife over 20 blocks, "
    "with Student's t.",
)


@dataclass(frozen=True)
class Comparison:
    """Assessments by model, paired differences to the first, and of each model its head and its size.

    `seen` is the share of the rows that were training rows, by model. `remark` says which numbers are of a sample.
    """

    name: str
    target: str
    rows: int
    models: Mapping[str, Assessment]
    heads: Mapping[str, str]
    parameters: Mapping[str, int]
    seconds: Mapping[str, float | None]
    differences: tuple[PairedDifference, ...]
    seen: Mapping[str, float] = field(default_factory=dict)
    remark: str = ""


def comparison_document(comparison: Comparison) -> Document:
    """The report: metrics side by side, paired differences, bias by level of each model, and cost."""
    side_by_side, differences = side_by_side_table(comparison.models), difference_table(comparison.differences)
    points = [(visible(name), assessment.metric("PGR")) for name, assessment in comparison.models.items()]
    totals = Figure(forest(points, "predicted / actual by model"), "Predicted / actual total with 99 % intervals.")
    by_level = {
        f"{visible(name)} by level of its prediction": assessment.levels
        for name, assessment in comparison.models.items()
    }
    figures = [Figure(signed_error_chart(levels), title) for title, levels in by_level.items()]
    tables = {title: level_table(levels) for title, levels in by_level.items()}
    warnings = [Paragraph([seen_warning(visible(name), seen)]) for name, seen in comparison.seen.items() if seen]
    if comparison.remark:
        warnings.append(Paragraph([comparison.remark]))
    return Document(
        "Models side by side",
        f"{visible(comparison.name)} · {counted(comparison.rows, 'row')} · target {visible(comparison.target)}",
        warnings,
        [
            Section("Side by side", [Chart([totals], side_by_side)]),
            Section("Paired differences", [differences]),
            Section("By level of the prediction", [Gallery(figures, tables)]),
            Section("Models and their cost", [_cost_table(comparison)]),
            Section("How this was computed", [Items([*_HOW, *HOW_INTERVALS])]),
        ],
        [*warnings, side_by_side, differences],
        "transun compare",
    )


def difference_table(differences: Sequence[PairedDifference]) -> Table:
    """Paired differences of metrics, with their p-values."""
    rows = [
        [
            Cell(f"{visible(difference.model)} − {visible(difference.against)}"),
            Cell(difference.metric),
            Cell(
                signed(difference.value, 4),
                difference.value,
                more=f"{signed(difference.low, 4)} to {signed(difference.high, 4)}",
            ),
            Cell(p_value_text(difference.p), difference.p),
        ]
        for difference in differences
    ]
    return Table(["difference", "metric", "value, 99 %", "p-value"], rows)


def _cost_table(comparison: Comparison) -> Table:
    rows = [
        [
            Cell(visible(name)),
            Cell(summarise_head(comparison.heads[name]), None, "words"),
            Cell(f"{comparison.parameters[name]:,}", float(comparison.parameters[name])),
            Cell("–" if (seconds := comparison.seconds[name]) is None else f"{seconds:.1f}", seconds),
        ]
        for name in comparison.models
    ]
    return Table(["model", "head", "parameters", "seconds of training"], rows)
