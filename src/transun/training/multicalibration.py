"""Multicalibration of a trained model: the ratio that puts segments right stands beside its network."""

import torch

from transun.backbones import Trees
from transun.backbones.boosters import Booster
from transun.backbones.embedding import named_columns
from transun.corrections.multicalibration import RatioFit, fit_ratio
from transun.data import Dataset
from transun.models.mixture import mix, multiply
from transun.models.network import Model
from transun.training.boosting import forest_model
from transun.training.evaluation import predict

__all__ = ["multicalibrate"]


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
    fitted = fit_ratio(
        named_columns(data.x, ()),
        data.y,
        predict(model, data),
        inputs,
        weight=data.weight,
        booster=booster,
        seed=seed,
        progress=progress,
    )
    if not fitted.kept:
        return model, fitted
    forests = [forest_model(each, seed) for each in fitted.forests]
    return multiply(model, mix(forests, [1.0 / len(forests)] * len(forests)), fitted.least), fitted
