"""How the losses of a batch are computed in training: line by line or compiled, and in which precision."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from transun.backbones import Inputs
from transun.heads import Raw
from transun.models.network import Model

__all__ = ["Compiled", "Eager", "Engine"]

F = TypeVar("F", bound=Callable[..., Any])
Outputs = Callable[[Inputs, int], Raw]
Terms = Callable[[Inputs, Tensor, Tensor | None], tuple[tuple[str, ...], Tensor]]

_PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16}
_PROGRAMS = 64
# What the compiler of a network is told beyond its defaults. Matrix units want widths that are multiples of 8; a
# network of 81 features has another. A value of several passes is computed in each of them, from up to so many tensors,
# rather than written once and read by all: a GPU's memory is slower than its arithmetic.
_NETWORK = (("force_shape_pad", True), ("triton.cudagraphs", True), ("realize_reads_threshold", 8))


@dataclass(frozen=True)
class Engine:
    """The way from a batch to the mean of every loss term, on which `fit` goes back.

    Args:
        precision: "float32", or "bfloat16": matrix products take operands of 8 significant bits, which the matrix
            units of a GPU multiply many times faster. Weights, tables, their updates, sums of products and losses stay
            in float32.

    """

    precision: str = "float32"

    def __post_init__(self) -> None:
        if self.precision not in _PRECISIONS:
            raise ValueError(
                f"{type(self).__name__} knows the precisions {', '.join(_PRECISIONS)}, not {self.precision!r}"
            )

    def terms(self, model: Model, batch_size: int) -> Terms:
        """The function of (x, y, weight) that gives the names of the terms and their means, (terms,).

        Most batches have `batch_size` rows.
        """
        outputs = self._outputs(model, batch_size)

        def run(x: Inputs, y: Tensor, weight: Tensor | None) -> tuple[tuple[str, ...], Tensor]:
            terms = model.head.loss(outputs(x, len(y)), y)
            return tuple(terms), _means(torch.stack(tuple(terms.values())), weight)

        return run

    def prepared(self, function: F) -> F:
        """A function of tensors that is called with the same shapes again and again, or a faster one."""
        return function

    def _outputs(self, model: Model, batch_size: int) -> Outputs:
        """The function of a batch and its number of rows that gives the network's raw outputs."""
        return lambda x, rows: _raw(model, self.precision, x)


@dataclass(frozen=True)
class Eager(Engine):
    """Operation by operation, as the model is written: starts at once, works everywhere, the best choice on a CPU.

    >>> Eager("bfloat16")
    Eager(precision='bfloat16')
    """


@dataclass(frozen=True)
class Compiled(Engine):
    """One program for the whole network, made by `torch.compile` when the first batch comes.

    Fewer passes over memory, and on a GPU one launch for all of them, hence faster there; making the program takes up
    to a minute, once for a network and batch size. Losses are computed eagerly, since their constants are those of the
    data and would make it another program. So is a last batch of another size: a program for one step would cost more
    than it saves. Results differ from eager ones in the last bits. Where there is no compiler, training stops with a
    `RuntimeError`.
    """

    def prepared(self, function: F) -> F:
        program = _program(function, ())
        last: list[tuple[torch.Size, ...]] = [()]

        def run(*arguments: Tensor) -> Any:
            shapes, before = tuple(argument.shape for argument in arguments), last[0]
            last[0] = shapes
            return (program if shapes == before else function)(*arguments)

        return cast(F, run)

    def _outputs(self, model: Model, batch_size: int) -> Outputs:
        whole = _program(_raw, _NETWORK)
        on_gpu = next(model.parameters()).is_cuda

        def run(x: Inputs, rows: int) -> Raw:
            if on_gpu:
                torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
            return cast(Raw, (whole if rows == batch_size else _raw)(model, self.precision, x))

        return run


@cache
def _program(function: Callable[..., Any], options: tuple[tuple[str, int], ...]) -> Callable[..., Any]:
    """The compiled function; one for all models, so that a later training of the same network finds its program."""
    # Every kind of model is another program of the same function; beyond this many torch would quietly run it eagerly.
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, _PROGRAMS)
    compiled = torch.compile(function, dynamic=False, options=dict(options))

    def run(*arguments: Any) -> Any:
        try:
            return compiled(*arguments)
        except torch._dynamo.exc.TorchDynamoException as error:
            reason = str(error).strip().splitlines()[0]
            raise RuntimeError(f"this model cannot be compiled here ({reason}); train it with Eager()") from error

    return run


def _raw(model: Model, precision: str, x: Inputs) -> Raw:
    dtype = _PRECISIONS[precision]
    if dtype is None:
        return model.raw(x)
    with torch.autocast(next(model.parameters()).device.type, dtype):
        return model.raw(x)


def _means(terms: Tensor, weight: Tensor | None) -> Tensor:
    """Of terms (terms, B), all at once: in a small step every operation counts."""
    if weight is None:
        return terms.mean(1)
    # A batch may happen to hold only rows of weight zero: it teaches nothing.
    return (terms * weight).sum(1) / weight.sum().clamp(min=torch.finfo(weight.dtype).tiny)
