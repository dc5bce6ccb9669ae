"""The finish of a training, in which the bias branches alone move, around points that stand still."""

from collections.abc import Iterator
from contextlib import contextmanager

from transun.models.network import Model
from transun.training.batches import BatchSource

__all__ = ["only_bias_branches", "require_finish"]


def require_finish(model: Model, epochs: int, valid: BatchSource | None) -> None:
    """Raise a `ValueError` where bias branches cannot be finished: there are none, or nothing can judge them."""
    if not model.head.bias_branches:
        raise ValueError(
            f"a finish of {epochs} epochs trains bias branches alone, and this head has none: choose a debiased head "
            "such as LogSUN(), or a finish of 0"
        )
    if valid is None:
        raise ValueError(
            f"a finish of {epochs} epochs is kept only where validation rows say so, and there are none: set some rows "
            "aside, or choose a finish of 0"
        )


@contextmanager
def only_bias_branches(model: Model) -> Iterator[None]:
    """Inside the `with` block only the bias branches are trained, and all else is in evaluation mode.

    In short training z follows a point u that moves on. Here u, and with it the label y·κ(u), is the one that
    predictions will use: weights stand still, dropout is off and running statistics stay. Stages that a bias branch
    shares belong to the branch it shares them with, so that they stand still too.

    >>> model = Model(EmbeddingMLP(numeric=("a",), hidden=(8,)), LogSUN(shared=1))
    >>> with only_bias_branches(model):
    ...     print(sum(p.requires_grad for p in model.parameters()), "of", len(list(model.parameters())))
    4 of 8
    """
    ours = [module for index in model.head.bias_branches for module in model.network.branch_modules(index)]
    before = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    model.requires_grad_(False).eval()
    for module in ours:
        module.requires_grad_(True).train()
    try:
        yield
    finally:
        for parameter, requires_grad in before:
            parameter.requires_grad_(requires_grad)
            parameter.grad = None
