"""A group of ranks: processes that train one model together, and how numbers go from one to all.

torchrun, Ray Train, Spark's TorchDistributor and Kubernetes start such processes and tell each its number, its rank, by
environment variables. `current_group` finds the group; a process that is alone is a group of one, in which sums are the
numbers themselves. So training is written once, for any number of ranks.
"""

import atexit
import os
import pickle
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any, ClassVar, Self, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import Function

__all__ = ["Group", "current_group"]

T = TypeVar("T")

# What a launcher tells every process; all four are needed to find the others.
_ENVIRONMENT = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# How long a rank waits for the others: rank 0 may boost trees for hours. A rank that dies ends the wait at once.
_PATIENCE = timedelta(days=2)


class Group:
    """Processes with the numbers 0..size-1 that call the same methods in the same order.

    Every method that involves other ranks waits for all of them: a rank that left one out would make the others wait
    for ever. Results are the same on every rank, to the last bit.

    Args:
        rank: the number of this process.
        size: the number of processes; more than one need an initialised `torch.distributed`.

    >>> group = Group()  # a process that is alone
    >>> group.sum(torch.tensor([1.0, 2.0])).tolist(), group.any(False, True)
    ([1.0, 2.0], [False, True])

    """

    bytes_sent: ClassVar[int] = 0
    """Bytes that this process has handed over to be sent, each counted once however many ranks receive it."""

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        if not 0 <= rank < size:
            raise ValueError(f"a group of {size} has the ranks 0..{size - 1}, not {rank}")
        self.rank, self.size = rank, size
        backends = dist.get_backend_config().split(",") if size > 1 else []
        self._by_nccl = any(backend.endswith("nccl") for backend in backends)
        self._by_gloo = any(backend.startswith("cpu") for backend in backends)

    @property
    def leads(self) -> bool:
        """Whether this is rank 0, which alone writes files and prints."""
        return self.rank == 0

    def cut(self, rows: int) -> tuple[int, int]:
        """Where this rank's share of some rows begins and ends; shares differ by one row at most.

        >>> Group().cut(5)
        (0, 5)
        """
        return rows * self.rank // self.size, rows * (self.rank + 1) // self.size

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all ranks of tensors of one shape."""
        if self.size == 1:
            return tensor
        carried = self._carry(tensor.detach()).clone(memory_format=torch.contiguous_format)
        self._count(carried)
        dist.all_reduce(carried)
        return carried.to(tensor.device)

    @torch.no_grad()
    def sum_in_place(self, tensors: Sequence[Tensor]) -> None:
        """Replace every tensor by its sum over all ranks; those of one type travel together, as one message."""
        if self.size == 1:
            return
        for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
            alike = [tensor for tensor in tensors if tensor.dtype == dtype]
            total = self.sum(torch.cat([tensor.flatten() for tensor in alike]))
            parts = torch.split(total, [tensor.numel() for tensor in alike])
            for tensor, part in zip(alike, parts, strict=True):
                tensor.copy_(part.view_as(tensor))

    def gather(self, tensor: Tensor, lengths: Sequence[int] | None = None) -> list[Tensor]:
        """The tensors of all ranks, which may differ in their first dimension and may be empty.

        Args:
            tensor: of this rank.
            lengths: the first dimension on every rank, where it is known already; None asks the others.

        """
        if self.size == 1:
            return [tensor]
        if lengths is None:
            lengths = [int(length) for (length,) in self.gather_numbers([len(tensor)])]
        carried = self._carry(tensor.detach())
        # Collective operations want equal shapes: what is shorter is padded.
        padded = carried.new_zeros(max(lengths), *carried.shape[1:])
        padded[: len(carried)] = carried
        self._count(padded)
        received = [torch.empty_like(padded) for _ in lengths]
        if padded.numel():
            dist.all_gather(received, padded)
        return [part[:length].to(tensor.device) for part, length in zip(received, lengths, strict=True)]

    def gather_numbers(self, numbers: Sequence[float]) -> list[list[float]]:
        """The numbers of all ranks, equally many on each; on a CPU, so that no GPU has to be waited for."""
        if self.size == 1:
            return [list(numbers)]
        carried = self._carry(torch.tensor(numbers, dtype=torch.float64))
        self._count(carried)
        received = [torch.empty_like(carried) for _ in range(self.size)]
        dist.all_gather(received, carried)
        return [part.tolist() for part in received]

    def any(self, *flags: bool) -> list[bool]:
        """For each flag, whether it is set on any rank."""
        return [any(values) for values in zip(*self.gather_numbers([float(flag) for flag in flags]), strict=True)]

    def gather_objects(self, value: T) -> list[T]:
        """The values of all ranks, pickled on the way."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        Group.bytes_sent += len(pickle.dumps(value))
        dist.all_gather_object(values, value)
        return values

    def from_leader(self, function: Callable[[], T]) -> T:
        """What the function returns on rank 0, which alone calls it; its error is raised on every rank.

        >>> Group().from_leader(lambda: 3)
        3
        """
        if self.size == 1:
            return function()
        answer: list[Any] = [None]
        if self.leads:
            try:
                answer = [(function(), None)]
            except Exception as error:
                answer = [(None, error)]
        dist.broadcast_object_list(answer, 0)
        value, failure = answer[0]
        if failure is not None:
            raise failure
        result: T = value
        return result

    @torch.no_grad()
    def copy_from_leader(self, tensors: Iterable[Tensor]) -> None:
        """Replace every tensor by that of rank 0; a process that is alone does not even ask for them."""
        if self.size == 1:
            return
        for tensor in tensors:
            carried = self._carry(tensor.detach()).contiguous()
            dist.broadcast(carried, 0)
            tensor.copy_(carried)

    def exchange(self, tensor: Tensor, counts: Sequence[int]) -> tuple[Tensor, list[int]]:
        """Send the first `counts[0]` rows of the tensor to rank 0, the next ones to rank 1, and so on.

        Args:
            tensor: the rows to send (n, ...).
            counts: how many go to each rank; their sum is n.

        Returns:
            The rows that this rank receives, those of rank 0 first, and how many came from each rank.

        >>> Group().exchange(torch.tensor([5, 6]), [2])
        (tensor([5, 6]), [2])

        """
        if self.size == 1:
            return tensor, list(counts)
        incoming = [int(sent[self.rank]) for sent in self.gather_numbers(counts)]
        carried = self._carry(tensor.detach()).contiguous()
        self._count(carried)
        received = carried.new_empty(sum(incoming), *carried.shape[1:])
        dist.all_to_all_single(received, carried, incoming, list(counts))
        return received.to(tensor.device), incoming

    def join(self, tensor: Tensor) -> Tensor:
        """The rows of all ranks as one tensor, through which gradients flow back to the rank of each row."""
        if self.size == 1:
            return tensor
        joined: Tensor = _Join.apply(tensor, self)  # type: ignore[no-untyped-call]
        return joined

    def _carry(self, tensor: Tensor) -> Tensor:
        """The tensor on a device from which it can be sent: gloo sends from a CPU, NCCL from a GPU."""
        if tensor.is_cuda and not self._by_nccl:
            return tensor.cpu()
        if not tensor.is_cuda and not self._by_gloo:
            return tensor.cuda()
        return tensor

    def _count(self, tensor: Tensor) -> None:
        Group.bytes_sent += tensor.numel() * tensor.element_size()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """The group itself: a copy of a model belongs to the same processes."""
        return self


class _Join(Function):
    """The concatenation over ranks; a row's gradient is the sum of those that the ranks compute for it."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: Group) -> Tensor:
        parts = group.gather(tensor)
        ctx.group, ctx.rows = group, len(tensor)
        ctx.start = sum(len(part) for part in parts[: group.rank])
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        total = ctx.group.sum(gradient)
        return total[ctx.start : ctx.start + ctx.rows], None


def current_group() -> Group:
    """The group of this process: that of `torch.distributed`, or the one that the environment describes.

    A launcher such as torchrun sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Where they are set and the processes
    are not joined yet, this joins them: by NCCL where every process of a machine has a GPU of its own, and by gloo for
    all tensors on a CPU.

    >>> current_group().size
    1
    """
    if not dist.is_available():
        return Group()
    if not dist.is_initialized():
        if any(name not in os.environ for name in _ENVIRONMENT) or os.environ["WORLD_SIZE"] == "1":
            return Group()
        _join_processes()
    return Group(dist.get_rank(), dist.get_world_size())


def restarted() -> bool:
    """Whether torchrun has started this process in place of one that failed, so that its work is to be resumed."""
    return _restarts() > 0


def _restarts() -> int:
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def _join_processes() -> None:
    # Not everywhere is torch built with them.
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    devices = torch.cuda.device_count()
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if devices:
        torch.cuda.set_device(local % devices)
    own_device = dist.is_nccl_available() and 0 < int(os.environ.get("LOCAL_WORLD_SIZE", "1")) <= devices
    store, rank, size = next(rendezvous("env://"))
    # torchrun keeps one store of addresses for all attempts: without a name of its own, a process that was started anew
    # would find the addresses of those that failed.
    attempt = PrefixStore(f"transun attempt {_restarts()}", store)
    backend = "cpu:gloo,cuda:nccl" if own_device else "gloo"
    dist.init_process_group(backend, store=attempt, rank=rank, world_size=size, timeout=_PATIENCE)
    atexit.register(_leave_processes)


def _leave_processes() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
