"""`diagnose`: from predictions and actual values to a `Diagnosis`."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from transun.data.columns import Columns, open_columns
from transun.data.table import read_table
from transun.diagnosis.advice import advise, choose, variance_power
from transun.diagnosis.candidates import candidates, log_like
from transun.diagnosis.cures import FEWEST, FOLDS, inverted, treatments, try_cures
from transun.diagnosis.interval import VERDICT_LEVEL, capped_interval, chance, mean_interval, ratio_interval
from transun.diagnosis.moments import RatioMoments
from transun.diagnosis.passes import Everything, First, first_pass, second_pass
from transun.diagnosis.reading import Names
from transun.diagnosis.result import Cure, Diagnosis, Estimate, Level, Segment, SegmentTable, Source
from transun.diagnosis.retransformation import retransformation_test
from transun.diagnosis.shape import deciding_rows, shape_of
from transun.diagnosis.splits import holm
from transun.diagnosis.verdict import pronounce
from transun.metrics import XAUC
from transun.metrics.metric import Interval

__all__ = ["diagnose", "diagnose_table", "total_intervals"]

# Rows of the sample that corrections are tried on: five folds of five corrections.
_CURED = 1 << 17
_MOST_COLUMNS = 10


def diagnose(
    y: Any, pred: Any, by: Any = None, weight: Any = None, *, name: str = "data", progress: bool | None = None
) -> Diagnosis:
    """What is wrong with the totals of some predictions, and what would help.

    Args:
        y: actual values (n,); rows without a finite number are left out and counted.
        pred: predictions (n,) in the same units, from any model and on rows it was not trained on. On training rows
            the errors are too small, and a bias can hide.
        by: columns of segments, a dict or a frame of n rows; None looks at the whole only.
        weight: how often each row counts (n,); None counts every row once.
        name: what the data is called in reports.
        progress: True or False shows a bar or does not; None shows it on a terminal.

    >>> rng = np.random.default_rng(0)
    >>> y = rng.lognormal(3.0, 1.0, 5000)
    >>> found = diagnose(y, np.full(5000, np.exp(3.0)))  # trained on ln y: the median
    >>> found.verdict.biased, found.test.conclusion
    (True, 'consistent with training on ln(1 + y)')

    """
    names = Names("target", "prediction", None if weight is None else "weight")
    table = {"target": y, "prediction": pred} | ({} if weight is None else {"weight": weight})
    source = read_table(table)
    if by is not None:
        segments = read_table(by if not isinstance(by, Mapping) else dict(by))
        clash = sorted(set(segments.column_names) & set(source.column_names))
        if clash:
            raise ValueError(f"`by` has a column {clash[0]!r}, which is a name of ours: rename it")
        if len(segments) != len(source):
            raise ValueError(f"`by` has {len(segments)} rows and `y` {len(source)}: give the segments of the same rows")
        for column in segments.column_names:
            source = source.append_column(column, segments[column])
        names = Names(names.target, names.pred, names.weight, tuple(segments.column_names))
    return _diagnose(open_columns(source, names.numbers, names.by), names, name, progress)


def diagnose_table(
    source: Any,
    target: str,
    pred: str,
    by: Sequence[str] = (),
    weight: str | None = None,
    *,
    name: str | None = None,
    progress: bool | None = None,
) -> Diagnosis:
    """The diagnosis of columns of a table: a file, a folder, a frame or a dict; files are streamed, read twice.

    Args:
        source: what `read_table` takes, or a folder of CSV files.
        target: column of actual values.
        pred: column of predictions.
        by: columns of segments: text by its values, numbers by ranges.
        weight: column of how often each row counts.
        name: what the data is called in reports; the file name if None.
        progress: True or False shows a bar or does not; None shows it on a terminal.

    """
    names = Names(target, pred, weight, tuple(dict.fromkeys(by)))
    _check(names)
    title = name if name is not None else str(source) if isinstance(source, str) or hasattr(source, "name") else "data"
    return _diagnose(open_columns(source, names.numbers, names.by), names, title, progress)


def _diagnose(columns: Columns, names: Names, title: str, progress: bool | None) -> Diagnosis:
    first = first_pass(columns, names, progress)
    moments, sample = first.moments, first.sample
    _require_totals(first, names)
    everything = second_pass(columns, names, first, progress)
    y, pred, weight = (sample[name] for name in ("y", "pred", "weight"))
    skipped = list(first.skipped)

    interval, strict_interval = total_intervals(first, everything)
    pgr, _ = inverted(moments.ratio(), interval)
    strict, _ = inverted(moments.ratio(), strict_interval)
    biased = not strict.low <= 1.0 <= strict.high
    tables = _segments(names, first, everything, moments)

    named, why_not = candidates(y, pred)
    skipped += why_not
    test = retransformation_test(named, y, pred, weight, biased)
    power, deciding = variance_power(y, pred, weight), deciding_rows(moments)
    transform, scheme, reason = choose(y, pred, power, deciding)
    cause = next((each for each in named if each.formula == test.best), log_like(y))

    cures: tuple[Cure, ...] = ()
    places = sample.fewest(_CURED)
    if len(places) < FEWEST:
        skipped.append(f"corrections were not tried: {len(places)} rows are fewer than {FEWEST}")
    else:
        chosen = treatments(cause, scheme, len(places))
        cures = try_cures(chosen, y[places], pred[places], weight[places], sample.folds(FOLDS, places), progress)
    if math.isnan(power.value):
        skipped.append("the variance power was not estimated: the predictions hardly differ, or there are too few rows")
    floored = first.meter.compute()["FLOORED"]
    if floored > 0.0:
        skipped.append(f"MRE divides by 0.000001 in {floored:.2%} of the rows, whose prediction is 0: do not read it")
    return Diagnosis(
        Source(title, names.target, names.pred, names.weight, names.by, first.rows, int(moments.count[0]), len(sample)),
        pronounce(pgr, strict, tables, test),
        moments.actual(),
        moments.predicted(),
        _metrics(first, interval),
        tuple(_level(everything, index) for index in np.flatnonzero(everything.levels.count).tolist()),
        tables,
        shape_of(moments, y, pred, weight, cause),
        test,
        cures,
        advise(transform, scheme, reason, power, cures, biased),
        _sampled(first, len(places)),
        tuple(skipped),
    )


def total_intervals(first: First, everything: Everything) -> tuple[Interval, Interval]:
    """Intervals of the actual over the predicted total: the one that is shown, and the one that decides."""
    shown = capped_interval(first.moments, everything.capped)
    return shown, capped_interval(first.moments, everything.capped, VERDICT_LEVEL)


def _metrics(first: First, interval: Interval) -> tuple[Estimate, ...]:
    values, errors, sample = first.meter.compute(), first.meter.standard_errors(), first.sample
    ratio = first.moments.ratio()
    pgr, tre = inverted(ratio, interval)
    stre = Estimate("signed TRE", 1.0 - ratio, 1.0 - interval.high, 1.0 - interval.low)
    ranking = [sample[name] for name in ("pred", "y", "weight")]
    values["XAUC"], errors["XAUC"] = XAUC(*ranking), XAUC.standard_error(*ranking)
    found = [pgr, tre, stre]
    for name in ("MRE", "NRMSE", "NMAE", "XAUC"):
        half = 1.96 * errors[name]
        found.append(Estimate(name, values[name], max(values[name] - half, 0.0), values[name] + half))
    return tuple(found)


def _level(everything: Everything, index: int) -> Level:
    levels = everything.levels
    mass = float(levels.weight[index])
    pred = levels.predicted(index) / mass
    ends = ratio_interval(levels, index)
    pgr, _ = inverted(levels.ratio(index), ends)
    # Where nothing is predicted there is no ratio, and still a mean.
    plain, each = mean_interval(levels.studentised(index, ratio=0.0)), float(levels.count[index]) / mass
    low, high = (ends.low * pred, ends.high * pred) if pred > 0.0 else (plain.low * each, plain.high * each)
    actual = Estimate("mean actual", levels.actual(index) / mass, low, high)
    return Level(everything.edges[index], int(levels.count[index]), pred, actual, pgr)


def _segments(names: Names, first: First, everything: Everything, whole: RatioMoments) -> tuple[SegmentTable, ...]:
    found = [(name, int(index)) for name in names.by for index in np.flatnonzero(everything.segments[name].count)]
    adjusted = holm([chance(everything.segments[name], index) for name, index in found])
    segments: dict[str, list[Segment]] = {name: [] for name in names.by}
    for (name, index), probability in zip(found, adjusted, strict=True):
        moments = everything.segments[name]
        pgr, _ = inverted(moments.ratio(index), ratio_interval(moments, index))
        segments[name].append(
            Segment(
                first.splits[name].titles[index],
                int(moments.count[index]),
                moments.actual(index) / whole.actual(),
                pgr,
                probability,
                probability < 1.0 - VERDICT_LEVEL,
            )
        )
    return tuple(SegmentTable(name, first.splits[name].how, tuple(segments[name])) for name in names.by)


def _sampled(first: First, cured: int) -> tuple[str, ...]:
    used = int(first.moments.count[0])
    found = []
    if not first.sample.whole:
        found.append(
            f"XAUC, quantiles, histograms, the test and the edges of the levels are of {len(first.sample):,} of the "
            f"{used:,} rows, drawn by a hash of the row number; totals, intervals, levels and segments are of all rows"
        )
    if cured < used:
        found.append(f"corrections were tried on {cured:,} rows, drawn by a hash of the row number")
    return tuple(found)


def _check(names: Names) -> None:
    if names.target == names.pred:
        raise ValueError(f"target and prediction are the same column {names.target!r}: name two")
    if names.weight in (names.target, names.pred):
        raise ValueError(f"the weight {names.weight!r} is also the target or the prediction: name a column of its own")
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


def _require_totals(first: First, names: Names) -> None:
    moments = first.moments
    if moments.count[0] < 2:
        raise ValueError("there is one usable row: an error needs at least two, and some hundred to be of use")
    y = first.sample["y"]
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
