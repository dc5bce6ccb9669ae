"""The training loop: batches through a model, named losses averaged and summed, gradients followed."""

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import TypedDict

import torch
from torch import Tensor

from transun.backbones.backbone import Inputs, Span, spanning
from transun.backbones.sharded import shards_in
from transun.models.network import Model, require_base
from transun.support.device import require_device
from transun.support.group import Group, current_group
from transun.support.progress import Progress
from transun.support.text_form import dumps
from transun.training.averaging import Average
from transun.training.batches import BatchPart, BatchSource, own_parts
from transun.training.early_stopping import EarlyStopping
from transun.training.engine import LossFunction
from transun.training.evaluation import some_rows
from transun.training.finish import only_bias_branches, require_finish
from transun.training.history import History, LossLog, Step, to_step
from transun.training.interrupt import Interrupt
from transun.training.recipe import Recipe, require_recipe
from transun.training.resume import ResumeFile, TrainingState, finish_file
from transun.training.rowwise import OptimiserStep
from transun.training.threads import limited_threads
from transun.training.tracking import Tracker, tracked_values

__all__ = ["FitOptions", "epoch_seed", "fit"]

# How many points of the learning curve a history keeps.
_POINTS = 1000


class FitOptions(TypedDict, total=False):
    """What a training starts from and who follows it, as keyword arguments; see `fit` for their meaning."""

    base: Model | None
    resume: str | Path | None
    tracker: Tracker | None
    progress: bool | None


def fit(
    model: Model,
    data: BatchSource,
    recipe: Recipe = Recipe(),
    *,
    valid: BatchSource | None = None,
    base: Model | None = None,
    resume: str | Path | None = None,
    on_step: Callable[[Step], None] | None = None,
    tracker: Tracker | None = None,
    progress: bool | None = None,
) -> History:
    """Train the model on the data, in place; the same seed and threads give the same weights to the last bit.

    The first call learns the head's constants and starts the output biases there; later calls continue from the
    weights as they are. With validation rows, the best weights are kept and early stopping ends the training; without
    them it runs to the last epoch. Interrupting (Ctrl-C) leaves the weights reached so far, averaged if the recipe
    averages, and raises `KeyboardInterrupt`.

    Processes that torchrun or another launcher has started train together, without being asked to: every batch is cut
    into a part for each rank, and weights, losses and early stopping are those of one process that trains on whole
    batches, up to rounding. All ranks must call this with the same arguments, and end with the same weights.

    Args:
        model: what to train.
        data: rows with targets; see `Dataset` and `ParquetStream`. All ranks must see the same rows; rows that only one
            of them has are `LocalRows`.
        recipe: how to train. Its `valid_share` and `balance` are for `train`, which has whole tables.
        valid: validation rows.
        base: a trained model without this one's last branches, whose weights and constants are copied first.
        resume: a file that keeps the state of training, written every minute and on Ctrl-C, and removed at the end.
            Where it exists, training continues from it and ends in the same weights as without the interruption.
        on_step: called after each step with its losses. Reading them makes a GPU wait in every step; otherwise they
            are read a few dozen at a time.
        tracker: gets losses and metrics after each check, on rank 0; see `Tracker`. It does not change the result.
        progress: show a progress bar, on rank 0; None shows it on a terminal.

    >>> y = torch.tensor([1.0, 3.0])
    >>> model = Model(Constant(), MSE())
    >>> history = fit(model, Dataset({"a": torch.zeros(2)}, y), Recipe(epochs=2))
    >>> len(history.steps), round(model({"a": torch.zeros(1)}).item(), 3)
    (2, 2.0)

    """
    require_recipe(recipe)
    if base is not None:
        require_base(base)
    if recipe.finish:
        require_finish(model, recipe.finish, valid)
    group = current_group()
    require_device(recipe.device)
    if recipe.device is not None:
        model.to(recipe.device)
    if base is not None or not model.prepared:
        model.prepare(data.targets().double(), base, None if base is None else some_rows(data, recipe.seed))
    group.copy_from_leader(_copied(model))
    history = History(train_rows=len(data), valid_rows=0 if valid is None else len(valid), ranks=group.size)
    key = dumps(replace(recipe, budget=None))
    if resume:
        key = ", ".join([key, *(_data_key(rows) for rows in (data, valid) if rows is not None)])
    files = [ResumeFile(resume, key)]
    run = _Run(model, data, recipe, valid, group, history, on_step, tracker, progress)
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
        file.remove(group)
    return history


@dataclass
class _Run:
    """One run of the training loop over some epochs, which adds its steps and checks to a history."""

    model: Model
    data: BatchSource
    recipe: Recipe
    valid: BatchSource | None
    group: Group
    history: History
    on_step: Callable[[Step], None] | None
    tracker: Tracker | None
    progress: bool | None
    first: int = 0
    """Steps of the runs before this one, by which its own are numbered."""
    title: str = "training"
    last: int = 0
    """Steps of this run and those before it."""

    def __call__(self, resume_file: ResumeFile) -> None:
        model, data, recipe, history, first = self.model, self.data, self.recipe, self.history, self.first
        group = self.group
        batch_size = recipe.batch_rows(len(data))
        steps_per_epoch = math.ceil(len(data) / batch_size)
        total = recipe.epochs * steps_per_epoch
        check_every = math.ceil(steps_per_epoch / recipe.checks(len(data)))
        optimiser_step = recipe.optimiser.on(model, recipe.engine, group)
        average = Average(model, optimiser_step.by_row()) if recipe.averaging else None
        early_stopping = None
        if self.valid is not None:
            early_stopping = EarlyStopping(model, average, self.valid, recipe.monitor, recipe.patience, group)
            early_stopping.start_from(history.best)
        device = next(model.parameters()).device
        sent_before, began = group.bytes_sent, time.perf_counter()
        with (
            limited_threads(batch_size * model.backbone.members),
            torch.random.fork_rng(devices=_devices(device)),
            Progress(self.title, total, self.progress if group.leads else False) as bar,
            Interrupt() as interrupt,
            spanning(model, group) as span,
        ):
            # The same on all ranks: what is drawn for a row does not depend on the rank that has it.
            torch.manual_seed(recipe.seed)
            losses = LossLog(history, bar, device)
            start, stop = group.cut(batch_size)
            loss = recipe.engine.loss_function(model, stop - start, group)
            train_step = TrainStep(optimiser_step, average, loss, recipe.clip, span)
            state = TrainingState(model, optimiser_step, average, early_stopping, losses, group)
            done = resume_file.restore(state)
            past = history.seconds
            deadline = began + (math.inf if recipe.budget is None else recipe.budget - past)

            def save() -> None:
                history.seconds = past + time.perf_counter() - began
                resume_file.save(state, done)

            history.stopped_early = early_stopping is not None and early_stopping.should_stop

            def check_if_due() -> None:
                """Check the validation rows, unless it is not time or an interrupted run has done so already."""
                last = history.checks[-1].step if history.checks else 0
                due = done % check_every == 0 or done == total or history.out_of_time
                if first + done == last or not due:
                    return
                if early_stopping is not None:
                    history.checks.append(early_stopping.check(first + done))
                    history.best = early_stopping.best
                    history.stopped_early = early_stopping.should_stop
                # Steps since the check before, which a resumed run knows without having made it.
                self._track(losses, first + (done - 1) // check_every * check_every, first + done, device)

            try:
                check_if_due()  # of a run that was interrupted during its last check
                for step, epoch, part in _parts(data, group, recipe.epochs, batch_size, recipe.seed, done):
                    if history.stopped_early or history.out_of_time:
                        break
                    factor = recipe.decay(step / total)
                    rate = recipe.optimiser.rate * factor
                    optimiser_step.scale_rates(factor)
                    terms = train_step(part)
                    if average is not None and recipe.averaging is not None:
                        average.update(recipe.averaging.weight(step, total))
                    history.rows += part.rows
                    if step % max(1, total // _POINTS) == 0 or step + 1 == total:
                        losses.add(first + step, epoch, rate, terms)
                    done = step + 1
                    # Ranks have clocks of their own and must do the same in every step.
                    history.out_of_time, save_is_due, interrupted = group.any(
                        time.perf_counter() > deadline, resume_file.is_due, interrupt.pending
                    )
                    check_if_due()
                    if save_is_due:
                        save()
                    if self.on_step is not None:
                        self.on_step(to_step(first + step, epoch, rate, terms))
                    if interrupted:
                        raise KeyboardInterrupt
                losses.flush()
                if recipe.finish:
                    save()
            except KeyboardInterrupt:
                if not interrupt.torn:
                    save()
                raise
            finally:
                self.last = first + done
                if average is not None:
                    average.swap()
                if early_stopping is not None:
                    early_stopping.restore()
                history.seconds = past + time.perf_counter() - began
                history.bytes_sent += group.bytes_sent - sent_before
                model.eval()

    def _track(self, losses: LossLog, start: int, stop: int, device: torch.device) -> None:
        """Give the tracker what happened from one step to another; every rank must call this, with or without one."""

        def log() -> None:
            if self.tracker is None:
                return
            history = losses.history
            # Points are kept in order, and those before `start` may be a thousand.
            steps = list(takewhile(lambda point: point.step >= start, reversed(history.steps)))[::-1]
            with torch.random.fork_rng(devices=_devices(device)):
                self.tracker.log(stop, tracked_values(steps, history.checks[-1] if history.checks else None))

        self.group.from_leader(log)


def epoch_seed(seed: int, epoch: int) -> int:
    """The seed of the order of rows in an epoch; neighbouring seeds do not repeat each other's epochs.

    >>> epoch_seed(0, 1), epoch_seed(1, 0)
    (1, 1000003)
    """
    return (seed * 1_000_003 + epoch) % 2**63


def _copied(model: Model) -> Iterator[Tensor]:
    """What is equal on all ranks: weights and statistics, but for the rows of sharded tables."""
    sharded = {id(table.weight) for table in shards_in(model).values()}
    yield from (value for value in (*model.parameters(), *model.buffers()) if id(value) not in sharded)


def _parts(
    data: BatchSource, group: Group, epochs: int, batch_size: int, seed: int, done: int
) -> Iterator[tuple[int, int, BatchPart]]:
    """Step, epoch and this rank's rows of every step from step `done` on.

    Which rows are in a step depends on the seed alone, and on no number of ranks.
    """
    step = 0
    for epoch in range(epochs):
        for part in own_parts(data, group, batch_size, seed=epoch_seed(seed, epoch)):
            if step >= done:
                yield step, epoch, part
            step += 1


@dataclass
class TrainStep:
    """One training step: forward pass, backward pass, sums over all ranks, optimiser step."""

    optimiser_step: OptimiserStep
    average: Average | None
    loss: LossFunction
    clip: float | None
    span: Span = field(default_factory=Span)

    def __call__(self, part: BatchPart) -> dict[str, Tensor]:
        """Take the step for a batch, given its part on this rank, and return the means of its loss terms before it."""
        self.optimiser_step.zero_grad()
        self.span.start, self.span.rows = part.start, part.rows
        with self.optimiser_step.batch_view(part.x) as x:
            names, means = self.loss(x, part.y, part.weight, part.total)
            means.sum().backward()  # type: ignore[no-untyped-call]
        means = self.optimiser_step.exchange(means)
        if self.clip is not None:
            self.optimiser_step.clip(self.clip)
        self.optimiser_step.step(None if self.average is None else self.average.catch_up)
        return dict(zip(names, means.unbind(), strict=True))


def _data_key(data: BatchSource) -> str:
    """A text that other rows or other columns change: their number, all targets, and the first rows and weights."""
    first = next(iter(data.batches(1024)), None)  # a rank may have no rows of its own
    x: Inputs = {} if first is None else first.x
    columns = x if isinstance(x, Mapping) else {"x": x}
    digest = hashlib.sha256(data.targets().cpu().contiguous().numpy().tobytes())
    if first is not None and first.weight is not None:
        digest.update(b"weight" + first.weight.cpu().contiguous().numpy().tobytes())
    for name, column in columns.items():
        digest.update(name.encode() + column.cpu().contiguous().numpy().tobytes())
    return f"{len(data)} rows, checksum {digest.hexdigest()[:16]}"


def _devices(device: torch.device) -> list[int]:
    return [device.index or 0] if device.type == "cuda" else []
