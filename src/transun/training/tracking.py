"""Trackers: where the numbers of a training go while it runs, such as TensorBoard, Weights & Biases or MLflow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from transun.training.history import Check, Step

__all__ = ["PrefixedTracker", "Tracker", "tracked_values"]


class Tracker(Protocol):
    """Records numbers along a training: any object with this one method.

    `fit` calls it after each check of the validation rows or, where there are none, whenever a check would be due. It
    is called on rank 0 alone, and what it draws from torch's random numbers does not change the training. An error that
    it raises ends the training on every rank. A training that is resumed repeats what it did after the last save, so
    that a tracker may get the numbers of a step twice, and they are equal.

    Adapters for TensorBoard, Weights & Biases and MLflow are in `transun.integrations`.
    """

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Record numbers by name.

        Args:
            step: the number of optimiser steps so far.
            values: terms of the loss as `loss/point` and their sum as `loss/total`, means of the steps since the last
                call; `learning_rate`; and metrics of the validation rows as `valid/RMSE`.

        """


@dataclass(frozen=True)
class PrefixedTracker:
    """A tracker whose names begin with a prefix, for one of several trainings that count their steps from 0.

    >>> class Printing:
    ...     def log(self, step, values):
    ...         print(step, values)
    >>> PrefixedTracker(Printing(), "fold_2/").log(7, {"learning_rate": 0.5})
    7 {'fold_2/learning_rate': 0.5}
    """

    tracker: Tracker
    prefix: str

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Record the numbers under the longer names."""
        self.tracker.log(step, {f"{self.prefix}{name}": value for name, value in values.items()})


def tracked_values(steps: Sequence[Step], check: Check | None) -> dict[str, float]:
    """The numbers that a tracker gets.

    They follow from the history alone, so that a training that was interrupted tracks the same ones.

    Args:
        steps: points of the learning curve since the last call; the mean of each loss term over them is tracked.
        check: metrics of the validation rows; None where there are none.

    >>> steps = [Step(0, 0, 0.2, {"point": 4.0, "bias": 1.0}), Step(1, 0, 0.1, {"point": 2.0, "bias": 1.0})]
    >>> tracked_values(steps, Check(2, {"RMSE": 3.0}))
    {'loss/total': 4.0, 'loss/point': 3.0, 'loss/bias': 1.0, 'learning_rate': 0.1, 'valid/RMSE': 3.0}

    """
    values: dict[str, float] = {}
    if steps:
        values["loss/total"] = sum(step.loss for step in steps) / len(steps)
        for name in steps[0].terms:
            values[f"loss/{name}"] = sum(step.terms[name] for step in steps) / len(steps)
        values["learning_rate"] = steps[-1].rate
    if check is not None:
        values |= {f"valid/{name}": value for name, value in check.values.items()}
    return values
