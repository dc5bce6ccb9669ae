"""How the forward pass of training is computed: eagerly or compiled, and in which precision."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, TypeVar, cast

import torch
from torch import Tensor

from transun.backbones import Inputs
from transun.heads import Raw
from transun.models.network import Model
from transun.support.group import Group

__all__ = ["Compiled", "Eager", "Engine"]

F = TypeVar("F", bound=Callable[..., Any])
Outputs = Callable[[Inputs, int], Raw]


class LossFunction(Protocol):
    """The names of the loss terms of a batch and their means, (terms,): sums over rows divided by `total`.

    `total` is the weight of all rows of the batch, of which other ranks may hold some; None where they are all here.
    """

    def __call__(
        self, x: Inputs, y: Tensor, weight: Tensor | None, total: float | Tensor | None = None
    ) -> tuple[tuple[str, ...], Tensor]: ...


_PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16}
# Compiled versions of one function that torch may keep, one for each kind of model.
_PROGRAMS = 64
# Options of the compiler. Matrix units want widths that are multiples of 8, so shapes are padded. A value that several
# kernels read is computed in each of them, from up to 8 tensors, instead of being written once: a GPU's memory is
# slower than its arithmetic.
_NETWORK = (("force_shape_pad", True), ("triton.cudagraphs", True), ("realize_reads_threshold", 8))

# Weights of a layer whose gradients are compared with eager ones; larger ones are tables of ids.
_COMPARED = 1 << 22


@dataclass(frozen=True)
class Engine:
    """How a batch becomes the mean of every loss term; `fit` computes gradients through it.

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

    def loss_function(self, model: Model, batch_size: int, group: Group = Group()) -> LossFunction:
        """The function that returns the names of the loss terms of a batch and their means.

        Args:
            model: whose losses these are.
            batch_size: rows of most batches, or of this rank's part of them; a compiled engine prepares for those.
            group: the ranks that share each batch.

        """
        outputs = self._outputs(model, batch_size, group)

        def run(
            x: Inputs, y: Tensor, weight: Tensor | None, total: float | Tensor | None = None
        ) -> tuple[tuple[str, ...], Tensor]:
            terms = _losses(model, outputs(x, len(y)), y, group)
            return tuple(terms), _means(torch.stack(tuple(terms.values())), weight, total)

        return run

    def compile(self, function: F) -> F:
        """The function, compiled if this engine compiles; for functions of tensors whose shapes seldom change."""
        return function

    def _outputs(self, model: Model, batch_size: int, group: Group) -> Outputs:
        """The forward pass: a function of a batch and its number of rows that returns the raw outputs."""
        return lambda x, rows: _raw(model, self.precision, x)


@dataclass(frozen=True)
class Eager(Engine):
    """Operation by operation, as the model is written: it starts at once, works everywhere, and suits a CPU best.

    >>> Eager("bfloat16")
    Eager(precision='bfloat16')
    """


@dataclass(frozen=True)
class Compiled(Engine):
    """The forward pass of the network compiled by `torch.compile` when the first batch comes.

    It makes fewer passes over memory and, on a GPU, one launch for all of them, hence it is faster there. Compiling
    takes up to a minute, once for a network and batch size. Losses are computed eagerly: their constants come from the
    data, and each set of constants would compile anew. A last batch of another size is computed eagerly too, because
    compiling for one step costs more than it saves. Results differ from eager ones in the last bits. Where there is no
    compiler, training stops with a `RuntimeError`. So it does where the compiler errs: in a training by one process
    the gradients of the first batch are compared with eager ones.
    """

    def compile(self, function: F) -> F:
        program = _program(function, ())
        last: list[tuple[torch.Size, ...]] = [()]

        def run(*arguments: Tensor) -> Any:
            shapes, before = tuple(argument.shape for argument in arguments), last[0]
            last[0] = shapes
            return (program if shapes == before else function)(*arguments)

        return cast(F, run)

    def _outputs(self, model: Model, batch_size: int, group: Group) -> Outputs:
        program = _program(_raw, _NETWORK)
        on_gpu = next(model.parameters()).is_cuda
        # Ranks whose whole batches come at different steps would wait for each other's statistics.
        unchecked = group.size == 1

        def whole(x: Inputs) -> Raw:
            if on_gpu:
                torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
            return cast(Raw, program(model, self.precision, x))

        def run(x: Inputs, rows: int) -> Raw:
            nonlocal unchecked
            if rows != batch_size:
                return _raw(model, self.precision, x)
            if unchecked:
                _compare_gradients(model, x, whole, lambda x: _raw(model, self.precision, x))
                unchecked = False
            return whole(x)

        return run


@cache
def _program(function: Callable[..., Any], options: tuple[tuple[str, int], ...]) -> Callable[..., Any]:
    """The compiled function, cached for all models, so that training the same network again does not compile again."""
    # Beyond its limit of compiled versions torch would run the function eagerly without a word.
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, _PROGRAMS)
    compiled = torch.compile(function, dynamic=False, options=dict(options))

    def run(*arguments: Any) -> Any:
        try:
            return compiled(*arguments)
        except torch._dynamo.exc.TorchDynamoException as error:
            reason = str(error).strip().splitlines()[0]
            raise RuntimeError(f"this model cannot be compiled here ({reason}); train it with Eager()") from error

    return run


def _compare_gradients(
    model: Model, x: Inputs, compiled: Callable[[Inputs], Raw], eager: Callable[[Inputs], Raw]
) -> None:
    """Stop where a compiler's gradients of ½·Σ output² are not those of the eager network.

    Torch 2.11 compiled a layer of ours into one whose gradients were all zero, without a word: only the last layer of
    the network learned. Rounding and dropout move a norm by far less than the factor of two that is allowed.
    """
    weights = {
        name: weight
        for name, weight in model.named_parameters()
        if weight.requires_grad and weight.numel() <= _COMPARED
    }
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    norms = []
    for forward in (compiled, eager):
        cost = torch.stack([output.float().square().sum() for output in forward(x)]).sum()
        gradients = torch.autograd.grad(cost, list(weights.values()), allow_unused=True)
        norms.append([0.0 if gradient is None else float(gradient.norm()) for gradient in gradients])
        # Running statistics move with every pass.
        for name, buffer in model.named_buffers():
            buffer.copy_(buffers[name])
    largest = max(norms[1], default=0.0)
    for name, found, expected in zip(weights, *norms, strict=True):
        # A gradient that cancels, as of a shift before a normalisation, is nothing but rounding.
        if expected > 0.01 * largest and not 0.5 < found / expected < 2.0:
            raise RuntimeError(
                f"torch {torch.__version__} compiles this network wrongly: the gradient of {name} is {found:.3g} long "
                f"and should be {expected:.3g}; train it with Eager()"
            )


def _raw(model: Model, precision: str, x: Inputs) -> Raw:
    dtype = _PRECISIONS[precision]
    if dtype is None:
        return model.raw(x)
    with torch.autocast(next(model.parameters()).device.type, dtype):
        return model.raw(x)


def _losses(model: Model, raw: Raw, y: Tensor, group: Group) -> dict[str, Tensor]:
    """The loss terms of this rank's rows; where they depend on other rows, those of all ranks count."""
    if group.size == 1 or model.head.rowwise:
        return model.loss_of_raw(raw, y)
    targets = group.gather(y)
    terms = model.loss_of_raw(tuple(group.join(outputs) for outputs in raw), torch.cat(targets))
    start = sum(map(len, targets[: group.rank]))
    return {name: term[start : start + len(y)] for name, term in terms.items()}


def _means(terms: Tensor, weight: Tensor | None, total: float | Tensor | None) -> Tensor:
    """The weighted means of terms (terms, B), all at once: in a small step every operation counts."""
    if weight is None:
        return terms.mean(1) if total is None else terms.sum(1) / total
    # A batch that holds only rows of weight zero has no gradient.
    least = torch.finfo(weight.dtype).tiny
    divisor = weight.sum() if total is None else torch.as_tensor(total)
    return (terms * weight).sum(1) / divisor.clamp(min=least)
