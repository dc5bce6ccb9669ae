"""Correct a column of predictions: the correction is chosen out of fold, and applied to every row."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from transun.data import hashing
from transun.data.columns import open_columns
from transun.diagnosis.advice import choose_head, variance_power_by_bins
from transun.diagnosis.candidates import candidates, log_like
from transun.diagnosis.correction_trials import (
    FEWEST,
    FOLDS,
    CorrectionTrial,
    correction_trials,
    out_of_fold,
    right_total_least_error,
    run_trials,
)
from transun.diagnosis.interval import ratio_interval
from transun.diagnosis.moments import Floats, RatioMoments
from transun.diagnosis.reading import require_squarable
from transun.diagnosis.result import CorrectionResult
from transun.diagnosis.retransformation import retransformation_test
from transun.diagnosis.shape import effective_rows

__all__ = ["Repair", "repair"]


@dataclass(frozen=True)
class Repair:
    """The corrected predictions (n,), the correction that made them, and the results of all corrections.

    Attributes:
        corrected: prediction of every row; of a row with a target out of fold.
        chosen: name of the correction.
        outcomes: results out of fold; the first is that of no correction.
        learned: number of rows with a target.
        applied: number of rows without one; their correction is learned from all rows with a target.

    """

    corrected: Floats
    chosen: str
    outcomes: tuple[CorrectionResult, ...]
    learned: int
    applied: int


def repair(
    table: Any,
    target: str,
    pred: str,
    weight: str | None = None,
    *,
    method: str | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Repair:
    """Learn how to correct a column of predictions, and correct it.

    Every correction that a diagnosis tries is learned on four fifths of the rows with a target and applied to the
    rest, five times. Among the corrections that get the total right, the one of least error is chosen; if none does,
    the one whose total is nearest.

    Args:
        table: what `read_table` takes.
        target: column of actual values; a row without one is corrected and not learned from.
        pred: column of predictions, in the target's unit, of rows that the model was not trained on.
        weight: column of importance weights.
        method: the name of a correction, as in the outcomes; None chooses the best.
        seed: of the folds.
        progress: show a bar; None shows it on a terminal.

    """
    numbers = [target, pred, *([weight] if weight else [])]
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"target, prediction and weight must be different columns, got {', '.join(numbers)}")
    columns = open_columns(table, numbers)
    chunks = list(columns.chunks())
    y, p = (np.concatenate([chunk.numbers(name) for chunk in chunks]) for name in (target, pred))
    mass = np.concatenate([chunk.numbers(weight) for chunk in chunks]) if weight else np.ones(len(y))
    _check(p, mass, pred, weight)
    known = np.flatnonzero(np.isfinite(y) & (mass > 0.0))
    if len(known) < FEWEST:
        raise ValueError(
            f"{len(known)} rows have a target {target!r}: a correction needs at least {FEWEST} to learn from"
        )
    y_known, p_known, mass_known = y[known], p[known], mass[known]
    require_squarable(known, target=y_known, prediction=p_known, weight=mass_known)
    trials = _trials(y_known, p_known, mass_known, pred)
    fold = (hashing.uniform(torch.from_numpy(known), seed, "repair.fold").numpy() * FOLDS).astype(np.int64)
    outcomes = run_trials(trials, y_known, p_known, mass_known, fold, progress)
    chosen = _choose(trials, outcomes, method)
    corrected = np.empty(len(p))
    corrected[known] = out_of_fold(chosen, y_known, p_known, mass_known, fold)
    others = np.setdiff1d(np.arange(len(p)), known)
    if len(others):
        space = chosen.space
        u = torch.from_numpy(space.forward(p_known))
        fitted = chosen.correction.fit(u, torch.from_numpy(y_known), space.transform, torch.from_numpy(mass_known))
        corrected[others] = fitted(torch.from_numpy(space.forward(p[others]))).double().numpy()
    return Repair(corrected, chosen.name, outcomes, len(known), len(others))


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


def _check(p: Floats, mass: Floats, pred: str, weight: str | None) -> None:
    wrong = np.flatnonzero(~np.isfinite(p))
    if len(wrong):
        raise ValueError(
            f"column {pred!r}, row {wrong[0]} has no prediction: drop such rows, or fill them in by the model"
        )
    bad = np.flatnonzero(~(mass >= 0.0))
    if len(bad):
        raise ValueError(f"column {weight!r}, row {bad[0]} is {mass[bad[0]]:g}: a weight is a number, not below 0")
