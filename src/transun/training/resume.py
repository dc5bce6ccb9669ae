"""The state of a training run on disk, from which it goes on to the same result."""

import pickle
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transun.models.network import Model
from transun.support.files import replacing
from transun.support.text_form import dumps
from transun.training.averaging import Average
from transun.training.early_stopping import EarlyStopping
from transun.training.history import Check, Step
from transun.training.recorder import LossLog
from transun.training.stepping import OptimiserStep

# Seconds between saves: a minute of work is cheap to repeat, a save of a large table is not free.
_PERIOD = 60.0


@dataclass
class TrainingState:
    """Everything that the rest of a run depends on, apart from its data."""

    model: Model
    stepper: OptimiserStep
    average: Average | None
    keeper: EarlyStopping | None
    recorder: LossLog

    def capture(self) -> dict[str, Any]:
        """Plain values and tensors."""
        state: dict[str, Any] = {
            "model": self.model.state_dict(),
            "stepper": self.stepper.state_dict(),
            "random": self._generators(),
            "history": asdict(self.recorder.history),
        }
        if self.average is not None:
            state["average"] = self.average.state_dict()
        if self.keeper is not None:
            state["keeper"] = {"worse": self.keeper.worse, "weights": self.keeper.weights}
        return state

    def apply(self, state: dict[str, Any]) -> None:
        """Put captured values back."""
        self.model.load_state_dict(state["model"])
        self.stepper.load_state_dict(state["stepper"])
        torch.set_rng_state(state["random"][0])
        if self._on_gpu:
            torch.cuda.set_rng_state(state["random"][1])
        past, history = state["history"], self.recorder.history
        history.steps = [Step(**step) for step in past["steps"]]
        history.checks = [Check(**check) for check in past["checks"]]
        history.best = None if past["best"] is None else Check(**past["best"])
        history.rows, history.seconds = past["rows"], past["seconds"]
        if self.average is not None:
            self.average.load_state_dict(state["average"])
        if self.keeper is not None:
            self.keeper.best, self.keeper.worse = history.best, state["keeper"]["worse"]
            self.keeper.weights = state["keeper"]["weights"]

    @property
    def _on_gpu(self) -> bool:
        return next(self.model.parameters()).is_cuda

    def _generators(self) -> list[Tensor]:
        return [torch.get_rng_state(), *([torch.cuda.get_rng_state()] if self._on_gpu else [])]


class ResumeFile:
    """Saves a training run now and then, and finds it again; without a path it does nothing.

    The file holds tensors and plain values only and is read without executing anything in it.
    """

    def __init__(self, path: str | Path | None, plan: str) -> None:
        self.path = None if path is None else Path(path)
        self.plan = plan
        self._saved = time.monotonic()

    def restore(self, state: TrainingState) -> int:
        """Steps done by the run in the file, whose state is put back; 0 where there is none."""
        if self.path is None or not self.path.exists():
            return 0
        try:
            saved = torch.load(self.path, weights_only=True)
            plan, done, values = saved["plan"], int(saved["done"]), saved["state"]
        except (pickle.UnpicklingError, RuntimeError, EOFError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{self.path} is not a training run that can be resumed; remove it to start over"
            ) from error
        if plan != self._plan(state):
            raise ValueError(f"{self.path} belongs to another run ({plan}); remove it or use another file")
        state.apply(values)
        return done

    def tick(self, state: TrainingState, done: int) -> None:
        """Save if it is time."""
        if self.path is not None and time.monotonic() - self._saved > _PERIOD:
            self.save(state, done)

    def save(self, state: TrainingState, done: int) -> None:
        """Save now, in one step: an interruption leaves the old file or the new one."""
        if self.path is None:
            return
        with replacing(self.path) as draft:
            torch.save({"plan": self._plan(state), "done": done, "state": state.capture()}, draft)
        self._saved = time.monotonic()

    def close(self) -> None:
        """The run is complete: nothing is left to resume."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _plan(self, state: TrainingState) -> str:
        return f"{dumps(state.model.head)}, {self.plan}"
