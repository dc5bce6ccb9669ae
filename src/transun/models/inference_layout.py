"""A network laid out for prediction: branches as one product a layer, weights in the order in which they are read."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from transun.backbones import Inputs
from transun.backbones.activations import Pointwise
from transun.backbones.embedding import Dense
from transun.heads import Raw
from transun.models.network import Model, Network, branch_outputs

__all__ = ["merge_branches"]

# Layers are joined while the zeros between their blocks add no more than this to the products of all the layers. Those
# between outputs stay within it, those between towers of several layers do not.
_ZEROS = 0.15


def merge_branches(model: Model) -> nn.Module:
    """The model for prediction, weights copied into the layout that serves fastest; itself if no layer is dense.

    A prediction for a few rows is mostly the cost of starting operations, and two towers start twice as many. Where all
    branches part from one activation, their first dense layers become one product, and the next ones a product with a
    block-diagonal matrix. Its zeros are multiplied too: between outputs they are few; between towers they are half of
    the matrix, so there each branch goes on alone after the first layer. Results differ in the last bits,
    and where an activation is infinite: times zero it makes the other branches NaN.

    >>> model = Model(EmbeddingMLP(numeric=("a",), hidden=(8, 4)), LogSUN(shared=1)).prepare(torch.tensor([1.0, 3.0]))
    >>> x = {"a": torch.tensor([-1.0, 0.5])}
    >>> torch.allclose(merge_branches(model)(x), model(x))
    True
    """
    stages = (stage for stack in cast(Any, model.network.stacks) for stage in stack)
    return _Fused(model).eval() if any(isinstance(stage, Dense) for stage in stages) else model


class _Fused(nn.Module):
    """Stages branch by branch, then the joined layers, then what each branch goes on with alone."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        network = model.network
        self.head = model.head
        # Nothing is trained here, so nobody has to be kept from training what he reads.
        self.routes = tuple(replace(route, trains_shared=True) for route in network.routes)
        parting = _parting(network)
        last = len(cast(nn.Sequential, network.stacks[0]))
        own = [(parting or last) - route.shared for route in self.routes]
        parts = list(zip(cast(Any, network.stacks), cast(Any, network.outputs), own, strict=True))
        self.before = nn.ModuleList(_laid_out(stack[:count]) for stack, _, count in parts)
        towers = [[*stack[count:], Dense(output)] for stack, output, count in parts]
        count = _worth_joining(towers) if parting else 0
        layers = list(zip(*towers, strict=True))[:count]
        self.joined = nn.Sequential(*(_join(layer, entering=not place) for place, layer in enumerate(layers)))
        self.widths = [part[0].out_features for part in layers[-1]] if layers else []
        self.after = nn.ModuleList(_laid_out(tower[count:]) for tower in towers)

    def forward(self, batch: Inputs) -> Tensor:
        """Predictions (B,), in units of the target."""
        return self.head(self._raw(batch))  # type: ignore[no-any-return]

    def _raw(self, batch: Inputs) -> Raw:
        ends: Sequence[Tensor] = list(branch_outputs(self.routes, self.before, batch))
        if self.widths:
            ends = _apart(self.joined(ends[0]), self.widths)
        return tuple(after(end) for after, end in zip(self.after, ends, strict=True))


class _Product(nn.Module):
    """x·W + b with W (in, out): torch keeps (out, in), and a product with few rows mostly waits for turning it."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight.detach().t().contiguous(), requires_grad=False)
        self.bias = nn.Parameter(bias.detach(), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x, self.weight)


def _laid_out(stages: Iterable[Any]) -> nn.Sequential:
    """The stages in turn, dense ones with their weights turned and without dropout, which nothing is left of."""
    return nn.Sequential(*(_join([stage], True) if isinstance(stage, Dense) else stage for stage in stages))


def _join(layer: Sequence[Any], entering: bool) -> nn.Sequential:
    """One dense layer, a copy of those of several branches: all read the same activation, or each its part of it."""
    weights = [part[0].weight for part in layer]
    weight = torch.cat(weights) if entering else torch.block_diag(*weights)  # type: ignore[no-untyped-call]
    return nn.Sequential(_Product(weight, torch.cat([part[0].bias for part in layer])), *layer[0][1:2])


def _apart(x: Tensor, widths: list[int]) -> Sequence[Tensor]:
    """The parts (B, width) of an activation; single columns are cut off in one go, without their second dimension.

    They are given it back, for a head to take off again: two operations that an exported graph can do without.
    """
    if max(widths) > 1:
        return x.split_with_sizes(widths, 1)
    return [column.unsqueeze(-1) for column in x.unbind(1)]


def _parting(network: Network) -> int:
    """The number of stages that all branches share, if they part there all at once; else 0.

    Several activations to start from would have more zeros between the blocks than a product saves.
    """
    shared = {route.shared for route in network.routes[1:]}
    return shared.pop() if len(shared) == 1 else 0


def _worth_joining(towers: list[list[Any]]) -> int:
    """How many layers of the towers, from the first on, are one product."""
    layers = list(zip(*towers, strict=True))
    products = sum(cast(Any, part)[0].weight.numel() for tower in towers for part in tower if isinstance(part, Dense))
    zeros = 0
    for place, layer in enumerate(layers):
        if not all(_is_plain(part) for part in layer):
            return place
        if place:
            whole = sum(part[0].in_features for part in layer) * sum(part[0].out_features for part in layer)
            zeros += whole - sum(part[0].weight.numel() for part in layer)
        if zeros > _ZEROS * products:
            return place
    return len(layers)


def _is_plain(stage: nn.Module) -> bool:
    return isinstance(stage, Dense) and all(isinstance(part, Pointwise) for part in cast(Any, stage)[1:2])
