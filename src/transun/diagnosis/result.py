"""What an assessment and a diagnosis hold: plain frozen values, computed once and shown in several ways."""

from dataclasses import dataclass
from importlib import import_module

from transun.metrics import Estimate
from transun.models.noise import Noise

__all__ = [
    "Advice",
    "Assessment",
    "CorrectionResult",
    "Covered",
    "DiagnosedData",
    "Diagnosis",
    "Histogram",
    "Level",
    "ModelAssessment",
    "Segment",
    "SegmentTable",
    "Shape",
    "Test",
    "TransformCandidate",
    "Verdict",
]


@dataclass(frozen=True)
class DiagnosedData:
    """Which rows and columns were read.

    Attributes:
        name: of the data, for the reader.
        target: column of the actual values.
        pred: column of the predictions.
        weight: column of importance weights, or None.
        by: columns of segments.
        rows: in the data.
        used: rows with usable numbers; the others are left out.
        sampled: rows in the sample behind ranking, shape, test and corrections; equal to `used` if it is all of them.
        exposure: column that amounts were collected over, or None; means are then per unit of it.

    """

    name: str
    target: str
    pred: str
    weight: str | None
    by: tuple[str, ...]
    rows: int
    used: int
    sampled: int
    exposure: str | None = None


@dataclass(frozen=True)
class Verdict:
    """The answer in one sentence.

    Attributes:
        kind: "biased", "uneven" (a segment is biased, the total is not shown to be), "fine" (the interval lies within
            10 % of the right total), "unclear" (it does not, and holds the right total) or "undefined" (a total is not
            above 0).
        text: the sentence, with numbers.
        biased: whether the total is biased: its 99 % interval, which is shown, excludes the right total.

    """

    kind: str
    text: str
    biased: bool

    @property
    def alarming(self) -> bool:
        """Whether something is wrong: the total or a segment is biased, or a total is not above 0."""
        return self.kind not in ("fine", "unclear")


@dataclass(frozen=True)
class Level:
    """Rows of similar predictions, about a tenth of all.

    Attributes:
        lowest: the smallest prediction among them.
        rows: how many.
        pred: mean prediction.
        actual: mean actual value.
        pgr: predicted / actual total.
        stre: signed total relative error.
        kappa: mean slope κ that the head uses here; None where it has none or it is unknown.

    """

    lowest: float
    rows: int
    pred: float
    actual: Estimate
    pgr: Estimate
    stre: Estimate
    kappa: float | None = None


@dataclass(frozen=True)
class Segment:
    """Rows that share a value of a column.

    Attributes:
        value: the value, or the range.
        rows: how many.
        share: of the actual total.
        metrics: TRE, STRE and PGR, and every other metric of `transun.metrics.STANDARD` where the rows are in memory.
        p_value: adjusted p-value of "no bias here" (Holm over all segments of all columns).
        biased: whether it is below the level of the verdict.

    """

    value: str
    rows: int
    share: float
    metrics: tuple[Estimate, ...]
    p_value: float
    biased: bool

    def metric(self, name: str) -> Estimate:
        """The metric of this name."""
        return _named(self.metrics, name)


@dataclass(frozen=True)
class SegmentTable:
    """The segments of one column, and how they were chosen."""

    column: str
    how: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class Assessment:
    """How right predictions are: of all rows, by level of the prediction and by segment.

    Attributes:
        rows: how many were used.
        actual: total of the actual values.
        predicted: total of the predictions.
        verdict: whether the total is biased.
        metrics: those of `transun.metrics.STANDARD`, each with a 99 % interval.
        levels: by level of the prediction, lowest first.
        segments: by column.

    """

    rows: int
    actual: float
    predicted: float
    verdict: Verdict
    metrics: tuple[Estimate, ...]
    levels: tuple[Level, ...]
    segments: tuple[SegmentTable, ...]

    def metric(self, name: str) -> Estimate:
        """The metric of this name."""
        return _named(self.metrics, name)


@dataclass(frozen=True)
class Covered:
    """How often intervals of single rows cover, in one group of rows.

    Attributes:
        group: what the rows have in common.
        rows: how many they are.
        share: of them that lie in their intervals.

    """

    group: str
    rows: int
    share: float


@dataclass(frozen=True)
class ModelAssessment(Assessment):
    """The assessment of a model whose training is known.

    Attributes:
        noise: how well the total can be known at all, by the rows of the training and by these.
        covered: how often 90 % intervals of single rows cover, by level of the prediction and by segment; empty where
            rows are few.

    """

    noise: Noise
    covered: tuple[Covered, ...]


@dataclass(frozen=True)
class Histogram:
    """Shares of rows between edges; `edges` has one number more than `shares`."""

    edges: tuple[float, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Shape:
    """How the target and the errors are spread.

    Attributes:
        mean: of the target.
        skewness: of the target; 0 symmetric, 2 exponential.
        zeros: share of rows that are exactly 0.
        negative: share of rows below 0.
        quantiles: share of rows and the value they do not exceed.
        top: share of the actual total in the largest 1 % of rows.
        effective_rows: rows of a normal sample that would know the spread of the errors as well, 2n / (kurtosis - 1).
        error_skewness: of the errors y - ŷ, the predictions scaled to the right total.
        values: histogram of the positive targets, edges on a logarithmic scale.
        residuals: histogram of T(y) - T(ŷ) for the T of the test.

    """

    mean: float
    skewness: float
    zeros: float
    negative: float
    quantiles: tuple[tuple[float, float], ...]
    top: float
    effective_rows: float
    error_skewness: float
    values: Histogram
    residuals: Histogram


@dataclass(frozen=True)
class TransformCandidate:
    """A transform under test.

    Attributes:
        name: T as a formula.
        spec: T as text, which `transun.models.spec.loads` reads.
        predicted: actual / predicted total that Jensen's gap alone would make.
        observed: actual / predicted total of the same rows.
        misfit: |ln(observed / predicted)| over |ln observed|, with an interval: the part of the bias it leaves.
        drift: how much the mean residual changes with the prediction, in residual standard deviations, with an
            interval.
        consistent: whether training on T explains the bias.

    """

    name: str
    spec: str
    predicted: float
    observed: float
    misfit: Estimate
    drift: Estimate
    consistent: bool


@dataclass(frozen=True)
class Test:
    """The test for retransformation bias: a conclusion, its reason, and the transforms that were tried."""

    conclusion: str
    reason: str
    best: str | None
    candidates: tuple[TransformCandidate, ...]


@dataclass(frozen=True)
class CorrectionResult:
    """The predictions under a correction, out of fold: learned on four fifths of the rows, applied to the rest."""

    name: str
    how: str
    pgr: Estimate
    tre: Estimate
    nrmse: Estimate


@dataclass(frozen=True)
class Advice:
    """What to do now and at the next training, with the reason.

    Attributes:
        now: to apply the correction of least error that gets the total right, or what else to do.
        transform: T to train on, as text, which `transun.models.spec.loads` reads.
        kappa: the slope κ, as such text.
        head: the head made of both, as such text.
        power: the variance power, with an interval; NaN where predictions hardly differ.
        reason: in words.

    """

    now: str
    transform: str
    kappa: str
    head: str
    power: Estimate
    reason: str


@dataclass(frozen=True)
class Diagnosis(Assessment):
    """An assessment with causes and remedies: why the total is biased, and what would help.

    Attributes:
        source: which rows and columns were read.
        shape: how the target and the errors are spread.
        test: the test for retransformation bias.
        corrections: the predictions without and with each correction, out of fold; empty where rows are too few.
        advice: what to do.
        sampled: a sentence on each number that is of a sample of the rows.
        skipped: a sentence on everything that was left out.

    """

    source: DiagnosedData
    shape: Shape
    test: Test
    corrections: tuple[CorrectionResult, ...]
    advice: Advice
    sampled: tuple[str, ...]
    skipped: tuple[str, ...]

    def _repr_html_(self) -> str:
        """The report, which notebooks show; reports are a layer above, and are imported only when one is asked for."""
        page: str = import_module("transun.report.diagnosis").diagnosis_document(self).inline()
        return page


def _named(estimates: tuple[Estimate, ...], name: str) -> Estimate:
    for estimate in estimates:
        if estimate.name == name:
            return estimate
    raise KeyError(f"there is no metric {name!r}: there are {', '.join(each.name for each in estimates)}")
