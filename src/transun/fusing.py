"""Equal branches of a network as one: batched matrix products in the place of one tower after another."""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn

from transun.backbones import Inputs
from transun.backbones.activations import Pointwise
from transun.backbones.embedding import Dense
from transun.heads import Raw
from transun.model import Model, Network, follow

__all__ = ["fused"]


def fused(model: Model) -> nn.Module:
    """The model for prediction, its branches computed together where they are built alike; else the model itself.

    A prediction for a few rows is mostly the cost of starting operations, and two towers start twice as many. Here
    the dense layers after the stages that a head shares become one product each. With many rows the arithmetic counts,
    and that stays what it was. Weights are copied; results differ in the last bits.

    >>> model = Model(EmbeddingMLP(numeric=("a",), hidden=(8, 4)), LogSUN(shared=1)).prepare(torch.tensor([1.0, 3.0]))
    >>> x = {"a": torch.tensor([-1.0, 0.5])}
    >>> torch.allclose(fused(model)(x), model(x))
    True
    """
    start = _first_alike(model.network)
    return model if start is None else _Fused(model, start).eval()


class _Fused(nn.Module):
    """Own stages before `start` branch by branch, then layers (branch, out, in) over activations (branch, in, B).

    Transposed, because then the parts of a wide product for all branches are whole blocks of memory.
    """

    def __init__(self, model: Model, start: int) -> None:
        super().__init__()
        network = model.network
        self.head, self.routes = model.head, network.routes
        self.one_input = _one_input(network, start)
        self.before, self.weights, self.biases = nn.ModuleList(), nn.ParameterList(), nn.ParameterList()
        towers: list[list[nn.Linear]] = []
        for stack, output, route in zip(cast(Any, network.stacks), network.outputs, network.routes, strict=True):
            self.before.append(stack[: start - route.shared])
            towers.append([*(stage[0] for stage in stack[start - route.shared :]), cast(nn.Linear, output)])
        self.functions: list[Callable[[Tensor], Tensor]] = [
            stage[1].function for stage in cast(Any, network.stacks[0])[start:]
        ]
        for layers in zip(*towers, strict=True):
            weight = torch.stack([layer.weight.detach() for layer in layers])
            bias = torch.stack([layer.bias.detach() for layer in layers]).unsqueeze(2)
            if self.one_input and not len(self.weights):
                weight, bias = weight.flatten(0, 1), bias.flatten(0, 1)
            self.weights.append(nn.Parameter(weight, requires_grad=False))
            self.biases.append(nn.Parameter(bias, requires_grad=False))

    def forward(self, batch: Inputs) -> Tensor:
        """Predictions (B,), in units of the target."""
        return self.head(self._raw(batch))  # type: ignore[no-any-return]

    def _raw(self, batch: Inputs) -> Raw:
        ends = list(follow(self.routes, self.before, batch))
        weight, *weights = self.weights
        bias, *biases = self.biases
        if self.one_input:
            x = torch.addmm(bias, weight, ends[0].t())
            x = x.view(len(ends), len(weight) // len(ends), x.shape[1])
        else:
            x = torch.baddbmm(bias, weight, torch.stack(ends).transpose(1, 2))
        for function, weight, bias in zip(self.functions, weights, biases, strict=True):
            x = torch.baddbmm(bias, weight, function(x))
        return x.transpose(1, 2).unbind()


def _first_alike(network: Network) -> int | None:
    """The stage from which on the branches share nothing and all is dense; None where that joins nothing."""
    widths = {route.width for route in network.routes}
    if len(network.routes) == 1 or len(widths) > 1:
        return None
    stages = list(cast(nn.Sequential, network.stacks[0]))
    start = len(stages)
    # One look is enough: stages of one place come from one builder.
    while start > max(route.shared for route in network.routes) and _is_dense(stages[start - 1]):
        start -= 1
    return start if start < len(stages) else None


def _is_dense(stage: nn.Module) -> bool:
    return isinstance(stage, Dense) and isinstance(stage[1], Pointwise)


def _one_input(network: Network, start: int) -> bool:
    """Whether every branch has come to `start` by the stages of the first alone."""
    alone = [True]
    for route in network.routes[1:]:
        alone.append(route.shared == start and alone[route.of])
    return all(alone)
