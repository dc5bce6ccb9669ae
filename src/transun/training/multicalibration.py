"""Multicalibration of amounts: totals that are right in every segment at once, by one more factor learned by trees."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from transun.backbones import Trees
from transun.backbones.boosters import Booster, Boosting, default_booster
from transun.data import Dataset, hashing
from transun.models.mixture import mix, multiply
from transun.models.network import Model
from transun.training.boosting import fit_trees
from transun.training.evaluation import predict

__all__ = ["Change", "RatioFit", "fit_ratio", "multicalibrate"]

# Small trees, each of which can tell apart the values of three columns together.
_TREES = Boosting(power=1.0, leaves=8, rate=0.1, by_means=True, most_trees=300, stop_by="deviance")
# Standard deviations of ln(y/ŷ) between segments that are tried: most segments are a little off, or much.
_SPREADS = (0.03, 0.1, 0.3)
_FOLDS = 5
# With fewer rows in a fold, or in half of one, there is nothing to decide by.
_FEWEST_ROWS, _FEWEST_HALF = 200, 40
# A few huge targets can hide what squared errors say; so many standard errors of the deviance are enough by themselves.
_SURE = 3.0
# Predictions are raised to this share of the mean target, because no factor could lift a prediction of zero.
_LEAST_SHARE = 1e-3


@dataclass(frozen=True)
class Change:
    """The change of a cost of rows, relative to the cost before, with its standard error; below 0 is better."""

    value: float
    error: float

    def falls(self, errors: float) -> bool:
        """Whether the cost fell by more than so many standard errors."""
        return self.value + errors * self.error < 0.0


@dataclass(frozen=True)
class RatioFit:
    """The ratio y/ŷ as a model of a row, or no model where unseen rows did not call for one.

    Args:
        model: predicts the ratio; None stands for 1 everywhere.
        rows: how many rows it was learned from.
        spread: the standard deviation of ln(y/ŷ) between segments that fits best.
        deviance: how the Poisson deviance of rows that decided nothing else changes.
        squares: how their squared error changes.
        least: predictions below this are raised to it before they are multiplied.

    """

    model: Model | None
    rows: int
    spread: float = math.nan
    deviance: Change = Change(0.0, 0.0)
    squares: Change = Change(0.0, 0.0)
    least: float = 0.0

    def __str__(self) -> str:
        if math.isnan(self.spread):
            fewest = _FOLDS * _FEWEST_ROWS
            return f"not multicalibrated: it takes {fewest:,} rows in many groups, and there are {self.rows:,} rows"
        changes = (
            f"on rows that decided nothing else, the deviance changes by {_percent(self.deviance)} and the squared "
            f"error by {_percent(self.squares)}"
        )
        if self.model is None:
            return f"not multicalibrated, because no factor by segment is clearly better: {changes}"
        return f"multicalibrated by {self.rows:,} rows: {changes}"


@torch.no_grad()
def multicalibrate(
    model: Model,
    data: Dataset,
    inputs: Trees,
    *,
    booster: Booster | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> tuple[Model, RatioFit]:
    """A trained model times a factor that makes its totals right in every segment at once, if unseen rows confirm it.

    A model can have the total right and be wrong in one country by as much as it is wrong in another the other way.
    Boosted trees over all its columns look for segments, of any columns together, where Σy differs from Σŷ; see
    `fit_ratio`. The model itself stays as it is.

    Args:
        model: trained, for amounts that are not negative.
        data: rows that it was not trained on, at least 1,000. It learns from no other, and is kept only if parts of
            them that were left out confirm it.
        inputs: names the columns.
        booster: the library for trees; None takes LightGBM where it is installed, else scikit-learn.
        seed: of the folds and the trees.
        progress: show progress bars; None shows them on a terminal.

    Returns:
        The model, with an `Adjusted` head if the factor is kept, and what was measured.

    >>> x = {"a": torch.arange(1000) % 2}
    >>> rows = Dataset(x, torch.where(x["a"] == 0, 1.0, 3.0))
    >>> wrong = Model(Constant(), MSE()).prepare(rows.targets())  # predicts 2 everywhere
    >>> right, fitted = multicalibrate(wrong, rows, Trees(ids={"a": 2}))
    >>> [round(value, 1) for value in right({"a": torch.tensor([0, 1])}).tolist()]
    [1.0, 3.0]

    """
    fitted = fit_ratio(data, predict(model, data), inputs, booster=booster, seed=seed, progress=progress)
    return (model if fitted.model is None else multiply(model, fitted.model, fitted.least)), fitted


def fit_ratio(
    data: Dataset,
    pred: Tensor,
    inputs: Trees,
    *,
    group: Tensor | None = None,
    booster: Booster | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> RatioFit:
    """Learn r(x) ≈ E[y|x] / ŷ(x) by Poisson deviance with ln ŷ as offset, where rows that were left out confirm it.

    The deviance of y from ŷ·r is ŷ times that of y/ŷ from r, so that trees of the ratio, weighted by ŷ, are trees of
    the amount with an offset. Its gradient in a leaf is Σ(ŷ·r - y): boosting stops only where no segment that a
    small tree can describe has a wrong total.

    A small segment shows a ratio by chance. So the value of a leaf is multiplied by the credibility P / (P + φ/τ²): P
    is the amount predicted for its rows, φ the variance of y in units of its mean, and τ the spread of true ratios
    between segments. Of three τ the one that suits rows left out best is taken. An id with many values is seen by
    its ratio, shrunk in the same way.

    Five times a fifth of the rows is left out. One half of it ends the boosting and chooses τ. The other half decides
    nothing but whether the factor is kept: both its deviance and its squared error must fall, either by more than
    their standard errors or the deviance by more than three of its own. The ratio is the mean of the five.

    Args:
        data: rows with their targets, which are not negative.
        pred: predictions (n,) of these rows by a model that was not trained on them.
        inputs: names the columns of segments.
        group: of each row (n,); rows of one group are left out together. None: every row is a group.
        booster: the library for trees; None takes LightGBM where it is installed, else scikit-learn.
        seed: of the folds and the trees.
        progress: show progress bars; None shows them on a terminal.

    """
    if bool((data.y < 0.0).any()):
        row = int((data.y < 0.0).nonzero()[0])
        raise ValueError(f"multicalibration is for amounts: the target of row {row} is {data.y[row]:g}, below 0")
    unit = torch.arange(len(data)) if group is None else torch.unique(group, return_inverse=True)[1]
    weight = _weights(data)
    mean = float((data.y.double() * weight).sum() / weight.sum())
    draw = hashing.uniform(unit, seed, "multicalibration.fold") * _FOLDS
    # The first half of a fold ends the boosting and chooses the spread, the second decides.
    fold, decides = draw.long(), draw - draw.floor() >= 0.5
    smallest = int(torch.bincount((2.0 * draw).long(), minlength=2 * _FOLDS).min())
    if len(data) < _FOLDS * _FEWEST_ROWS or smallest < _FEWEST_HALF or not mean > 0.0:
        return RatioFit(None, len(data))
    least = _LEAST_SHARE * mean
    offset = pred.double().clamp(min=least)
    rows = Dataset(data.x, data.y.double() / offset, weight * offset / mean)
    noise = float((weight * (data.y.double() - offset).square() / (offset * mean)).sum() / weight.sum())
    booster = booster or default_booster()
    trials = []
    for spread in _SPREADS:
        trees = replace(_TREES, shrinkage=noise / spread**2)
        models = []
        for number in range(_FOLDS):
            learn, stop = (rows.take(part.nonzero().squeeze(-1)) for part in _split(fold, number, decides))
            fitted = fit_trees(learn, stop, inputs, trees, booster=booster, seed=seed + number, progress=progress)
            models.append(fitted)
        factor = _left_out(models, rows, fold)
        trials.append((float((weight * _deviance(data.y, offset * factor))[~decides].sum()), spread, models, factor))
    _, spread, models, factor = min(trials, key=lambda trial: trial[0])
    deviance, squares = (
        _change(
            weight * cost(data.y, pred.double().clamp(min=low)), weight * cost(data.y, offset * factor), unit, decides
        )
        for cost, low in ((_deviance, least), (_squares, -math.inf))
    )
    kept = (deviance.falls(1.0) and squares.falls(1.0)) or (deviance.falls(_SURE) and squares.falls(0.0))
    ratio = mix(models, [1.0 / _FOLDS] * _FOLDS) if kept else None
    return RatioFit(ratio, len(data), spread, deviance, squares, least)


def _split(fold: Tensor, number: int, decides: Tensor) -> tuple[Tensor, Tensor]:
    """Which rows a model learns from, and which of those left out end its boosting."""
    return fold != number, (fold == number) & ~decides


def _left_out(models: Sequence[Model], rows: Dataset, fold: Tensor) -> Tensor:
    """The factor of each row (n,) by the model that was not fitted to its fold."""
    factor = torch.empty(len(rows), dtype=torch.float64)
    for number, model in enumerate(models):
        inside = (fold == number).nonzero().squeeze(-1)
        factor[inside] = predict(model, rows.take(inside)).double()
    return factor


def _deviance(y: Tensor, pred: Tensor) -> Tensor:
    """Half the Poisson deviance of each row: ŷ - y + y·ln(y/ŷ)."""
    y = y.double()
    return pred - y + torch.xlogy(y, y / pred)


def _squares(y: Tensor, pred: Tensor) -> Tensor:
    return (y.double() - pred).square()


def _change(before: Tensor, after: Tensor, unit: Tensor, chosen: Tensor) -> Change:
    """The relative change of the cost of the chosen rows; rows of one unit are not independent of each other."""
    total = float(before[chosen].sum())
    of_units = torch.zeros(int(unit.max()) + 1, dtype=torch.float64)
    of_units.index_add_(0, unit[chosen], (after - before)[chosen])
    return Change(float(of_units.sum()) / total, float(of_units.square().sum().sqrt()) / total)


def _percent(change: Change) -> str:
    return f"{100 * change.value:+.2f} ± {100 * change.error:.2f} %"


def _weights(data: Dataset) -> Tensor:
    return torch.ones_like(data.y).double() if data.weight is None else data.weight.double()
