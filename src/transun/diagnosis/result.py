"""What a diagnosis found: plain frozen values, computed once and shown in several ways."""

from dataclasses import dataclass

__all__ = [
    "Advice",
    "Candidate",
    "Cure",
    "Diagnosis",
    "Estimate",
    "Histogram",
    "Level",
    "Segment",
    "SegmentTable",
    "Shape",
    "Source",
    "Test",
    "Verdict",
]


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval; NaN where it is undefined."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Source:
    """Which rows were looked at.

    Attributes:
        name: what the data is called.
        target: column of the actual values.
        pred: column of the predictions.
        weight: column of what each row counts, or None.
        by: columns of segments.
        rows: read in all.
        used: after rows without usable numbers were left out.
        sampled: rows in the sample behind ranking, shape, test and corrections; equal to `used` if it is all of them.

    """

    name: str
    target: str
    pred: str
    weight: str | None
    by: tuple[str, ...]
    rows: int
    used: int
    sampled: int


@dataclass(frozen=True)
class Verdict:
    """The answer: `kind` is "biased", "uneven" (a segment is biased, the total is not) or "fine"; `text` says it."""

    kind: str
    text: str
    biased: bool


@dataclass(frozen=True)
class Level:
    """Rows of similar predictions: mean prediction and mean actual with its interval, and predicted / actual."""

    lowest: float
    rows: int
    pred: float
    actual: Estimate
    pgr: Estimate


@dataclass(frozen=True)
class Segment:
    """Rows that share a value of a column.

    Attributes:
        value: the value, or the range.
        rows: how many.
        share: of the actual total.
        pgr: predicted / actual.
        chance: adjusted p-value of "no bias here" (Holm over all segments of all columns).
        biased: whether that is below the level of the verdict.

    """

    value: str
    rows: int
    share: float
    pgr: Estimate
    chance: float
    biased: bool


@dataclass(frozen=True)
class SegmentTable:
    """The segments of one column, and how they were chosen."""

    column: str
    how: str
    segments: tuple[Segment, ...]


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
        deciding: how many rows' worth of information the error of the total has, 2n / (kurtosis − 1).
        error_skewness: of the errors y − ŷ, scaled to the right total.
        values: histogram of the positive targets, edges on a logarithmic scale.
        residuals: histogram of T(y) − T(ŷ) for the T of the test.

    """

    mean: float
    skewness: float
    zeros: float
    negative: float
    quantiles: tuple[tuple[float, float], ...]
    top: float
    deciding: float
    error_skewness: float
    values: Histogram
    residuals: Histogram


@dataclass(frozen=True)
class Candidate:
    """A transform under test.

    Attributes:
        name: T as a formula.
        spec: T as text of `transun.models.spec`.
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
    """The test for retransformation bias: a conclusion, why, and the transforms that were tried."""

    conclusion: str
    reason: str
    best: str | None
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True)
class Cure:
    """A correction, learned on four fifths of the rows and judged on the rest, five times."""

    name: str
    how: str
    pgr: Estimate
    tre: Estimate
    nrmse: Estimate


@dataclass(frozen=True)
class Advice:
    """What to do: after training, at the next training, and why.

    Attributes:
        now: the correction of least error that gets the total right, or what else to do.
        transform: T to train on, as text of `transun.models.spec`.
        kappa: the slope, as text of `transun.models.spec`.
        head: both in a head that `transun.models.spec.loads` reads.
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
class Diagnosis:
    """Everything that was found; see the parts."""

    source: Source
    verdict: Verdict
    actual: float
    predicted: float
    metrics: tuple[Estimate, ...]
    levels: tuple[Level, ...]
    segments: tuple[SegmentTable, ...]
    shape: Shape
    test: Test
    cures: tuple[Cure, ...]
    advice: Advice
    sampled: tuple[str, ...]
    skipped: tuple[str, ...]
