"""One mixture: parts that are trained on the same rows, shares that other rows decide, and trees boosted again."""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Unpack, cast

import torch
from torch import Tensor

from transun.backbones import Trees
from transun.backbones.boosters import Booster, Boosting
from transun.corrections import Correction, SmoothIsotonic
from transun.data import Dataset, ParquetStream
from transun.heads import Corrected
from transun.heads.blend import by_level
from transun.models.mixture import mix
from transun.models.network import Model
from transun.support.group import current_group
from transun.training.boosting import LARGE_TREES, LOG_TREES, SMALL_TREES, fit_trees
from transun.training.calibration import balance, calibrate
from transun.training.evaluation import predict
from transun.training.history import History, Part
from transun.training.loop import FitOptions, fit
from transun.training.recipe import Recipe
from transun.training.row_split import RowSplit
from transun.training.shares import choose_shares, choose_small_weights, weighted_mean

__all__ = ["Fold", "mean_target", "train_mixture"]

# The share of the seconds that trees may take; the network, which gains more from time, gets the rest.
_TREES_SHARE = 0.4
# Where validation rows are a smaller part of the training rows, they teach trees too little to boost them again. So do
# rows of whose variance the mixture explains less than a half, unless their total is off by two standard errors.
_WORTH_LEARNING, _LITTLE_NOISE, _SURPRISE = 0.1, 0.5, 2.0


class Fold(NamedTuple):
    """The rows of one mixture: those that are learned from, that end the trainings, and that decide the shares."""

    rows: Dataset
    stopping: Dataset
    deciding: Dataset
    votes: int
    """How many times its mixture counts in the mean of all mixtures."""
    refit: bool
    """Whether its trees learn from the stopping rows in the end; those of a fold are learned from by the others."""

    @classmethod
    def whole(cls, split: RowSplit, votes: int = 1) -> "Fold":
        """Nothing is left out: all validation rows both end the trainings and decide the shares."""
        assert split.valid is not None  # `why_no_trees` has seen to it
        return cls(split.train, split.valid, split.valid, votes, refit=True)


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


class _Weights(NamedTuple):
    """What the deciding rows say: weights of all parts, what the mixture predicts for these rows, and its error."""

    large: list[float]
    small: list[float]
    level: float
    preds: Tensor
    error: float

    @property
    def kept(self) -> list[int]:
        """The parts that count anywhere."""
        return [index for index, both in enumerate(zip(self.large, self.small, strict=True)) if sum(both) > 0.0]


def train_mixture(
    model: Model | None,
    fold: Fold,
    inputs: Trees,
    recipe: Recipe,
    balanced: bool,
    booster: Booster,
    stream: ParquetStream | None,
    **options: Unpack[FitOptions],
) -> tuple[Model, History]:
    """One mixture of parts that are trained on the same rows; see `fit_parts` for the arguments."""
    training = _MixtureTraining(fold, inputs, recipe, booster, options.get("progress"))
    out_of_time = training.boost(1.0 if model is None else _TREES_SHARE)
    history = History() if model is None else training.train_network(model, balanced, stream, **options)
    history.out_of_time |= out_of_time
    weights = training.weigh()
    if recipe.refit and fold.refit:
        training.boost_again(weights)
    history.parts, history.mixed_error = training.parts, weights.error
    return training.mixture(weights), history


class _MixtureTraining:
    """The parts of one mixture, ensembles of trees first, and the steps of their training.

    Args:
        fold: the rows.
        inputs: names the columns for the trees.
        recipe: of the network; its budget is that of all parts.
        booster: the library for trees.
        progress: show progress bars; None shows them on a terminal.

    """

    def __init__(self, fold: Fold, inputs: Trees, recipe: Recipe, booster: Booster, progress: bool | None) -> None:
        self.fold, self.recipe, self.booster = fold, recipe, booster
        self.ensembles = _ensembles(booster)
        self.models: list[Model] = []
        self.parts: list[Part] = []
        self._grow = partial(fit_trees, inputs=inputs, booster=booster, seed=recipe.seed, progress=progress)
        self._group = current_group()
        self._budget = math.inf if recipe.budget is None else recipe.budget
        self._began = time.perf_counter()
        self._seconds: list[float] = []  # that each ensemble took

    def boost(self, share: float) -> bool:
        """Boost every ensemble, all of them within a share of the budget; whether that ended any."""
        out_of_time = False
        for index, ensemble in enumerate(self.ensembles):
            limit, before = self._budget * share * (index + 1) / len(self.ensembles), self._elapsed()
            # Rank 0 boosts on all processors of its machine, and the other ranks wait for the trees.
            boost = partial(self._first_trees, ensemble, max(0.0, limit - before))
            self.models.append(self._group.from_leader(boost))
            settings = ensemble.settings
            name = f"trees of {settings.leaves} leaves, {settings.loss.name} ({self.booster.name})"
            self.parts.append(Part("trees", name))
            self._seconds.append(self._elapsed() - before)
            out_of_time |= self._elapsed() >= limit
        return out_of_time

    def train_network(
        self, model: Model, balanced: bool, stream: ParquetStream | None, **options: Unpack[FitOptions]
    ) -> History:
        """Train the network in the time that is left."""
        fold, recipe = self.fold, self.recipe
        if recipe.budget is not None:
            recipe = replace(recipe, budget=max(1e-3, self._budget - self._elapsed()))
        device = "cpu" if recipe.device is None else recipe.device
        trained_on = (fold.rows if stream is None else stream).to(device)
        history = fit(model, trained_on, recipe, valid=fold.stopping.to(device), **options)
        model = model.cpu()
        self.models.append(balance(model, fold.rows, fold.stopping, group=self._group) if balanced else model)
        self.parts.append(Part("network", "network"))
        return history

    def weigh(self) -> _Weights:
        """Decide what each part counts for."""
        deciding, level = self.fold.deciding, mean_target(self.fold.rows)
        preds = torch.stack([predict(model, deciding).double() for model in self.models], 1)
        # One rank decides for all: another processor could round a share to zero that is not zero here.
        large, small = self._group.from_leader(partial(self._choose, preds, level))
        mixed = by_level(weighted_mean(preds, large), weighted_mean(preds, small), level)
        *errors, error = _root_mean_squares(torch.cat([preds, mixed.unsqueeze(1)], 1), deciding)
        self.parts = [
            replace(part, share=share, small=weight / sum(small), error=own)
            for part, share, weight, own in zip(self.parts, large, small, errors, strict=True)
        ]
        return _Weights(large, small, level, mixed, error)

    def boost_again(self, weights: _Weights) -> None:
        """Boost as many trees on training and validation rows together, where these tell much and time is left."""
        rows, stopping = self.fold.rows, self.fold.stopping
        if len(stopping) < _WORTH_LEARNING * len(rows):
            return
        together, tell_much = rows.joined(stopping), _tell_much(weights.preds, self.fold.deciding)
        for index, ensemble in enumerate(self.ensembles):
            in_time = self._seconds[index] <= self._budget - self._elapsed()
            worth = in_time and (tell_much or not ensemble.everywhere)
            if index in weights.kept and self._group.from_leader(partial(bool, worth)):  # one clock decides for all
                before = self.models[index]
                as_many = replace(ensemble.settings, most_trees=cast(Trees, before.backbone).trees)
                again = self._group.from_leader(partial(self._grow, together, None, settings=as_many))
                if ensemble.correction is not None:
                    again.head = cast(Corrected, before.head).replace(inner=again.head)
                self.models[index] = again
                self.parts[index] = replace(self.parts[index], refitted=True)

    def mixture(self, weights: _Weights) -> Model:
        """The parts that count as one model."""
        kept = weights.kept
        return mix(
            [self.models[index] for index in kept],
            [weights.large[index] for index in kept],
            [weights.small[index] for index in kept],
            weights.level,
        )

    def _elapsed(self) -> float:
        return time.perf_counter() - self._began

    def _first_trees(self, ensemble: _Ensemble, seconds: float) -> Model:
        trees = self._grow(self.fold.rows, self.fold.stopping, settings=ensemble.settings, seconds=seconds)
        return trees if ensemble.correction is None else calibrate(trees, self.fold.deciding, ensemble.correction)

    def _choose(self, preds: Tensor, level: float) -> tuple[list[float], list[float]]:
        """The shares of all parts for large amounts, of which some parts have none, and the weights for small ones."""
        deciding, parts = self.fold.deciding, range(preds.shape[1])
        only_small = {index for index, ensemble in enumerate(self.ensembles) if not ensemble.everywhere}
        competing = [index for index in parts if index not in only_small]
        chosen = dict(zip(competing, choose_shares(preds[:, competing], deciding.y, deciding.weight), strict=True))
        large = [chosen.get(index, 0.0) for index in parts]
        return large, choose_small_weights(preds, large, level, deciding.y, deciding.weight)


def _ensembles(booster: Booster) -> list[_Ensemble]:
    """The ensembles as a library can boost them, which may be unable to tell some of them apart."""
    found: dict[Boosting, _Ensemble] = {}
    for ensemble in _ENSEMBLES:
        settings = booster.nearest(ensemble.settings)
        found.setdefault(settings, ensemble._replace(settings=settings))
    return list(found.values())


def mean_target(rows: Dataset) -> float:
    """The weighted mean target; NaN where every weight is zero."""
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
    squares, variance = ((weight * each**2).sum() for each in (errors, y - mean_target(rows)))
    little_noise = squares <= (1.0 - _LITTLE_NOISE) * variance
    surprise = (weight * errors).sum().abs() > _SURPRISE * (weight * errors).square().sum().sqrt()
    return bool(little_noise | surprise)


def _root_mean_squares(preds: Tensor, rows: Dataset) -> Sequence[float]:
    """Of each column of predictions (n, k)."""
    squares = (preds - rows.y.double().unsqueeze(1)) ** 2
    weight = torch.ones_like(rows.y) if rows.weight is None else rows.weight
    return ((squares * weight.double().unsqueeze(1)).sum(0) / weight.double().sum()).sqrt().tolist()
