"""Several trained models as one: a mean of their predictions, or one prediction times another."""

import copy
from collections.abc import Sequence

from transun.backbones.beside import Beside
from transun.heads import Adjusted, Blend, Head
from transun.models.network import Model

__all__ = ["mix", "multiply"]


def mix(
    models: Sequence[Model],
    shares: Sequence[float],
    small: Sequence[float] | None = None,
    level: float | None = None,
) -> Model:
    """One model that predicts a mean of trained models: their backbones beside each other under a `Blend`.

    Args:
        models: trained; they stay as they are.
        shares: of each, not negative and of sum 1; where amounts are large, if there are weights for small ones.
        small: the weight of each where amounts are small; see `Blend`.
        level: the amount at which both count equally.

    >>> one, three = (Model(Constant(), MSE()).prepare(torch.tensor([mean])) for mean in (1.0, 3.0))
    >>> round(mix([one, three], [0.25, 0.75])(torch.zeros(1, 1)).item(), 6)  # ¼·1 + ¾·3
    2.5

    """
    if len(models) == 1 == len(shares):
        return copy.deepcopy(models[0])
    parts = [copy.deepcopy(model) for model in models]
    return _beside(parts, Blend([part.head for part in parts], shares, small, level, shared=0)).train(
        models[0].training
    )


def multiply(model: Model, ratio: Model, least: float = 0.0) -> Model:
    """One model that predicts ŷ·r, ŷ of one trained model and r of another: both backbones under an `Adjusted` head.

    Args:
        model: of the amounts; it stays as it is.
        ratio: of the factors, without a unit; it stays as it is.
        least: amounts below this are raised to it first.

    >>> amount, factor = (Model(Constant(), MSE()).prepare(torch.tensor([mean])) for mean in (4.0, 1.5))
    >>> multiply(amount, factor)(torch.zeros(1, 1)).item()
    6.0

    """
    parts = [copy.deepcopy(model), copy.deepcopy(ratio)]
    return _beside(parts, Adjusted(parts[0].head, parts[1].head, least)).train(model.training)


def _beside(parts: Sequence[Model], head: Head) -> Model:
    """The networks of the parts, beside each other, under a head that has the branches of all of them."""
    counts = [len(part.head.branches) for part in parts]
    joint = Model(Beside([part.backbone for part in parts], counts), head, parts[0].seed)
    index = 0
    for part in parts:
        for stack, output in zip(part.network.stacks, part.network.outputs, strict=True):
            joint.network.stacks[index], joint.network.outputs[index] = stack, output
            index += 1
    joint.prepared = True
    return joint
