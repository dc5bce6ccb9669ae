"""Trees and a network trained on the same rows, and the mean of them that validation rows call for."""

import copy
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, combinations_with_replacement
from typing import NamedTuple, Unpack, cast

import torch
from torch import Tensor

from transun.backbones import Trees
from transun.backbones.boosters import Booster, Boosting, default_booster
from transun.corrections import Correction, SmoothIsotonic
from transun.data import Dataset, ParquetStream, hashing
from transun.heads import Corrected
from transun.heads.blend import by_level, small_factor
from transun.metrics import XAUC
from transun.models.mixture import mix
from transun.models.network import Model
from transun.support.group import current_group
from transun.training.boosting import LARGE_TREES, LOG_TREES, SMALL_TREES, fit_trees
from transun.training.calibration import balance, calibrate
from transun.training.evaluation import predict
from transun.training.history import History, Part
from transun.training.loop import FitOptions, fit
from transun.training.recipe import Recipe
from transun.training.resume import fold_file
from transun.training.row_split import RowSplit
from transun.training.tracking import PrefixedTracker

__all__ = ["choose_shares", "choose_small_weights", "fit_parts", "why_no_trees"]

# Trees need some rows for a leaf and some rows to choose shares by.
_FEWEST_ROWS, _FEWEST_VALID = 200, 20
# The share of the seconds that trees may take; the network, which gains more from time, gets the rest.
_TREES_SHARE = 0.4
# A part that counts for less is not worth what its predictions cost.
_LEAST_SHARE = 0.05
# Folds of a small table, and the rows that all trainings together may have.
_FEWEST_FOLDS, _MOST_FOLDS, _FOLD_ROWS = 4, 5, 30_000
# Samples of the rows whose best shares are averaged: their number, their share of the rows, and their least rows.
_SAMPLES, _SAMPLED, _FEWEST_SAMPLED = 100, 0.1, 60
# Shares of small amounts are multiples of one over this, and are compared by at most so many rows.
_STEPS, _ORDERED_ROWS = 4, 20_000
# What a better order may cost, as a part of the root mean squared error, and how much better it has to be, in XAUC.
_COST_OF_ORDER, _WORTH_ORDERING = 1e-3, 2e-3
# Where validation rows are a smaller part of the training rows, they teach trees too little to boost them again. So do
# rows of whose variance the mixture explains less than a half, unless their total is off by two standard errors.
_WORTH_LEARNING, _LITTLE_NOISE, _SURPRISE = 0.1, 0.5, 2.0


def why_no_trees(split: RowSplit) -> str | None:
    """Why trees cannot be fitted to these rows; None if they can."""
    rows, valid = split.train, split.valid
    if valid is None or len(valid) < _FEWEST_VALID or len(rows) < _FEWEST_ROWS:
        return f"trees need {_FEWEST_ROWS} training rows and {_FEWEST_VALID} validation rows"
    if bool((rows.y < 0.0).any()) or bool((valid.y < 0.0).any()):
        return "trees are for targets that are not negative"
    if not float(rows.y.double().mean()) > 0.0:
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
    folds = _folds(split, recipe.seed) if stream is None else [_Fold.whole(split)]
    mixtures, histories = [], []
    for number, fold in enumerate(folds):
        spent = time.perf_counter() - began
        left = None if recipe.budget is None else max(1e-3, (recipe.budget - spent) / (len(folds) - number))
        mixture, history = _fit_once(
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
    history.train_rows = len(split.data if stream is None else stream)
    history.valid_rows = 0 if split.given is None else len(split.given)
    history.seconds = time.perf_counter() - began
    history.out_of_time = any(each.out_of_time for each in histories)
    return mix(mixtures, shares), history


class _Ensemble(NamedTuple):
    """One ensemble of trees among the parts of a mixture."""

    settings: Boosting
    everywhere: bool = True
    """Whether it may have a share of large amounts; the other one is there for the order of small ones."""
    correction: Correction | None = None
    """What turns predictions into amounts, if they are none, and keeps their order."""


_ENSEMBLES = (
    _Ensemble(SMALL_TREES),
    _Ensemble(LARGE_TREES),
    _Ensemble(LOG_TREES, everywhere=False, correction=SmoothIsotonic(bins=20)),
)


class _Fold(NamedTuple):
    """The rows of one mixture: those that are learned from, that end the trainings, and that decide the shares."""

    rows: Dataset
    stopping: Dataset
    deciding: Dataset
    votes: int
    """How many times its mixture counts in the mean of all mixtures."""
    refit: bool
    """Whether its trees learn from the stopping rows in the end; those of a fold are learned from by the others."""

    @classmethod
    def whole(cls, split: RowSplit, votes: int = 1) -> "_Fold":
        """Nothing is left out: all validation rows both end the trainings and decide the shares."""
        assert split.valid is not None  # `why_no_trees` has seen to it
        return cls(split.train, split.valid, split.valid, votes, refit=True)


def _folds(split: RowSplit, seed: int) -> list[_Fold]:
    data = split.data
    count = min(_MOST_FOLDS, _FOLD_ROWS // len(data))
    if count < _FEWEST_FOLDS:
        return [_Fold.whole(split)]
    fold = (hashing.uniform(torch.arange(len(data)), seed, "mixing.folds") * count).long()
    parts = []
    for number in range(count):
        rows, left_out = (data.take(chosen.nonzero().squeeze(-1)) for chosen in (fold != number, fold == number))
        parts.append(_Fold(rows, left_out, left_out if split.given is None else split.given, votes=1, refit=False))
    return [*parts, _Fold.whole(split, votes=2)]


def _of_fold(options: FitOptions, number: int) -> FitOptions:
    """The options of one fold among several, with a file and names of its own."""
    resume, tracker = options.get("resume"), options.get("tracker")
    return {
        **options,
        "resume": None if resume is None else fold_file(resume, number),
        "tracker": None if tracker is None else PrefixedTracker(tracker, f"fold_{number + 1}/"),
    }


def _fit_once(
    model: Model | None,
    fold: _Fold,
    inputs: Trees,
    recipe: Recipe,
    balanced: bool,
    booster: Booster,
    stream: ParquetStream | None,
    **options: Unpack[FitOptions],
) -> tuple[Model, History]:
    """One mixture of parts that are trained on the same rows."""
    rows, stopping, deciding = fold.rows, fold.stopping, fold.deciding
    began = time.perf_counter()
    budget = math.inf if recipe.budget is None else recipe.budget
    group = current_group()
    models: list[Model] = []
    parts: list[Part] = []
    took, trees_out_of_time = [], False
    boost = partial(fit_trees, inputs=inputs, booster=booster, seed=recipe.seed, progress=options.get("progress"))
    ensembles = _ensembles(booster)

    def first_trees(ensemble: _Ensemble, seconds: float) -> Model:
        trees = boost(rows, stopping, settings=ensemble.settings, seconds=seconds)
        return trees if ensemble.correction is None else calibrate(trees, deciding, ensemble.correction)

    for index, ensemble in enumerate(ensembles):
        limit = budget * (1.0 if model is None else _TREES_SHARE) * (index + 1) / len(ensembles)
        before = time.perf_counter()
        seconds = max(0.0, limit - (before - began))
        # Rank 0 boosts on all processors of its machine, and the other ranks wait for the trees.
        models.append(group.from_leader(partial(first_trees, ensemble, seconds)))
        name = f"trees of {ensemble.settings.leaves} leaves, {ensemble.settings.loss.name} ({booster.name})"
        parts.append(Part("trees", name))
        took.append(time.perf_counter() - before)
        trees_out_of_time |= time.perf_counter() - began >= limit
    history = History()
    if model is not None:
        if recipe.budget is not None:
            recipe = replace(recipe, budget=max(1e-3, budget - (time.perf_counter() - began)))
        device = "cpu" if recipe.device is None else recipe.device
        trained_on = (rows if stream is None else stream).to(device)
        history = fit(model, trained_on, recipe, valid=stopping.to(device), **options)
        models.append(balance(model.cpu(), rows, stopping, group=group) if balanced else model.cpu())
        parts.append(Part("network", "network"))
    history.out_of_time |= trees_out_of_time
    preds = torch.stack([predict(part, deciding).double() for part in models], 1)
    by_squares = [index for index in range(len(models)) if index >= len(ensembles) or ensembles[index].everywhere]
    level = _mean_target(rows)
    # One rank decides for all: another processor could round a share to zero that is not zero here.
    large, small = group.from_leader(lambda: _choose_both(preds, by_squares, deciding, level))
    mixed = by_level(_mean(preds, large), _mean(preds, small), level)
    errors = _root_mean_squares(torch.cat([preds, mixed.unsqueeze(1)], 1), deciding)
    of_small = [weight / sum(small) for weight in small]
    history.parts = [
        replace(part, share=share, small=share_of_small, error=error)
        for part, share, share_of_small, error in zip(parts, large, of_small, errors, strict=False)
    ]
    history.mixed_error = errors[-1]
    kept = [index for index in range(len(models)) if large[index] + small[index] > 0.0]
    if recipe.refit and fold.refit and len(stopping) >= _WORTH_LEARNING * len(rows):
        together = rows.joined(stopping)
        new = _tell_much(mixed, deciding)
        for index, ensemble in enumerate(ensembles):
            in_time = took[index] <= budget - (time.perf_counter() - began)
            worth = in_time and (new or not ensemble.everywhere)
            if index in kept and group.from_leader(partial(bool, worth)):  # one clock decides for all ranks
                as_many = replace(ensemble.settings, most_trees=cast(Trees, models[index].backbone).trees)
                again = group.from_leader(partial(boost, together, None, settings=as_many))
                if ensemble.correction is not None:
                    again.head = cast(Corrected, models[index].head).replace(inner=again.head)
                models[index] = again
                history.parts[index] = replace(history.parts[index], refitted=True)
    mixture = mix(
        [models[index] for index in kept],
        [large[index] for index in kept],
        [small[index] for index in kept],
        level,
    )
    return mixture, history


def _ensembles(booster: Booster) -> list[_Ensemble]:
    """The ensembles as a library can boost them, which may be unable to tell some of them apart."""
    found: dict[Boosting, _Ensemble] = {}
    for ensemble in _ENSEMBLES:
        settings = booster.nearest(ensemble.settings)
        found.setdefault(settings, ensemble._replace(settings=settings))
    return list(found.values())


def _mean_target(rows: Dataset) -> float:
    weight = torch.ones_like(rows.y) if rows.weight is None else rows.weight
    return float((rows.y.double() * weight.double()).sum() / weight.double().sum())


def _tell_much(preds: Tensor, rows: Dataset) -> bool:
    """Whether rows tell much that a model which predicts them (n,) does not know: little of them is noise, or new.

    >>> y = torch.arange(100.0).double()
    >>> rows, noise = Dataset({"a": y}, y), 99.0 * torch.tensor([0.0, 1.0, 1.0, 0.0] * 25).double()
    >>> [_tell_much(preds, rows) for preds in (y + 1.0, noise, 0.5 * noise)]  # a good one, chance, too low a total
    [True, False, True]
    """
    y, weight = rows.y.double(), torch.ones_like(rows.y) if rows.weight is None else rows.weight
    errors = preds - y
    squares, variance = ((weight * each**2).sum() for each in (errors, y - _mean_target(rows)))
    little_noise = squares <= (1.0 - _LITTLE_NOISE) * variance
    surprise = (weight * errors).sum().abs() > _SURPRISE * (weight * errors).square().sum().sqrt()
    return bool(little_noise | surprise)


def _choose_both(
    preds: Tensor, by_squares: Sequence[int], rows: Dataset, level: float
) -> tuple[list[float], list[float]]:
    """The shares of all parts for large amounts, of which some parts have none, and the weights for small ones."""
    chosen = choose_shares(preds[:, by_squares], rows.y, rows.weight)
    large = [chosen[by_squares.index(index)] if index in by_squares else 0.0 for index in range(preds.shape[1])]
    return large, choose_small_weights(preds, large, level, rows.y, rows.weight)


def _mean(preds: Tensor, shares: Sequence[float]) -> Tensor:
    return preds @ torch.tensor(shares, dtype=preds.dtype)


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


def choose_shares(preds: Tensor, y: Tensor, weight: Tensor | None = None) -> list[float]:
    """Shares of the convex combination of predictions (n, k) with the least squared error of y (n,).

    On heavy tails a few rows decide the least error. So the shares are averages, over many random tenths of the rows,
    of the best shares of each tenth, and parts between which the rows cannot decide get similar shares. One huge error
    is in one tenth of ten: it decides a tenth of the average, and not all of it. A part with a share below a twentieth
    is left out, because its predictions cost as much as those of the others.

    Args:
        preds: predictions (n, k), of rows that no weight was learned from.
        y: their targets.
        weight: what each row counts.

    >>> y = torch.arange(10_000.0)
    >>> [round(share, 2) for share in choose_shares(torch.stack([y + 1.0, y - 1.0, y + 500.0], 1), y)]
    [0.5, 0.5, 0.0]

    """
    errors = preds.double() - y.double().unsqueeze(1)
    # In a unit of their own, so that products neither overflow nor vanish.
    errors = errors / errors.abs().max().clamp(min=1e-300)
    rows = torch.arange(len(y))
    total = torch.zeros(preds.shape[1], dtype=torch.float64)
    share = min(max(_SAMPLED, _FEWEST_SAMPLED / len(y)), 0.5)
    for number in range(_SAMPLES):
        counts = (hashing.uniform(rows, number, "mixing.sample") < share).double()
        if weight is not None:
            counts = counts * weight.double()
        total += _best_shares(errors.t() @ (counts.unsqueeze(1) * errors))
    shares = total / total.sum()
    shares = torch.where(shares < _LEAST_SHARE, 0.0, shares)
    return [float(share) for share in (shares / shares.sum())]


def choose_small_weights(
    preds: Tensor, large: Sequence[float], level: float, y: Tensor, weight: Tensor | None = None
) -> list[float]:
    """Weights for small amounts, see `Blend`, that order rows best and raise the error by a thousandth at most.

    Squared errors are those of the largest amounts, and say nothing of the order of the others. So mixtures whose
    shares are quarters are tried, and the shares of large amounts. Those whose root mean squared error is a thousandth
    above that of the shares of large amounts alone, or less, compete by XAUC. Of those that order about as well as the
    best of them, the one of least error is taken.

    Args:
        preds: predictions (n, k), of rows that no weight was learned from.
        large: the shares of large amounts (k,).
        level: the amount from which on these shares count more.
        y: the targets.
        weight: what each row counts.

    Returns:
        The weights, times the factor that leaves these rows the total of the shares of large amounts.

    >>> y = torch.arange(100.0)
    >>> preds = torch.stack([torch.full((100,), 49.5), y], 1)  # the second alone knows the order
    >>> choose_small_weights(preds, [1.0, 0.0], 49.5, y)
    [0.0, 1.0]

    """
    # In units of the level, so that squares neither overflow nor vanish.
    preds, target = preds.double() / level, y.double() / level
    counts = torch.ones_like(target) if weight is None else weight.double()
    amount = _mean(preds, large)
    # Every so many rows; the order of the table may be one of time.
    some = slice(None, None, math.ceil(len(y) / _ORDERED_ROWS))

    def error(pred: Tensor) -> float:
        return float((counts * (pred - target) ** 2).sum().sqrt())

    trials: list[tuple[float, float, list[float]]] = []
    parts = range(preds.shape[1])
    quarters = combinations_with_replacement(parts, _STEPS)
    for shares in [large, *([chosen.count(part) / _STEPS for part in parts] for chosen in quarters)]:
        small = _mean(preds, shares)
        factor = small_factor(amount, small, 1.0, weight)
        mixed = by_level(amount, factor * small, 1.0)
        order = XAUC(mixed[some], target[some], counts[some])
        # Without two different targets there is no order, and its value is NaN.
        trials.append((-1.0 if math.isnan(order) else order, error(mixed), [factor * share for share in shares]))
    allowed = [trial for trial in trials if trial[1] <= (1.0 + _COST_OF_ORDER) * error(amount)]
    # The shares of large amounts are always allowed but for rounding, where there is no error at all.
    best = max((order for order, _, _ in allowed), default=-1.0)
    equals = [trial for trial in allowed if trial[0] >= best - _WORTH_ORDERING] or trials[:1]
    return min(equals, key=lambda trial: trial[1])[2]


def _best_shares(products: Tensor) -> Tensor:
    """The shares w ≥ 0 of sum 1 that minimise w'Gw for the matrix G (k, k) of products of errors.

    With few parts every subset can be tried: within a subset the best w is G⁻¹1, scaled to sum 1.
    """
    k = len(products)
    # Equal predictions make G singular; a little on the diagonal shares equally between them.
    products = products + 1e-9 * products.diagonal().mean().clamp(min=1e-300) * torch.eye(k, dtype=products.dtype)
    best, least = torch.full((k,), 1.0 / k, dtype=products.dtype), math.inf
    for size in range(1, k + 1):
        for subset in map(list, combinations(range(k), size)):
            inner = products[subset][:, subset]
            part = torch.linalg.solve(inner, torch.ones(size, dtype=products.dtype))
            part = part / part.sum()
            value = float(part @ inner @ part)
            if bool((part >= 0.0).all()) and value < least:
                least, best = value, torch.zeros(k, dtype=products.dtype)
                best[subset] = part
    return best


def _root_mean_squares(preds: Tensor, rows: Dataset) -> Sequence[float]:
    squares = (preds - rows.y.double().unsqueeze(1)) ** 2
    weight = torch.ones_like(rows.y) if rows.weight is None else rows.weight
    return ((squares * weight.double().unsqueeze(1)).sum(0) / weight.double().sum()).sqrt().tolist()
