"""Boosted trees over the columns of encoded rows: ids by their codes and by their mean targets."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from transun.backbones.backbone import Inputs
from transun.backbones.boosters import BoostedRows, Booster, Boosting, BoostingTask, default_booster
from transun.backbones.boosting_loss import BoostingLoss
from transun.backbones.embedding import named_columns
from transun.backbones.trees import MAX_LOG_RATIO, Forest, Tree, TreeColumns, Trees, bag_means
from transun.support.processors import threads_for_boosting

__all__ = ["GrownForest", "TargetRows", "grow"]

# Means are multiples of this, in units of the mean target.
_GRAIN = 2.0**-12
# Above this many rows a tree takes so long that each has to go further.
_MANY_ROWS, _HASTE = 100_000, 2.0
# Ids that are more than this are seen by their means alone where means are seen.
_MOST_CODES_BESIDE_MEANS = 256


class TargetRows(Protocol):
    """Encoded rows with targets, such as a `Dataset`."""

    @property
    def x(self) -> Inputs: ...

    @property
    def y(self) -> Tensor: ...

    @property
    def weight(self) -> Tensor | None: ...


@dataclass(frozen=True)
class GrownForest:
    """Trees that have been fitted to rows.

    Args:
        trees: the backbone, with room for them.
        forest: the stage that holds them; its amounts are in units of `unit`.
        unit: of these amounts, in units of the target; it makes the total of the training rows right.

    """

    trees: Trees
    forest: Forest
    unit: float

    @torch.no_grad()
    def amounts(self, x: Inputs) -> Tensor:
        """What the trees predict for rows (n,), in units of the target."""
        return self.unit * self.forest(x).squeeze(-1).double()  # type: ignore[no-any-return]


def grow(
    rows: TargetRows,
    valid: TargetRows | None,
    inputs: Trees,
    settings: Boosting,
    fold: Tensor,
    *,
    totals: TargetRows | None = None,
    booster: Booster | None = None,
    seed: int = 0,
    seconds: float = math.inf,
    progress: bool | None = None,
) -> GrownForest:
    """Fit trees to rows with y ≥ 0 and a positive mean, whose total over these rows is then right.

    Neither a deviance of a power other than 1 nor boosting that ends early sees to the total. So the unit of the forest
    is chosen by what the library predicts for the training rows. There, a row sees means of ids that leave its own fold
    out. By means that contain their own targets, training rows would be predicted at more than new rows are, and the
    unit that makes up for it would make the total of new rows too low.

    Args:
        rows: training rows, encoded.
        valid: validation rows, which decide the number of trees; None boosts `settings.most_trees`.
        inputs: names the columns.
        settings: loss, size and shrinkage of the trees.
        fold: of each training row (n,), from 0 on: the mean targets of ids that a row sees are those of other folds.
        totals: the training rows with other targets and weights, whose total is to be right instead.
        booster: the library; None takes LightGBM where it is installed, else scikit-learn.
        seed: of the rows that each tree is fitted to.
        seconds: after which no further tree is begun.
        progress: show a progress bar; None shows it on a terminal.

    """
    booster = booster or default_booster()
    weight = torch.ones_like(rows.y) if rows.weight is None else rows.weight
    unit = float((rows.y.double() * weight).sum()) / float(weight.double().sum())
    matrix, x = inputs.columns(), named_columns(rows.x, ())
    for name in (*matrix.ids, *matrix.bags):
        matrix.means(name).copy_(_means(x[name], rows.y / unit, weight, matrix.sizes[name]))
    columns = _columns(matrix, booster.most_codes, settings.by_means)
    haste = _HASTE if len(rows.y) + (0 if valid is None else len(valid.y)) > _MANY_ROWS else 1.0
    seen = _seen_by_training_rows(matrix, x, rows.y / unit, weight, fold)
    task = BoostingTask(
        columns.select(_rows(seen, rows, unit, settings.loss)),
        None if valid is None else columns.select(_rows(matrix(valid.x), valid, unit, settings.loss)),
        columns.codes,
        replace(settings, rate=haste * settings.rate),
        seed=seed,
        threads=threads_for_boosting(torch.get_num_threads()),
        seconds=seconds,
        progress=progress,
    )
    boosted = booster.fit(task)
    named = [columns.rename(tree) for tree in boosted.trees]
    backbone = inputs.holding(named)
    forest = backbone.forest()
    forest.matrix.load_state_dict(matrix.state_dict())
    forest.plant(named, seen)
    return GrownForest(backbone, forest, _mean_ratio(totals or rows, torch.from_numpy(boosted.amounts)))


def _mean_ratio(rows: TargetRows, amounts: Tensor) -> float:
    """The total of the targets over that of the amounts (n,): the unit that makes both totals equal."""
    weight = torch.ones_like(rows.y) if rows.weight is None else rows.weight
    amounts = amounts.clamp(math.exp(-MAX_LOG_RATIO), math.exp(MAX_LOG_RATIO))  # as the forest does
    return float((rows.y.double() * weight).sum() / (amounts * weight).sum())


@dataclass(frozen=True)
class _Columns:
    """The columns of the matrix that the trees see, and which of them hold codes."""

    numbers: list[int]
    codes: list[int]
    """Positions within `numbers`."""

    def select(self, rows: BoostedRows) -> BoostedRows:
        return BoostedRows(rows.x[:, self.numbers], rows.y, rows.weight)

    def rename(self, tree: Tree) -> Tree:
        columns = [self.numbers[column] for column in tree.columns]
        slopes = [{self.numbers[column]: slope for column, slope in leaf.items()} for leaf in tree.slopes]
        return replace(tree, columns=columns, slopes=slopes)


def _columns(matrix: TreeColumns, most_codes: int, by_means: bool) -> _Columns:
    """The columns that trees see: codes as long as they are few enough, means where asked for or where codes fail."""
    numbers: list[int] = []
    codes: list[int] = []
    for number, (name, meaning) in enumerate(matrix.meanings):
        size = matrix.sizes.get(name, 0)
        few = name in matrix.ids and size <= (min(most_codes, _MOST_CODES_BESIDE_MEANS) if by_means else most_codes)
        # Means of two values order them as their codes do.
        wanted = {"codes": few, "means": not few or (by_means and size > 3)}.get(meaning, True)
        if wanted:
            if meaning == "codes":
                codes.append(len(numbers))
            numbers.append(number)
    return _Columns(numbers, codes)


def _rows(columns: Tensor, data: TargetRows, unit: float, loss: BoostingLoss) -> BoostedRows:
    weight = None if data.weight is None else data.weight.double().numpy()
    learned = loss.learned((data.y.double() / unit).numpy())
    return BoostedRows(np.ascontiguousarray(columns.t().numpy()), learned, weight)


def _seen_by_training_rows(
    matrix: TreeColumns, x: Mapping[str, Tensor], y: Tensor, weight: Tensor, fold: Tensor
) -> Tensor:
    """The columns of the training rows, (columns, n), with means that leave each row's own fold out.

    A mean that contains a row's own target would give the target away, the more the rarer the id.
    """
    columns: Tensor = matrix(x)
    for name in (*matrix.ids, *matrix.bags):
        codes = x[name]
        means = columns[matrix.meanings.index((name, "means"))]
        for number in range(int(fold.max()) + 1):
            inside = fold == number
            others = _means(codes[~inside], y[~inside], weight[~inside], matrix.sizes[name])
            means[inside] = others[codes[inside]] if codes.ndim == 1 else bag_means(others, codes[inside])
    return columns


def _means(codes: Tensor, y: Tensor, weight: Tensor, size: int) -> Tensor:
    """The mean target of each code, less the overall mean, shrunk by n / (n + k), k = variance within / between codes.

    >>> values = _means(torch.tensor([0, 0, 1, 1]), torch.tensor([1.0, 1.0, 3.0, 3.0]), torch.ones(4), 3)
    >>> [round(value, 6) for value in values.tolist()]  # no variance within codes, hence no shrinkage
    [-1.0, 1.0, 0.0]
    """
    y, weight = y.double(), weight.double()
    if codes.ndim == 2:  # a row counts for each of its codes
        row, slot = (codes >= 0).nonzero(as_tuple=True)
        codes, y, weight = codes[row, slot], y[row], weight[row]
    rows = weight.sum()
    if not len(codes) or not rows > 0.0:
        return torch.zeros(size)
    y = y - (weight * y).sum() / rows
    count = torch.zeros(size, dtype=torch.float64).index_add_(0, codes, weight)
    total = torch.zeros(size, dtype=torch.float64).index_add_(0, codes, weight * y)
    mean = total / count.clamp(min=1e-300)
    present = float((count > 0).sum())
    within = (weight * (y - mean[codes]) ** 2).sum() / max(float(len(codes)) - present, 1.0) * len(codes) / rows
    between = ((count * mean**2).sum() / rows - within * present / len(codes)).clamp(min=1e-12)
    # A code that never occurs, where nothing is shrunk, would be 0 / 0.
    means = total / (count + within / between).clamp(min=1e-300)
    # Multiples of a power of 2 are summed without rounding, so that a bag has the same average in every order, on every
    # machine: trees would find a threshold between averages that differ in the last bit.
    return (means / _GRAIN).round().mul(_GRAIN).float()
