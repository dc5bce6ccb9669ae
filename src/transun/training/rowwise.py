"""Row-wise Adagrad: a step reads and moves the rows of a table that its batch names, and no others."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn

from transun.backbones import Inputs
from transun.training.engine import Eager, Engine

# As torch's Adagrad: only keeps a row that never saw a gradient from being 0/0.
_EPSILON = 1e-10


@runtime_checkable
class Reader(Protocol):
    """A part of a network that reads rows of tables, and says of each table which columns hold their numbers.

    A column (B,) holds one row number a row of the batch, a column (B, L) several, where a negative one is padding:
    -1 - r asks for row r, whatever it holds, and must pass no gradient to it.
    """

    def lookups(self) -> list[tuple[nn.Embedding, tuple[str, ...]]]: ...


class Tables:
    """The tables of a network in training: small ones, made of the rows a batch names, stand in for them.

    A batch of n look-ups gets tables of n rows and columns that count them, so that no gradient is larger than the
    batch; a table of fewer rows stays as it is. Equal ids get the same row, hence the gradient of a row that is named
    twice is summed by the network's own backward pass. Shapes depend on the batch's alone and nothing waits for the
    GPU. Besides one sum of squares, a row costs one 4-byte number, which finds equal ids without sorting.
    """

    def __init__(self, network: nn.Module, engine: Engine = Eager()) -> None:
        self.groups: list[_Group] = []
        of_column: dict[str, _Group] = {}
        for part in network.modules():
            for table, columns in part.lookups() if isinstance(part, Reader) else ():
                group = next((group for group in self.groups if group.fits(table, columns)), None)
                if group is None:
                    group = _Group(len(table.weight), columns, table.weight.device)
                    self.groups.append(group)
                group.tables.append(_Table(table, engine))
                for name in columns:
                    if of_column.setdefault(name, group) is not group:
                        raise ValueError(
                            f"column {name!r} reads tables of different sizes or along with different columns, which "
                            "row-wise training cannot renumber; use another optimiser"
                        )

    def __iter__(self) -> "Iterator[_Table]":
        return (table for group in self.groups for table in group.tables)

    def parameters(self) -> list[nn.Parameter]:
        """The tables' weights, whole."""
        return [table.weight for table in self]

    def gathered(self) -> list[Tensor]:
        """The rows of the last batch; after a backward pass they have gradients."""
        return [table.rows for table in self]

    @contextmanager
    def reading(self, batch: Inputs) -> Iterator[Inputs]:
        """The batch with its ids renumbered; inside the `with` block the network's tables hold these rows alone."""
        if not self.groups:
            yield batch
            return
        columns = dict(cast(Mapping[str, Tensor], batch))
        try:
            for group in self.groups:
                columns |= group.gather(columns)
            yield columns
        finally:
            for table in self:
                table.module._parameters["weight"] = table.weight

    @torch.no_grad()
    def step(self, rate: float, before: Callable[[nn.Parameter, Tensor | None], None] | None = None) -> None:
        """Move the rows of the last batch: s_r ← s_r + mean(g_r²), w_r ← w_r - rate·g_r / √s_r.

        Args:
            rate: the learning rate.
            before: told of every table and the rows (n,) of it that are about to move, None for all of them.

        """
        for group in self.groups:
            for table in group.tables:
                if table.rows.grad is not None:
                    if before is not None:
                        before(table.weight, group.ids)
                    table.step(group.ids, table.rows.grad, rate)


class _Group:
    """Tables of one size that the same columns read: with unshared branches, one for each branch."""

    def __init__(self, size: int, columns: tuple[str, ...], device: torch.device) -> None:
        self.size, self.columns = size, columns
        self.tables: list[_Table] = []
        self.place = torch.zeros(size, dtype=torch.int32, device=device)
        self.ids: Tensor | None = None
        self._count = torch.zeros(0, dtype=torch.int32, device=device)

    def fits(self, table: nn.Embedding, columns: tuple[str, ...]) -> bool:
        return self.columns == columns and self.size == len(table.weight)

    @torch.no_grad()
    def gather(self, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Fill the tables with the rows of these columns, and return the columns that find them there."""
        given = [batch[name] for name in self.columns]
        lengths = [column.numel() for column in given]
        if self.size <= sum(lengths):  # then the table itself is no larger than what would stand in for it
            self.ids = None
            for table in self.tables:
                table.stand_whole()
            return {}
        if len(self._count) != sum(lengths):
            self._count = torch.arange(sum(lengths), dtype=torch.int32, device=self.place.device)
        count, ids = self._count, torch.cat([column.flatten() for column in given])
        padding = None
        if any(column.ndim > 1 for column in given):
            padding = torch.cat([((column < 0) & (column.ndim > 1)).flatten() for column in given])
            # Padding reads and, with a gradient of zero, moves some row; a GPU would queue if all chose the same. There
            # are more rows than look-ups.
            ids = torch.where(padding, count, ids)
        try:
            for table in self.tables:
                table.gather(ids)
        except IndexError:
            raise self._missing(batch) from None
        # Of equal ids, whichever writes last gives its place to all; the order of sums does not depend on which.
        self.place.index_copy_(0, ids, count)
        place = self.place.index_select(0, ids)
        self.ids = ids
        parts = torch.split(place if padding is None else torch.where(padding, -1 - count, place), lengths)
        return {name: part.view_as(column) for name, part, column in zip(self.columns, parts, given, strict=True)}

    def _missing(self, batch: Mapping[str, Tensor]) -> IndexError:
        for name in self.columns:
            column = batch[name]
            wrong = column[(column >= self.size) | ((column < 0) & (column.ndim == 1))]
            if len(wrong):
                break
        return IndexError(f"column {name!r} holds id {wrong[0].item()}, but its table has ids 0..{self.size - 1}")


class _Table:
    def __init__(self, module: nn.Embedding, engine: Engine) -> None:
        self.module = module
        self.weight = cast(nn.Parameter, module.weight)
        self.squares = torch.zeros_like(module.weight[:, 0])
        self.rows = self.weight
        self._pick, self._move = engine.prepared(_pick), engine.prepared(_move)

    def stand_whole(self) -> None:
        self.rows = self.weight
        self.rows.grad = None

    def gather(self, ids: Tensor) -> None:
        # The same memory in every step, as a recorded sequence of GPU operations needs it.
        if self.rows is self.weight or len(self.rows) != len(ids):
            self.rows = nn.Parameter(self.weight.new_empty(len(ids), self.weight.shape[1]), self.weight.requires_grad)
        self._pick(self.weight.detach(), ids, self.rows.detach())
        self.rows.grad = None
        self.module._parameters["weight"] = self.rows

    def step(self, ids: Tensor | None, gradient: Tensor, rate: float) -> None:
        if ids is None:
            spread = self.squares.add_(gradient.square().mean(1)).sqrt().add_(_EPSILON)
            self.weight.addcdiv_(gradient, spread.unsqueeze(1), value=-rate)
        else:
            pace = torch.full((), -rate, dtype=gradient.dtype, device=gradient.device)
            self._move(self.weight.detach(), self.squares, ids, gradient, pace)


def _pick(weight: Tensor, ids: Tensor, rows: Tensor) -> None:
    torch.index_select(weight, 0, ids, out=rows)


def _move(weight: Tensor, squares: Tensor, ids: Tensor, gradient: Tensor, pace: Tensor) -> None:
    # A row that an id equal to another's left unused has a gradient of zero: it adds nothing, here and below.
    squares.index_add_(0, ids, gradient.square().mean(1))
    scale = pace / (squares.index_select(0, ids).sqrt() + _EPSILON)
    weight.index_add_(0, ids, gradient * scale.unsqueeze(1))
