"""`diagnose`: from predictions and actual values to a `Diagnosis`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from transun import metrics
from transun.data.columns import Rows, open_columns, require_numbers
from transun.data.magnitude import refuse_vanishing
from transun.data.schema import require_columns
from transun.data.table import read_table
from transun.diagnosis.advice import advise, choose_head, variance_power_by_bins
from transun.diagnosis.assessment import assess_sums, is_biased
from transun.diagnosis.candidates import candidates, log_like
from transun.diagnosis.correction_trials import FEWEST, FOLDS, TrialRows, correction_trials, run_trials
from transun.diagnosis.interval import TOTALS
from transun.diagnosis.passes import FirstPass, first_pass, second_pass
from transun.diagnosis.reading import ColumnNames, ColumnRows
from transun.diagnosis.result import CorrectionResult, DiagnosedData, Diagnosis
from transun.diagnosis.retransformation import retransformation_test
from transun.diagnosis.shape import effective_rows, shape_of
from transun.support.arguments import listed
from transun.support.arrays import refuse_reordered
from transun.support.counting import counted, counted_are

__all__ = ["diagnose", "diagnose_rows", "diagnose_table"]

# Rows of the sample that corrections are tried on: five folds of five corrections.
_CORRECTED = 1 << 17
_MOST_COLUMNS = 10


def diagnose(
    y: Any, pred: Any, by: Any = None, weight: Any = None, *, name: str = "data", progress: bool | None = None
) -> Diagnosis:
    """Find out whether the total of some predictions is biased, where, why, and what would help.

    Args:
        y: actual values (n,); rows without a finite number are left out and counted.
        pred: predictions (n,) in the same units, from any model and on rows it was not trained on. On training rows
            the errors are too small, and a bias can hide.
        by: columns of segments, a dict or a frame of n rows; None has no segments.
        weight: importance weights (n,); None counts every row once.
        name: of the data, in reports.
        progress: True or False shows a bar or does not; None shows it on a terminal.

    >>> rng = np.random.default_rng(0)
    >>> y = rng.lognormal(3.0, 1.0, 5000)
    >>> diagnosis = diagnose(y, np.full(5000, np.exp(3.0)))  # trained on ln y: the median
    >>> diagnosis.verdict.biased, diagnosis.test.conclusion
    (True, 'consistent with training on ln(1 + y)')

    """
    refuse_reordered(y=y, pred=pred, by=by, weight=weight)
    names = ColumnNames("target", "prediction", None if weight is None else "weight")
    table = {"target": y, "prediction": pred} | ({} if weight is None else {"weight": weight})
    source = read_table(table)
    if by is not None:
        segments = read_table(by if not isinstance(by, Mapping) else dict(by))
        clash = sorted(set(segments.column_names) & set(source.column_names))
        if clash:
            raise ValueError(f"`by` has a column {clash[0]!r}, which is a name of ours: rename it")
        if len(segments) != len(source):
            raise ValueError(
                f"`by` has {counted(len(segments), 'row')} and `y` {len(source)}: give the segments of the same rows"
            )
        for column in segments.column_names:
            source = source.append_column(column, segments[column])
        names = ColumnNames(names.target, names.pred, names.weight, tuple(segments.column_names))
    return _diagnose(open_columns(source, names.numbers, names.by), names, name, progress)


def diagnose_table(
    source: Any,
    target: str,
    pred: str,
    by: Sequence[str] = (),
    weight: str | None = None,
    *,
    exposure: str | None = None,
    name: str | None = None,
    progress: bool | None = None,
) -> Diagnosis:
    """The diagnosis of columns of a table: a file, a folder, a frame or a dict; files are streamed, read twice.

    Args:
        source: what `read_table` takes, or a folder of CSV files.
        target: column of actual values.
        pred: column of predictions.
        by: columns of segments: text by its values, numbers by ranges.
        weight: column of importance weights.
        exposure: column that amounts were collected over. Levels are then those of predicted amounts per unit of it,
            and rows count by it; totals are those of the amounts. See `transun.data.exposure`.
        name: of the data, in reports; the file name if None.
        progress: True or False shows a bar or does not; None shows it on a terminal.

    """
    names = ColumnNames(target, pred, weight, tuple(dict.fromkeys(listed("by", by))), exposure)
    _check(names)
    title = name if name is not None else str(source) if isinstance(source, str) or hasattr(source, "name") else "data"
    return _diagnose(open_columns(source, names.numbers, names.by), names, title, progress)


def diagnose_rows(
    rows: Rows,
    target: str,
    pred: str,
    by: Sequence[str] = (),
    weight: str | None = None,
    *,
    name: str = "data",
    progress: bool | None = None,
) -> Diagnosis:
    """The diagnosis of rows that live elsewhere: every number is computed from sums that were made where the rows are.

    The adapters of `transun.engines` are made of it. It asks for two totals, see `transun.data.columns.Rows`; whatever
    the order and the grouping of chunks, the numbers are those of `diagnose_table`, but for the rounding of sums.

    Args:
        rows: an object with a `schema` and a method `total`. The number of a row, `chunk.first` and on, decides whether
            it is sampled, so the numbers must be the same in both totals.
        target: column of actual values.
        pred: column of predictions.
        by: columns of segments: text by its values, numbers by ranges.
        weight: column of importance weights.
        name: of the data, in reports.
        progress: True or False shows a bar or does not, where the engine has one; None shows it on a terminal.

    >>> rows = open_columns({"gmv": np.arange(1000.0), "p": np.full(1000, 999.0)}, ["gmv", "p"])
    >>> diagnose_rows(rows, "gmv", "p").metric("PGR").value
    2.0

    """
    names = ColumnNames(target, pred, weight, tuple(dict.fromkeys(listed("by", by))))
    _check(names)
    require_columns(rows.schema.names, names.by)
    require_numbers(rows.schema, names.numbers)
    return _diagnose(rows, names, name, progress)


def _diagnose(columns: Rows, names: ColumnNames, title: str, progress: bool | None) -> Diagnosis:
    rows = ColumnRows(columns, names, progress)
    first = first_pass(rows)
    _require_totals(first, names)
    second = second_pass(rows, first)
    moments, sample = first.moments, first.sample
    y, pred, weight = (sample[name] for name in ("y", "pred", "weight"))
    biased = is_biased(first, second)

    named, not_tested = candidates(y, pred)
    test = retransformation_test(named, y, pred, weight, biased)
    assessment = assess_sums(first, second, test.conclusion)
    power = variance_power_by_bins(y, pred, weight)
    transform, scheme, reason = choose_head(y, pred, power, effective_rows(moments))
    cause = next((each for each in named if each.formula == test.best), log_like(y))

    skipped = [*first.skipped, *not_tested]
    corrections: tuple[CorrectionResult, ...] = ()
    chosen = sample.subset(_CORRECTED)
    if len(chosen) < FEWEST:
        skipped.append(f"corrections were not tried: {counted_are(len(chosen), 'row')} fewer than {FEWEST}")
    else:
        trials = correction_trials(cause, scheme, len(chosen))
        folds = sample.folds(FOLDS, chosen)
        tried = run_trials(trials, TrialRows(y[chosen], pred[chosen], weight[chosen]), folds, progress)
        corrections = tuple(each.result for each in tried)
    if math.isnan(power.value):
        skipped.append("the variance power was not estimated: the predictions hardly differ, or there are too few rows")
    share = {estimate.name: estimate.value for estimate in assessment.metrics}.get("FLOORED", 0.0)
    if share > 0.0:
        skipped.append(
            f"MRE divides by a millionth of the mean in {share:.2%} of the rows, whose prediction is 0: do not read it"
        )
    source = DiagnosedData(
        title,
        names.target,
        names.pred,
        names.weight,
        names.by,
        first.rows,
        assessment.rows,
        len(sample),
        names.exposure,
    )
    return Diagnosis(
        **{each.name: getattr(assessment, each.name) for each in fields(assessment)},
        source=source,
        shape=shape_of(moments, y, pred, weight, cause),
        test=test,
        corrections=corrections,
        advice=advise(transform, scheme, reason, power, corrections, assessment.verdict),
        sampled=_sampled(first, len(chosen)),
        skipped=tuple(skipped),
    )


def _sampled(first: FirstPass, corrected: int) -> tuple[str, ...]:
    used = int(first.moments.rows[0])
    sentences = []
    if not first.sample.whole:
        summed = {*TOTALS, *(metric.name for metric in first.meter.metrics)}
        ranking = ", ".join(metric.name for metric in metrics.STANDARD if metric.name not in summed)
        sentences.append(
            f"{ranking}, quantiles, histograms, the test and the edges of the levels are of {len(first.sample):,} of "
            f"the {used:,} rows, drawn by a hash of the row number; totals, intervals, levels and segments are of all "
            "rows"
        )
    if corrected < used:
        sentences.append(f"corrections were tried on {corrected:,} rows, drawn by a hash of the row number")
    return tuple(sentences)


def _check(names: ColumnNames) -> None:
    if names.target == names.pred:
        raise ValueError(f"target and prediction are the same column {names.target!r}: name two")
    if names.weight in (names.target, names.pred):
        raise ValueError(f"the weight {names.weight!r} is also the target or the prediction: name a column of its own")
    if names.exposure is not None and names.exposure in (names.target, names.pred, names.weight):
        raise ValueError(f"the exposure {names.exposure!r} is also another of the columns: name a column of its own")
    if names.target in names.by:
        raise ValueError(
            f"segments by the target {names.target!r} would call every model biased, since what turned out high was "
            "predicted lower; use columns known beforehand, the levels of the prediction are shown anyway"
        )
    if names.pred in names.by:
        raise ValueError(f"{names.pred!r} is the prediction, whose levels are shown anyway: name another column")
    if len(names.by) > _MOST_COLUMNS:
        raise ValueError(
            f"{len(names.by)} columns of segments are too many to test together: name at most {_MOST_COLUMNS}"
        )


def _require_totals(first: FirstPass, names: ColumnNames) -> None:
    moments = first.moments
    if moments.count[0] < 2:
        raise ValueError("there is one usable row: an error needs at least two, and some hundred to be of use")
    y = first.sample["y"]
    refuse_vanishing(**{f"target {names.target!r}": y, f"prediction {names.pred!r}": first.sample["pred"]})
    if float(np.ptp(y)) == 0.0:
        raise ValueError(
            f"column {names.target!r} is {y[0]:g} in every row: there is nothing to diagnose; is it the right column?"
        )
    if not moments.actual() > 0.0:
        raise ValueError(
            f"the total of {names.target!r} is {moments.actual():g}: predicted / actual means something for totals "
            "above 0 only; turn the sign around, or look at the rows above 0"
        )
    if not moments.predicted() > 0.0:
        raise ValueError(
            f"the total of the predictions {names.pred!r} is {moments.predicted():g} and that of the target "
            f"{moments.actual():g}: a ratio to it means nothing; is it the right column, transformed back to its unit?"
        )
