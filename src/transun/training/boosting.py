"""Boosted trees as a model: an ensemble fitted to encoded rows, and the output layer that gives it a unit."""

import math
from dataclasses import replace

import torch

from transun.backbones import Trees
from transun.backbones.boosters import Booster, Boosting
from transun.backbones.boosting import GrownForest, grow
from transun.backbones.boosting_loss import SquaredLogs, TweedieDeviance
from transun.data import Dataset, hashing
from transun.heads import PointHead, Scaled
from transun.models.network import Model
from transun.transforms import Identity

__all__ = ["LARGE_TREES", "LOG_TREES", "SMALL_TREES", "fit_trees", "forest_model"]

SMALL_TREES = Boosting(TweedieDeviance(), leaves=8, rate=0.05, by_means=True)
"""Many small trees by Poisson deviance, which see ids by the mean of their targets too."""
LARGE_TREES = Boosting(TweedieDeviance(1.3), leaves=31, rate=0.03, by_means=False, linear=True)
"""Larger trees by a deviance that listens less to the largest targets; they see ids by sets alone.

Their leaves are linear in the numbers where the library can do that. The two ensembles then differ in kind, steps and
lines, and their mixture is the better for it; the board's page of ablations says by how much.
"""
LOG_TREES = replace(LARGE_TREES, loss=SquaredLogs(), rate=0.1, most_trees=300)
"""The same on a logarithmic scale, where most pairs of rows are ordered best; their amounts need a correction.

Their totals and largest amounts are worse, so that they have a share where amounts are small alone. Few trees find the
order: more of them at a lower rate hardly order better.
"""
# Folds for the means of ids: a row's own target never enters the mean that the row sees.
_FOLDS = 5


def fit_trees(
    data: Dataset,
    valid: Dataset | None,
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
        valid: validation rows, which decide the number of trees; None boosts `settings.most_trees`.
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
    fold = (hashing.uniform(torch.arange(len(data.y)), seed, "boosting.means") * _FOLDS).long()
    grown = grow(data, valid, inputs, settings, fold, booster=booster, seed=seed, seconds=seconds, progress=progress)
    return forest_model(grown, seed)


def forest_model(grown: GrownForest, seed: int = 0) -> Model:
    """Trees as a model that predicts the amounts of their forest, in units of the target."""
    model = Model(grown.trees, Scaled(PointHead(Identity(lower=0.0)), scale=grown.unit), seed)
    forest, output = model.network.stacks[0][0], model.network.outputs[0]  # type: ignore[index]
    forest.load_state_dict(grown.forest.state_dict())
    torch.nn.init.ones_(output.weight)  # type: ignore[arg-type]
    torch.nn.init.zeros_(output.bias)  # type: ignore[arg-type]
    model.prepared = True
    return model.eval()
