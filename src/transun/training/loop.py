"""Training: batches through a model, its named losses weighted, summed and followed."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from transun.metrics import NRMSE, Metric
from transun.models.network import Model
from transun.support.progress import Progress
from transun.support.text_form import dumps
from transun.training.averaging import Average, Averaging
from transun.training.early_stopping import EarlyStopping
from transun.training.engine import Eager, Engine, Terms
from transun.training.evaluation import Rows, Source
from transun.training.history import History, Step
from transun.training.optimisers import Adam, Optimiser, constant
from transun.training.recorder import LossLog, to_step
from transun.training.resume import ResumeFile, TrainingState
from transun.training.stepping import OptimiserStep

__all__ = ["fit"]

# How many points of the learning curve a history keeps.
_POINTS = 1000


def fit(
    model: Model,
    data: Source,
    *,
    optimiser: Optimiser = Adam(),
    epochs: int = 1,
    batch_size: int = 512,
    decay: Callable[[float], float] = constant,
    averaging: Averaging | None = None,
    clip: float | None = None,
    valid: Source | None = None,
    monitor: Metric = NRMSE,
    check_every: int | None = None,
    patience: int | None = None,
    base: Model | None = None,
    engine: Engine = Eager(),
    resume: str | Path | None = None,
    seed: int = 0,
    on_step: Callable[[Step], None] | None = None,
    progress: bool | None = None,
) -> History:
    """Train the model on the data, in place; the same seed and threads give the same weights to the last bit.

    The first call learns the head's constants and starts the output biases there; later calls go on from the weights
    as they are. With validation data the best weights seen are the ones kept. Interrupting (Ctrl-C) leaves the
    weights reached so far, averaged if so asked, and raises `KeyboardInterrupt` on.

    Args:
        model: what to train.
        data: rows with targets; see `Dataset`.
        optimiser: how weights follow gradients.
        epochs: passes over the data. Id features overfit after one or two: give validation data and patience for more.
        batch_size: rows a step.
        decay: factor of the learning rate as a function of the share of training done; `linear`, `cosine`.
        averaging: `Tail` or `EMA` of the weights, kept in place of the last step's.
        clip: largest norm of the gradient.
        valid: validation rows, looked at after every epoch.
        monitor: the metric that decides what is best there.
        check_every: steps between looks, instead of epochs.
        patience: looks without improvement before training stops; None never stops.
        base: a trained model without this one's last branches, whose weights and constants are taken over first.
        engine: how losses are computed; `Compiled("bfloat16")` is fastest on a GPU.
        resume: a file that keeps the state of training, written every minute and on Ctrl-C, removed at the end. Where
            it exists, training goes on from it and ends in the same weights as if never interrupted.
        seed: of the order of rows and of dropout.
        on_step: called after each step with its losses; reading them makes a GPU wait every step, where it is otherwise
            looked at every few dozen points of the learning curve.
        progress: show a progress bar; None shows it on a terminal.

    """
    _check_arguments(epochs, batch_size, clip, patience, check_every, valid)
    if base is not None or not model.prepared:
        model.prepare(data.targets().double(), base)
    stepper = optimiser.stepper(model, engine)
    per_epoch = math.ceil(len(data) / batch_size)
    total = epochs * per_epoch
    average = Average(model, stepper.by_row()) if averaging else None
    keeper = EarlyStopping(model, average, valid, monitor) if valid is not None else None
    every = check_every or per_epoch
    history = History()
    device = next(model.parameters()).device
    began = time.perf_counter()
    model.train()
    with torch.random.fork_rng(devices=_devices(device)), Progress("training", total, progress) as bar:
        torch.manual_seed(seed)
        recorder = LossLog(history, bar, device)
        descend = Descent(stepper, average, engine.terms(model, batch_size), clip)
        state = TrainingState(model, stepper, average, keeper, recorder)
        journal = ResumeFile(resume, _plan(optimiser, epochs, batch_size, seed, len(data), engine))
        done = journal.restore(state)
        try:
            for step, epoch, rows in _steps(data, epochs, batch_size, seed, done):
                factor = decay(step / total)
                stepper.scale_rates(factor)
                terms = descend(rows)
                if average is not None and averaging is not None:
                    average.update(averaging.weight(step, total))
                history.rows += len(rows.y)
                if step % max(1, total // _POINTS) == 0 or step + 1 == total:
                    recorder.add(step, epoch, optimiser.rate * factor, terms)
                done = step + 1
                if keeper is not None and (done % every == 0 or done == total):
                    history.checks.append(keeper.look(done))
                    history.best = keeper.best
                    history.stopped_early = patience is not None and keeper.worse >= patience
                journal.tick(state, done)
                if on_step is not None:
                    on_step(to_step(step, epoch, optimiser.rate * factor, terms))
                if history.stopped_early:
                    break
            recorder.read()
        except KeyboardInterrupt:
            journal.save(state, done)
            raise
        finally:
            if average is not None:
                average.swap()
            if keeper is not None:
                keeper.restore()
            history.seconds += time.perf_counter() - began
            model.eval()
    journal.close()
    return history


def _steps(data: Source, epochs: int, batch_size: int, seed: int, done: int) -> Iterator[tuple[int, int, Rows]]:
    """Step, epoch and rows of every step from `done` on: the same rows for the same seed, wherever one begins."""
    step = 0
    for epoch in range(epochs):
        # Neighbouring seeds must not replay each other's epochs.
        for rows in data.batches(batch_size, seed=(seed * 1_000_003 + epoch) % 2**63):
            if step >= done:
                yield step, epoch, rows
            step += 1


@dataclass
class Descent:
    """One step down the gradient of a batch."""

    stepper: OptimiserStep
    average: Average | None
    terms: Terms
    clip: float | None

    def __call__(self, rows: Rows) -> dict[str, Tensor]:
        """The loss terms before the step."""
        self.stepper.zero_grad()
        with self.stepper.reading(rows.x) as x:
            names, means = self.terms(x, rows.y, rows.weight)
            means.sum().backward()  # type: ignore[no-untyped-call]
        if self.clip is not None:
            self.stepper.clip(self.clip)
        self.stepper.step(None if self.average is None else self.average.catch_up)
        return dict(zip(names, means.detach().unbind(), strict=True))


def _plan(optimiser: Optimiser, epochs: int, batch_size: int, seed: int, rows: int, engine: Engine) -> str:
    plan = f"{dumps(optimiser)}, {epochs} epochs, batch {batch_size}, seed {seed}, {rows} rows"
    return plan if engine == Eager() else f"{plan}, {dumps(engine)}"


def _check_arguments(
    epochs: int,
    batch_size: int,
    clip: float | None,
    patience: int | None,
    check_every: int | None,
    valid: Source | None,
) -> None:
    for name, value in (("epochs", epochs), ("batch_size", batch_size), ("check_every", check_every or 1)):
        if value < 1:
            raise ValueError(f"fit needs {name} >= 1, got {value}")
    if clip is not None and not clip > 0.0:
        raise ValueError(f"fit needs clip > 0, got {clip}")
    if valid is None and (patience is not None or check_every is not None):
        raise ValueError("patience and check_every look at validation data: pass valid=...")
    if patience is not None and patience < 1:
        raise ValueError(f"fit needs patience >= 1, got {patience}")


def _devices(device: torch.device) -> list[int]:
    return [device.index or 0] if device.type == "cuda" else []
