"""Boosted trees as a model: an ensemble fitted to encoded rows, and the output layer that gives it a unit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from transun.backbones import Tree, Trees
from transun.backbones.embedding import named_columns
from transun.backbones.trees import TreeColumns, bag_means
from transun.data import Dataset, hashing
from transun.heads import PointHead, Scaled
from transun.models.network import Model
from transun.training.boosters import BoostedRows, Booster, Boosting, BoostingTask, default_booster
from transun.training.evaluation import BATCH
from transun.transforms import Identity

__all__ = ["LARGE_TREES", "SMALL_TREES", "fit_trees"]

SMALL_TREES = Boosting(power=1.0, leaves=8, rate=0.05, by_means=True)
"""Many small trees by Poisson deviance, which see ids by the mean of their targets too."""
LARGE_TREES = Boosting(power=1.3, leaves=31, rate=0.03, by_means=False)
"""Fewer and larger trees by a deviance that listens less to the largest targets; they see ids by sets alone."""
# Folds for the means of ids: a row's own target never enters the mean that the row sees.
_FOLDS = 5
# Means are multiples of this, in units of the mean target.
_GRAIN = 2.0**-12
# Above this many rows a tree takes so long that each has to go further.
_MANY_ROWS, _HASTE = 200_000, 2.0
# Ids that are more than this are seen by their means alone where means are seen.
_MOST_CODES_BESIDE_MEANS = 256


def fit_trees(
    data: Dataset,
    valid: Dataset,
    inputs: Trees,
    settings: Boosting = SMALL_TREES,
    *,
    booster: Booster | None = None,
    seed: int = 0,
    seconds: float = math.inf,
    progress: bool | None = None,
) -> Model:
    """A trained model whose backbone is `Trees`, for y ≥ 0 with a positive mean.

    Its total over the training rows is right: the deviance of a power other than 1 alone would not see to that.

    Args:
        data: training rows, encoded.
        valid: validation rows, which decide the number of trees.
        inputs: names the columns.
        settings: loss, size and shrinkage of the trees.
        booster: the library; None takes LightGBM where it is installed, else scikit-learn.
        seed: of the rows that each tree is fitted to, and of the folds for the means of ids.
        seconds: after which no further tree is begun.
        progress: show a progress bar; None shows it on a terminal.

    >>> x = {"a": torch.arange(400) / 400}
    >>> rows = Dataset(x, torch.where(x["a"] < 0.5, 1.0, 9.0))
    >>> model = fit_trees(rows, rows, Trees(numeric=("a",)))
    >>> [round(value) for value in model({"a": torch.tensor([0.2, 0.8])}).tolist()]
    [1, 9]

    """
    booster = booster or default_booster()
    weight = torch.ones_like(data.y) if data.weight is None else data.weight
    total = float((data.y.double() * weight).sum())
    unit = total / float(weight.double().sum())
    matrix, x = inputs.columns(), named_columns(data.x, ())
    for name in (*matrix.ids, *matrix.bags):
        matrix.means(name).copy_(_means(x[name], data.y / unit, weight, matrix.sizes[name]))
    columns = _columns(matrix, booster.most_codes, settings.by_means)
    haste = _HASTE if len(data.y) > _MANY_ROWS else 1.0
    task = BoostingTask(
        columns.select(_rows(_seen_by_training_rows(matrix, data, weight, unit, seed), data, unit)),
        columns.select(_rows(matrix(valid.x), valid, unit)),
        columns.codes,
        replace(settings, rate=haste * settings.rate),
        seed=seed,
        threads=torch.get_num_threads(),
        seconds=seconds,
        progress=progress,
    )
    model = _assemble(matrix, [columns.rename(tree) for tree in booster.fit(task)], inputs, unit, seed)
    return _with_total(model, data, total)


def _assemble(matrix: TreeColumns, trees: Sequence[Tree], inputs: Trees, unit: float, seed: int) -> Model:
    model = Model(inputs.holding(trees), Scaled(PointHead(Identity(lower=0.0)), scale=unit), seed)
    forest, output = model.network.stacks[0][0], model.network.outputs[0]  # type: ignore[index]
    forest.matrix.load_state_dict(matrix.state_dict())
    forest.plant(trees)
    torch.nn.init.ones_(output.weight)  # type: ignore[arg-type]
    torch.nn.init.zeros_(output.bias)  # type: ignore[arg-type]
    model.prepared = True
    return model.eval()


@torch.no_grad()
def _with_total(model: Model, data: Dataset, total: float) -> Model:
    """The model times the factor that makes the total of these rows right."""
    predicted = 0.0
    for batch in data.batches(BATCH):
        weight = 1.0 if batch.weight is None else batch.weight.double()
        predicted += float((model(batch.x).double() * weight).sum())
    model.network.outputs[0].weight.mul_(total / predicted)  # type: ignore[operator]
    return model


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
        return Tree(columns, tree.questions, tree.yes, tree.no, tree.values)


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


def _rows(columns: Tensor, data: Dataset, unit: float) -> BoostedRows:
    weight = None if data.weight is None else data.weight.double().numpy()
    return BoostedRows(np.ascontiguousarray(columns.t().numpy()), (data.y.double() / unit).numpy(), weight)


def _seen_by_training_rows(matrix: TreeColumns, data: Dataset, weight: Tensor, unit: float, seed: int) -> Tensor:
    """The columns of the training rows, (columns, n), with means that leave each row's own fold out.

    A mean that contains a row's own target would give the target away, the more the rarer the id.
    """
    columns: Tensor = matrix(data.x)
    fold = (hashing.uniform(torch.arange(len(data.y)), seed, "boosting.means") * _FOLDS).long()
    y, x = data.y / unit, named_columns(data.x, ())
    for name in (*matrix.ids, *matrix.bags):
        codes = x[name]
        means = columns[matrix.meanings.index((name, "means"))]
        for number in range(_FOLDS):
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
