"""Training: batches through a model, its named losses weighted, summed and followed."""

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor

from transun.averaging import Average, Averaging
from transun.evaluation import Rows, Source
from transun.history import History, Step
from transun.journal import Journal, TrainingState
from transun.keeper import Keeper
from transun.metrics import NRMSE, Metric
from transun.model import Model
from transun.optimisers import Adam, Optimiser, constant
from transun.progress import Progress
from transun.spec import dumps

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
        resume: a file that keeps the state of training, written every minute and on Ctrl-C, removed at the end. Where
            it exists, training goes on from it and ends in the same weights as if never interrupted.
        seed: of the order of rows and of dropout.
        on_step: called after each step with its losses; reading them synchronises a GPU every step.
        progress: show a progress bar; None shows it on a terminal.

    """
    _check_arguments(epochs, batch_size, clip, patience, check_every, valid)
    if base is not None or not model.prepared:
        model.prepare(data.targets().double(), base)
    stepper = optimiser.build(model.parameters())
    per_epoch = math.ceil(len(data) / batch_size)
    total = epochs * per_epoch
    average = Average(model) if averaging else None
    keeper = Keeper(model, average, valid, monitor) if valid is not None else None
    every = check_every or per_epoch
    history = History()
    began = time.perf_counter()
    model.train()
    with torch.random.fork_rng(devices=_devices(model)), Progress("training", total, progress) as bar:
        torch.manual_seed(seed)
        state = TrainingState(model, stepper, average, keeper, history)
        journal = Journal(
            resume, f"{dumps(optimiser)}, {epochs} epochs, batch {batch_size}, seed {seed}, {len(data)} rows"
        )
        done = journal.restore(state)
        try:
            for step, epoch, rows in _steps(data, epochs, batch_size, seed, done):
                rate = optimiser.rate * decay(step / total)
                for group in stepper.param_groups:
                    group["lr"] = rate
                terms = _descend(model, rows, stepper, clip)
                if average is not None and averaging is not None:
                    average.update(averaging.weight(step, total))
                history.rows += len(rows.y)
                logged = step % max(1, total // _POINTS) == 0 or step + 1 == total
                if logged or on_step is not None:
                    seen = Step(step, epoch, rate, {name: float(term) for name, term in terms.items()})
                    _require_finite(seen)
                    history.steps += [seen] if logged else []
                    bar.advance(step + 1, f"loss {seen.loss:.4g}")
                done = step + 1
                if keeper is not None and (done % every == 0 or done == total):
                    history.checks.append(keeper.look(done))
                    history.best = keeper.best
                    history.stopped_early = patience is not None and keeper.worse >= patience
                journal.tick(state, done)
                if on_step is not None:
                    on_step(seen)
                if history.stopped_early:
                    break
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


def _descend(model: Model, rows: Rows, stepper: torch.optim.Optimizer, clip: float | None) -> dict[str, Tensor]:
    terms = {name: _mean(term, rows.weight) for name, term in model.loss(rows.x, rows.y).items()}
    stepper.zero_grad()
    torch.stack(tuple(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
    if clip is not None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    stepper.step()
    return {name: term.detach() for name, term in terms.items()}


def _mean(term: Tensor, weight: Tensor | None) -> Tensor:
    if weight is None:
        return term.mean()
    # A batch may happen to hold only rows of weight zero: it teaches nothing.
    return (term * weight).sum() / weight.sum().clamp(min=torch.finfo(weight.dtype).tiny)


def _require_finite(step: Step) -> None:
    for name, value in step.terms.items():
        if not math.isfinite(value):
            raise FloatingPointError(
                f"the loss term {name!r} became {value} in step {step.step}; "
                "lower the learning rate, set `clip`, or wrap the head in Scaled"
            )


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


def _devices(model: Model) -> list[int]:
    parameter = next(model.parameters())
    return [parameter.device.index or 0] if parameter.is_cuda else []
