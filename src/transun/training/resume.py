"""The state of a training run on disk, from which training resumes to the same result."""

import pickle
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transun.backbones.sharded import shards_in
from transun.models.network import Model
from transun.support.files import replacing
from transun.support.group import Group
from transun.support.text_form import dumps
from transun.training.averaging import Average
from transun.training.early_stopping import EarlyStopping
from transun.training.history import Check, LossLog, Step
from transun.training.rowwise import OptimiserStep

__all__ = ["ResumeFile", "TrainingState"]

# Seconds between saves: a minute of work is cheap to repeat, a save of a large table is not free.
_PERIOD = 60.0


@dataclass
class TrainingState:
    """Everything that the rest of a run depends on, apart from its data."""

    model: Model
    optimiser_step: OptimiserStep
    average: Average | None
    early_stopping: EarlyStopping | None
    losses: LossLog
    group: Group = field(default_factory=Group)

    def capture(self) -> dict[str, Any]:
        """The state as plain values and tensors; every rank must call this, since each has rows of a sharded table."""
        own = self._capture()
        return {"of_ranks": self.group.gather_objects(own)} if shards_in(self.model) else own

    def _capture(self) -> dict[str, Any]:
        state: dict[str, Any] = {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser_step.state_dict(),
            "random": self._generators(),
            "history": asdict(self.losses.history),
        }
        if self.average is not None:
            state["average"] = self.average.state_dict()
        if self.early_stopping is not None:
            state["early_stopping"] = self.early_stopping.state_dict()
        return state

    def apply(self, state: dict[str, Any]) -> None:
        """Restore what `capture` returned."""
        if "of_ranks" in state:
            if len(state["of_ranks"]) != self.group.size:
                raise ValueError(
                    f"a training with sharded tables by {len(state['of_ranks'])} ranks cannot be resumed by "
                    f"{self.group.size}: start as many, or remove the file"
                )
            state = state["of_ranks"][self.group.rank]
        self.model.load_state_dict(state["model"])
        self.optimiser_step.load_state_dict(state["optimiser"])
        torch.set_rng_state(state["random"][0])
        if self._on_gpu:
            torch.cuda.set_rng_state(state["random"][1])
        past, history = state["history"], self.losses.history
        history.steps = [Step(**step) for step in past["steps"]]
        history.checks = [Check(**check) for check in past["checks"]]
        history.best = None if past["best"] is None else Check(**past["best"])
        history.rows, history.seconds = past["rows"], past["seconds"]
        if self.average is not None:
            self.average.load_state_dict(state["average"])
        if self.early_stopping is not None:
            self.early_stopping.load_state_dict(state["early_stopping"], history.best)

    @property
    def _on_gpu(self) -> bool:
        return next(self.model.parameters()).is_cuda

    def _generators(self) -> list[Tensor]:
        return [torch.get_rng_state(), *([torch.cuda.get_rng_state()] if self._on_gpu else [])]


def fold_file(path: str | Path, number: int) -> Path:
    """The file of fold `number` of a training that keeps its state in `path`.

    >>> [fold_file("model/training.pt", number).name for number in range(3)]
    ['training.pt', 'training.1.pt', 'training.2.pt']
    """
    path = Path(path)
    return path.with_suffix(f".{number}{path.suffix}") if number else path


def finish_file(path: str | Path) -> Path:
    """The file of the finish of a training that keeps its state in `path`.

    >>> finish_file("model/training.pt").name
    'training.finish.pt'
    """
    path = Path(path)
    return path.with_suffix(f".finish{path.suffix}")


def interrupted_files(path: Path) -> list[Path]:
    """The files that an interrupted training has left, those of its folds included."""
    return sorted(path.parent.glob(f"{path.stem}*{path.suffix}")) if path.parent.is_dir() else []


class ResumeFile:
    """Saves a training run every minute and restores it; without a path it does nothing.

    Rank 0 writes and reads the file for all ranks, so that it may be on a disk that only rank 0 sees. The file holds
    tensors and plain values only and is read without executing anything in it.

    Args:
        path: the file, or None.
        settings: a text of the settings and the data; a file with another text is refused.

    """

    def __init__(self, path: str | Path | None, settings: str) -> None:
        self.path = None if path is None else Path(path)
        self.settings = settings
        self._saved = time.monotonic()

    def restore(self, state: TrainingState) -> int:
        """Apply the state in the file and return the steps done so far; 0 where there is no file."""
        if self.path is None:
            return 0
        saved = state.group.from_leader(lambda: self._read(state))
        if saved is None:
            return 0
        done, values = saved
        state.apply(values)
        return done

    def _read(self, state: TrainingState) -> tuple[int, dict[str, Any]] | None:
        """The steps done so far and the state in the file; None where there is no file."""
        assert self.path is not None
        if not self.path.exists():
            return None
        try:
            saved = torch.load(self.path, weights_only=True)
            settings, done, values = saved["settings"], int(saved["done"]), saved["state"]
        except (pickle.UnpicklingError, RuntimeError, EOFError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{self.path} is not a training run that can be resumed; remove it to start over"
            ) from error
        if settings != self._settings(state):
            raise ValueError(f"{self.path} belongs to another run ({settings}); remove it or use another file")
        return done, values

    @property
    def is_due(self) -> bool:
        """Whether the last save is a minute old."""
        return self.path is not None and time.monotonic() - self._saved > _PERIOD

    def save(self, state: TrainingState, done: int) -> None:
        """Save now, in one step: an interruption leaves the old file or the new one. Every rank must call this."""
        if self.path is None:
            return
        values = state.capture()
        if state.group.leads:
            # Through a file of Python, whose errors say that a disk is full; those of torch do not.
            with replacing(self.path) as draft, draft.open("wb") as file:
                torch.save({"settings": self._settings(state), "done": done, "state": values}, file)
        self._saved = time.monotonic()

    def remove(self, group: Group) -> None:
        """Remove the file of a run that is complete."""
        if self.path is not None and group.leads:
            self.path.unlink(missing_ok=True)

    def _settings(self, state: TrainingState) -> str:
        return f"{dumps(state.model.head)}, {self.settings}"
