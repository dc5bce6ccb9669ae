"""Networks of several seeds as one: a wide table and batched matrices, for EmbeddingMLP without dropout."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from transun.backbones import EmbeddingMLP
from transun.heads import Raw
from transun.models.network import Model, Network, branch_outputs

# A batch of every lane: (S, B) or (S, B, L) a column; lanes that see the same rows may have a first size of 1.
Lanes = Mapping[str, Tensor]


def can_stack(backbone: Any) -> bool:
    """Whether `Stacked` knows this backbone: equal widths of all vectors, and no random numbers of its own."""
    return type(backbone) is EmbeddingMLP and isinstance(backbone.dim, int) and backbone.dropout == 0.0


class Stacked(nn.Module):
    """S networks over S batches at once: every parameter has a first dimension of lanes, one per seed.

    All tables of a branch become one (S, ΣV, d), looked up once for all columns and lanes; a dense layer of all lanes
    is one `baddbmm`. Lanes never meet, so an optimiser that treats every number by itself takes in each lane
    the steps it would take alone.

    Args:
        models: built by one backbone and one head, differing in their seeds.

    """

    def __init__(self, models: Sequence[Model]) -> None:
        super().__init__()
        networks: list[Network] = [model.network for model in models]
        self.routes = networks[0].routes
        self.stacks, self.outputs = nn.ModuleList(), nn.ModuleList()
        for branch, route in enumerate(self.routes):
            stages = [list(cast(Any, network.stacks[branch])) for network in networks]
            layers: list[nn.Module] = [] if route.shared else [_Table([own[0] for own in stages])]
            layers += [
                _Dense([own[place] for own in stages], relu=True) for place in range(len(layers), len(stages[0]))
            ]
            self.stacks.append(nn.ModuleList(layers))
            self.outputs.append(_Dense([cast(nn.Linear, network.outputs[branch]) for network in networks]))

    def forward(self, batch: Lanes) -> Raw:
        """One (S, B, width) tensor per branch."""
        ends = branch_outputs(self.routes, self.stacks, batch)
        return tuple(output(end) for output, end in zip(cast(Any, self.outputs), ends, strict=True))

    @torch.no_grad()
    def write(self, model: Model, values: Sequence[Tensor]) -> None:
        """Give a model the weights of a lane, as `lane_of` returns them."""
        own = iter(values)
        for branch, (stack, output) in enumerate(zip(cast(Any, self.stacks), cast(Any, self.outputs), strict=True)):
            for stage, target in zip(stack, cast(Any, model.network.stacks[branch]), strict=True):
                stage.write(own, target)
            output.write(own, model.network.outputs[branch])

    def lane_of(self, lane: int) -> list[Tensor]:
        """A copy of the weights of one lane, in the order in which `write` wants them."""
        return [parameter.detach()[lane].clone() for parameter in self.ordered()]

    def ordered(self) -> list[nn.Parameter]:
        """The parameters, branch by branch."""
        return [
            parameter
            for stack, output in zip(cast(Any, self.stacks), cast(Any, self.outputs), strict=True)
            for module in (*stack, output)
            for parameter in module.parameters()
        ]


class _Dense(nn.Module):
    def __init__(self, layers: Sequence[nn.Module], relu: bool = False) -> None:
        super().__init__()
        linear = cast(
            Sequence[nn.Linear], [layer[0] if isinstance(layer, nn.Sequential) else layer for layer in layers]
        )
        self.weight = nn.Parameter(torch.stack([layer.weight.detach().T for layer in linear]).contiguous())
        self.bias = nn.Parameter(torch.stack([layer.bias.detach().unsqueeze(0) for layer in linear]))
        self.relu = relu

    def forward(self, x: Tensor) -> Tensor:
        x = torch.baddbmm(self.bias, x, self.weight)
        return x.relu_() if self.relu else x

    @staticmethod
    def write(values: Any, layer: Any) -> None:
        linear = _linear(layer)
        linear.weight.copy_(next(values).T)
        linear.bias.copy_(next(values).squeeze(0))


def _linear(layer: Any) -> nn.Linear:
    """The linear part of a hidden layer, or of an output, which is nothing else."""
    return cast(nn.Linear, layer[0] if isinstance(layer, nn.Sequential) else layer)


class _Table(nn.Module):
    def __init__(self, embeddings: Sequence[Any]) -> None:
        super().__init__()
        first = embeddings[0]
        self.ids, self.bags, self.numeric = first.ids, first.bags, first.numeric
        starts, rows = {}, 0
        for name, table in first.tables.items():
            starts[name], rows = rows, rows + len(table.weight)
        wide = [
            torch.cat([table.weight.detach() for table in own.tables.values()] or [torch.zeros(0, 1)])
            for own in embeddings
        ]
        self.weight = nn.Parameter(torch.stack(wide))
        self.start = {name: starts[first.table[name]] for name in (*self.ids, *self.bags)}
        self.register_buffer("lane", torch.arange(len(embeddings)) * rows)
        self.register_buffer("offset", torch.tensor([self.start[name] for name in self.ids], dtype=torch.int64))

    def forward(self, batch: Lanes) -> Tensor:
        parts = []
        lanes, lane = len(self.weight), cast(Tensor, self.lane)
        if self.ids:
            ids = torch.stack([batch[name] for name in self.ids], -1) + cast(Tensor, self.offset)
            parts.append(self._look_up(ids + lane.view(-1, 1, 1)).flatten(2))
        for name in self.bags:
            ids = batch[name]
            present = (ids >= 0).unsqueeze(-1)
            vectors = self._look_up(ids.clamp(min=0) + (self.start[name] + lane).view(-1, 1, 1)) * present
            parts.append(vectors.sum(2) / present.sum(2).clamp(min=1))
        parts += [batch[name].unsqueeze(-1).float().expand(lanes, -1, -1) for name in self.numeric]
        return torch.cat(parts, -1)

    def _look_up(self, ids: Tensor) -> Tensor:
        return nn.functional.embedding(ids, self.weight.flatten(0, 1))

    @staticmethod
    def write(values: Any, embedding: Any) -> None:
        wide = next(values)
        tables = [table.weight for table in embedding.tables.values()]
        for table, part in zip(tables, wide.split([len(table) for table in tables]) if tables else (), strict=True):
            table.copy_(part)
