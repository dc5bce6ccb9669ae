"""The best weights seen on validation data."""

import math
from contextlib import nullcontext

from torch import Tensor

from transun.metrics import Metric
from transun.models.network import Model
from transun.training.averaging import Average
from transun.training.evaluation import Source, measure
from transun.training.history import Check


class EarlyStopping:
    """Looks at validation data, remembers the best weights and how many looks ago they were.

    With an average of the weights it is the average that is judged and kept.
    """

    def __init__(self, model: Model, average: Average | None, valid: Source, monitor: Metric) -> None:
        self.model, self.average, self.valid, self.monitor = model, average, valid, monitor
        self.best: Check | None = None
        self.worse = 0
        self.weights: dict[str, Tensor] = {}

    def look(self, step: int) -> Check:
        """Judge the weights after `step` steps."""
        with nullcontext() if self.average is None else self.average.standing_in():
            check = Check(step, measure(self.model, self.valid, [self.monitor]).compute()[self.monitor.name])
            self.worse += 1
            badness = self.monitor.badness
            if math.isfinite(check.value) and (self.best is None or badness(check.value) < badness(self.best.value)):
                self.best, self.worse = check, 0
                self.weights = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        return check

    def restore(self) -> None:
        """Give the model the best weights, if there were any."""
        if self.weights:
            self.model.load_state_dict(self.weights)
