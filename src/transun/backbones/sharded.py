"""Embedding tables whose rows are spread over ranks, for tables that are larger than one device.

Rank r of W holds the rows r, r + W, r + 2W, … An id finds its owner without any directory, and frequent ids, which
often have neighbouring numbers, are spread evenly. A look-up sends ids to their owners and gets rows back; training
sends gradients of rows the same way. No rank ever holds the whole table, nor the state of an optimiser for it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from transun.support.group import Group, current_group

__all__ = ["ShardedTable", "new_table", "own_rows", "sharding", "shards_in", "whole_state"]

# Small enough that the first predictions are those of the output biases.
TABLE_SPREAD = 0.05
# Rows that are drawn, or sent to rank 0, at once.
_BLOCK = 1 << 16

# The ranks over which new tables are spread, and the rows from which on they are; None where tables are whole.
_sharding: list[tuple[Group, int]] = []


class ShardedTable(nn.Module):
    """The rows of a table that belong to this rank, and the way to those of the others.

    Calling it looks up any ids (...) and is a collective operation: all ranks must call it, each with its own ids.
    Gradients do not flow through a call; `RowWise` trains the rows.

    Args:
        size: rows of the whole table.
        dim: numbers a row.
        group: the ranks.

    >>> ShardedTable(5, 2, Group())(torch.tensor([[4, 0]])).shape
    torch.Size([1, 2, 2])

    """

    def __init__(self, size: int, dim: int, group: Group) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.group = size, dim, group
        own = len(range(group.rank, size, group.size))
        self.weight = nn.Parameter(torch.empty(own, dim))
        self._gathered: Tensor | None = None

    def forward(self, ids: Tensor) -> Tensor:
        if self._gathered is not None:
            return nn.functional.embedding(ids, self._gathered)
        distinct, rows = torch.unique(ids, return_inverse=True)
        return nn.functional.embedding(rows, self.fetch(distinct))

    def hold(self, rows: Tensor | None) -> None:
        """Take ids as numbers of these rows (n, dim), which were fetched before, until None is given."""
        self._gathered = rows

    @torch.no_grad()
    def fetch(self, ids: Tensor) -> Tensor:
        """The rows (n, dim) of these ids (n,), sent by the ranks that own them."""
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < self.num_embeddings:
            wrong = ids[(ids < 0) | (ids >= self.num_embeddings)][0].item()
            raise IndexError(f"id {wrong} is not in the table, which has ids 0..{self.num_embeddings - 1}")
        order, counts = self._by_owner(ids)
        wanted, incoming = self.group.exchange(ids[order], counts)
        rows, _ = self.group.exchange(self.weight.detach().index_select(0, wanted // self.group.size), incoming)
        return torch.empty_like(rows).index_copy_(0, order, rows)

    @torch.no_grad()
    def send(self, ids: Tensor, gradients: Tensor) -> tuple[Tensor, Tensor]:
        """Send the gradients (n, dim) of rows (n,) to their owners.

        Returns:
            Those of this rank's rows that any rank has a gradient for, as numbers into `weight`, each once; and the
            sums of their gradients over all ranks.

        """
        order, counts = self._by_owner(ids)
        received, _ = self.group.exchange(ids[order], counts)
        values, _ = self.group.exchange(gradients[order], counts)
        own, position = torch.unique(received // self.group.size, return_inverse=True)
        total = values.new_zeros(len(own), values.shape[1])
        return own, total.index_put_((position,), values, accumulate=True)

    def _by_owner(self, ids: Tensor) -> tuple[Tensor, list[int]]:
        """An order in which ids of one owner are together, and how many each owner has."""
        owner = ids % self.group.size
        return owner.argsort(stable=True), torch.bincount(owner, minlength=self.group.size).tolist()


@contextmanager
def sharding(group: Group | None = None, least: int = 100_000) -> Iterator[None]:
    """Networks that are built inside the `with` block spread the rows of their large tables over the ranks.

    Drawn on a CPU, the initial rows are those of a whole table from the same seed; a GPU draws blocks of rows otherwise
    than a whole table. Train such a model by `fit` with `RowWise`, and save it by `save_model`, on all ranks: what is
    written is an ordinary model.

    Args:
        group: the ranks; None is the current group.
        least: tables of fewer rows are copied to every rank, which is faster.

    >>> with sharding(Group(), least=2):
    ...     model = Model(EmbeddingMLP({"item": 3}), MSE())

    """
    _sharding.append((group or current_group(), least))
    try:
        yield
    finally:
        _sharding.pop()


def new_table(size: int, dim: int) -> "nn.Embedding | ShardedTable":
    """A table with random rows: whole, or inside `sharding` the rows of this rank if the table is large."""
    group, least = _sharding[-1] if _sharding else (Group(), 0)
    if group.size == 1 or size < least:
        table = nn.Embedding(size, dim)
        nn.init.normal_(table.weight, std=TABLE_SPREAD)
        return table
    shard = ShardedTable(size, dim, group)
    _draw(shard)  # what `nn.Embedding` draws, so that everything that is drawn later is the same
    _draw(shard)
    return shard


@torch.no_grad()
def _draw(table: ShardedTable) -> None:
    """Draw the rows of the whole table, block by block, and keep those of this rank."""
    group, kept = table.group, 0
    for start in range(0, table.num_embeddings, _BLOCK):
        rows = min(_BLOCK, table.num_embeddings - start)
        block = torch.empty(rows, table.embedding_dim).normal_(std=TABLE_SPREAD)
        own = block[(group.rank - start) % group.size :: group.size]
        table.weight[kept : kept + len(own)] = own
        kept += len(own)


def shards_in(network: nn.Module) -> dict[str, ShardedTable]:
    """The sharded tables of a network, by name."""
    return {name: part for name, part in network.named_modules() if isinstance(part, ShardedTable)}


@torch.no_grad()
def whole_state(network: nn.Module) -> dict[str, Tensor]:
    """The state of a network on the CPU, with whole tables on rank 0; all ranks must call this.

    Other ranks get the state with empty tables. Rows are sent block by block, so that only rank 0 needs the memory.
    """
    state = {name: value.detach().cpu() for name, value in network.state_dict().items()}
    for name, table in shards_in(network).items():
        state[f"{name}.weight"] = _collect(table)
    return state


def own_rows(network: nn.Module, state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The state of a network with whole tables, of which this rank's rows are kept where the network shards them."""
    cut = {
        f"{name}.weight": state[f"{name}.weight"][table.group.rank :: table.group.size].clone()
        for name, table in shards_in(network).items()
        if len(state.get(f"{name}.weight", ())) == table.num_embeddings
    }
    return state | cut


def _collect(table: ShardedTable) -> Tensor:
    group = table.group
    whole = table.weight.new_empty(table.num_embeddings if group.leads else 0, table.embedding_dim, device="cpu")
    for start in range(0, len(range(0, table.num_embeddings, group.size)), _BLOCK):
        block = table.weight[start : start + _BLOCK]
        received, counts = group.exchange(block, [len(block), *[0] * (group.size - 1)])
        for rank, rows in enumerate(torch.split(received, counts)) if group.leads else ():
            first = start * group.size + rank
            whole[first : first + len(rows) * group.size : group.size] = rows.cpu()
    return whole
