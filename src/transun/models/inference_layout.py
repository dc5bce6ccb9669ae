"""A model rearranged for fast prediction: the dense layers of its branches are merged and stored transposed."""

import copy
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

__all__ = ["MergedModel", "merge_branches", "merge_outputs"]

# Layers are merged as long as the zeros in their block-diagonal matrices are at most this share of all dense weights.
# The zeros between output layers stay below it, those between towers of several layers do not.
_MAX_ZEROS = 0.15


def merge_branches(model: Model) -> "Model | MergedModel":
    """A copy of the model for prediction with the dense layers of its branches merged, or the model itself.

    The model itself is returned if none of its layers is dense, or if its backbone has several parts. Where it has
    several members, the output layers alone are merged, by `merge_outputs`.

    The time of a prediction for a few rows is mostly that of starting operations, and two towers start twice as many.
    Where all branches leave one activation, their first dense layers become one product, and their next ones a product
    with a block-diagonal matrix. Its zeros are multiplied too: between output layers they are few; between towers they
    are half of the matrix, so that there each branch continues alone after the first layer. Results differ from those
    of the model in the last bits, and where an activation is infinite: times zero it makes the other branches NaN.

    >>> model = Model(EmbeddingMLP(numeric=("a",), hidden=(8, 4)), LogSUN(shared=1)).prepare(torch.tensor([1.0, 3.0]))
    >>> x = {"a": torch.tensor([-1.0, 0.5])}
    >>> torch.allclose(merge_branches(model)(x), model(x))
    True
    """
    if model.members > 1:
        return merge_outputs(model)
    if not _has_one_part(model):
        return model
    stages = (stage for stack in cast(Any, model.network.stacks) for stage in stack)
    return MergedModel(model).eval() if any(isinstance(stage, Dense) for stage in stages) else model


def merge_outputs(model: Model) -> Model:
    """A copy of a model with several members whose output layers are computed as one, or the model itself.

    They are where all branches share all stages and so read the same activation: one product per member instead of one
    per member and branch. A model with one member is returned as it is.

    >>> y, x = torch.tensor([1.0, 3.0]), {"a": torch.tensor([-1.0, 0.5])}
    >>> model = Model(TabM(numeric=("a",), hidden=(8,), members=2), LogSUN(shared="all")).prepare(y).eval()
    >>> torch.allclose(merge_outputs(model)(x), model(x))
    True
    """
    stages = len(cast(nn.Sequential, model.network.stacks[0]))
    if model.members == 1 or not _has_one_part(model) or _common_stages(model.network) != stages:
        return model
    merged = copy.deepcopy(model)
    merged.network = cast(Any, _MergedOutputs(merged.network))
    return merged.eval()


def _has_one_part(model: Model) -> bool:
    """Whether one backbone supplies all branches."""
    parts = [model.backbone.of_branch(index) for index in range(len(model.head.branches))]
    return all(part is parts[0] for part in parts)


class _MergedOutputs(nn.Module):
    """The stages that all branches share, then one output layer with the outputs of every branch beside each other.

    The product of a member is W·xᵀ, with a row for each output and a column for each row of the batch. x·Wᵀ has few
    columns instead, for which onnxruntime took almost twice the time at 4,096 rows and two outputs.
    """

    def __init__(self, network: Network) -> None:
        super().__init__()
        layers = cast(Any, network.outputs)
        self.stages = cast(nn.Sequential, network.stacks[0])
        self.widths = [route.width for route in network.routes]
        weight, bias = torch.cat([layer.weight for layer in layers], 2), torch.cat([layer.bias for layer in layers], 1)
        self.weight = nn.Parameter(weight.detach().transpose(1, 2).contiguous(), requires_grad=False)
        self.bias = nn.Parameter(bias.detach().unsqueeze(-1), requires_grad=False)

    def forward(self, batch: Inputs) -> Raw:
        members, _, in_features = self.weight.shape
        by_member = self.stages(batch).reshape(-1, members, in_features).permute(1, 2, 0)
        outputs = torch.baddbmm(self.bias, self.weight, by_member).permute(1, 2, 0)
        if max(self.widths) > 1:
            return tuple(block.t() for block in outputs.flatten(1).split_with_sizes(self.widths))
        # In an exported graph, to pick a row is one operation, and to unbind rows is four.
        columns = outputs.reshape(len(self.widths), -1, 1)
        return tuple(columns.select(0, index) for index in range(len(self.widths)))


class MergedModel(nn.Module):
    """The stages before the branches part, then the merged layers, then the remaining layers of each branch."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        network = model.network
        self.head = model.head
        # Without training there are no gradients to stop between branches.
        self.routes = tuple(replace(route, trains_shared=True) for route in network.routes)
        common = _common_stages(network)
        before = [(common or len(cast(nn.Sequential, network.stacks[0]))) - route.shared for route in self.routes]
        parts = list(zip(cast(Any, network.stacks), cast(Any, network.outputs), before, strict=True))
        self.before = nn.ModuleList(_for_prediction(stack[:count]) for stack, _, count in parts)
        towers = [[*stack[count:], Dense(output)] for stack, output, count in parts]
        merged = _count_merged_layers(towers) if common else 0
        layers = list(zip(*towers, strict=True))[:merged]
        self.merged = nn.Sequential(*(_merge_layer(layer, first=index == 0) for index, layer in enumerate(layers)))
        self.widths = [dense[0].out_features for dense in layers[-1]] if layers else []
        self.after = nn.ModuleList(_for_prediction(tower[merged:]) for tower in towers)

    def forward(self, batch: Inputs) -> Tensor:
        """Predictions (B,), in units of the target."""
        return self.head(self.raw(batch))  # type: ignore[no-any-return]

    def over_members(self, values: Tensor) -> Tensor:
        """The values as they are: what is merged has one member."""
        return values

    def raw(self, batch: Inputs) -> Raw:
        """The raw outputs, (B, width) per branch."""
        activations: Sequence[Tensor] = list(branch_outputs(self.routes, self.before, batch))
        if self.widths:
            activations = _split_branches(self.merged(activations[0]), self.widths)
        return tuple(after(activation) for after, activation in zip(self.after, activations, strict=True))


class _TransposedLinear(nn.Module):
    """x·W + b with W stored as (in, out): torch stores (out, in), and transposing it takes most of a small product."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight.detach().t().contiguous(), requires_grad=False)
        self.bias = nn.Parameter(bias.detach(), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x, self.weight)


def _for_prediction(stages: Iterable[Any]) -> nn.Sequential:
    """The same stages; dense ones have transposed weights and no dropout."""
    return nn.Sequential(
        *(_merge_layer([stage], first=True) if isinstance(stage, Dense) else stage for stage in stages)
    )


def _merge_layer(layer: Sequence[Any], first: bool) -> nn.Sequential:
    """One dense layer that computes those of several branches.

    Args:
        layer: one dense layer per branch, with equal activation functions.
        first: whether all of them read the same activation; else each reads its block of the merged layer before.

    """
    weights = [dense[0].weight for dense in layer]
    weight = torch.cat(weights) if first else torch.block_diag(*weights)  # type: ignore[no-untyped-call]
    return nn.Sequential(_TransposedLinear(weight, torch.cat([dense[0].bias for dense in layer])), *layer[0][1:2])


def _split_branches(x: Tensor, widths: list[int]) -> Sequence[Tensor]:
    """The block (B, width) of each branch.

    Single columns are cut by one `unbind`, which drops their second dimension. `unsqueeze` restores it and the head
    squeezes it again: this pair of operations is removed from an exported graph.
    """
    if max(widths) > 1:
        return x.split_with_sizes(widths, 1)
    return [column.unsqueeze(-1) for column in x.unbind(1)]


def _common_stages(network: Network) -> int:
    """The number of stages that all branches share if they part at the same stage; else 0.

    Branches that part at several stages are not merged: the blocks would have more zeros than a merged product saves.
    """
    shared = {route.shared for route in network.routes[1:]}
    return shared.pop() if len(shared) == 1 else 0


def _count_merged_layers(towers: list[list[Any]]) -> int:
    """The number of layers, from the first on, that are worth merging."""
    layers = list(zip(*towers, strict=True))
    weights = sum(cast(Any, stage)[0].weight.numel() for tower in towers for stage in tower if isinstance(stage, Dense))
    zeros = 0
    for index, layer in enumerate(layers):
        if not all(_can_merge(stage) for stage in layer):
            return index
        if index:
            size = sum(dense[0].in_features for dense in layer) * sum(dense[0].out_features for dense in layer)
            zeros += size - sum(dense[0].weight.numel() for dense in layer)
        if zeros > _MAX_ZEROS * weights:
            return index
    return len(layers)


def _can_merge(stage: nn.Module) -> bool:
    """Whether the stage is a dense layer whose activation function, if any, treats every number alike."""
    return isinstance(stage, Dense) and all(isinstance(part, Pointwise) for part in cast(Any, stage)[1:2])
