"""Training on rows in memory: validation rows are split off, and the total can be balanced afterwards."""

from typing import Unpack

import torch
from torch import Tensor

from transun.backbones import Trees
from transun.data import Dataset, ParquetStream
from transun.models.network import Model
from transun.support.device import require_device
from transun.support.group import current_group
from transun.training.calibration import balance
from transun.training.evaluation import some_rows
from transun.training.history import History
from transun.training.loop import FitOptions, fit
from transun.training.mixing import fit_parts, why_no_trees
from transun.training.recipe import Recipe
from transun.training.row_split import RowSplit

__all__ = ["fit_with_validation"]


def fit_with_validation(
    model: Model | None,
    data: Dataset,
    recipe: Recipe = Recipe(),
    *,
    valid: Dataset | None = None,
    balanced: bool = False,
    trees: Trees | None = None,
    stream: ParquetStream | None = None,
    **options: Unpack[FitOptions],
) -> tuple[Model, History]:
    """Train a model on rows as a recipe says, with early stopping on a share of them, and balance the total.

    This is the one way in which `train`, `transun fit` and `NetworkRegressor` train. Where the rows are too few for a
    validation part, all of them are training rows. Where trees are wanted and can be fitted, the result is a mixture
    of them and the model, see `fit_parts`.

    Args:
        model: trained in place, unless trees are mixed with copies of it, and on the CPU afterwards if the recipe names
            a device; None wants trees alone.
        data: all rows.
        recipe: how to train.
        valid: validation rows in place of a share of `data`.
        balanced: what a `recipe.balance` of None means.
        trees: names the columns for trees beside the model; None wants no trees.
        stream: the rows that the model is trained on, where they are larger than memory; `data` is then a sample of
            them, from which trees and the factor are learned, and validation rows are those that are given.
        **options: see `FitOptions`.

    Returns:
        The model, where it is balanced with a factor that makes the total right, and the history of its training.

    >>> data = Dataset({"a": torch.arange(100) % 2}, torch.arange(100) % 2 * 10.0)
    >>> model, history = fit_with_validation(Model(EmbeddingMLP({"a": 2}), MSE()), data, Recipe(epochs=2))
    >>> history.train_rows + history.valid_rows, len(history.checks)
    (100, 2)

    """
    require_device(recipe.device)
    split = RowSplit(data, valid, data, valid) if stream is not None else RowSplit.of(data, valid, recipe)
    rows, valid = split.train, split.valid
    if model is not None and rows.weight is not None and (options.get("base") is not None or not model.prepared):
        base = options.pop("base", None)
        sample = None if base is None else some_rows(rows, recipe.seed)
        model.prepare(weighted_targets(rows.y, rows.weight), base, sample)
    balanced = balanced if recipe.balance is None else recipe.balance
    obstacle = "no trees are wanted" if trees is None else why_no_trees(split)
    if trees is not None and obstacle is None:
        model, history = fit_parts(model, split, trees, recipe, balanced=balanced, stream=stream, **options)
    elif model is None:
        raise ValueError(f"there is nothing to train: {obstacle}")
    else:
        if recipe.device is not None:
            rows, valid = rows.to(recipe.device), None if valid is None else valid.to(recipe.device)
            stream = None if stream is None else stream.to(recipe.device)
        history = fit(model, rows if stream is None else stream, recipe, valid=valid, **options)
        history.no_trees = "" if trees is None else obstacle or ""
        if balanced:
            model = balance(model, rows, valid, group=current_group())
    return model if recipe.device is None else model.cpu(), history


def weighted_targets(y: Tensor, weight: Tensor) -> Tensor:
    """As many targets (n,), each as often as its share of the weight, from which a head learns its constants.

    The smallest and the largest are always included, since heads learn from them which targets are credible.

    >>> weighted_targets(torch.tensor([5.0, 1.0, 2.0, 3.0]), torch.tensor([1.0, 1.0, 5.0, 1.0])).tolist()
    [1.0, 2.0, 2.0, 5.0]
    """
    y, order = y.double().sort()
    cumulative = weight.double()[order].cumsum(0)
    levels = (torch.arange(len(y), dtype=torch.float64) + 0.5) / len(y) * cumulative[-1]
    chosen = y[torch.searchsorted(cumulative, levels).clamp(max=len(y) - 1)]
    chosen[0], chosen[-1] = y[0], y[-1]
    return chosen
