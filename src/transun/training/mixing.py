"""Trees and a network trained on the same rows, and the mean of them that validation rows call for."""

import copy
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import torch

from transun.backbones import Trees
from transun.backbones.boosters import Booster, default_booster
from transun.data import ParquetStream, hashing
from transun.models.mixture import mix
from transun.models.network import Model
from transun.training.history import History, Part
from transun.training.loop import FitOptions
from transun.training.mixture import Fold, mean_target, train_mixture
from transun.training.recipe import Recipe
from transun.training.resume import fold_file
from transun.training.row_split import RowSplit
from transun.training.tracking import PrefixedTracker

__all__ = ["fit_parts", "why_no_trees"]

# Trees need some rows for a leaf and some rows to choose shares by.
_FEWEST_ROWS, _FEWEST_VALID = 200, 20
# Folds of a small table, and the rows that all trainings together may have.
_FEWEST_FOLDS, _MOST_FOLDS, _FOLD_ROWS = 4, 5, 30_000


def why_no_trees(split: RowSplit) -> str | None:
    """Why trees cannot be fitted to these rows; None if they can."""
    rows, valid = split.train, split.valid
    if valid is None or len(valid) < _FEWEST_VALID or len(rows) < _FEWEST_ROWS:
        return f"trees need {_FEWEST_ROWS} training rows and {_FEWEST_VALID} validation rows"
    if bool((rows.y < 0.0).any()) or bool((valid.y < 0.0).any()):
        return "trees are for targets that are not negative"
    if not mean_target(rows) > 0.0:
        return "all targets are zero"
    return None


def fit_parts(
    model: Model | None,
    split: RowSplit,
    inputs: Trees,
    recipe: Recipe,
    *,
    balanced: bool = False,
    booster: Booster | None = None,
    stream: ParquetStream | None = None,
    **options: Unpack[FitOptions],
) -> tuple[Model, History]:
    """Ensembles of trees and a network, mixed as validation rows call for, and several times on a small table.

    Validation rows end the training of each part and decide the shares, and until then no weight is learned from them.
    There are shares for large amounts, by squared errors, and shares for small amounts, by the order of the rows; see
    `Blend`. One ensemble of trees, which orders rows best, has a share of small amounts alone: it learns ln y, and
    validation rows turn its predictions into amounts without a change of their order. The total is that of the shares
    for large amounts, and right if that of every part is: trees see to theirs, and `balance` to that of the network. A
    factor of the mixture would not do, as it had to be learned from rows that the trees fit too well, where they find
    more amounts large than they find among other rows.

    All validation rows do both. Half of them for each would end some trainings far too early, which costs more than it
    gains: that these rows have ended a training flatters all parts alike. Then the trees are boosted again, as many as
    were best, on training and validation rows together: where there is little noise, a tenth more rows is worth several
    percent of the error. Where more than half of the variance of the validation rows is noise, and their total is as
    predicted, it is worth less than a thousandth and takes half of the time. Then only the ensemble that orders rows is
    boosted again: the logarithms that it learns have less noise. The network is never trained again, which would take
    as long as everything else together.

    A few hundred validation rows end a training too early or too late, and decide shares by chance. So a table of up
    to 7,500 rows is divided into four or five folds, each of which is left out once, and the mixtures are averaged.
    Validation rows that are given decide the shares there, and the fold that is left out ends the training. A table
    with little noise needs its rows more than an average, so that a mixture trained without folds counts as two of
    them. This helps where there is little noise, and costs a little where there is much.

    Args:
        model: the network; None mixes the ensembles of trees alone.
        split: training and validation rows, for which `why_no_trees` has no objection.
        inputs: names the columns for the trees.
        recipe: how to train the network; its budget is that of all parts together.
        balanced: whether the network gets a factor that makes its total right.
        booster: the library for trees; None takes LightGBM where it is installed, else scikit-learn.
        stream: the rows of the network, where they are larger than memory; the training rows of the split are then a
            sample of them for the trees, and there are no folds.
        **options: of the training of the network, see `FitOptions`. The folds of a small table resume from files of
            their own, and what they track is named `fold_1/loss/total` and so on. Trees, and folds that were complete,
            are trained again, to the same result.

    Returns:
        The mixture, and the history of the (last) network's training with the parts and their shares.

    """
    began = time.perf_counter()
    booster = booster or default_booster()
    folds = _folds(split, recipe.seed) if stream is None else [Fold.whole(split)]
    mixtures, histories = [], []
    for number, fold in enumerate(folds):
        spent = time.perf_counter() - began
        left = None if recipe.budget is None else max(1e-3, (recipe.budget - spent) / (len(folds) - number))
        mixture, history = train_mixture(
            copy.deepcopy(model),
            fold,
            inputs,
            replace(recipe, budget=left, seed=recipe.seed + number),
            balanced,
            booster,
            stream,
            **(options if len(folds) == 1 else _of_fold(options, number)),
        )
        mixtures.append(mixture)
        histories.append(history)
    shares = [fold.votes / sum(each.votes for each in folds) for fold in folds]
    history = replace(histories[-1], parts=_mean_parts(histories, shares), mixtures=len(folds))
    history.mixed_error = _root_mean([each.mixed_error for each in histories], shares)
    # Without validation rows of their own, folds let every row decide once; given rows decide for all mixtures.
    every_row = len(folds) > 1 and split.given is None
    history.mixed_rows = len(split.data if every_row else folds[-1].deciding)
    history.train_rows, history.valid_rows = len(folds[-1].rows if stream is None else stream), len(folds[-1].stopping)
    history.seconds = time.perf_counter() - began
    history.out_of_time = any(each.out_of_time for each in histories)
    return mix(mixtures, shares), history


def _folds(split: RowSplit, seed: int) -> list[Fold]:
    data = split.data
    count = min(_MOST_FOLDS, _FOLD_ROWS // len(data))
    if count < _FEWEST_FOLDS:
        return [Fold.whole(split)]
    fold = (hashing.uniform(torch.arange(len(data)), seed, "mixing.folds") * count).long()
    weight = torch.ones_like(data.y) if data.weight is None else data.weight
    of_fold = torch.zeros(count, dtype=torch.float64)
    amounts, weights = (of_fold.index_add(0, fold, each.double()) for each in (data.y * weight, weight))
    if not bool(((amounts.sum() - amounts > 0.0) & (weights > 0.0)).all()):
        return [Fold.whole(split)]  # the other rows of some fold would have nothing to learn, or it nothing to stop by
    parts = []
    for number in range(count):
        rows, left_out = (data.take(chosen.nonzero().squeeze(-1)) for chosen in (fold != number, fold == number))
        parts.append(Fold(rows, left_out, left_out if split.given is None else split.given, votes=1, refit=False))
    return [*parts, Fold.whole(split, votes=2)]


def _of_fold(options: FitOptions, number: int) -> FitOptions:
    """The options of one fold among several, with a file and names of its own."""
    resume, tracker = options.get("resume"), options.get("tracker")
    return {
        **options,
        "resume": None if resume is None else fold_file(resume, number),
        "tracker": None if tracker is None else PrefixedTracker(tracker, f"fold_{number + 1}/"),
    }


def _mean_parts(histories: Sequence[History], shares: Sequence[float]) -> list[Part]:
    """The parts of several mixtures with their mean shares and root mean squared errors."""
    return [
        replace(
            same[0],
            share=sum(share * part.share for share, part in zip(shares, same, strict=True)),
            small=sum(share * part.small for share, part in zip(shares, same, strict=True)),
            error=_root_mean([part.error for part in same], shares),
            refitted=any(part.refitted for part in same),
        )
        for same in zip(*(history.parts for history in histories), strict=True)
    ]


def _root_mean(errors: Sequence[float], shares: Sequence[float]) -> float:
    """The root of the mean of squares, with shares of sum 1."""
    return math.sqrt(sum(share * error**2 for share, error in zip(shares, errors, strict=True)))
