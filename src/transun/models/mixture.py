"""Several trained models as one: a convex combination of them, or one times another."""

import copy
from collections.abc import Sequence

from transun.backbones.beside import Beside
from transun.heads import Adjusted, Blend, Head
from transun.models.network import Model

__all__ = ["mix", "multiply"]


def mix(models: Sequence[Model], shares: Sequence[float]) -> Model:
    """One model that predicts Σ share·ŷ of trained models: their backbones beside each other under a `Blend`.

    Args:
        models: trained; they stay as they are.
        shares: of each, positive and of sum 1.

    >>> one, three = (Model(Constant(), MSE()).prepare(torch.tensor([mean])) for mean in (1.0, 3.0))
    >>> round(mix([one, three], [0.25, 0.75])(torch.zeros(1, 1)).item(), 6)  # ¼·1 + ¾·3
    2.5

    """
    if len(models) != len(shares) or min(shares) <= 0.0 or abs(sum(shares) - 1.0) > 1e-6:
        raise ValueError(f"mix needs a positive share for each model, of sum 1, got {list(shares)}")
    if len(models) == 1:
        return copy.deepcopy(models[0])
    parts = [copy.deepcopy(model) for model in models]
    head: Head = parts[0].head
    before = shares[0]
    for part, share in zip(parts[1:], shares[1:], strict=True):
        head = Blend(head, part.head, share / (before + share), shared=0)
        before += share
    return _beside(parts, head).train(models[0].training)


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
