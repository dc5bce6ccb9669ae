"""Row-wise Adagrad for embedding tables: a step reads and moves only the rows whose ids are in its batch."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn

from transun.backbones import Inputs, ShardedTable
from transun.support.group import Group
from transun.training.engine import Eager, Engine

__all__ = ["EmbeddingReader", "OptimiserStep", "RowwiseAdagrad"]

# As in torch's Adagrad: it only prevents 0/0 for a row that never had a gradient.
_EPSILON = 1e-10


@runtime_checkable
class EmbeddingReader(Protocol):
    """A part of a network that looks up rows of embedding tables.

    A column (B,) holds one id for each row of the batch, a column (B, L) several, of which negative ones are padding:
    -1 - r reads row r, whatever it holds, and must pass no gradient to it.
    """

    def lookups(self) -> list[tuple[nn.Embedding | ShardedTable, tuple[str, ...]]]: ...


class RowwiseAdagrad:
    """Row-wise Adagrad over the embedding tables of a network.

    During a step, every large table is replaced by a small one that holds only the rows of the batch, and the ids are
    renumbered to match: a batch of n look-ups gets a table of n rows, so no gradient is larger than the batch. A table
    with fewer rows than look-ups stays as it is. Equal ids get the same row, hence the network's own backward pass sums
    the gradients of a row that occurs twice. Shapes depend only on the shape of the batch, and nothing waits for the
    GPU. Besides one sum of squares, a row costs one 4-byte number, which finds equal ids without sorting.

    Ranks that share a batch exchange the ids and the gradients of the rows that they have read, and every rank moves
    the rows of all of them: what is sent grows with the batch and not with the tables. Of a `ShardedTable` each row is
    read from the rank that owns it, and moved there.
    """

    def __init__(self, network: nn.Module, engine: Engine = Eager(), group: Group = Group()) -> None:
        self.group = group
        self.readers: list[_Readers] = []
        of_column: dict[str, _Readers] = {}
        for part in network.modules():
            for table, columns in part.lookups() if isinstance(part, EmbeddingReader) else ():
                sharded = isinstance(table, ShardedTable)
                readers = next((readers for readers in self.readers if readers.fits(table, columns)), None)
                if readers is None:
                    kind = _ShardReaders if sharded else _CopyReaders
                    readers = kind(table.num_embeddings, columns, table.weight.device)
                    self.readers.append(readers)
                readers.tables.append(_Shard(table, engine) if sharded else _Table(table, engine))
                for name in columns:
                    if of_column.setdefault(name, readers) is not readers:
                        raise ValueError(
                            f"column {name!r} reads tables of different sizes or along with different columns, which "
                            "row-wise training cannot renumber; use another optimiser"
                        )

    def __iter__(self) -> "Iterator[_Table]":
        return (table for readers in self.readers for table in readers.tables)

    def parameters(self) -> list[nn.Parameter]:
        """The weights of the whole tables."""
        return [table.weight for table in self]

    def gradients(self) -> list[Tensor]:
        """The gradients of the rows of the last batch, after a backward pass and an exchange, equal on all ranks."""
        return [gradient for readers in self.readers for gradient in readers.gradients()]

    def own_gradients(self) -> list[Tensor]:
        """The gradients of rows that only this rank holds."""
        return [gradient for readers in self.readers for gradient in readers.own_gradients()]

    @contextmanager
    def batch_view(self, batch: Inputs) -> Iterator[Inputs]:
        """The batch with renumbered ids; inside the `with` block the tables hold only the rows of this batch."""
        if not self.readers:
            yield batch
            return
        columns = dict(cast(Mapping[str, Tensor], batch))
        counts = self.group.gather_numbers([readers.count_ids(columns) for readers in self.readers])
        try:
            for readers, ids in zip(self.readers, zip(*counts, strict=True), strict=True):
                columns |= readers.gather(columns, int(sum(ids)))
            yield columns
        finally:
            for table in self:
                table.release()

    @torch.no_grad()
    def exchange(self) -> None:
        """Replace the gradients of the rows that this rank has read by those of all rows that any rank has read."""
        for readers in self.readers:
            readers.exchange(self.group)

    @torch.no_grad()
    def step(self, rate: float, before: Callable[[nn.Parameter, Tensor | None], None] | None = None) -> None:
        """Move the rows of the last batch: s_r ← s_r + mean(g_r²), w_r ← w_r - rate·g_r / √s_r.

        Args:
            rate: the learning rate.
            before: called with every table and its rows (n,) that are about to move, None for all of them.

        """
        for readers in self.readers:
            for table in readers.tables:
                if table.gradient is not None:
                    if before is not None:
                        before(table.weight, readers.ids)
                    table.step(readers.ids, table.gradient, rate)


class OptimiserStep:
    """One optimiser for a whole model: torch's for the dense parameters, row-wise Adagrad for the embedding tables.

    Args:
        dense: torch's optimiser over every parameter that is not an embedding table of `tables`.
        tables: row-wise Adagrad over the embedding tables; None where every parameter is dense.
        rate: the learning rate of the tables before any decay.
        group: the ranks that share each batch.

    """

    def __init__(
        self,
        dense: torch.optim.Optimizer,
        tables: RowwiseAdagrad | None = None,
        rate: float = 0.0,
        group: Group = Group(),
    ) -> None:
        self.dense, self.tables, self.rate, self.group = dense, tables, rate, group
        self._rates: list[float] = [group["lr"] for group in dense.param_groups]
        self._parameters: list[nn.Parameter] = [p for group in dense.param_groups for p in group["params"]]
        self._factor = 1.0

    def by_row(self) -> list[nn.Parameter]:
        """The parameters that move a few rows at a time."""
        return [] if self.tables is None else self.tables.parameters()

    def scale_rates(self, factor: float) -> None:
        """Set every learning rate to `factor` times its initial value."""
        self._factor = factor
        for group, rate in zip(self.dense.param_groups, self._rates, strict=True):
            group["lr"] = rate * factor

    @contextmanager
    def batch_view(self, batch: Inputs) -> Iterator[Inputs]:
        """The batch as the forward and the backward pass must see it, inside the `with` block."""
        if self.tables is None:
            yield batch
            return
        with self.tables.batch_view(batch) as renumbered:
            yield renumbered

    def zero_grad(self) -> None:
        """Drop the gradients of dense parameters; those of table rows belong to one batch only."""
        # torch's own zero_grad records itself in the profiler, which costs more than the loop.
        for parameter in self._parameters:
            parameter.grad = None

    def exchange(self, terms: Tensor) -> Tensor:
        """Add up the gradients of all ranks, each of a part of one batch, and with them the terms (n,) of its loss.

        Returns:
            The terms of the whole batch. The gradients of dense parameters travel with them in one message.

        """
        total = terms.detach().clone()
        if self.group.size > 1:
            dense = [parameter.grad for parameter in self._parameters if parameter.grad is not None]
            self.group.sum_in_place([total, *dense])
            if self.tables is not None:
                self.tables.exchange()
        return total

    def clip(self, norm: float) -> None:
        """Scale all gradients so that their common norm is at most this."""
        gradients = [parameter.grad for parameter in self._parameters if parameter.grad is not None]
        gradients += [] if self.tables is None else self.tables.gradients()
        own = [] if self.tables is None else self.tables.own_gradients()
        square = torch.stack(torch._foreach_norm(gradients)).square().sum()
        if own:
            square = square + self.group.sum(torch.stack(torch._foreach_norm(own)).square().sum())
        # As in torch's own function: the small number keeps 0 / 0 away.
        torch._foreach_mul_([*gradients, *own], (norm / (square.sqrt() + 1e-6)).clamp(max=1.0))

    def step(self, before: Callable[[nn.Parameter, Tensor | None], None] | None = None) -> None:
        """Take one step; `before` is called with every table and its rows that are about to move, None for all rows."""
        self.dense.step()
        if self.tables is not None:
            self.tables.step(self.rate * self._factor, before)

    def state_dict(self) -> dict[str, Any]:
        """torch's own state, and the sum of squares of each table."""
        tables = [] if self.tables is None else [table.squares for table in self.tables]
        return {**self.dense.state_dict(), "tables": tables}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.dense.load_state_dict({name: value for name, value in state.items() if name != "tables"})
        for table, squares in zip(() if self.tables is None else self.tables, state["tables"], strict=True):
            table.squares.copy_(squares)


class _Readers(ABC):
    """Columns that read the same tables, and these tables, of equal size: with unshared branches one for each.

    `ids` are the rows of the last batch, as numbers into the weights on this rank; None are all rows.
    """

    def __init__(self, size: int, columns: tuple[str, ...]) -> None:
        self.size, self.columns = size, columns
        self.tables: list[_Table] = []
        self.ids: Tensor | None = None

    def fits(self, table: nn.Embedding | ShardedTable, columns: tuple[str, ...]) -> bool:
        return self.columns == columns and self.size == table.num_embeddings

    def count_ids(self, batch: Mapping[str, Tensor]) -> int:
        """How many ids the columns of a batch hold, padding included."""
        return sum(batch[name].numel() for name in self.columns)

    def gradients(self) -> list[Tensor]:
        """The gradients of the rows of the last batch that are equal on all ranks."""
        return []

    def own_gradients(self) -> list[Tensor]:
        """The gradients of the rows of the last batch that only this rank holds."""
        return []

    @abstractmethod
    def gather(self, batch: Mapping[str, Tensor], total: int) -> dict[str, Tensor]:
        """Fill the small tables with the rows of these columns, and return the renumbered columns.

        Args:
            batch: this rank's part of a batch.
            total: how many ids the columns hold on all ranks.

        """

    @abstractmethod
    def exchange(self, group: Group) -> None:
        """Replace the gradients of the rows that this rank has read by the sums over all ranks that have read them."""

    def _present_gradients(self) -> list[Tensor]:
        return [table.gradient for table in self.tables if table.gradient is not None]

    def _missing(self, batch: Mapping[str, Tensor]) -> IndexError:
        for name in self.columns:
            column = batch[name]
            wrong = column[(column >= self.size) | ((column < 0) & (column.ndim == 1))]
            if len(wrong):
                break
        return IndexError(f"column {name!r} holds id {wrong[0].item()}, but its table has ids 0..{self.size - 1}")


class _CopyReaders(_Readers):
    """Columns that read tables of which every rank has a copy."""

    def __init__(self, size: int, columns: tuple[str, ...], device: torch.device) -> None:
        super().__init__(size, columns)
        self.row_of_id = torch.zeros(size, dtype=torch.int32, device=device)
        self._read: tuple[Tensor, Tensor | None] | None = None
        self._count = torch.zeros(0, dtype=torch.int32, device=device)

    def gradients(self) -> list[Tensor]:
        return self._present_gradients()

    @torch.no_grad()
    def gather(self, batch: Mapping[str, Tensor], total: int) -> dict[str, Tensor]:
        columns = [batch[name] for name in self.columns]
        lengths = [column.numel() for column in columns]
        if self.size <= total:  # the small tables would be no smaller than the table itself
            self.ids = None
            for table in self.tables:
                table.use_whole()
            return {}
        if len(self._count) != sum(lengths):
            self._count = torch.arange(sum(lengths), dtype=torch.int32, device=self.row_of_id.device)
        count, ids = self._count, torch.cat([column.flatten() for column in columns])
        padding = None
        if any(column.ndim > 1 for column in columns):
            padding = torch.cat([((column < 0) & (column.ndim > 1)).flatten() for column in columns])
            # Padding reads some row and moves it by a gradient of zero. Different paddings read different rows, so
            # that a GPU does not queue for one; there are more rows than look-ups.
            ids = torch.where(padding, count, ids)
        try:
            for table in self.tables:
                table.gather(ids)
        except IndexError:
            raise self._missing(batch) from None
        # Of equal ids, the last write decides the row for all of them; the order of sums does not depend on it.
        self.row_of_id.index_copy_(0, ids, count)
        rows = self.row_of_id.index_select(0, ids)
        self.ids, self._read = ids, (rows, padding)
        parts = torch.split(rows if padding is None else torch.where(padding, -1 - count, rows), lengths)
        return {name: part.view_as(column) for name, part, column in zip(self.columns, parts, columns, strict=True)}

    def exchange(self, group: Group) -> None:
        moving = [table for table in self.tables if table.gradient is not None]
        if self.ids is None:
            group.sum_in_place([cast(Tensor, table.gradient) for table in moving])
            return
        # Of rows with equal ids one has the gradient of all; the others, and padding, are not worth sending.
        assert self._read is not None
        rows, padding = self._read
        used = torch.zeros(len(self.ids), dtype=torch.bool, device=self.ids.device)
        used[(rows if padding is None else rows[~padding]).long()] = True
        parts = group.gather(self.ids[used])
        lengths = [len(part) for part in parts]
        ids = torch.cat(parts)
        count = torch.arange(len(ids), dtype=torch.int32, device=ids.device)
        self.row_of_id.index_copy_(0, ids, count)
        rows = self.row_of_id.index_select(0, ids).long()
        for table in moving:
            parts = group.gather(cast(Tensor, table.gradient)[used], lengths)
            table.gradient = add_rows(torch.cat(parts), rows)
        self.ids = ids


class _ShardReaders(_Readers):
    """Columns that read sharded tables. Equal ids are found by sorting, which needs no memory for each row."""

    def __init__(self, size: int, columns: tuple[str, ...], device: torch.device) -> None:
        super().__init__(size, columns)
        self._distinct = torch.zeros(0, dtype=torch.int64, device=device)

    def own_gradients(self) -> list[Tensor]:
        return self._present_gradients()

    @torch.no_grad()
    def gather(self, batch: Mapping[str, Tensor], total: int) -> dict[str, Tensor]:
        columns = [batch[name] for name in self.columns]
        for column in columns:
            if bool(((column >= self.size) | ((column < 0) & (column.ndim == 1))).any()):
                raise self._missing(batch)
        ids = torch.cat([column.flatten() for column in columns])
        padding = torch.cat([((column < 0) & (column.ndim > 1)).flatten() for column in columns])
        self._distinct, rows = torch.unique(torch.where(padding, 0, ids), return_inverse=True)
        for table in self.tables:
            table.gather(self._distinct)
        self.ids = self._distinct
        parts = torch.split(torch.where(padding, -1 - rows, rows), [column.numel() for column in columns])
        return {name: part.view_as(column) for name, part, column in zip(self.columns, parts, columns, strict=True)}

    def exchange(self, group: Group) -> None:
        for table in self.tables:
            if table.gradient is not None:
                self.ids, table.gradient = table.module.send(self._distinct, table.gradient)


class _Table:
    def __init__(self, module: nn.Embedding | ShardedTable, engine: Engine) -> None:
        self.module: Any = module
        self.weight = cast(nn.Parameter, module.weight)
        self.squares = torch.zeros_like(module.weight[:, 0])
        self.rows = self.weight
        self._summed: Tensor | None = None
        self._pick, self._move = engine.compile(_pick), engine.compile(_move)

    @property
    def gradient(self) -> Tensor | None:
        """That of the rows of the last batch: of this rank, and after an exchange of all ranks."""
        return self.rows.grad if self._summed is None else self._summed

    @gradient.setter
    def gradient(self, summed: Tensor) -> None:
        self._summed = summed

    def use_whole(self) -> None:
        self.rows, self._summed = self.weight, None
        self.rows.grad = None

    def gather(self, ids: Tensor) -> None:
        # The memory stays the same from step to step, as a recorded CUDA graph requires.
        if self.rows is self.weight or len(self.rows) != len(ids):
            self.rows = nn.Parameter(self.weight.new_empty(len(ids), self.weight.shape[1]), self.weight.requires_grad)
        self._pick(self.weight.detach(), ids, self.rows.detach())
        self.rows.grad, self._summed = None, None
        self.module._parameters["weight"] = self.rows

    def release(self) -> None:
        """Give the module its whole table again."""
        self.module._parameters["weight"] = self.weight

    def step(self, ids: Tensor | None, gradient: Tensor, rate: float) -> None:
        if ids is None:
            spread = self.squares.add_(gradient.square().mean(1)).sqrt().add_(_EPSILON)
            self.weight.addcdiv_(gradient, spread.unsqueeze(1), value=-rate)
        else:
            pace = torch.full((), -rate, dtype=gradient.dtype, device=gradient.device)
            self._move(self.weight.detach(), self.squares, ids, gradient, pace)


class _Shard(_Table):
    """The rows of a sharded table on this rank, with their sums of squares."""

    def gather(self, ids: Tensor) -> None:
        self.rows, self._summed = nn.Parameter(self.module.fetch(ids), self.weight.requires_grad), None
        self.module.hold(self.rows)

    def release(self) -> None:
        self.module.hold(None)


def add_rows(values: Tensor, rows: Tensor) -> Tensor:
    """For every position the sum of the values (n, d) at all positions whose `rows` (n,) name it.

    In an order that depends on nothing but the arguments, so that the copies of a table on all ranks stay equal to the
    last bit: on a GPU, atomic additions would come in any order.

    >>> add_rows(torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([0, 2, 0])).flatten().tolist()
    [5.0, 0.0, 2.0]
    """
    total = torch.zeros_like(values)
    if values.is_cuda:
        return total.index_put_((rows,), values, accumulate=True)
    return total.index_add_(0, rows, values)


def _pick(weight: Tensor, ids: Tensor, rows: Tensor) -> None:
    torch.index_select(weight, 0, ids, out=rows)


def _move(weight: Tensor, squares: Tensor, ids: Tensor, gradient: Tensor, pace: Tensor) -> None:
    # A row that is unused, because an equal id uses another one, has a gradient of zero and changes nothing here.
    squares.index_add_(0, ids, gradient.square().mean(1))
    scale = pace / (squares.index_select(0, ids).sqrt() + _EPSILON)
    weight.index_add_(0, ids, gradient * scale.unsqueeze(1))
