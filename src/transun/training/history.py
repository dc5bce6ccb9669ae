"""What training records about itself, and how losses reach the record from a GPU."""

import math
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from transun.support.progress import Progress

__all__ = ["Check", "History", "Part", "Step"]

# Losses that are read from a GPU together: reading one waits until the GPU has finished all its work.
_READ_TOGETHER = 32


@dataclass(frozen=True)
class Step:
    """One optimiser step: the mean of every loss term over its batch, before the step."""

    step: int
    epoch: int
    rate: float
    terms: dict[str, float]

    @property
    def loss(self) -> float:
        """The sum of the terms."""
        return sum(self.terms.values())


@dataclass(frozen=True)
class Check:
    """Metrics of the validation rows after `step` steps, by name, of the weights that would be kept."""

    step: int
    values: dict[str, float]


@dataclass(frozen=True)
class Part:
    """One part of a mixture: its share, and its root mean squared error on the rows that decided the shares."""

    kind: Literal["trees", "network"]
    name: str
    share: float = 0.0
    """Of large amounts, see `Blend`."""
    small: float = 0.0
    """Its share of small amounts."""
    error: float = math.nan
    refitted: bool = False
    """Whether it was trained again in the end, on training and validation rows together."""


@dataclass
class History:
    """What happened during `fit`: about a thousand points of the learning curve, and every check of validation rows.

    `rows` counts every row as often as it was trained on; `train_rows` and `valid_rows` count each once.
    """

    steps: list[Step] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    best: Check | None = None
    stopped_early: bool = False
    out_of_time: bool = False
    """Whether the budget ended the training, or that of a part, before anything else did."""
    finish_kept: bool | None = None
    """Whether validation rows found the weights of `Recipe.finish` better; None where there was no finish."""
    seconds: float = 0.0
    rows: int = 0
    train_rows: int = 0
    valid_rows: int = 0
    ranks: int = 1
    """How many processes trained together."""
    bytes_sent: int = 0
    """What each of them sent to the others in its training steps and checks."""
    parts: list[Part] = field(default_factory=list)
    """The parts of a mixture, empty where one network was trained."""
    no_trees: str = ""
    """Why a network was trained alone although trees were wanted beside it; empty otherwise."""
    mixtures: int = 1
    """How many mixtures were trained, of folds and of all rows, and averaged."""
    mixed_error: float = math.nan
    """The root mean squared error of the mixture on the rows that decided the shares; the root mean over several."""
    mixed_rows: int = 0
    """How many rows decided the shares."""
    multicalibration: str = ""
    """Whether totals of segments were put right, and what rows left out say about it; empty if it was not tried."""


class LossLog:
    """The losses of logged steps, kept on their device and copied into the history a few at a time.

    Args:
        history: gets the points of the learning curve.
        bar: the progress bar, which shows the latest loss.
        device: where the losses are; on a CPU every point is copied at once.

    """

    def __init__(self, history: History, bar: Progress, device: torch.device) -> None:
        self._history, self._bar = history, bar
        self._together = _READ_TOGETHER if device.type == "cuda" else 1
        self._waiting: list[tuple[int, int, float, dict[str, Tensor]]] = []

    @property
    def history(self) -> History:
        """The history with every point so far."""
        self.flush()
        return self._history

    def add(self, step: int, epoch: int, rate: float, terms: dict[str, Tensor]) -> None:
        """Log one step."""
        self._waiting.append((step, epoch, rate, terms))
        if len(self._waiting) >= self._together:
            self.flush()

    def flush(self) -> None:
        """Copy the waiting losses into the history; a loss that is not finite raises an error that names its step."""
        waiting, self._waiting = self._waiting, []
        for step, epoch, rate, terms in waiting:
            point = to_step(step, epoch, rate, terms)
            self._history.steps.append(point)
            self._bar.advance(step + 1, f"loss {point.loss:.4g}")


def to_step(step: int, epoch: int, rate: float, terms: dict[str, Tensor]) -> Step:
    """A step with its losses as numbers, all finite; waits for the device that computes them."""
    values = {name: float(term) for name, term in terms.items()}
    for name, value in values.items():
        if not math.isfinite(value):
            raise FloatingPointError(
                f"the loss term {name!r} became {value} in step {step}; "
                "lower the learning rate, clip its gradient, or wrap the head in Scaled"
            )
    return Step(step, epoch, rate, values)
