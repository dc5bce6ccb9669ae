"""The learning curve of a training run, read from the device a few points at a time."""

import math

import torch
from torch import Tensor

from transun.support.progress import Progress
from transun.training.history import History, Step

# Points read together from a GPU: to read one waits for all work before it, and leaves the GPU without any.
_TOGETHER = 32


class LossLog:
    """Keeps the losses of logged steps where they were computed, and reads them into the history now and then.

    Args:
        history: gets the points.
        bar: is told of them.
        device: where the losses are; on a CPU every point is read at once.

    """

    def __init__(self, history: History, bar: Progress, device: torch.device) -> None:
        self._history, self._bar = history, bar
        self._together = _TOGETHER if device.type == "cuda" else 1
        self._waiting: list[tuple[int, int, float, dict[str, Tensor]]] = []

    @property
    def history(self) -> History:
        """With every point so far."""
        self.read()
        return self._history

    def add(self, step: int, epoch: int, rate: float, terms: dict[str, Tensor]) -> None:
        """One more point."""
        self._waiting.append((step, epoch, rate, terms))
        if len(self._waiting) >= self._together:
            self.read()

    def read(self) -> None:
        """Read what is waiting; a loss that is not finite is an error that names its step."""
        waiting, self._waiting = self._waiting, []
        for step, epoch, rate, terms in waiting:
            self._history.steps.append(seen := to_step(step, epoch, rate, terms))
            self._bar.advance(step + 1, f"loss {seen.loss:.4g}")


def to_step(step: int, epoch: int, rate: float, terms: dict[str, Tensor]) -> Step:
    """A step with its losses as numbers, all finite; waits for the device that computes them."""
    for name, value in (values := {name: float(term) for name, term in terms.items()}).items():
        if not math.isfinite(value):
            raise FloatingPointError(
                f"the loss term {name!r} became {value} in step {step}; "
                "lower the learning rate, set `clip`, or wrap the head in Scaled"
            )
    return Step(step, epoch, rate, values)
