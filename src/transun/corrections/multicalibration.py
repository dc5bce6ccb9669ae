"""Multicalibration of amounts: totals that are right in every segment at once, by one factor that trees learn."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor, nn

from transun.backbones import Trees
from transun.backbones.boosters import Booster, Boosting, default_booster
from transun.backbones.boosting import GrownForest, grow
from transun.backbones.boosting_loss import TweedieDeviance
from transun.corrections.correction import Correction, HeldOutRows
from transun.data import hashing

__all__ = ["Change", "Multicalibration", "RatioFit", "fit_ratio"]

# Small trees, each of which can tell apart the values of three columns together.
_TREES = Boosting(TweedieDeviance(stop_by="deviance"), leaves=8, rate=0.1, by_means=True, most_trees=1000)
# Standard deviations of ln(y/ŷ) between segments that are tried: first those in the middle, then the next one on the
# better side.
_SPREADS = (0.03, 0.1, 0.3, 1.0)
_FOLDS = 5
# With fewer rows in a fold, or in half of one, there is nothing to decide by.
_FEWEST_ROWS, _FEWEST_HALF = 200, 40
# A few huge targets can hide what squared errors say: if the deviance falls by so many standard errors, it is enough
# that it falls by a larger share than squared errors may have risen.
_SURE = 3.0
# Powers p of the variance of amounts that are tried, and that by which they are judged.
_POWERS, _JUDGED = (1.0, 1.5), 1.5
# Predictions are raised to this share of the mean target, because no factor could lift a prediction of zero.
_LEAST_SHARE = 1e-3
# The name under which trees see the prediction itself; no column of a table is likely to have it.
_PREDICTION = "prediction to be corrected"


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
    """The ratio y/ŷ of a row as the mean of forests, or none where unseen rows did not call for one.

    Args:
        forests: each gives a ratio; without any the ratio is 1 everywhere.
        rows: how many rows they were learned from.
        spread: the standard deviation of ln(y/ŷ) between segments that fits best.
        power: that of the variance of amounts that fits best.
        deviance: how the deviance of rows that decided nothing else changes; see `fit_ratio`.
        squares: how their squared error changes.
        least: predictions below this are raised to it before they are multiplied.

    """

    forests: tuple[GrownForest, ...]
    rows: int
    spread: float = math.nan
    power: float = math.nan
    deviance: Change = Change(0.0, 0.0)
    squares: Change = Change(0.0, 0.0)
    least: float = 0.0

    @property
    def kept(self) -> bool:
        """Whether there is a ratio other than 1."""
        return bool(self.forests)

    def __str__(self) -> str:
        if math.isnan(self.spread):
            fewest = _FOLDS * _FEWEST_ROWS
            return f"not multicalibrated: it takes {fewest:,} rows in many groups, and there are {self.rows:,} rows"
        changes = (
            f"on rows that decided nothing else, the deviance changes by {_percent(self.deviance)} and the squared "
            f"error by {_percent(self.squares)}"
        )
        if not self.kept:
            return f"not multicalibrated, because no factor by segment is clearly better: {changes}"
        return f"multicalibrated by {self.rows:,} rows, with p = {self.power:g}: {changes}"


class Multicalibration(Correction):
    """ŷ = T⁻¹(u)·r(x, T⁻¹(u)): the ratio r makes totals right in every segment of all columns together, for y ≥ 0.

    A model can have the total right and be wrong in one country by as much as it is wrong in another the other way.
    Boosted trees look for segments, of any columns together and of the prediction itself, where Σy differs from Σŷ; see
    `fit_ratio`. The ratio is kept only if rows that were left out confirm it, and takes a thousand rows to learn:
    otherwise the correction changes nothing, and `measured` says so in words.

    Without columns it corrects by level of the prediction alone, in steps, and a head can wear it. With columns it
    needs them at every prediction: `MulticalibratedRegressor` and `transun debias --by` pass them on, and
    `multicalibrate` puts the ratio of a network beside it.

    Args:
        inputs: names the encoded columns that describe segments; None: the prediction alone does.
        seed: of the folds and the trees.
        forests: the shapes of the trees that `fit` has learned; nothing to be set.

    Attributes:
        measured: what `fit` has measured; of no rows before it, and after loading.

    >>> segment = {"a": torch.arange(1000) % 2}
    >>> pred, y = torch.full((1000,), 2.0), torch.where(segment["a"] == 0, 1.0, 3.0)
    >>> correction = Multicalibration(Trees(ids={"a": 2})).fit(pred, y, Identity(), x=segment)
    >>> [round(value, 1) for value in correction(pred[:2], {"a": torch.tensor([0, 1])}).tolist()]
    [1.0, 3.0]

    """

    units: Tensor
    least: Tensor
    measured: RatioFit = RatioFit((), rows=0)

    def __init__(self, inputs: Trees | None = None, seed: int = 0, forests: Sequence[Trees] = ()) -> None:
        super().__init__()
        self.inputs, self.seed, self.forests = inputs, seed, tuple(forests)
        if _PREDICTION in self.columns:
            raise ValueError(f"there is a column {_PREDICTION!r}, which is a name of ours: rename it")
        self.stages = nn.ModuleList(trees.forest() for trees in self.forests)
        self.register_buffer("units", torch.ones(len(self.forests)))
        self.register_buffer("least", torch.zeros(()))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of `inputs`."""
        return () if self.inputs is None else (*self.inputs.ids, *self.inputs.bags, *self.inputs.numeric)

    def _fitted(self, rows: HeldOutRows) -> Self:
        amount = self.transform.inverse(rows.u).cpu()
        x = {name: column.cpu() for name, column in rows.x.items()}
        group = None if rows.group is None else rows.group.cpu()
        measured = fit_ratio(
            x | {_PREDICTION: amount.float()},
            rows.y.cpu(),
            amount,
            self._tree_inputs(),
            weight=rows.weight.cpu(),
            group=group,
            seed=self.seed,
            progress=False,
        )
        fitted = type(self)(self.inputs, self.seed, [each.trees for each in measured.forests]).on(self.transform)
        fitted.stages = nn.ModuleList(each.forest for each in measured.forests)
        fitted.units.copy_(torch.tensor([each.unit for each in measured.forests]))
        fitted.least.fill_(measured.least if measured.kept else 0.0)
        fitted.measured = measured
        return fitted.to(rows.u.device)

    def _corrected(self, u: Tensor, x: Mapping[str, Tensor]) -> Tensor:
        amount = self.transform.inverse(u)
        if not self.forests:
            return amount
        columns = dict(x) | {_PREDICTION: amount.float()}
        # Only what a fit has learned may raise a prediction: `least` of an unfitted correction is 0.
        amount = torch.where(self.least > 0.0, amount.clamp(min=self.least.to(u.dtype)), amount)
        ratios = [unit * stage(columns).squeeze(-1) for stage, unit in zip(self.stages, self.units, strict=True)]
        return amount * torch.stack(ratios).mean(0).to(u.dtype)

    def _tree_inputs(self) -> Trees:
        if self.inputs is None:
            return Trees(numeric=(_PREDICTION,))
        return replace(self.inputs, numeric=(*self.inputs.numeric, _PREDICTION))


@torch.no_grad()
def fit_ratio(
    x: Mapping[str, Tensor],
    y: Tensor,
    pred: Tensor,
    inputs: Trees,
    *,
    weight: Tensor | None = None,
    group: Tensor | None = None,
    booster: Booster | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> RatioFit:
    """Learn r(x) ≈ E[y|x] / ŷ(x) by the deviance of y/ŷ from r, where rows that were left out confirm it.

    The variance of an amount grows with its mean, Var(y|x) = φ·E[y|x]^p, so that a ratio y/ŷ has the variance φ·ŷ^(p-2)
    and the weight w = ŷ^(2-p). Trees of the ratio by Poisson deviance, r - y/ŷ + (y/ŷ)·ln(y/(ŷ·r)), have the gradient
    Σw·(r - y/ŷ) in a leaf: boosting stops only where in no segment that a small tree can describe actual amounts
    differ from predicted ones. With p = 1, as of counts, the gradient is Σ(ŷ·r - y), the error of the total itself; but
    the noise of a few large amounts drowns what the others show, and segments of small amounts may stay wrong by a
    multiple. With p = 1.5 these are put right; but the largest amounts share leaves with many smaller ones, and may be
    fitted badly. Both are tried. Each forest is multiplied by the number that makes the total of the rows it learned
    from right.

    A small segment shows a ratio by chance. So the value of a leaf is multiplied by the credibility W / (W + φ/τ²): W
    is Σw of its rows, once the total is right, and τ the spread of true ratios between segments. An id with many values
    is seen by its ratio, shrunk in the same way.

    Five times a fifth of the rows is left out. One half of it ends the boosting and chooses τ, by the deviance with the
    weights of p, and p, by the sum of the relative changes of the deviance, with the weights of p = 1.5, and of the
    squared error. The other half decides nothing but whether the factor is kept: both must fall by more than their
    standard errors. Where a few huge amounts decide the squared error, it is enough that the deviance falls by more
    than three, and by a larger share than the squared error rises, with one standard error added to it: what is gained
    has to be more than what may be lost. The ratio is the mean of the five.

    Args:
        x: encoded columns of the rows.
        y: their targets (n,), not negative.
        pred: predictions (n,) of these rows by a model that was not trained on them.
        inputs: names the columns of segments.
        weight: what each row counts (n,), above 0; None counts every row once.
        group: of each row (n,); rows of one group are left out together. None: every row is a group.
        booster: the library for trees; None takes LightGBM where it is installed, else scikit-learn.
        seed: of the folds and the trees.
        progress: show progress bars; None shows them on a terminal.

    """
    if bool((y < 0.0).any()):
        row = int((y < 0.0).nonzero()[0])
        raise ValueError(f"multicalibration is for amounts: the target of row {row} is {y[row]:g}, below 0")
    rows = _DividedRows.of(x, y, pred, weight, group, seed)
    if not rows.suffice:
        return RatioFit((), len(y))
    search = _Search(rows=rows, inputs=inputs, booster=booster or default_booster(), seed=seed, progress=progress)
    trials = [search.fit(power) for power in _POWERS]
    best = min(trials, key=lambda trial: sum(each.value for each in rows.changes(trial.factor, ~rows.decides)))
    deviance, squares = rows.changes(best.factor, rows.decides)
    outweighs = squares.value + squares.error < -deviance.value
    kept = (deviance.falls(1.0) and squares.falls(1.0)) or (deviance.falls(_SURE) and outweighs)
    return RatioFit(best.forests if kept else (), len(y), best.spread, best.power, deviance, squares, rows.least)


@dataclass(frozen=True)
class _Trial:
    """Forests by one power and spread, the factor of each row left out (n,), and its cost for the rows that choose."""

    cost: float
    power: float
    spread: float
    forests: tuple[GrownForest, ...]
    factor: Tensor


@dataclass(frozen=True, kw_only=True)
class _DividedRows:
    """The rows that a ratio is learned from, and how they are divided; see `fit_ratio`.

    Args:
        x: encoded columns.
        y: targets (n,).
        pred: predictions (n,).
        weight: what each row counts (n,).
        unit: the number of each row's group (n,); rows of one are not independent of each other.
        fold: in which each row is left out (n,).
        decides: whether a row decides if the ratio is kept (n,); the others of its fold end the boosting and choose.

    """

    x: Mapping[str, Tensor]
    y: Tensor
    pred: Tensor
    weight: Tensor
    unit: Tensor
    fold: Tensor
    decides: Tensor

    @classmethod
    def of(
        cls, x: Mapping[str, Tensor], y: Tensor, pred: Tensor, weight: Tensor | None, group: Tensor | None, seed: int
    ) -> "_DividedRows":
        """Groups are divided at random, each as a whole."""
        unit = torch.arange(len(y)) if group is None else torch.unique(group, return_inverse=True)[1]
        draw = hashing.uniform(unit, seed, "multicalibration.fold") * _FOLDS
        return cls(
            x=x,
            y=y.double(),
            pred=pred.double(),
            weight=torch.ones(len(y), dtype=torch.float64) if weight is None else weight.double(),
            unit=unit,
            fold=draw.long(),
            decides=draw - draw.floor() >= 0.5,
        )

    @property
    def suffice(self) -> bool:
        """Whether there are enough rows to learn from and to decide by, and an amount among them."""
        halves = torch.bincount(2 * self.fold + self.decides, minlength=2 * _FOLDS)
        return len(self.y) >= _FOLDS * _FEWEST_ROWS and int(halves.min()) >= _FEWEST_HALF and self.least > 0.0

    @property
    def least(self) -> float:
        """What predictions are raised to."""
        return _LEAST_SHARE * float((self.y * self.weight).sum() / self.weight.sum())

    @property
    def raised(self) -> Tensor:
        """The predictions that are multiplied by the ratio (n,)."""
        return self.pred.clamp(min=self.least)

    @property
    def mean_ratio(self) -> float:
        """Σwy / Σwŷ."""
        return float((self.y * self.weight).sum() / (self.raised * self.weight).sum())

    def ratios(self, power: float) -> "_RatioRows":
        """The rows with their ratios y/ŷ, weighted by (ŷ / mean ŷ)^(2-p): whatever the total, a row counts the same."""
        raised = self.raised
        relative = raised * self.weight.sum() / (raised * self.weight).sum()
        return _RatioRows(self.x, self.y / raised, self.weight * relative ** (2.0 - power))

    def changes(self, factor: Tensor, chosen: Tensor) -> tuple[Change, Change]:
        """How the factor (n,) changes the deviance and the squared error of the chosen rows."""
        rows = self.ratios(_JUDGED)
        deviances = (rows.weight * _deviance(rows.y, each) for each in (torch.ones_like(factor), factor))
        squares = (self.weight * (self.y - each).square() for each in (self.pred, self.raised * factor))
        return self._change(chosen, *deviances), self._change(chosen, *squares)

    def _change(self, chosen: Tensor, before: Tensor, after: Tensor) -> Change:
        """The relative change of the cost of the chosen rows."""
        total = float(before[chosen].sum())
        of_units = torch.zeros(int(self.unit.max()) + 1, dtype=torch.float64)
        of_units.index_add_(0, self.unit[chosen], (after - before)[chosen])
        sums = float(of_units.sum()), float(of_units.square().sum().sqrt())
        if total == 0.0:  # predictions without an error: any other has infinitely more
            return Change(math.inf if sums[0] > 0.0 else 0.0, 0.0)
        return Change(sums[0] / total, sums[1] / total)


@dataclass(frozen=True, kw_only=True)
class _Search:
    """Grows the trees of a ratio from divided rows, and looks for the spread that suits them; see `fit_ratio`."""

    rows: _DividedRows
    inputs: Trees
    booster: Booster
    seed: int
    progress: bool | None

    def fit(self, power: float) -> _Trial:
        """The forests by weights of this power, by the spread that suits the rows that choose."""
        smallest, narrow, wide, largest = _SPREADS
        trials = [self._attempt(power, narrow), self._attempt(power, wide)]
        trials.append(self._attempt(power, largest if trials[1].cost < trials[0].cost else smallest))
        return min(trials, key=lambda trial: trial.cost)

    def _attempt(self, power: float, spread: float) -> _Trial:
        ratios, amounts = self.rows.ratios(power), self.rows.ratios(1.0)
        # The noise of ratios is meant for predictions whose total is right.
        squares = ratios.weight * (ratios.y / self.rows.mean_ratio - 1.0).square()
        noise = float(squares.sum() / self.rows.weight.sum())
        trees = replace(_TREES, shrinkage=noise / spread**2)
        forests = []
        for number in range(_FOLDS):
            inside, seed = self.rows.fold == number, self.seed + number
            learn, stop = ratios.take(~inside), ratios.take(inside & ~self.rows.decides)
            means = (hashing.uniform(torch.arange(len(learn.y)), seed, "boosting.means") * _FOLDS).long()
            forests.append(
                grow(
                    learn,
                    stop,
                    self.inputs,
                    trees,
                    means,
                    totals=amounts.take(~inside),
                    booster=self.booster,
                    seed=seed,
                    progress=self.progress,
                )
            )
        factor = _left_out(forests, ratios, self.rows.fold)
        cost = float((ratios.weight * _deviance(ratios.y, factor))[~self.rows.decides].sum())
        return _Trial(cost, power, spread, tuple(forests), factor)


@dataclass(frozen=True)
class _RatioRows:
    """Columns of rows, their ratios y/ŷ and the weights of these."""

    x: Mapping[str, Tensor]
    y: Tensor
    weight: Tensor

    def take(self, chosen: Tensor) -> "_RatioRows":
        return _RatioRows(
            {name: column[chosen] for name, column in self.x.items()}, self.y[chosen], self.weight[chosen]
        )


def _left_out(forests: Sequence[GrownForest], rows: _RatioRows, fold: Tensor) -> Tensor:
    """The factor of each row (n,) by the forest that was not fitted to its fold."""
    factor = torch.empty_like(rows.y)
    for number, each in enumerate(forests):
        inside = fold == number
        factor[inside] = each.amounts(rows.take(inside).x)
    return factor


def _deviance(y: Tensor, pred: Tensor) -> Tensor:
    """Half the Poisson deviance of each row: ŷ - y + y·ln(y/ŷ)."""
    return pred - y + torch.xlogy(y, y / pred)


def _percent(change: Change) -> str:
    return f"{100 * change.value:+.2f} ± {100 * change.error:.2f} %"
