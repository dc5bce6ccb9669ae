"""Row-wise Adagrad for embedding tables: a step reads and moves only the rows whose ids are in its batch."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn

from transun.backbones import Inputs
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

    def lookups(self) -> list[tuple[nn.Embedding, tuple[str, ...]]]: ...


class RowwiseAdagrad:
    """Row-wise Adagrad over the embedding tables of a network.

    During a step, every large table is replaced by a small one that holds only the rows of the batch, and the ids are
    renumbered to match: a batch of n look-ups gets a table of n rows, so no gradient is larger than the batch. A table
    with fewer rows than look-ups stays as it is. Equal ids get the same row, hence the network's own backward pass sums
    the gradients of a row that occurs twice. Shapes depend only on the shape of the batch, and nothing waits for the
    GPU. Besides one sum of squares, a row costs one 4-byte number, which finds equal ids without sorting.
    """

    def __init__(self, network: nn.Module, engine: Engine = Eager()) -> None:
        self.groups: list[_Group] = []
        of_column: dict[str, _Group] = {}
        for part in network.modules():
            for table, columns in part.lookups() if isinstance(part, EmbeddingReader) else ():
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
        """The weights of the whole tables."""
        return [table.weight for table in self]

    def gathered(self) -> list[Tensor]:
        """The rows of the last batch, which have gradients after a backward pass."""
        return [table.rows for table in self]

    @contextmanager
    def batch_view(self, batch: Inputs) -> Iterator[Inputs]:
        """The batch with renumbered ids; inside the `with` block the tables hold only the rows of this batch."""
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
            before: called with every table and its rows (n,) that are about to move, None for all of them.

        """
        for group in self.groups:
            for table in group.tables:
                if table.rows.grad is not None:
                    if before is not None:
                        before(table.weight, group.ids)
                    table.step(group.ids, table.rows.grad, rate)


class OptimiserStep:
    """One optimiser for a whole model: torch's for the dense parameters, row-wise Adagrad for the embedding tables.

    Args:
        dense: torch's optimiser over every parameter that is not an embedding table of `tables`.
        tables: row-wise Adagrad over the embedding tables; None where every parameter is dense.
        rate: the learning rate of the tables before any decay.

    """

    def __init__(self, dense: torch.optim.Optimizer, tables: RowwiseAdagrad | None = None, rate: float = 0.0) -> None:
        self.dense, self.tables, self.rate = dense, tables, rate
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

    def clip(self, norm: float) -> None:
        """Scale all gradients so that their common norm is at most this."""
        rows = [] if self.tables is None else self.tables.gathered()
        nn.utils.clip_grad_norm_([*self._parameters, *rows], norm)

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


class _Group:
    """Tables of equal size that the same columns read: with unshared branches, one for each branch."""

    def __init__(self, size: int, columns: tuple[str, ...], device: torch.device) -> None:
        self.size, self.columns = size, columns
        self.tables: list[_Table] = []
        self.row_of_id = torch.zeros(size, dtype=torch.int32, device=device)
        self.ids: Tensor | None = None
        self._count = torch.zeros(0, dtype=torch.int32, device=device)

    def fits(self, table: nn.Embedding, columns: tuple[str, ...]) -> bool:
        return self.columns == columns and self.size == len(table.weight)

    @torch.no_grad()
    def gather(self, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Fill the small tables with the rows of these columns, and return the renumbered columns."""
        columns = [batch[name] for name in self.columns]
        lengths = [column.numel() for column in columns]
        if self.size <= sum(lengths):  # the small table would be no smaller than the table itself
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
        self.ids = ids
        parts = torch.split(rows if padding is None else torch.where(padding, -1 - count, rows), lengths)
        return {name: part.view_as(column) for name, part, column in zip(self.columns, parts, columns, strict=True)}

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
        self._pick, self._move = engine.compile(_pick), engine.compile(_move)

    def use_whole(self) -> None:
        self.rows = self.weight
        self.rows.grad = None

    def gather(self, ids: Tensor) -> None:
        # The memory stays the same from step to step, as a recorded CUDA graph requires.
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
    # A row that is unused, because an equal id uses another one, has a gradient of zero and changes nothing here.
    squares.index_add_(0, ids, gradient.square().mean(1))
    scale = pace / (squares.index_select(0, ids).sqrt() + _EPSILON)
    weight.index_add_(0, ids, gradient * scale.unsqueeze(1))
