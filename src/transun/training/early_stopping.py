"""Early stopping: the best weights by a metric of the validation rows, and when to give up looking for better ones."""

import math
from contextlib import nullcontext
from typing import Any

from torch import Tensor

from transun.metrics import PGR, Metric
from transun.models.network import Model
from transun.support.group import Group
from transun.training.averaging import Average
from transun.training.batches import BatchSource
from transun.training.evaluation import measure
from transun.training.history import Check

__all__ = ["EarlyStopping"]

# So many checks in a row that are each worse than the one before it are no accident.
_FEWEST_RISES = 3


class EarlyStopping:
    """Checks a model on validation rows, remembers the best weights, and says when to stop.

    With an average of the weights, the average is what is checked and kept. A network that overfits gets worse at every
    check, and there is no point in waiting until patience has run out: half as many checks are enough, three at least,
    if each is worse than the one before it.

    Args:
        model: what is being trained.
        average: the average of its weights, or None.
        valid: the validation rows.
        monitor: the metric that compares weights.
        patience: checks without improvement before training should stop; None never stops.
        group: the ranks that share the validation rows and come to one conclusion.

    """

    def __init__(
        self,
        model: Model,
        average: Average | None,
        valid: BatchSource,
        monitor: Metric,
        patience: int | None,
        group: Group = Group(),
    ) -> None:
        self.model, self.average, self.valid, self.monitor, self.patience = model, average, valid, monitor, patience
        self.group = group
        self.best: Check | None = None
        self.checks_since_best = 0
        self.rises = 0
        """Checks in a row, up to the last one, each worse than the one before it."""
        self.weights: dict[str, Tensor] = {}
        self._last = math.inf

    def start_from(self, best: Check | None) -> None:
        """Compare with weights that were checked before and that the model has now; None compares with nothing."""
        if best is not None:
            self.best = best
            self.weights = {name: value.detach().clone() for name, value in self.model.state_dict().items()}

    def check(self, step: int) -> Check:
        """Measure the weights after `step` steps, and keep them if they are the best so far."""
        metrics = dict.fromkeys([self.monitor, PGR])  # reports show the bias of the total along training
        with nullcontext() if self.average is None else self.average.standing_in():
            meter = measure(self.model, self.valid, metrics, group=self.group)
            # One rank compares for all, which must stop together: another processor could round otherwise.
            check = Check(step, self.group.from_leader(meter.compute))
            self.checks_since_best += 1
            last, self._last = self._last, self._badness(check)
            self.rises = 0 if self._last <= last else self.rises + 1
            if self._improves(check):
                self.best, self.checks_since_best = check, 0
                self.weights = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        return check

    @property
    def should_stop(self) -> bool:
        """Whether patience has run out, or there is nothing to wait for."""
        if self.patience is None:
            return False
        return self.checks_since_best >= self.patience or self.rises >= max(_FEWEST_RISES, self.patience // 2)

    def restore(self) -> None:
        """Give the model the best weights, if any check had a finite value."""
        if self.weights:
            self.model.load_state_dict(self.weights)

    def state_dict(self) -> dict[str, Any]:
        """What later checks depend on, but for the best check, which a history has."""
        return {
            "checks_since_best": self.checks_since_best,
            "rises": self.rises,
            "last": self._last,
            "weights": self.weights,
        }

    def load_state_dict(self, state: dict[str, Any], best: Check | None) -> None:
        """Go on from what `state_dict` returned, after this best check."""
        self.best, self._last = best, state["last"]
        self.checks_since_best, self.rises, self.weights = state["checks_since_best"], state["rises"], state["weights"]

    def _badness(self, check: Check) -> float:
        return self.monitor.badness(check.values[self.monitor.name])

    def _improves(self, check: Check) -> bool:
        if not math.isfinite(check.values[self.monitor.name]):
            return False
        return self.best is None or self._badness(check) < self._badness(self.best)
