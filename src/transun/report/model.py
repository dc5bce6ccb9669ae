"""The report of a trained model: its assessment on held-out rows, its training, its features and its cost."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import transun
from transun.diagnosis.coverage import INTERVAL_LEVEL
from transun.diagnosis.result import Assessment, Covered, Level, ModelAssessment
from transun.report.assessment import (
    HOW_INTERVALS,
    fair_value,
    level_table,
    metric_table,
    metric_title,
    segment_table,
    verdict_box,
)
from transun.report.document import (
    Block,
    Cell,
    Chart,
    Code,
    Document,
    Figure,
    Gallery,
    Items,
    Paragraph,
    Section,
    Table,
    Tables,
)
from transun.report.formatting import Unit, number, sentence, share, visible, visible_line
from transun.report.svg import Canvas, linear_scale, log_scale, short
from transun.support.counting import counted
from transun.support.text_form import arguments, dumps
from transun.tables.model import TableModel
from transun.tables.plan import Plan, TargetSummary
from transun.training.history import Check, Part, Step
from transun.training.recipe import Recipe

__all__ = [
    "Cost",
    "ModelReport",
    "assessment_blocks",
    "model_document",
    "model_report",
    "noise_block",
    "signed_error_chart",
    "thinned",
]

# Points of a curve: more than a page is wide would only show the noise of single batches.
_POINTS = 120
_LEFT, _RIGHT, _TOP, _BOTTOM = 48.0, 350.0, 24.0, 160.0
# A curve that falls by more than this factor is drawn on a logarithmic axis, or its end would be a flat line.
_STEEP = 20.0

_HOW = "All numbers are of held-out rows: neither the weights nor early stopping have seen them."


@dataclass(frozen=True)
class Cost:
    """What the training took: parameters learned, seconds, rows seen and steps made.

    The parameters of trees are the values of their leaves and the questions that lead to them.
    """

    parameters: int
    seconds: float
    rows_per_second: float
    steps: int
    best_step: int | None
    stopped_early: bool
    out_of_time: bool

    @property
    def end(self) -> list[str]:
        """Why the training ended when it did, as a sentence; nothing where it did all its epochs."""
        if self.out_of_time:
            return ["The budget ended the training: with more seconds the model may get better."]
        return ["Stopped early: the validation error no longer fell."] if self.stopped_early else []


@dataclass(frozen=True)
class Mixture:
    """The parts of a model with their shares and their errors on the rows that decided the shares."""

    parts: tuple[Part, ...]
    error: float
    rows: int
    count: int


@dataclass(frozen=True)
class ModelReport:
    """A training and the assessment of its model on held-out rows.

    Attributes:
        name: of the data.
        plan: for each column its name, its kind, what it becomes, the share missing, and the reason.
        curves: by loss term, pairs of a step and the mean of the term around it.
        recipe: every setting of the training as text.
        test_share: the share of rows held out.
        hold_out: how they were chosen.
        checks: metrics of the validation rows along training.
        mixture: the parts of the model, where it has several.
        no_trees: why a network was trained alone although trees were wanted beside it.
        multicalibration: whether totals of segments were put right; empty if it was not tried.
        unit: of the target, for the reader.

    """

    transun: str
    name: str
    target: str
    weight: str | None
    head: str
    why: str
    recipe: dict[str, str]
    test_share: float
    hold_out: str
    summary: TargetSummary
    plan: list[tuple[str, str, str, str, str]]
    rows: dict[str, int]
    curves: dict[str, list[tuple[float, float]]]
    checks: tuple[Check, ...]
    assessment: ModelAssessment
    cost: Cost
    mixture: Mixture | None = None
    no_trees: str = ""
    multicalibration: str = ""
    unit: str = ""


def model_report(
    name: str,
    plan: Plan,
    recipe: Recipe,
    test_share: float,
    hold_out: str,
    model: TableModel,
    assessment: ModelAssessment,
    unit: str = "",
) -> ModelReport:
    """The report of a training on the data of this name; `unit` is that of the target."""
    history = model.history
    return ModelReport(
        transun=transun.__version__,
        name=name,
        target=plan.target,
        weight=plan.weight,
        head=plan.head_text,
        why=plan.why,
        recipe={setting: dumps(value) for setting, value in arguments(recipe).items()},
        test_share=test_share,
        hold_out=hold_out,
        summary=plan.summary,
        plan=plan.column_summary(),
        rows={"training": history.train_rows, "validation": history.valid_rows, "test": assessment.rows},
        curves=thinned(history.steps),
        checks=tuple(history.checks),
        assessment=assessment,
        cost=Cost(
            model.model.network.learned_numbers(),
            history.seconds,
            history.rows / history.seconds if history.seconds else math.nan,
            history.steps[-1].step + 1 if history.steps else 0,
            None if history.best is None else history.best.step,
            history.stopped_early,
            history.out_of_time,
        ),
        mixture=Mixture(tuple(history.parts), history.mixed_error, history.mixed_rows, history.mixtures)
        if history.parts
        else None,
        no_trees=history.no_trees,
        multicalibration=history.multicalibration,
        unit=unit,
    )


def thinned(steps: Sequence[Step]) -> dict[str, list[tuple[float, float]]]:
    """Every loss term as a curve of at most 120 points, each the mean of neighbouring steps.

    >>> thinned([Step(0, 0, 0.1, {"point": 4.0}), Step(1, 0, 0.1, {"point": 2.0})])
    {'point': [(0.0, 4.0), (1.0, 2.0)]}
    """
    size = max(1, math.ceil(len(steps) / _POINTS))
    groups = [steps[start : start + size] for start in range(0, len(steps), size)]
    names = steps[0].terms if steps else {}
    return {
        name: [
            (sum(step.step for step in group) / len(group), sum(step.terms[name] for step in group) / len(group))
            for group in groups
        ]
        for name in names
    }


def model_document(report: ModelReport) -> Document:
    """The report: verdict, metrics, bias by level and segment, training, feature plan and cost."""
    assessment, unit = report.assessment, Unit(visible(report.unit))
    weight = f" · weight {visible(report.weight)}" if report.weight is not None else ""
    segments = [Section("By segment", [segment_table(assessment.segments, named=True)])] if assessment.segments else []
    cost = f"{report.cost.parameters:,} parameters, {report.cost.seconds:.1f} s of training"
    return Document(
        "Model report",
        f"{visible(report.name)} · {counted(sum(report.rows.values()), 'row')} · "
        f"target {visible(report.target)}{weight}",
        [verdict_box(assessment), *_method(report)],
        [
            Section("Metrics of the held-out rows", [metric_table(assessment)]),
            Section("How well the total can be known", [noise_block(assessment)]),
            Section("By level of the prediction", [_levels(assessment.levels, unit)]),
            *segments,
            *([Section("Intervals of single rows", _covered(assessment.covered))] if assessment.covered else []),
            *([Section("Parts of the model", _mixture(report.mixture))] if report.mixture else []),
            Section("Training", _training(report)),
            Section("Feature plan", [_plan_table(report.plan)]),
            Section("Target of the training rows", [_target_table(report.summary, unit)]),
            Section("Cost and settings", [Tables([_cost_table(report), _settings_table(report)])]),
            Section("How this was computed", [Items([_HOW, f"Held out: {visible(report.hold_out)}.", *HOW_INTERVALS])]),
        ],
        [
            metric_table(assessment),
            verdict_box(assessment),
            noise_block(assessment),
            *_shares(report),
            Paragraph([cost]),
            *(Paragraph([reason]) for reason in report.cost.end),
        ],
    )


def assessment_blocks(assessment: Assessment) -> list[Block]:
    """The assessment of a saved model, for a terminal."""
    segments = [segment_table(assessment.segments, named=True)] if assessment.segments else []
    return [metric_table(assessment), *segments, verdict_box(assessment)]


def noise_block(assessment: ModelAssessment) -> Paragraph:
    """How well the total can be known at all."""
    return Paragraph([visible_line(assessment.noise.sentence())])


def _covered(covered: Sequence[Covered]) -> list[Block]:
    """How often intervals of single rows cover, for each group of rows."""
    rows = [
        [Cell(visible(each.group)), Cell(f"{each.rows:,}", each.rows), Cell(share(each.share, 1), each.share)]
        for each in covered
    ]
    words = (
        f"How many amounts lie in the {share(INTERVAL_LEVEL)} interval of their row (predict --interval), learned from "
        "every other row held out. At each level of the prediction it should be that many, up to chance; where a "
        "segment has fewer, its rows are harder to predict than others of their level."
    )
    return [Paragraph([words]), Table(["rows", "number", "covered"], rows)]


def _method(report: ModelReport) -> list[Block]:
    segments = [Paragraph([sentence(report.multicalibration)])] if report.multicalibration else []
    if report.mixture is None:
        return [*_shares(report), Paragraph(["Head ", Code(report.head), f": {report.why}."]), *segments]
    kinds = {part.kind for part in report.mixture.parts if _counts(part)}
    head = (
        [Paragraph([f"The network: {report.why}. Its head is ", Code(report.head), "."])] if "network" in kinds else []
    )
    return [*_shares(report), *head, *segments]


def _shares(report: ModelReport) -> list[Block]:
    """What the model consists of, in a sentence, unless it is what was asked for."""
    if report.mixture is None:
        return [Paragraph([f"No trees were boosted beside the network: {report.no_trees}."])] if report.no_trees else []
    large: dict[str, float] = defaultdict(float)
    small: dict[str, float] = defaultdict(float)
    for part in report.mixture.parts:
        large[part.kind] += part.share
        small[part.kind] += part.small
    dropped = [part.name for part in report.mixture.parts if not _counts(part)]
    left_out = f" The rows had no use for {' and '.join(dropped)}." if dropped else ""
    times = (
        f". {report.mixture.count} mixtures, of folds and of all rows, are averaged" if report.mixture.count > 1 else ""
    )
    how = f"{counted(report.mixture.rows, 'row')} that nothing was trained on decided the shares{times}."
    kept = [part for part in report.mixture.parts if part.kind == "trees" and _counts(part)]
    again = [part.name for part in kept if part.refitted]
    if again:
        which = "the trees" if len(again) == len(kept) else " and ".join(again)
        how += f" Then {which} were boosted again on all rows but those held out."
    amounts = f"of large amounts {_in_words(large)}, of small ones {_in_words(small)}"
    return [Paragraph([f"The prediction is a mixture: {amounts}. {how}{left_out}"])]


def _in_words(shares: Mapping[str, float]) -> str:
    """What has a share, and how much: 40 % trees and 60 % network."""
    return " and ".join(f"{share(value, 0)} {kind}" for kind, value in shares.items() if value > 0.0)


def _counts(part: Part) -> bool:
    """Whether a part has a share anywhere."""
    return part.share + part.small > 0.0


def _mixture(mixture: Mixture) -> list[Block]:
    rows = [
        [
            Cell(part.name),
            Cell(share(part.share, 0), part.share),
            Cell(share(part.small, 0), part.small),
            Cell(number(part.error), part.error),
        ]
        for part in mixture.parts
    ]
    rows.append([Cell("mixture"), Cell("100 %", 1.0), Cell("100 %", 1.0), Cell(number(mixture.error), mixture.error)])
    return [
        Table(["part", "share of large amounts", "share of small amounts", "RMSE of the deciding rows"], rows),
        Paragraph(["The mixture's own error is a little flattered, because these rows chose its shares."]),
    ]


def _levels(levels: Sequence[Level], unit: Unit) -> Chart:
    figures = [Figure(signed_error_chart(levels), "Ten groups of rows by their prediction, with 99 % intervals.")]
    kappas = [(float(index + 1), level.kappa) for index, level in enumerate(levels) if level.kappa is not None]
    if kappas:
        picture = _curve(kappas, "level of the prediction", "mean slope κ")
        figures.append(Figure(picture, "κ scales the target of the bias branch: z learns y·κ."))
    return Chart(figures, level_table(levels, unit))


def _training(report: ModelReport) -> list[Block]:
    figures, ends = [], []
    for term, points in report.curves.items():
        figures.append(Figure(_curve(points, "step", f"loss term {term}"), f"{term}: mean over neighbouring batches."))
        ends.append((term, points))
    for name in dict.fromkeys(name for check in report.checks for name in check.values):
        title = f"{name}, validation rows"
        points = [(float(check.step), check.values[name]) for check in report.checks if name in check.values]
        figures.append(Figure(_curve(points, "step", title, fair_value(name)), sentence(metric_title(name))))
        ends.append((title, points))
    rows = [
        [Cell(title), *[Cell(number(value), value) for _, value in (points[0], points[-1])]] for title, points in ends
    ]
    gallery = Gallery(figures, {"Ends of the curves": Table(["curve", "at first", "at last"], rows)})
    return [gallery, *(Paragraph([reason]) for reason in report.cost.end)]


def _plan_table(plan: Sequence[Sequence[str]]) -> Table:
    rows = [[Cell(visible(text), None, "words") for text in row] for row in plan]
    return Table(["column", "kind", "becomes", "missing", "why"], rows)


def _target_table(summary: TargetSummary, unit: Unit) -> Table:
    rows = [
        ("mean", unit.amount(summary.mean), summary.mean),
        ("median", unit.amount(summary.median), summary.median),
        ("99 % are at most", unit.amount(summary.p99), summary.p99),
        ("largest", unit.amount(summary.largest), summary.largest),
        ("exactly 0", share(summary.zeros, 1), summary.zeros),
        ("below 0", share(summary.negative, 1), summary.negative),
        ("skewness (0 symmetric, 2 exponential)", number(summary.skewness), summary.skewness),
    ]
    return Table(["target", "value"], [[Cell(name), Cell(text, value)] for name, text, value in rows])


def _cost_table(report: ModelReport) -> Table:
    cost = report.cost
    rows = [
        ("parameters", f"{cost.parameters:,}", float(cost.parameters)),
        ("seconds of training", number(cost.seconds), cost.seconds),
        ("rows a second", number(cost.rows_per_second), cost.rows_per_second),
        ("steps", f"{cost.steps:,}", float(cost.steps)),
        ("best step", "–" if cost.best_step is None else f"{cost.best_step:,}", float(cost.best_step or 0)),
        *[(f"{part} rows", f"{count:,}", float(count)) for part, count in report.rows.items()],
    ]
    return Table(["cost", "value"], [[Cell(name), Cell(text, value)] for name, text, value in rows])


def _settings_table(report: ModelReport) -> Table:
    values = {name.replace("_", " "): "–" if text == "None" else text for name, text in report.recipe.items()}
    rows = [[Cell(name), Cell(text)] for name, text in values.items()]
    share = [Cell("test share"), Cell(f"{report.test_share:g}", report.test_share)]
    return Table(
        ["setting", "value"], [*rows, share, [Cell("held out"), Cell(visible(report.hold_out), None, "words")]]
    )


def _curve(points: Sequence[tuple[float, float]], x_title: str, y_title: str, target: float | None = None) -> str:
    """A line through the points, with a dashed line where the values should end."""
    finite = [(x, y) for x, y in points if math.isfinite(y)]
    if not finite:
        return ""
    canvas = Canvas(200.0, f"{y_title} over {x_title}")
    values = [y for _, y in finite] + ([] if target is None else [target])
    low, high = min(values), max(values)
    steep = target is None and low > 0.0 and high > _STEEP * low
    margin = 0.04 * (high - low) or 0.02 * abs(high) or 1.0
    y = log_scale(low, high, _BOTTOM, _TOP) if steep else linear_scale(low - margin, high + margin, _BOTTOM, _TOP)
    x = linear_scale(0.0, max(step for step, _ in finite), _LEFT, _RIGHT)
    canvas.y_axis(y, _LEFT, _RIGHT, y_title)
    canvas.x_axis(x, _TOP, _BOTTOM, (_LEFT + _RIGHT) / 2, x_title)
    if target is not None:
        canvas.line([(_LEFT, y.position(target)), (_RIGHT, y.position(target))], "even")
    canvas.line([(x.position(a), y.position(b)) for a, b in finite], "path")
    if len(finite) <= 30:
        for a, b in finite:
            canvas.dot(x.position(a), y.position(b), "dot", f"{x_title} {number(a)}: {number(b)}")
    return canvas.svg()


def signed_error_chart(levels: Sequence[Level]) -> str:
    """Signed TRE by level of the prediction with 99 % intervals; right totals lie on the dashed line."""
    shown = [level for level in levels if math.isfinite(level.stre.value)]
    if not shown:
        return ""
    canvas = Canvas(210.0, "signed total relative error by level of the prediction")
    # One level far out, or its interval, would squeeze all the others: it is drawn at the edge.
    sizes = sorted(abs(level.stre.value) for level in shown)
    most = max(0.1, 2.5 * sizes[int(0.75 * (len(sizes) - 1))])
    low = max(min(_finite(level.stre.low, -most) for level in shown), -most)
    high = min(max(_finite(level.stre.high, most) for level in shown), most)
    y = linear_scale(min(low, -0.02) * 1.05, max(high, 0.02) * 1.05, _BOTTOM, _TOP)
    canvas.y_axis(y, _LEFT, _RIGHT, "signed TRE (below 0: too little predicted)")
    step = (_RIGHT - _LEFT) / len(shown)
    canvas.line([(_LEFT, y.position(0.0)), (_RIGHT, y.position(0.0))], "even")
    for index, level in enumerate(shown):
        at, stre = _LEFT + (index + 0.5) * step, level.stre
        style = "" if 0.0 in stre else " bad"
        canvas.line([(at, y.clamped(_finite(end, stre.value))) for end in (stre.low, stre.high)], f"range{style}")
        title = f"{counted(level.rows, 'row')}: {stre.value:+.3f} ({stre.low:+.3f} to {stre.high:+.3f})"
        canvas.dot(at, y.clamped(stre.value), f"dot{style}", title)
        canvas.text(at, _BOTTOM + 14, short(level.pred))
    canvas.text((_LEFT + _RIGHT) / 2, _BOTTOM + 30, "mean prediction of the level", style="axis")
    return canvas.svg()


def _finite(value: float, otherwise: float) -> float:
    return value if math.isfinite(value) else otherwise
