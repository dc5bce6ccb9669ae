"""The training loop: batches through a model, named losses averaged and summed, gradients followed."""

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from transun.models.network import Model
from transun.support.progress import Progress
from transun.support.text_form import dumps
from transun.training.averaging import Average
from transun.training.early_stopping import EarlyStopping
from transun.training.engine import LossFunction
from transun.training.evaluation import BatchSource, RowBatch, some_rows
from transun.training.finish import only_bias_branches, require_finish
from transun.training.history import History, LossLog, Step, to_step
from transun.training.recipe import Recipe
from transun.training.resume import ResumeFile, TrainingState, finish_file
from transun.training.rowwise import OptimiserStep
from transun.training.threads import limited_threads

__all__ = ["epoch_seed", "fit"]

# How many points of the learning curve a history keeps.
_POINTS = 1000


def fit(
    model: Model,
    data: BatchSource,
    recipe: Recipe = Recipe(),
    *,
    valid: BatchSource | None = None,
    base: Model | None = None,
    resume: str | Path | None = None,
    on_step: Callable[[Step], None] | None = None,
    progress: bool | None = None,
) -> History:
    """Train the model on the data, in place; the same seed and threads give the same weights to the last bit.

    The first call learns the head's constants and starts the output biases there; later calls continue from the
    weights as they are. With validation rows, the best weights are kept and early stopping ends the training; without
    them it runs to the last epoch. Interrupting (Ctrl-C) leaves the weights reached so far, averaged if the recipe
    averages, and raises `KeyboardInterrupt`.

    Args:
        model: what to train.
        data: rows with targets; see `Dataset` and `ParquetStream`.
        recipe: how to train. Its `valid_share` and `balance` are for `train`, which has whole tables.
        valid: validation rows.
        base: a trained model without this one's last branches, whose weights and constants are copied first.
        resume: a file that keeps the state of training, written every minute and on Ctrl-C, and removed at the end.
            Where it exists, training continues from it and ends in the same weights as without the interruption.
        on_step: called after each step with its losses. Reading them makes a GPU wait in every step; otherwise they
            are read a few dozen at a time.
        progress: show a progress bar; None shows it on a terminal.

    >>> y = torch.tensor([1.0, 3.0])
    >>> model = Model(Constant(), MSE())
    >>> history = fit(model, Dataset({"a": torch.zeros(2)}, y), Recipe(epochs=2))
    >>> len(history.steps), round(model({"a": torch.zeros(1)}).item(), 3)
    (2, 2.0)

    """
    if recipe.finish:
        require_finish(model, recipe.finish, valid)
    if recipe.device is not None:
        model.to(recipe.device)
    if base is not None or not model.prepared:
        model.prepare(data.targets().double(), base, None if base is None else some_rows(data, recipe.seed))
    history = History(train_rows=len(data), valid_rows=0 if valid is None else len(valid))
    key = f"{dumps(replace(recipe, budget=None))}, {_data_key(data) if resume else ''}"
    files = [ResumeFile(resume, key)]
    run = _Run(model, data, recipe, valid, history, on_step, progress)
    model.train()
    run(files[0])
    if recipe.finish and not history.out_of_time:
        # While the bias branches are finished, the file of what came before keeps its last state.
        files.append(ResumeFile(None if resume is None else finish_file(resume), f"finish, {key}"))
        best, stopped_early = history.best, history.stopped_early
        finish = replace(recipe, epochs=recipe.finish, finish=0, seed=recipe.seed + 1)
        with only_bias_branches(model):
            replace(run, recipe=finish, first=run.last, title="finishing z")(files[1])
        history.finish_kept, history.stopped_early = history.best != best, stopped_early
    for file in files:
        file.remove()
    return history


@dataclass
class _Run:
    """One run of the training loop over some epochs, which adds its steps and checks to a history."""

    model: Model
    data: BatchSource
    recipe: Recipe
    valid: BatchSource | None
    history: History
    on_step: Callable[[Step], None] | None
    progress: bool | None
    first: int = 0
    """Steps of the runs before this one, by which its own are numbered."""
    title: str = "training"
    last: int = 0
    """Steps of this run and those before it."""

    def __call__(self, resume_file: ResumeFile) -> None:
        model, data, recipe, history, first = self.model, self.data, self.recipe, self.history, self.first
        batch_size = recipe.batch_rows(len(data))
        steps_per_epoch = math.ceil(len(data) / batch_size)
        total = recipe.epochs * steps_per_epoch
        check_every = math.ceil(steps_per_epoch / recipe.checks(len(data)))
        optimiser_step = recipe.optimiser.on(model, recipe.engine)
        average = Average(model, optimiser_step.by_row()) if recipe.averaging else None
        early_stopping = None
        if self.valid is not None:
            early_stopping = EarlyStopping(model, average, self.valid, recipe.monitor, recipe.patience)
            early_stopping.start_from(history.best)
        device = next(model.parameters()).device
        began = time.perf_counter()
        deadline = began + (math.inf if recipe.budget is None else recipe.budget - history.seconds)
        with (
            limited_threads(batch_size * model.backbone.members),
            torch.random.fork_rng(devices=_devices(device)),
            Progress(self.title, total, self.progress) as bar,
        ):
            torch.manual_seed(recipe.seed)
            losses = LossLog(history, bar, device)
            train_step = TrainStep(optimiser_step, average, recipe.engine.loss_function(model, batch_size), recipe.clip)
            state = TrainingState(model, optimiser_step, average, early_stopping, losses)
            done = resume_file.restore(state)
            history.stopped_early = early_stopping is not None and early_stopping.should_stop

            def check_if_due() -> None:
                """Check the validation rows, unless it is not time or an interrupted run has done so already."""
                last = history.checks[-1].step if history.checks else 0
                due = done % check_every == 0 or done == total or history.out_of_time
                if early_stopping is None or first + done == last or not due:
                    return
                history.checks.append(early_stopping.check(first + done))
                history.best = early_stopping.best
                history.stopped_early = early_stopping.should_stop

            try:
                check_if_due()  # of a run that was interrupted during its last check
                for step, epoch, rows in _batches(data, recipe.epochs, batch_size, recipe.seed, done):
                    if history.stopped_early or history.out_of_time:
                        break
                    factor = recipe.decay(step / total)
                    rate = recipe.optimiser.rate * factor
                    optimiser_step.scale_rates(factor)
                    terms = train_step(rows)
                    if average is not None and recipe.averaging is not None:
                        average.update(recipe.averaging.weight(step, total))
                    history.rows += len(rows.y)
                    if step % max(1, total // _POINTS) == 0 or step + 1 == total:
                        losses.add(first + step, epoch, rate, terms)
                    done = step + 1
                    history.out_of_time = time.perf_counter() > deadline
                    check_if_due()
                    resume_file.save_if_due(state, done)
                    if self.on_step is not None:
                        self.on_step(to_step(first + step, epoch, rate, terms))
                losses.flush()
                if recipe.finish:
                    resume_file.save(state, done)
            except KeyboardInterrupt:
                resume_file.save(state, done)
                raise
            finally:
                self.last = first + done
                if average is not None:
                    average.swap()
                if early_stopping is not None:
                    early_stopping.restore()
                history.seconds += time.perf_counter() - began
                model.eval()


def epoch_seed(seed: int, epoch: int) -> int:
    """The seed of the order of rows in an epoch; neighbouring seeds do not repeat each other's epochs.

    >>> epoch_seed(0, 1), epoch_seed(1, 0)
    (1, 1000003)
    """
    return (seed * 1_000_003 + epoch) % 2**63


def _batches(
    data: BatchSource, epochs: int, batch_size: int, seed: int, done: int
) -> Iterator[tuple[int, int, RowBatch]]:
    """Step, epoch and rows of every step from step `done` on; the rows of a step depend on the seed alone."""
    step = 0
    for epoch in range(epochs):
        for rows in data.batches(batch_size, seed=epoch_seed(seed, epoch)):
            if step >= done:
                yield step, epoch, rows
            step += 1


@dataclass
class TrainStep:
    """One training step: forward pass, backward pass, optimiser step."""

    optimiser_step: OptimiserStep
    average: Average | None
    loss: LossFunction
    clip: float | None

    def __call__(self, rows: RowBatch) -> dict[str, Tensor]:
        """Take the step for these rows, and return the means of the loss terms before it."""
        self.optimiser_step.zero_grad()
        with self.optimiser_step.batch_view(rows.x) as x:
            names, means = self.loss(x, rows.y, rows.weight)
            means.sum().backward()  # type: ignore[no-untyped-call]
        if self.clip is not None:
            self.optimiser_step.clip(self.clip)
        self.optimiser_step.step(None if self.average is None else self.average.catch_up)
        return dict(zip(names, means.detach().unbind(), strict=True))


def _data_key(data: BatchSource) -> str:
    """A text that other rows or other columns change: their number, all targets, and the first rows."""
    first = next(iter(data.batches(1024)))
    columns = first.x if isinstance(first.x, Mapping) else {"x": first.x}
    digest = hashlib.sha256(data.targets().cpu().contiguous().numpy().tobytes())
    for name, column in columns.items():
        digest.update(name.encode() + column.cpu().contiguous().numpy().tobytes())
    return f"{len(data)} rows, checksum {digest.hexdigest()[:16]}"


def _devices(device: torch.device) -> list[int]:
    return [device.index or 0] if device.type == "cuda" else []
