"""Several trained models as one."""

import copy
from collections.abc import Sequence

from transun.backbones.beside import Beside
from transun.heads import Blend, Head
from transun.models.network import Model

__all__ = ["mix"]


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
    counts = [len(part.head.branches) for part in parts]
    mixture = Model(Beside([part.backbone for part in parts], counts), head, parts[0].seed)
    index = 0
    for part in parts:
        for stack, output in zip(part.network.stacks, part.network.outputs, strict=True):
            mixture.network.stacks[index], mixture.network.outputs[index] = stack, output
            index += 1
    mixture.prepared = True
    return mixture.train(models[0].training)
