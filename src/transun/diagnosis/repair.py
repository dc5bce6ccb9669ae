"""Correct a column of predictions: the correction is chosen out of fold, and applied to every row."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from transun.backbones import Trees
from transun.corrections import Correction
from transun.data import Features, hashing, infer
from transun.data.columns import Chunk, open_columns
from transun.data.exposure import read_exposure
from transun.data.magnitude import require_squarable
from transun.data.sample import HashSample
from transun.diagnosis.advice import choose_head, variance_power_by_bins
from transun.diagnosis.candidates import NamedTransform, candidates, log_like
from transun.diagnosis.correction_trials import (
    FEWEST,
    FOLDS,
    CorrectionTrial,
    TrialRows,
    corrected,
    correction_trials,
    right_total_least_error,
    run_trials,
    segment_trial,
)
from transun.diagnosis.interval import ratio_interval
from transun.diagnosis.moments import RatioMoments
from transun.diagnosis.reading import ColumnNames
from transun.diagnosis.result import CorrectionResult
from transun.diagnosis.retransformation import retransformation_test
from transun.diagnosis.shape import effective_rows
from transun.support.arrays import Floats
from transun.support.extras import need

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Repair", "RowCorrection", "repair"]

# The most rows that corrections are learned from.
_SAMPLE = 1 << 20
# Columns of the sample beside those of segments, which have names of their own.
_NUMBERS = ("y", "pred", "weight", "number")


@dataclass(frozen=True)
class Repair:
    """A correction of a column of predictions: how it was chosen, and how it is applied to rows.

    Attributes:
        chosen: name of the correction.
        outcomes: results out of fold; the first is that of no correction.
        learned: number of rows with a target.
        applied: number of rows without one.
        sampled: rows that the corrections were learned from: those with a target, or a sample of a million of them.
        correct: corrects the rows of a chunk.

    """

    chosen: str
    outcomes: tuple[CorrectionResult, ...]
    learned: int
    applied: int
    sampled: int
    correct: "RowCorrection"

    def corrected(self, source: Any) -> Floats:
        """The corrected predictions (n,) of all rows; `correct` is for tables larger than memory."""
        names = self.correct.names
        chunks = open_columns(source, names.numbers, names.by).chunks()
        return np.concatenate([self.correct(chunk) for chunk in chunks])


@dataclass(frozen=True)
class RowCorrection:
    """The correction of a row with a target is learned without its fold, that of another row from all of them.

    Args:
        names: the columns; amounts per unit of exposure are corrected, if there is an exposure.
        features: how the columns of segments are encoded; None where there are none.
        space: the transform that the corrections compute in.
        folds: the correction learned without each fold.
        whole: the correction learned from all rows.
        seed: of the folds, which are a hash of the row number.

    """

    names: ColumnNames
    features: Features | None
    space: NamedTransform
    folds: tuple[Correction, ...]
    whole: Correction
    seed: int

    def __call__(self, chunk: Chunk) -> Floats:
        """The corrected predictions (n,) of the rows of a chunk."""
        known = _KnownRows.of(chunk, self.names)
        x = {} if self.features is None else self.features.encode(chunk.table)
        rows = TrialRows(known.y, known.pred, known.weight, x)
        result = corrected(self.whole, self.space, rows)
        fold = _fold(known.number, self.seed)
        for index, correction in enumerate(self.folds):
            inside = known.known & (fold == index)
            result[inside] = corrected(correction, self.space, rows.take(inside))
        return np.asarray(result * known.exposure)


@dataclass(frozen=True)
class _KnownRows:
    """The numbers of a chunk, per unit of exposure if there is one, and which rows have a target and count."""

    number: np.ndarray
    y: Floats
    pred: Floats
    weight: Floats
    known: np.ndarray
    exposure: Floats

    @staticmethod
    def of(chunk: Chunk, names: ColumnNames) -> "_KnownRows":
        number = np.arange(chunk.first, chunk.first + len(chunk))
        y, p = chunk.numbers(names.target), chunk.numbers(names.pred)
        mass = chunk.numbers(names.weight) if names.weight else np.ones(len(y))
        _check(number, p, mass, names)
        over = np.ones(len(y)) if names.exposure is None else read_exposure(chunk.table, names.exposure)
        y, p, mass = y / over, p / over, mass * over
        known = np.isfinite(y) & (mass > 0.0)
        require_squarable(number[known], target=y[known], prediction=p[known], weight=mass[known])
        return _KnownRows(number, y, p, mass, known, over)

    def summary(self, segments: "pa.Table") -> "_KnownSums":
        """What is known of these rows, with the columns of segments (n rows) in the sample."""
        columns = {name: getattr(self, name)[self.known] for name in _NUMBERS}
        chosen = segments.filter(need("pyarrow").array(self.known))
        labels = {_label(name): chosen[name] for name in segments.column_names}
        sample = HashSample.of(_SAMPLE, columns["number"], columns | labels)
        return _KnownSums(len(self.y), int(self.known.sum()), sample)


@dataclass(frozen=True)
class _KnownSums:
    rows: int
    known: int
    sample: HashSample

    def __add__(self, other: "_KnownSums") -> "_KnownSums":
        return _KnownSums(self.rows + other.rows, self.known + other.known, self.sample + other.sample)


def repair(
    table: Any,
    names: ColumnNames,
    *,
    method: str | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Repair:
    """Learn how to correct a column of predictions; files are streamed.

    Every correction that a diagnosis tries is learned on four fifths of the rows with a target and applied to the
    rest, five times. Among the corrections that get the total right, the one of least error is chosen; if none does,
    the one whose total is nearest. Where columns of segments are named, `Multicalibration` by them is tried too, for
    targets that are not negative. If more than a million rows have a target, a sample of a million is learned from.

    Args:
        table: what `read_table` takes.
        names: the columns. A row without a target is corrected and not learned from. Predictions are in the target's
            unit, of rows that the model was not trained on; with an exposure, amounts per unit of it are corrected.
        method: the name of a correction, as in the outcomes; None chooses the best.
        seed: of the folds.
        progress: show a bar; None shows it on a terminal.

    """
    numbers = names.numbers
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"target, prediction, weight and exposure must be different columns, got {', '.join(numbers)}")
    if taken := [name for name in names.by if name in numbers]:
        raise ValueError(f"column {taken[0]!r} holds numbers to be corrected: segments need columns of their own")
    by = list(names.by)
    rows = open_columns(table, numbers, by)
    sums = rows.total(lambda chunk: _KnownRows.of(chunk, names).summary(chunk.table.select(by)), "reading", progress)
    if sums.known < FEWEST:
        counted = "" if names.weight is None else f" and a weight {names.weight!r} above 0"
        raise ValueError(
            f"{sums.known} rows have a target {names.target!r}{counted}: a correction needs at least {FEWEST} to learn "
            "from"
        )
    sample = sums.sample.in_order()
    y, p, mass, number = (sample[name] for name in _NUMBERS)
    trials = _trials(y, p, mass, names.pred)
    features = _segment_features(sample, names) if by else None
    learned = TrialRows(y, p, mass)
    if features is not None:
        learned = TrialRows(y, p, mass, features.encode(_segments(sample, names)))
        trials.append(segment_trial(Trees(features.ids, features.bags, features.numeric), seed))
    fold = _fold(number, seed)
    tried = run_trials(trials, learned, fold, progress)
    outcomes = tuple(each.result for each in tried)
    chosen = _choose(trials, outcomes, method)
    folds = next(each.folds for each in tried if each.result.name == chosen.name)
    correct = RowCorrection(names, features, chosen.space, folds, chosen.fit(learned), seed)
    return Repair(chosen.name, outcomes, sums.known, sums.rows - sums.known, len(sample), correct)


def _label(name: str) -> str:
    """The name of a column of segments in the sample, which has columns of its own."""
    return f"segment {name}"


def _segments(sample: HashSample, names: ColumnNames) -> "pa.Table":
    """The columns of segments of the sample, under their own names."""
    return need("pyarrow").table({name: sample.table[_label(name)] for name in names.by})


def _segment_features(sample: HashSample, names: ColumnNames) -> Features:
    """How the columns of segments are encoded, learned from the sample."""
    y = sample["y"]
    if (y < 0.0).any():
        row = int(np.argmax(y < 0.0))
        raise ValueError(
            f"column {names.target!r} is {y[row]:g} in row {sample['number'][row]}: totals of segments are put right "
            "for amounts, which are not negative; name no segments"
        )
    table = _segments(sample, names)
    return infer(table.append_column(names.target, [y]), names.target)


def _fold(number: np.ndarray, seed: int) -> np.ndarray:
    shares = hashing.uniform(torch.from_numpy(number), seed, "repair.fold").numpy()
    return np.asarray((shares * FOLDS).astype(np.int64))


def _trials(y: Floats, p: Floats, mass: Floats, pred: str) -> list[CorrectionTrial]:
    moments = RatioMoments.of(y, p, mass, np.zeros(len(y), dtype=np.int64), 1)
    if not moments.predicted() > 0.0 or not moments.actual() > 0.0:
        raise ValueError(
            f"the totals are {moments.predicted():g} predicted ({pred!r}) and {moments.actual():g} actual: a ratio of "
            "totals means something above 0 only; is it the right column, transformed back to its unit?"
        )
    ends = ratio_interval(moments)
    named, _ = candidates(y, p)
    test = retransformation_test(named, y, p, mass, 1.0 not in ends)
    cause = next((each for each in named if each.formula == test.best), log_like(y))
    _, scheme, _ = choose_head(y, p, variance_power_by_bins(y, p, mass), effective_rows(moments))
    return correction_trials(cause, scheme, len(y))


def _choose(
    trials: list[CorrectionTrial], outcomes: tuple[CorrectionResult, ...], method: str | None
) -> CorrectionTrial:
    by_name = {trial.name: trial for trial in trials}
    if method is not None:
        if method not in by_name:
            raise ValueError(f"there is no correction {method!r} for this data: there are {', '.join(by_name)}")
        return by_name[method]
    best = right_total_least_error(outcomes) or min(outcomes[1:], key=lambda result: result.tre.value)
    return by_name[best.name]


def _check(number: np.ndarray, p: Floats, mass: Floats, names: ColumnNames) -> None:
    wrong = np.flatnonzero(~np.isfinite(p))
    if len(wrong):
        raise ValueError(
            f"column {names.pred!r}, row {number[wrong[0]]} has no prediction: drop such rows, or fill them in by the "
            "model"
        )
    bad = np.flatnonzero(~(mass >= 0.0))
    if len(bad):
        raise ValueError(
            f"column {names.weight!r}, row {number[bad[0]]} is {mass[bad[0]]:g}: a weight is a number, not below 0"
        )
